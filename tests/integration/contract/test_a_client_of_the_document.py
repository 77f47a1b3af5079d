"""A client that knows the interface document alone works unchanged at the root of the public port."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from support.clients.contract_client import FIELDS, ContractClient, DeniedError
from support.hubs.live_hub import PASSWORD, LiveHub
from support.waiting import wait_for

TRAINS = (
    "import mlp\n"
    "for epoch in range(1, 4):\n"
    "    mlp.report(epoch=epoch, loss=1 / epoch, accuracy=1 - 1 / epoch, progress=epoch * 33)\n"
    "print('trained')\n"
)
KEEPS = (
    "import joblib, os\n"
    "from sklearn.linear_model import LinearRegression\n"
    "line = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])\n"
    "joblib.dump(line, os.path.join(os.environ['MLP_CHECKPOINT_DIR'], 'model.joblib'))\n"
)
WAITS = "import os, pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.05)\n"


@pytest.fixture
def as_user(hub: LiveHub) -> Iterator[Callable[[str], ContractClient]]:
    """Give clients of people; of `` one without a token."""
    made: list[ContractClient] = []

    def client(user: str) -> ContractClient:
        token = user and hub.token(user)
        made.append(ContractClient(f"http://127.0.0.1:{hub.port}", token))
        return made[-1]

    yield client
    for one in made:
        one.close()


def ended(client: ContractClient, user: str, name: str) -> str:
    """Return the state in which a job ended."""
    wait_for(lambda: client.job(user, name)["state"] in ("finished", "error"), message=f"for {name} to end")
    return str(client.job(user, name)["state"])


def gone(look: Callable[[], object]) -> bool:
    """Whether it is refused as what is not there."""
    try:
        look()
    except DeniedError as refused:
        return refused.status == 403
    return False


def program(hub: LiveHub, user: str, name: str, text: str) -> str:
    """Put a program into somebody's home, as a notebook would."""
    home = hub.homes / user
    if not home.exists():
        hub.submit(user, "first", "pass", cpu=0.1, ram=128)
        hub.wait_phase(user, "first", "finished")
    path = home / name
    path.write_text(text)
    stat = home.stat()
    os.chown(path, stat.st_uid, stat.st_gid)
    return name


