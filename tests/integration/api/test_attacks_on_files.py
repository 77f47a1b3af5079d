"""Attacks on datasets' files: listings that fill the memory, headers that are none, deletions under an upload, room beyond a file's end."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import hashlib
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mlp_hub.dav.authorization import MOST_OF_USER
from mlp_hub.dav.serving import THREADS
from mlp_hub.executors.shared_volume.trees.sizes import length_of
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import DavRig, serving
from support.waiting import PATIENCE_S, wait_for


@pytest.fixture(scope="module")
def dav(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavRig]:
    with serving(rig, tmp_path_factory.mktemp("dav")) as found:
        yield found


@pytest.fixture
def data(rig: ApiRig, request: pytest.FixtureRequest) -> str:
    """A dataset of ann's, by its path."""
    name = f"set-{abs(hash(request.node.nodeid))}"
    made = rig.ask("POST", "/users/ann/datasets", {"name": name, "size": 0}, token=rig.ann)
    assert made.status == 201, made.body
    return f"/data/ann/{name}"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([f"p{n}" for n in range(100)], id="many"),
        pytest.param(["p" * 10_000], id="long"),
    ],
)
def test_no_listing_answers_more_than_it_may_hold(dav: DavRig, data: str, names: list[str]) -> None:
    assert dav.ask("PUT", f"{data}/f", b"x").status == 201
    asked = "".join(f"<a:{name}/>" for name in names)
    body = f'<D:propfind xmlns:D="DAV:" xmlns:a="urn:a"><D:prop>{asked}</D:prop></D:propfind>'.encode()
    refused = dav.ask("PROPFIND", f"{data}/", body, headers={"Depth": "1"})
    assert (refused.status, "request fewer" in refused.json["msg"]) == (403, True)
    few = b'<D:propfind xmlns:D="DAV:"><D:prop><D:getetag/><D:getcontentlength/></D:prop></D:propfind>'
    assert dav.ask("PROPFIND", f"{data}/", few, headers={"Depth": "1"}).status == 207


@pytest.mark.parametrize("begin", ["//{host}", "http%3A%2F%2F{host}", "%2F/{host}"])
@pytest.mark.parametrize("verb", ["COPY", "MOVE"])
def test_no_spelling_of_a_destination_takes_a_files_own_ground_away(
    dav: DavRig, data: str, verb: str, begin: str
) -> None:
    assert dav.ask("MKCOL", f"{data}/dir").status == 201
    assert dav.ask("PUT", f"{data}/dir/a", b"a").status == 201
    to = begin.format(host=f"127.0.0.1:{dav.port}") + f"{data}/dir"
    refused = dav.ask(verb, f"{data}/dir/a", headers={"Destination": to})
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")
    assert dav.ask("GET", f"{data}/dir/a").body == b"a"


