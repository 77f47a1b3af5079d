"""WebSockets that are never opened, or never closed by one side, hold nothing once the other has gone."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.behind import Behind
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S, wait_for

UPGRADE = "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{more}\r\n"
FEW = 60


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """Hand out a server that misbehaves as it is asked to."""
    with Behind(tmp_path / "behind.sock") as made:
        yield made


@pytest.fixture
def upgrade_s() -> int:
    """Seconds after which the proxy gives up an upgrade that is not answered: none that a slow machine comes to."""
    return int(PATIENCE_S)


@pytest.fixture
def running(tmp_path: Path, behind: Behind, upgrade_s: int) -> Iterator[RunningProxy]:
    """Start a proxy in which that server is ann's."""
    made = RunningProxy(tmp_path, upgrade_s=upgrade_s)
    made.start()
    target = url_of(behind.path)
    assert made.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    assert made.routes("POST", "/services/slow", {"target": target, "service": "slow"}).status == 201
    yield made
    made.stop(kill=True)


def connect(running: RunningProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), PATIENCE_S)


@contextlib.contextmanager
def connections(running: RunningProxy) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as all_of_them:
        yield [all_of_them.enter_context(connect(running)) for _ in range(FEW)]


def upgrade(link: socket.socket, path: str, more: str = "") -> None:
    link.sendall(UPGRADE.format(path=path, more=more).encode())


def reset(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def to_its_end(link: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := link.recv(65536):
            found += data
    return found


def nothing_is_left(running: RunningProxy, behind: Behind, before: int) -> None:
    wait_for(lambda: behind.open == 0, message="for all connections behind to be closed")
    wait_for(lambda: running.descriptors() <= before + 2, message=f"for {before} descriptors")


@pytest.mark.parametrize("path", ["/user/ann/never", "/services/slow/never"])
@pytest.mark.parametrize("end", [socket.socket.close, reset], ids=["FIN", "reset"])
def test_an_upgrade_that_is_never_answered_ends_when_its_client_goes(
    running: RunningProxy, behind: Behind, path: str, end
) -> None:
    before = running.descriptors()
    with connections(running) as links:
        for link in links:
            upgrade(link, path)
        wait_for(lambda: behind.open == FEW)
        for link in links:
            end(link)
    nothing_is_left(running, behind, before)


@pytest.mark.parametrize("upgrade_s", [2])
def test_an_upgrade_that_is_never_answered_is_answered_in_its_place(
    running: RunningProxy, behind: Behind
) -> None:
    before = running.descriptors()
    with connect(running) as link, connect(running) as gone:
        upgrade(link, "/user/ann/never")
        upgrade(gone, "/user/ann/never", "\r\n{half of a frame")
        gone.shutdown(socket.SHUT_WR)  # which nobody can hear behind what was sent before
        assert to_its_end(link).startswith(b"HTTP/1.1 504 ")
        assert to_its_end(gone).startswith(b"HTTP/1.1 504 ")
    nothing_is_left(running, behind, before)


@pytest.mark.parametrize("body", ["Content-Length: 40\r\n", "Transfer-Encoding: chunked\r\n"])
def test_an_upgrade_with_a_body_is_refused(running: RunningProxy, behind: Behind, body: str) -> None:
    with connect(running) as link:
        upgrade(link, "/user/ann/never", body)
        answer = to_its_end(link)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"has no body" in answer
    assert behind.open == 0


def test_only_websockets_are_upgraded_to(running: RunningProxy, behind: Behind) -> None:
    for request in (
        "GET /user/ann/echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "POST /user/ann/echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ):
        with connect(running) as link:
            link.sendall(request.encode())
            assert to_its_end(link).startswith(b"HTTP/1.1 400 ")
    assert behind.open == 0


@pytest.mark.parametrize("end", [socket.socket.close, reset], ids=["FIN", "reset"])
def test_a_server_that_does_not_hear_that_a_websocket_has_ended_holds_none(
    running: RunningProxy, behind: Behind, end
) -> None:
    before = running.descriptors()
    with connections(running) as links:
        for link in links:
            upgrade(link, "/user/ann/deaf")
        for link in links:
            assert link.recv(100).startswith(b"HTTP/1.1 101 ")
        for link in links:
            end(link)
    nothing_is_left(running, behind, before)


def test_data_sent_before_the_101_is_not_lost(running: RunningProxy) -> None:
    with connect(running) as link:
        upgrade(link, "/user/ann/echo", "\r\nearly")
        heard = b""
        while not heard.endswith(b"early\r\n"):
            heard += link.recv(1000) or b"(closed) early\r\n"
        assert b"(closed)" not in heard
        link.sendall(b"late")
        assert link.recv(1000) == b"late"


def test_an_endless_answer_to_an_upgrade_fills_no_memory_and_ends_with_its_client(
    running: RunningProxy, behind: Behind
) -> None:
    before, memory = running.descriptors(), running.memory()
    with connections(running) as links:
        for link in links:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            upgrade(link, "/user/ann/zeros")
        with connect(running) as reader:
            upgrade(reader, "/user/ann/zeros")
            got = 0
            while got < 200 << 20:  # as much is offered to those that do not read
                got += len(reader.recv(1 << 20))
        assert running.memory() - memory < 150 << 20  # where nobody waits for who reads, it is gigabytes
    nothing_is_left(running, behind, before)


@pytest.mark.parametrize("more", ["", "Connection: Upgrade\r\nUpgrade: websocket\r\n"])
def test_a_server_that_goes_in_the_middle_of_its_answer_leaves_nobody_waiting(
    running: RunningProxy, more: str
) -> None:
    with connect(running) as link:
        link.sendall(f"GET /user/ann/half HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
        assert to_its_end(link).endswith(b"half")
