"""A client that knows the interface document alone works unchanged at the root of the public port."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from contract_client import ContractClient, DeniedError
from live_hub import PASSWORD, LiveHub
from waiting import wait_for

TRAINS = (
    "import mlp\n"
    "for epoch in range(1, 4):\n"
    "    mlp.report(epoch=epoch, loss=1 / epoch, accuracy=1 - 1 / epoch, progress=epoch * 33)\n"
    "print('trained')\n"
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


def test_what_a_manager_of_metrics_is_told_answers_nothing(
    hub: LiveHub, as_user: Callable[[str], ContractClient]
) -> None:
    ann, manager = as_user("ann"), as_user("admin")
    entry = program(hub, "ann", "short.py", TRAINS)
    ann.create_job("ann", "short", entry, cpu=0.2, ram=128)
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
    assert {k: after[k] for k in after if k.endswith("_inuse")} == {
        k: before[k] for k in before if k.endswith("_inuse")
    }


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "train.py", "colour": "red"}),
        ("POST", "/users/ann/jobs", {"name": "a"}),
        ("POST", "/users/ann/jobs", {"name": "", "entry": "train.py"}),
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "../../etc/passwd"}),
        ("POST", "/users/ann/jobs", {"name": "a", "entry": "train.py", "ram": 1}),
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
