"""`mlp data` with a real service and the process that holds files: whatever is killed, said again it goes on, and all is verified."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import mlp.data
from mlp.aio import AsyncClient
from mlp.cli import main
from mlp.client.connection import Answer
from mlp.client.rest import Client
from mlp.client.transport import Address
from mlp.data import pushing, remote
from mlp.errors import MLPError, Refused, TransferFailed, TransferStopped, UsageError
from support.ports import free_port
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import DavAt
from support.waiting import PATIENCE_S, wait_for

MIB = 2**20
_numbers = itertools.count()
_KILLED_AT = """
import os, signal, sys
from mlp import data
from mlp.client.rest import Client
from mlp.data import pushing
act, here, name, at, url, data_url = sys.argv[1:]
def told(done, total):
    if done >= int(at):
        os.kill(os.getpid(), signal.SIGKILL)
client = Client(url, "ann-token", "ann", data_url=data_url)
data.push(here, name, progress=told, client=client) if act == "push" else data.pull(name, here, progress=told, client=client)
"""


@pytest.fixture(scope="module")
def dav(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavAt]:
    rig.tenant("store", "rita", members=("ann",), rom=300 * MIB)
    found = DavAt(rig, tmp_path_factory.mktemp("files"))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def name() -> str:
    return f"pets{next(_numbers)}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory of 8 MiB: large, small, empty, odd."""
    top = tmp_path / "tree"
    (top / "a" / "b").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "large").write_bytes(os.urandom(5 * MIB))
    (top / "a" / "b" / "other").write_bytes(os.urandom(3 * MIB))
    (top / "a" / "nothing").touch()
    (top / "a" / "odd & 百 <x>").write_bytes(b"odd")
    return top


def contents(top: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(top)): None if path.is_dir() else path.read_bytes() for path in top.rglob("*")
    }


def stored(rig: ApiRig, name: str) -> dict[str, bytes | None]:
    return contents(rig.root / "datasets" / "ann" / name)


def state(rig: ApiRig, name: str) -> str:
    return str(rig.ask("GET", f"/users/ann/datasets/{name}", token=rig.ann).json["state"])


def killed_at(dav: DavAt, act: str, here: Path, name: str, at: int) -> None:
    """Have another process do it, which kills itself once so many bytes are done."""
    client = dav.client()
    data_url = f"http+unix://{str(dav.tenants).replace('/', '%2F')}/data"
    argv = [sys.executable, "-c", _KILLED_AT, act, str(here), name, str(at), client.url, data_url]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_all_goes_up_and_comes_down_as_it_is_and_nothing_twice(
    rig: ApiRig, dav: DavAt, tree: Path, name: str, tmp_path: Path
) -> None:
    (tree / "link").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe")
    (tree / os.fsdecode(b"no\xfftext")).touch()
    client = dav.client()
    steps: list[tuple[int, int]] = []
    first = mlp.data.push(tree, name, tenant="store", client=client, progress=lambda *now: steps.append(now))
    assert first.data["sent"] == ["a/b/other", "a/nothing", "a/odd & 百 <x>", "large"]
    assert first.data["left_out"] == ["link", "no\ufffdtext", "pipe"]
    assert (steps[-1], state(rig, name)) == ((8 * MIB + 3, 8 * MIB + 3), "ready")
    again = mlp.data.push(tree, name, client=client)
    assert (again.data["sent"], again.data["there"]) == ([], 4)
    for left_out in ("link", "pipe", os.fsdecode(b"no\xfftext")):
        (tree / left_out).unlink()
    there = tmp_path / "there"
    assert len(mlp.data.pull(name, there, client=client).data["came"]) == 4
    assert contents(there) == contents(tree) == stored(rig, name)
    assert mlp.data.pull(name, there, client=client).data["came"] == []
    (tree / "a" / "nothing").write_bytes(b"something")
    assert mlp.data.push(tree, name, client=client).data["sent"] == ["a/nothing"]
    assert mlp.data.pull(name, there, client=client).data["came"] == ["a/nothing"]
    assert mlp.data.pull(f"{name}:a/nothing", there / "a" / "b", client=client).data["came"] == ["a/nothing"]
    assert (there / "a" / "b" / "nothing").read_bytes() == b"something"