def test_a_user_registers_is_let_in_gets_tokens_and_leaves(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    stranger = as_user("")
    assert stranger.register("carol", PASSWORD)["state"] == "NotActive"
    with pytest.raises(DeniedError) as taken:
        stranger.register("carol", PASSWORD)
    assert taken.value == DeniedError(403, "")
    with pytest.raises(DeniedError) as unknown:
        stranger.auth()
    assert unknown.value == DeniedError(401, "")
    hub.ok("PUT", "/users/carol:approve")
    carol = as_user("carol")
    assert carol.auth() == "carol"
    other = ContractClient(f"http://127.0.0.1:{hub.port}", carol.token("carol"))
    assert other.auth() == "carol"
    # whatever user is sent along is ignored
    assert (
        other.deregister("carol", {"username": "carol", "password": "x", "state": "Actived"})["state"]
        == "NotActive"
    )
    for client in (carol, other):
        with pytest.raises(DeniedError) as out:
            client.auth()
        assert out.value == DeniedError(401, "")
    other.close()


def test_a_job_is_made_watched_and_deleted(hub: LiveHub, as_user: Callable[[str], ContractClient]) -> None:
    ann = as_user("ann")
    entry = program(hub, "ann", "train.py", TRAINS)
    made = ann.create_job("ann", "digits", entry, tenant="default", gpu=0, cpu=0.5, ram=200)
    assert (made["user"], made["tenant"], made["entry"], made["cpu"], made["ram"]) == (
        "ann", "default", "train.py", 0.5, 200,
    )  # fmt: skip
    points = list(ann.points("ann", "digits"))
    assert ended(ann, "ann", "digits") == "finished"
    assert [(p["user"], p["name"], p["epoch"], p["progress"]) for p in points] == [
        ("ann", "digits", epoch, epoch * 33) for epoch in (1, 2, 3)
    ]
    assert [p["loss"] for p in points] == [1, 1 / 2, 1 / 3]
    assert "digits" in [job["name"] for job in ann.jobs("ann")]
    assert ann.delete_job("ann", "digits")["name"] == "digits"
    wait_for(lambda: "digits" not in [job["name"] for job in ann.jobs("ann")])


def test_a_job_of_the_documents_own_runtime_and_no_optional_field_runs(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    ann = as_user("ann")
    entry = program(hub, "ann", "plain.py", "print('hello')\n")
    assert ann.create_job("ann", "bare", entry)["state"] in ("creating", "running", "finished")
    made = ann.create_job("ann", "flow", entry, runtime="tf", cpu=0.5, ram=200)
    assert made["runtime"] == "tf"
    assert [ended(ann, "ann", name) for name in ("bare", "flow")] == ["finished", "finished"]


def test_a_job_says_how_it_is_doing_and_is_deleted_only_after_its_end(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    ann = as_user("ann")
    entry = program(hub, "ann", "waits.py", WAITS)
    ann.create_job("ann", "slow", entry, cpu=0.2, ram=128)
    wait_for(lambda: ann.job("ann", "slow")["state"] == "running", message="for slow to run")
    assert ann.heartbeat("ann", "slow", "running", 40) == ""
    wait_for(lambda: ann.job("ann", "slow")["progress"] == 40)
    with pytest.raises(DeniedError) as runs:
        ann.delete_job("ann", "slow")
    assert runs.value == DeniedError(403, "")
    (hub.homes / "ann" / "go").touch()
    assert ended(ann, "ann", "slow") == "finished"
    assert ann.delete_job("ann", "slow")["state"] in ("deleting", "finished")


@pytest.mark.parametrize("name", ["pets", "pets.of.ann", "d" * 50])
def test_a_dataset_is_made_uploaded_and_deleted(
    hub: LiveHub, as_user: Callable[[str], ContractClient], name: str
) -> None:
    ann, bob = as_user("ann"), as_user("bob")
    made = ann.create_dataset("ann", name, 1000, user="ann", tenant="default")
    assert {k: made[k] for k in FIELDS["Dataset"]} == {
        "name": name, "user": "ann", "tenant": "default", "size": 1000, "state": "creating", "progress": 0,
    }  # fmt: skip
    with pytest.raises(DeniedError) as again:
        ann.create_dataset("ann", name, 1000)
    assert again.value == DeniedError(403, "")
    assert ann.put_file("ann", name, "cats.csv", b"tom" * 100) == 201
    assert ann.dataset_heartbeat("ann", name, "creating", 50) == ""
    assert ann.dataset("ann", name)["progress"] == 50
    with pytest.raises(DeniedError) as early:
        ann.delete_dataset("ann", name)
    assert early.value == DeniedError(403, "")
    assert ann.dataset_heartbeat("ann", name, "ready", 100) == ""
    wait_for(lambda: ann.dataset("ann", name)["size"] == 300, message="for the exact size")
    assert (ann.dataset("ann", name)["state"], ann.get_file("ann", name, "cats.csv")) == (
        "ready",
        b"tom" * 100,
    )
    assert (bob.get_file("ann", name, "cats.csv"), as_user("").get_file("ann", name, "cats.csv")) == (
        404,
        401,
    )
    assert ann.delete_dataset("ann", name)["state"] == "deleting"
    wait_for(lambda: gone(lambda: ann.dataset("ann", name)), message="for it to be gone")


def test_an_upload_that_failed_is_deleted_and_so_is_one_by_its_files(
    as_user: Callable[[str], ContractClient],
) -> None:
    ann = as_user("ann")
    for name in ("failed", "filed"):
        ann.create_dataset("ann", name, 10)
    assert ann.dataset_heartbeat("ann", "failed", "error", 3) == ""
    assert ann.dataset("ann", "failed")["state"] == "error"
    assert ann.delete_dataset("ann", "failed")["state"] == "deleting"
    assert ann.put_file("ann", "filed", "x", b"1234") == 201
    assert ann.dataset_heartbeat("ann", "filed", "ready", 100) == ""
    assert ann.delete_files("ann", "filed") == 204
    for name in ("failed", "filed"):
        wait_for(lambda name=name: gone(lambda: ann.dataset("ann", name)), message=f"for {name} to be gone")


def test_the_output_of_a_job_becomes_a_model_and_the_model_an_app(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    ann = as_user("ann")
    ann.create_job("ann", "keeps", program(hub, "ann", "keeps.py", KEEPS), cpu=0.5, ram=1024)
    assert ended(ann, "ann", "keeps") == "finished"
    # a value is letters there, unless something else is said: a source is the name of a job
    made = ann.create_model("ann", "line", "keeps", tenant="default")
    assert (made["name"], made["user"], made["tenant"]) == ("line", "ann", "default")
    wait_for(lambda: ann.model("ann", "line")["state"] != "creating", message="for the model")
    assert ann.model("ann", "line")["state"] == "ready"
    assert ann.model("ann", "line")["size"] > 0
    name = "a" * 50
    app = ann.create_app("ann", name, "line", gpu=0, cpu=0.5, ram=1024)
    assert (app["user"], app["tenant"], app["cpu"], app["ram"]) == ("ann", "default", 0.5, 1024)
    assert app["model_name"].startswith("line")
    wait_for(lambda: ann.app("ann", name)["state"] == "ready", message="for the app to answer")
    assert ann.app("ann", name)["port"] == app["port"]
    assert ann.delete_app("ann", name)["state"] == "deleting"
    wait_for(lambda: gone(lambda: ann.app("ann", name)), message="for the app to be gone")
    assert ann.delete_model("ann", "line")["state"] == "deleting"
    wait_for(lambda: gone(lambda: ann.model("ann", "line")), message="for the model to be gone")


def test_metrics_commands_of_a_manager_answer_nothing(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    ann, manager = as_user("ann"), as_user("admin")
    entry = program(hub, "ann", "short.py", TRAINS)
    ann.create_job("ann", "short", entry, cpu=0.2, ram=128)
    assert manager.metrics("ann", "short", "begin") == ""
    ended(ann, "ann", "short")
    assert [manager.metrics("ann", "short", verb) for verb in ("finish", "delete")] == ["", ""]
    assert list(ann.points("ann", "short")) == []
    with pytest.raises(DeniedError):
        ann.metrics("ann", "short", "delete")


def test_resources_are_tried_confirmed_and_cancelled_however_often(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    manager = as_user("admin")
    before = manager.tenant("default")
    for _ in range(2):
        assert (
            manager.resource("try", "r1", "jm", request_type="request", tenant="default", cpu=0.5, ram=128)
            == ""
        )
        assert manager.tenant("default")["cpu_inuse"] == pytest.approx(before["cpu_inuse"] + 0.5)
    assert [manager.resource("confirm", "r1", "jm") for _ in range(2)] == ["", ""]
    for _ in range(2):
        assert manager.resource("try", "r1", "jm", request_type="release") == ""
        assert manager.resource("confirm", "r1", "jm") == ""
    assert manager.tenant("default")["cpu_inuse"] == pytest.approx(before["cpu_inuse"])
    assert manager.resource("try", "r2", "mm", request_type="request", rom=1000) == ""
    assert [manager.resource("cancel", "r2", "mm") for _ in range(2)] == ["", ""]
    assert [manager.resource(verb, "nobody", "dm") for verb in ("confirm", "cancel")] == ["", ""]
    after = manager.tenant("default")
    # what homes take on the disk is measured again meanwhile
    held = {k for k in after if k.endswith("_inuse") and k != "rom_inuse"}
    assert {k: after[k] for k in held} == {k: before[k] for k in held}
    assert after["rom_inuse"] < before["rom_inuse"] + 1000 * 1024**2


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "train.py", "colour": "red"}),
        ("POST", "/users/ann/jobs", {"name": "a"}),
        ("POST", "/users/ann/jobs", {"name": "", "entry": "train.py"}),
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "../../etc/passwd"}),
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "train.py", "ram": 1}),
        ("POST", "/users/ann/datasets", {"name": "a"}),
        ("POST", "/users/ann/datasets", {"name": "a", "size": -1}),
        ("POST", "/users/ann/datasets", {"name": "a", "size": 1, "state": "ready"}),
        ("POST", "/users/ann/datasets", {"name": "a", "size": 1, "user": "bob"}),
        ("PUT", "/users/ann/datasets/none:heartbeat", {"state": "ready", "progress": 100}),
        ("DELETE", "/users/ann/datasets/none", None),
        ("POST", "/users/ann/models", {"name": "a"}),
        ("POST", "/users/ann/models", {"name": "a", "src": "nosuchjob"}),
        ("DELETE", "/users/ann/models/none", None),
        ("POST", "/users/ann/apps", {"name": "a"}),
        ("POST", "/users/ann/apps", {"name": "a", "model_name": "none"}),
        ("DELETE", "/users/ann/apps/none", None),
        ("PUT", "/users/ann/jobs/none:heartbeat", {"state": "creating", "progress": 1}),
        ("PUT", "/users/ann/jobs/none:heartbeat", {"state": "running", "progress": 101}),
        ("GET", "/users/ann/jobs/none", None),
        ("GET", "/users/bob/jobs", None),
        ("GET", "/users/bob/token", None),
        ("PUT", "/users/bob", {}),
        ("GET", "/nothing/here", None),
        ("PUT", "/resource_request:try", {"id": "x", "applier": "jm", "request_type": "request"}),
    ],
)
def test_an_illegal_request_is_403_with_a_message(
    as_user: Callable[[str], ContractClient], method: str, path: str, body: object
) -> None:
    with pytest.raises(DeniedError) as refused:
        as_user("ann").send(method, path, body)
    assert refused.value == DeniedError(403, "")