def test_file_names_that_are_not_text_do_not_keep_a_directory_from_being_listed(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    assert dav.ask("PUT", f"{data}/plain", b"x").status == 201
    directory = bytes(rig.root / "datasets" / "ann" / data.rpartition("/")[2])
    for name in (b"no\xfftext", b"bell\x07", b"line\nfeed"):
        Path(os.fsdecode(directory + b"/" + name)).write_bytes(b"y")
    listed = dav.ask("PROPFIND", f"{data}/", headers={"Depth": "1"})
    found = [one.text for one in ET.fromstring(listed.body).iter("{DAV:}href")]  # noqa: S314 - ours
    assert found == [f"{data}/", f"{data}/bell%07", f"{data}/line%0Afeed", f"{data}/plain"]
    assert dav.ask("GET", f"{data}/bell%07").body == b"y"


LOCK = (
    '<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
    "<D:locktype><D:write/></D:locktype></D:lockinfo>"
)


def test_a_lock_ends_with_its_dataset(rig: ApiRig, dav: DavRig, data: str) -> None:
    assert dav.ask("LOCK", f"{data}/", LOCK.encode()).status == 200
    assert dav.ask("PUT", f"{data}/f", b"x").status == 423
    name = data.rpartition("/")[2]
    said = {"state": "error", "progress": 0}
    assert rig.ask("PUT", f"/users/ann/datasets/{name}:heartbeat", said, token=rig.ann).status == 200
    assert rig.ask("DELETE", f"/users/ann/datasets/{name}", token=rig.ann).status == 200
    again = {"name": name, "size": 0}
    wait_for(
        lambda: rig.ask("POST", "/users/ann/datasets", again, token=rig.ann).status == 201,
        message="for the name to be free",
    )
    assert dav.ask("PUT", f"{data}/f", b"x").status == 201


@pytest.mark.parametrize(
    ("verb", "body", "headers"),
    [
        ("LOCK", LOCK.encode(), {"Timeout": f"Second-{'9' * 5000}"}),
        ("GET", None, {"Range": "bytes=0-1", "If-Range": "Mon, 01 Jan 999999999999 00:00:00 GMT"}),
        ("MOVE", None, {"Destination": "http://[::1/data/ann/x/y"}),
    ],
    ids=["no time", "no date", "no address"],
)
def test_a_header_that_is_none_gets_an_answer(
    dav: DavRig, data: str, verb: str, body: bytes | None, headers: dict[str, str]
) -> None:
    assert dav.ask("PUT", f"{data}/f", b"x").status == 201
    refused = dav.ask(verb, f"{data}/f", body, headers=headers)
    assert (refused.status, refused.json["reason"]) == (400, "Invalid")


@pytest.mark.parametrize("asked", [f"bytes={'9' * 5000}-", ",".join(f"{2 * n}-{2 * n}" for n in range(4000))])
def test_of_ranges_that_are_none_or_too_many_the_whole_file_comes(dav: DavRig, data: str, asked: str) -> None:
    assert dav.ask("PUT", f"{data}/f", b"whole").status == 201
    begun = time.monotonic()
    answer = dav.ask("GET", f"{data}/f", headers={"Range": asked})
    assert (answer.status, answer.body) == (200, b"whole")
    assert (
        time.monotonic() - begun < 60
    )  # one part for each of so many ranges, or such a number, would take no end


def test_a_dataset_that_is_deleted_under_a_part_leaves_no_directory(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    name = data.rpartition("/")[2]
    said = {"state": "ready", "progress": 100}
    assert rig.ask("PUT", f"/users/ann/datasets/{name}:heartbeat", said, token=rig.ann).status == 200
    content = b"0123456789" * 1000
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    connection = dav.connect()
    connection.putrequest("PUT", f"{data}/f")
    connection.putheader("Authorization", "Bearer ann-token")
    connection.putheader("Content-Range", f"bytes 0-{len(content) - 1}/{len(content)}")
    connection.putheader("Repr-Digest", f"sha-256=:{digest}:")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders(content[:5000])
    shelf = rig.root / "datasets" / "ann"
    wait_for((shelf / ".arriving" / name).exists, message="for the part to be taken in")
    assert dav.ask("DELETE", data).status == 204
    wait_for(
        lambda: rig.ask("GET", f"/users/ann/datasets/{name}", token=rig.ann).status == 403,
        message="for the dataset to be gone",
    )
    connection.send(content[5000:])
    assert connection.getresponse().status in (404, 409)
    connection.close()
    assert not (shelf / name).exists()
    assert not (shelf / ".arriving" / name).exists()


def test_asking_for_the_received_size_of_an_upload_leaves_no_file(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    digest = base64.b64encode(hashlib.sha256(b"x").digest()).decode()
    headers = {"Content-Range": "bytes */1000", "Repr-Digest": f"sha-256=:{digest}:"}
    for name in ("one", "two"):
        asked = dav.ask("PUT", f"{data}/{name}", b"", headers=headers)
        assert (asked.status, asked.headers["upload-offset"]) == (202, "0")
    arriving = rig.root / "datasets" / "ann" / ".arriving" / data.rpartition("/")[2]
    assert not [one for one in arriving.rglob("*") if one.is_file()]


def test_a_former_member_takes_no_more_of_the_tenants_storage(rig: ApiRig, dav: DavRig) -> None:
    rig.tenant("left-behind", "rita", members=("ann",))
    asked = {"name": "left", "size": 0, "tenant": "left-behind"}
    assert rig.ask("POST", "/users/ann/datasets", asked, token=rig.ann).status == 201
    assert dav.ask("PUT", "/data/ann/left/f", b"x").status == 201
    assert rig.ask("DELETE", "/tenants/left-behind/members/ann", token=rig.rita).status == 200
    refused = dav.ask("PUT", "/data/ann/left/g", b"more")
    assert (refused.status, "no longer a member" in refused.json["msg"]) == (403, True)
    assert dav.ask("GET", "/data/ann/left/f").body == b"x"
    assert dav.ask("DELETE", "/data/ann/left/f").status == 204


def test_room_that_is_kept_beyond_a_files_end_is_charged(rig: ApiRig) -> None:
    directory = rig.root / "kept-beyond"
    directory.mkdir()
    plain = directory / "plain"
    plain.write_bytes(b"x" * 5000)
    os.setxattr(plain, "user.a", b"a" * 1000)
    assert length_of(directory) == 5000
    with (directory / "kept").open("wb") as file:
        try:
            _keep(file.fileno(), 8 << 20)
        except OSError:
            pytest.skip("this file system keeps no room beyond a file's end")
    assert (directory / "kept").stat().st_size == 0
    assert length_of(directory) >= 7 << 20


def _keep(fd: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, 1, ctypes.c_long(0), ctypes.c_long(size)):
        raise OSError(ctypes.get_errno(), "fallocate")


def test_attacks_a_put_that_drips_over_http_is_ended_and_leaves_nothing(
    rig: ApiRig, data: str, tmp_path: Path
) -> None:
    team = rig.ask("GET", f"/users/ann/datasets/{data.rpartition('/')[2]}", token=rig.ann).json["tenant"]
    root = tmp_path / "tree"  # a process has one alone
    with serving(rig, tmp_path, root, {"SPARE_S": 0.5, "LOWEST": 1 << 30, "LOOK_S": 0.05}) as quick:
        assert quick.ask("PUT", f"{data}/f", b"before").status == 201
        before = rig.ask("GET", f"/tenants/{team}", token=rig.root_user).json["rom_inuse"]
        for headers, drip in (
            (f"Content-Length: {1 << 20}", b"x"),
            ("Transfer-Encoding: chunked", b"1\r\nx\r\n"),
        ):
            with socket.create_connection(("127.0.0.1", quick.port)) as wire:
                head = f"PUT {data}/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann-token\r\n{headers}\r\n\r\n"
                wire.sendall(head.encode())
                assert answer_to_drips(wire, drip).split(b" ")[1] == b"400", headers
        assert quick.ask("GET", f"{data}/f").body == b"before"
        assert not [one for one in (root / ".uploads").iterdir() if one.is_file()]
        now = rig.ask("GET", f"/tenants/{team}", token=rig.root_user).json["rom_inuse"]
        assert now == before, "what was kept for it is given back"
        assert quick.ask("PUT", f"{data}/f", b"after").status == 204


def test_attacks_bodies_of_nobody_that_drip_leave_threads_to_others(dav: DavRig, data: str) -> None:
    with contextlib.ExitStack() as opened:
        wires = [
            opened.enter_context(socket.create_connection(("127.0.0.1", dav.port)))
            for _ in range(THREADS + 10)
        ]
        for wire in wires:
            head = f"PUT {data}/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer nobodys\r\nContent-Length: 1000000\r\n\r\nx"
            wire.sendall(head.encode())
        drips = threading.Event()

        def drip() -> None:
            while not drips.wait(0.1):
                for wire in wires:
                    with contextlib.suppress(OSError):
                        wire.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert dav.ask("PUT", f"{data}/f", b"mine").status == 201
            wait_for(
                lambda: sum(not select.select([wire], [], [], 0)[0] for wire in wires) <= 16,
                message="for the others to have their answer",
            )
        finally:
            drips.set()
            dripping.join()


def test_attacks_answers_that_nobody_takes_leave_threads_to_others(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    assert dav.ask("PUT", f"{data}/f", b"mine").status == 201
    with contextlib.ExitStack() as opened:
        for number in range(THREADS // MOST_OF_USER + 1):
            owner = f"hoarder{number}"
            token = rig.hub.user(owner, f"{owner}-token")
            made = rig.ask("POST", f"/users/{owner}/datasets", {"name": "d", "size": 1}, token=token)
            assert made.status == 201, made.body
            assert dav.ask("PUT", f"/data/{owner}/d/f", b"x", token=token).status == 201
            os.truncate(rig.root / f"datasets/{owner}/d/f", 1 << 28)  # a hole, which takes no room
            wires = []
            for _ in range(MOST_OF_USER):
                wire = opened.enter_context(socket.create_connection(("127.0.0.1", dav.port)))
                head = f"GET /data/{owner}/d/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
                wire.sendall(head.encode())
                wires.append(wire)
            wait_for(
                lambda asked=wires: len(select.select(asked, [], [], 0)[0]) == MOST_OF_USER,
                message=f"for {owner} to have an answer to each",
            )
            said = sorted(wire.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) for wire in wires)
            assert said[0] == b"HTTP/1.1 200"
        assert said[1] == b"HTTP/1.1 429"
        assert dav.ask("GET", f"{data}/f").body == b"mine"
        assert dav.ask("GET", "/health").status == 200


def answer_to_drips(wire: socket.socket, drip: bytes) -> bytes:
    """Send a bit every now and then until there is an answer; return that."""
    answer = b""
    until = time.monotonic() + PATIENCE_S / 3
    while b"\r\n\r\n" not in answer:
        assert time.monotonic() < until, "it goes on dripping"
        if select.select([wire], [], [], 0.02)[0]:
            part = wire.recv(1 << 16)
            if not part:
                break
            answer += part
            continue
        with contextlib.suppress(OSError):
            wire.sendall(drip)
    return answer


@pytest.mark.parametrize("method", ["PUT", "PROPFIND", "GET"])
@pytest.mark.parametrize("token", ["ann-token", "nobodys"])
def test_attacks_one_huge_chunk_is_not_in_memory(dav: DavRig, data: str, method: str, token: str) -> None:
    assert dav.process is not None
    before = peak_of(dav.process.pid)
    with socket.create_connection(("127.0.0.1", dav.port)) as wire, contextlib.suppress(OSError):
        head = f"{method} {data}/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode() + b"%x\r\n" % (1 << 40))
        for _ in range(150):
            wire.sendall(b"x" * (1 << 20))
    assert peak_of(dav.process.pid) - before < 40 << 20


def test_attacks_a_line_before_a_chunk_that_never_ends_is_not_in_memory(dav: DavRig, data: str) -> None:
    assert dav.process is not None
    before = peak_of(dav.process.pid)
    with socket.create_connection(("127.0.0.1", dav.port)) as wire, contextlib.suppress(OSError):
        head = f"PUT {data}/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann-token\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode())
        for _ in range(150):
            wire.sendall(b"1" * (1 << 20))
    assert peak_of(dav.process.pid) - before < 40 << 20


@pytest.mark.parametrize("size", ["-1", "0x5", "5_0", "+5", " 5", "5 5", "", "g", "1" * 16])
def test_attacks_a_length_of_a_chunk_is_read_in_one_way_alone(dav: DavRig, data: str, size: str) -> None:
    with socket.create_connection(("127.0.0.1", dav.port)) as wire:
        head = f"PUT {data}/f HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann-token\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode() + f"{size}\r\nxxxxx\r\n0\r\n\r\n".encode())
        wire.shutdown(socket.SHUT_WR)
        wire.settimeout(PATIENCE_S)
        answer = b"".join(iter(lambda: wire.recv(1 << 16), b""))
    assert answer.split(b" ")[1] == b"400"
    assert answer.count(b"HTTP/1.1 ") == 1, "nothing behind it is a request"
    assert dav.ask("GET", f"{data}/f").status == 404


def peak_of(pid: int) -> int:
    """Return how much memory a process had at most so far, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