def test_a_push_can_be_killed_at_any_byte(rig: ApiRig, dav: DavAt, tree: Path, name: str) -> None:
    for at in (0, 1, MIB, 5 * MIB - 1, 8 * MIB):
        killed_at(dav, "push", tree, name, at)
    assert state(rig, name) == "creating"
    for path, body in stored(rig, name).items():
        assert body == contents(tree)[path], "what is in place is whole"
    done = mlp.data.push(tree, name, client=dav.client())
    assert done.data["there"] + len(done.data["sent"]) == 4
    assert (stored(rig, name), state(rig, name)) == (contents(tree), "ready")
    wait_for(lambda: not list((rig.root / ".uploads").iterdir()), message="for what was cut to be gone")


def test_a_pull_can_be_killed_at_any_byte(
    rig: ApiRig, dav: DavAt, tree: Path, name: str, tmp_path: Path
) -> None:
    mlp.data.push(tree, name, client=dav.client())
    there = tmp_path / "there"
    for at in (1, MIB, 6 * MIB):
        killed_at(dav, "pull", there, name, at)
        whole = {p: b for p, b in contents(there).items() if not p.rpartition("/")[2].startswith(".mlp-")}
        assert whole.items() <= contents(tree).items()
    mlp.data.pull(name, there, client=dav.client())
    assert contents(there) == contents(tree)


def test_the_process_of_files_may_be_killed_in_the_middle(
    rig: ApiRig, dav: DavAt, tree: Path, name: str, tmp_path: Path
) -> None:
    kills = iter((MIB, 4 * MIB, 7 * MIB))
    due = [next(kills)]
    lock = threading.Lock()

    def told(done: int, _: int) -> None:
        with lock:
            if due and done >= due[0]:
                due[:] = [at for at in (next(kills, 0),) if at]
                dav.kill()
                dav.start()

    mlp.data.push(tree, name, client=dav.client(), progress=told)
    assert (stored(rig, name), state(rig, name), due) == (contents(tree), "ready", [])
    due[:], kills = [2 * MIB], iter((6 * MIB,))
    mlp.data.pull(name, tmp_path / "there", client=dav.client(), progress=told)
    assert (contents(tmp_path / "there"), due) == (contents(tree), [])


def test_a_quota_that_ends_in_the_middle_is_told_and_the_rest_goes_later(
    rig: ApiRig, dav: DavAt, name: str, tmp_path: Path
) -> None:
    tenant = f"small{next(_numbers)}"
    rig.tenant(tenant, "rita", members=("ann",), rom=100 * MIB)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3):
        (many / f"f{number}").write_bytes(os.urandom(4 * MIB))
    (many / "huge").write_bytes(b"x" * (96 * MIB))  # more than is read of what is refused
    client = dav.client()
    with pytest.raises(Refused) as at_once:
        mlp.data.push(many, name, tenant=tenant, client=client)
    assert "rom" in str(at_once.value) or "storage" in str(at_once.value), at_once.value
    with pytest.raises(Refused, match=r"dataset .* does not exist"):
        client.dataset(name)
    made = rig.ask("POST", "/users/ann/datasets", {"name": name, "size": 0, "tenant": tenant}, token=rig.ann)
    assert made.status == 201
    with pytest.raises(Refused) as refused:
        mlp.data.push(many, name, client=client, workers=1)
    assert refused.value.reason in {"WaitingForQuota", "ExceedsMaxQuota"}, refused.value
    assert state(rig, name) == "error"
    assert set(stored(rig, name)) == {"f0", "f1", "f2"}
    (many / "huge").write_bytes(b"small by now")
    assert mlp.data.push(many, name, client=client).data["sent"] == ["huge"]
    assert (stored(rig, name), state(rig, name)) == (contents(many), "ready")


def test_two_pushes_of_one_dataset_at_once_both_end_well(
    rig: ApiRig, dav: DavAt, tree: Path, name: str
) -> None:
    both = threading.Barrier(2)
    ended: list[Any] = []

    def push() -> None:
        both.wait(PATIENCE_S)
        try:
            ended.append(mlp.data.push(tree, name, client=dav.client()).data["state"])
        except MLPError as error:
            ended.append(error)

    threads = [threading.Thread(target=push) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert ended == ["ready", "ready"]
    assert (stored(rig, name), state(rig, name)) == (contents(tree), "ready")


def test_a_file_that_is_written_to_while_it_is_read_is_told(
    rig: ApiRig, dav: DavAt, tree: Path, name: str
) -> None:
    growing = tree / "large"

    def told(done: int, _: int) -> None:
        if done:
            with growing.open("ab") as file:
                file.write(b"more")

    with pytest.raises(TransferFailed, match="large: changed while being read"):
        mlp.data.push(tree, name, client=dav.client(), progress=told)
    assert state(rig, name) == "error"
    mlp.data.push(tree, name, client=dav.client())
    assert (stored(rig, name), state(rig, name)) == (contents(tree), "ready")


def test_a_stopped_push_leaves_an_incomplete_dataset_and_can_continue(
    rig: ApiRig, dav: DavAt, tree: Path, name: str
) -> None:
    stop = threading.Event()
    with pytest.raises(TransferFailed):
        mlp.data.push(
            tree, name, client=dav.client(), stop=stop, progress=lambda done, _: done > MIB and stop.set()
        )
    assert state(rig, name) == "error"
    assert mlp.data.push(tree, name, client=dav.client()).data["state"] == "ready"
    assert stored(rig, name) == contents(tree)


def test_files_and_datasets_are_listed_and_removed(
    rig: ApiRig, dav: DavAt, tree: Path, name: str, tmp_path: Path
) -> None:
    client = dav.client()
    mlp.data.push(tree / "large", f"{name}:deep/down/", client=client)
    mlp.data.push(tree / "large", f"{name}:deep/other", client=client)
    assert set(stored(rig, name)) == {"deep", "deep/down", "deep/down/large", "deep/other"}
    listed = mlp.data.ls(f"{name}/deep", client=client)
    assert [(e["name"], e["kind"], e["size"]) for e in listed.data] == [
        ("down", "directory", 0),
        ("other", "file", 5 * MIB),
    ]
    mlp.data.rm(f"{name}:deep/down", client=client)
    assert set(stored(rig, name)) == {"deep", "deep/other"}
    with pytest.raises(Refused):
        mlp.data.rm(f"{name}:deep/nothing", client=client)
    elsewhere = f"elsewhere{next(_numbers)}"
    rig.tenant(elsewhere, "rita", members=("ann",), rom=300 * MIB)
    with pytest.raises(UsageError, match="is a dataset of team "):
        mlp.data.push(tree, name, tenant=elsewhere, client=client)
    client.beat(name, "creating", 5)  # whoever uploads it was killed
    assert name in [d["name"] for d in mlp.data.ls(client=client).data]
    mlp.data.rm(name, client=client)
    wait_for(lambda: name not in [d["name"] for d in client.datasets()], message="for the dataset to be gone")
    with pytest.raises(Refused):
        mlp.data.pull(name, tmp_path / "none", client=client)


def test_nobody_elses_datasets_are_reached(dav: DavAt, tree: Path, name: str, tmp_path: Path) -> None:
    mlp.data.push(tree, name, client=dav.client())
    with pytest.raises(Refused):
        mlp.data.pull(name, tmp_path / "none", client=dav.client("bob-token", "bob"))
    with pytest.raises(Refused):
        mlp.data.pull(name, tmp_path / "none", client=dav.client("bob-token", "ann"))


def test_the_command_prints_json_and_its_status(
    dav: DavAt,
    tree: Path,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLP_API_URL", dav.client().url)
    monkeypatch.setenv("MLP_DATA_URL", f"http+unix://{str(dav.tenants).replace('/', '%2F')}/data")
    monkeypatch.setenv("MLP_TOKEN", "ann-token")
    assert main(["data", "push", str(tree), name, "--json"]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["bytes"], told.err) == (8 * MIB + 3, ""), "no bar where nobody sees one"
    assert main(["data", "pull", name, str(tmp_path / "there")]) == 0
    assert "4 files were fetched, 8 MiB in total" in capsys.readouterr().out
    assert main(["data", "ls", "--json"]) == 0
    assert name in [d["name"] for d in json.loads(capsys.readouterr().out)]
    assert main(["data", "push", str(tree / "nowhere"), name]) == 2
    assert main(["data", "push", str(tree), "No Name"]) == 2
    assert main(["data", "ls", f"{name}:../other"]) == 2
    assert main(["data", "fetch", name]) == 2
    monkeypatch.chdir(tmp_path)
    assert main(["data", "pull", "nothing-here"]) == 3
    assert not Path("nothing-here").exists()
    assert main(["data", "rm", name]) == 0
    capsys.readouterr()


def test_pods_connect_to_a_separate_port_with_a_token(
    dav: DavAt, tree: Path, name: str, tmp_path: Path
) -> None:
    there = f"http://127.0.0.1:{dav.port}/data"
    ours = Client(dav.client().url, "ann-token", "ann", data_url=there)
    mlp.data.push(tree, name, client=ours)
    mlp.data.pull(name, tmp_path / "there", client=ours)
    assert contents(tmp_path / "there") == contents(tree)
    for token in ("bob-token", "made-up", ""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        for method in ("PROPFIND", "DELETE", "PUT"):
            said = httpx.request(method, f"{there}/ann/{name}/x", headers=headers, timeout=PATIENCE_S)
            assert said.status_code in {401, 403, 404}, (method, token, said.text)


async def test_the_same_from_asyncio_and_who_cancels_stops_it(
    rig: ApiRig, dav: DavAt, tree: Path, name: str
) -> None:
    import asyncio

    from mlp import aio

    client = dav.client()

    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told(done: int, _: int) -> None:
        if done > MIB:
            loop.call_soon_threadsafe(reached.set)

    work = asyncio.create_task(aio.data.push(tree, name, client=client, progress=told, workers=1))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await aio.data.push(tree, name, client=client)
    assert (await AsyncClient(client).dataset(name))["state"] == "ready"
    assert stored(rig, name) == contents(tree)


def test_a_session_of_the_panel_reads_and_writes_and_no_other_page_does(
    rig: ApiRig, dav: DavAt, tree: Path, name: str
) -> None:
    mlp.data.push(tree, name, client=dav.client())
    file = f"/services/mlp/data/ann/{name}/large"
    _, headers = rig.session("ann", rig.ann)
    assert dav.ask("GET", file, headers).body == (tree / "large").read_bytes()
    assert dav.ask("PUT", file, headers, b"new").status == 204
    bare = {k: v for k, v in headers.items() if k != "X-XSRFToken"}
    for method in ("PUT", "DELETE", "MKCOL"):
        assert dav.ask(method, file, bare, b"").status == 403, method
        assert dav.ask(method, file, {**headers, "X-XSRFToken": "wrong"}, b"").status == 403, method
        assert dav.ask(method, file, {**headers, "Sec-Fetch-Site": "same-site"}, b"").status == 403, method
    assert dav.ask("DELETE", f"/services/mlp/data/ann/{name}", bare).status == 403
    assert dav.ask("GET", file, headers).body == b"new"
    over = dav.ask("GET", file, {"Cookie": "mlp-session=nothing"})
    assert (over.status, over.headers.get("www-authenticate")) == (401, None)
    assert dav.ask("GET", file, {"Cookie": "x" * 9000}).status == 400
    _, theirs = rig.session("bob", rig.bob)
    assert dav.ask("GET", file, theirs).status == 404


def test_no_crowd_of_sandboxes_is_in_the_way_of_the_proxy(dav: DavAt) -> None:
    crowd = []
    try:
        for _ in range(60):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.settimeout(PATIENCE_S)
            one.connect(str(dav.tenants))
            crowd.append(one)
            with contextlib.suppress(BrokenPipeError):  # it is told already that there are too many
                one.send(b"GET /data/ann/x HTTP/1.1\r\n")  # and nothing more
        told = wait_for(lambda: len(found := select.select(crowd, [], [], 0)[0]) >= 40 and found)
        assert {one.recv(12) for one in told} == {b"HTTP/1.1 503"}
        assert dav.ask("GET", "/data/ann/nothing/x").status == 404
    finally:
        for one in crowd:
            one.close()
    client = dav.client()
    wait_for(lambda: isinstance(client.datasets(), list), message="for an answer")


def test_an_interrupted_large_file_continues_from_the_received_bytes(
    rig: ApiRig, dav: DavAt, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "PART", MIB)
    large = tmp_path / "large"
    large.write_bytes(os.urandom(5 * MIB + 7))
    stop = threading.Event()

    def until_half(done: int, _: int) -> None:
        if done > 3 * MIB:
            stop.set()

    with pytest.raises(TransferStopped):
        mlp.data.push(large, name, tenant="store", client=dav.client(), stop=stop, progress=until_half)
    dav.kill()
    dav.start()
    steps: list[int] = []
    done = mlp.data.push(large, name, client=dav.client(), progress=lambda now, _: steps.append(now))
    assert done.data["sent"] == ["large"]
    assert next(filter(None, steps)) >= 3 * MIB, "what came is not sent again"
    assert stored(rig, name)["large"] == large.read_bytes()
    assert state(rig, name) == "ready"


def test_large_files_survive_deaths_of_the_process_of_files(
    rig: ApiRig, dav: DavAt, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "PART", MIB)
    large = tmp_path / "large"
    large.write_bytes(os.urandom(6 * MIB + 7))
    kills = [2 * MIB, 5 * MIB]

    def told(done: int, _: int) -> None:
        if kills and done >= kills[0]:
            kills.pop(0)
            dav.kill()
            dav.start()

    mlp.data.push(large, name, tenant="store", client=dav.client(), progress=told)
    assert (stored(rig, name)["large"], kills) == (large.read_bytes(), [])


NGINX = """daemon off; pid {at}/pid; error_log stderr warn; {user}
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
  uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi; client_max_body_size 0; proxy_request_buffering off;
  server {{ listen 127.0.0.1:{port}; keepalive_requests 2; location / {{ proxy_pass http://127.0.0.1:{to}; }} }}
}}
"""


@pytest.fixture
def through_nginx(dav: DavAt, tmp_path: Path) -> Iterator[Client]:
    at, port = tmp_path / "nginx", free_port()
    at.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    (at / "conf").write_text(NGINX.format(at=at, port=port, to=dav.port, user=user))
    with subprocess.Popen(
        ["nginx", "-p", str(at), "-c", str(at / "conf")], stderr=subprocess.DEVNULL
    ) as child:
        try:
            wait_for(lambda: _connects(port), message="for nginx")
            client = dav.client()
            client.data = Address.parse(f"http://127.0.0.1:{port}/data")
            yield client
        finally:
            child.terminate()


def _connects(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.mark.skipif(
    shutil.which("nginx") is None, reason="nginx is not installed: apt-get install nginx-light"
)
def test_a_proxy_that_ends_connections_after_some_requests_ends_no_transfer(
    rig: ApiRig, through_nginx: Client, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "PART", 1000)
    top = tmp_path / "many"
    top.mkdir()
    for n in range(25):
        (top / f"f{n}").write_bytes(os.urandom(100 if n else 5000))
    done = mlp.data.push(top, name, tenant="store", client=through_nginx)
    assert len(done.data["sent"]) == 25
    assert len(mlp.data.pull(name, tmp_path / "there", client=through_nginx).data["came"]) == 25
    assert contents(tmp_path / "there") == contents(top) == stored(rig, name)


def test_a_transfer_outlives_a_service_that_is_away(
    rig: ApiRig, dav: DavAt, name: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request, one between files and the last one are each answered 503 for longer than a plain client is patient."""
    away, clock, once = {"POST": 3, "PUT": 2}, itertools.count(0, 6), Client._once

    def answers(self: Client, method: str, *args: Any) -> Any:
        if away.get(method, 0) > 0:
            away[method] -= 1
            return Answer(503, {}, b'{"msg": "the hub does not answer"}')
        return once(self, method, *args)

    monkeypatch.setattr(Client, "_once", answers)
    client = dav.client()
    client.patience, client.clock, client.sleep = 10.0, lambda: float(next(clock)), lambda _: None
    assert len(mlp.data.push(tree, name, tenant="store", client=client).data["sent"]) == 4
    assert (state(rig, name), away) == ("ready", {"POST": 0, "PUT": 0})


def test_small_files_go_and_come_many_in_a_request(
    rig: ApiRig, dav: DavAt, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    for number in range(450):
        file = tree / f"{number % 2}" / f"{number:04} ü&#.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * number)
    (tree / "large").write_bytes(os.urandom(2 * MIB))
    asked: Counter[str] = Counter()
    begin = remote.Remote._begin

    def counted(self: remote.Remote, connection: Any, method: str, path: str, *more: Any) -> None:
        asked[method] += 1
        begin(self, connection, method, path, *more)

    monkeypatch.setattr(remote.Remote, "_begin", counted)
    mlp.data.push(tree, name, client=dav.client())
    assert (asked["POST"], asked["PUT"]) == (3, 1)
    asked.clear()
    there = tmp_path / "there"
    mlp.data.pull(name, there, client=dav.client())
    assert contents(there) == contents(tree)
    assert asked["GET"] <= 12, "lists of three directories, six times many files, and the large one"


def test_files_come_one_by_one_where_the_answer_with_many_cannot_be_read(
    dav: DavAt, tree: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlp.data.push(tree, name, client=dav.client())
    whole, mangled = remote._whole, []

    def other(response: Any, most: int = remote.ANSWER_MAX) -> Answer:
        answer = whole(response, most)
        if answer.headers.get("content-type") != remote.PACKED:
            return answer
        mangled.append(answer)
        return Answer(answer.status, answer.headers, b"no list")

    monkeypatch.setattr(remote, "_whole", other)
    mlp.data.pull(name, tmp_path / "there", client=dav.client())
    assert mangled
    assert contents(tmp_path / "there") == contents(tree)


def test_a_directory_is_listed_in_pages(rig: ApiRig, dav: DavAt, name: str, tmp_path: Path) -> None:
    mlp.data.push(_with_names(tmp_path / "few", 3), name, tenant="store", client=dav.client())
    top = rig.root / "datasets" / "ann" / name
    _with_names(top, 25)
    (top / "z").mkdir()
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = json.loads(dav.ask("GET", f"/data/ann/{name}/?entries&limit=10&after={quote(after)}").body)
        assert len(page["entries"]) <= 10
        found += [entry["name"] for entry in page["entries"]]
        after = page["next"]
    assert found == ["z", *sorted(f"f{n}" for n in range(25))]
    assert len(mlp.data.ls(name, client=dav.client()).rows) == 26
    assert dav.ask("GET", f"/data/ann/{name}/none?entries").status == 404
    assert dav.ask("GET", f"/data/ann/{name}/?entries&limit=x").status == 400
    one = json.loads(dav.ask("GET", f"/data/ann/{name}/f1?entries").body)["entries"]
    assert [(entry["name"], entry["directory"], entry["size"]) for entry in one] == [("f1", False, 1)]


def _with_names(top: Path, n: int) -> Path:
    top.mkdir(exist_ok=True)
    for at in range(n):
        (top / f"f{at}").write_bytes(b"x")
    return top
