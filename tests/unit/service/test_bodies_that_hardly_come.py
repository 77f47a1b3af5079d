"""Bodies that hardly come to what serves files: ended by a lowest rate, and by whatever has become of the right to write."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import certifi
import pytest
from wsgidav.dav_error import DAVError

from mlp_hub.dav import read_through
from mlp_hub.dav.access_client import Access, ServiceAnswer
from mlp_hub.dav.authorization import NotServed
from mlp_hub.dav.connections.slow_clients import ASKED_S, LOWEST, SPARE_S, SlowBodies
from mlp_hub.dav.read_through import SourceAnswer, SourceClient, SourceFile, SourceTree
from mlp_hub.dav.serving import make_door
from mlp_hub.executors.shared_volume.fetch import addresses
from mlp_hub.executors.shared_volume.fetch.patience import ConnectionPatience
from support.waiting import PATIENCE_S

PIECE = 1 << 18


class Wire:
    """A connection over which one body comes; what reads it says when it is looked at meanwhile."""

    def __init__(self, slow: SlowBodies) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.slow, self.looks = slow, 0
        request = SimpleNamespace(conn=SimpleNamespace(socket=self.ours))
        self.environ: dict[str, Any] = {"wsgi.input": self, "mlp.request": request}

    def read(self, size: int) -> bytes:
        """Read as a server does, which waits for all; somebody looks on the way."""
        self.slow.check_bodies()
        self.ours.settimeout(0.2)
        try:
            return self.ours.recv(size)
        except TimeoutError:
            return b"waits on"


class Clock:
    """A clock that goes on by so much with each look at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize(("late", "read"), [(True, b""), (False, b"waits on")], ids=["slow", "in time"])
def test_a_piece_that_does_not_come_in_time_is_the_end_of_its_body(late: bool, read: bytes) -> None:
    due = SPARE_S + PIECE / LOWEST
    slow = SlowBodies(Clock(due + 1 if late else due / 10))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: True):
        assert wire.environ["wsgi.input"].read(PIECE) == read
    wire.theirs.close()
    wire.ours.close()


@pytest.mark.parametrize("late", [True, False], ids=["slow", "in time"])
def test_a_piece_of_an_answer_that_is_not_taken_in_time_is_the_end_of_its_connection(late: bool) -> None:
    due = SPARE_S + PIECE / LOWEST
    slow = SlowBodies(Clock(due + 1 if late else due / 10))
    wire = Wire(slow)
    with slow.answers(wire.environ, lambda: True):
        pieces = slow.taken(wire.environ, iter([b"x" * PIECE]))
        assert len(next(pieces)) == PIECE
        slow.check_bodies()
        wire.theirs.settimeout(0.2)
        if late:
            assert wire.theirs.recv(1) == b""
        else:
            with pytest.raises(TimeoutError):
                wire.theirs.recv(1)
        pieces.close()
    wire.theirs.close()
    wire.ours.close()


def test_a_client_whose_right_ended_meanwhile_receives_nothing_more() -> None:
    slow = SlowBodies(Clock(ASKED_S))
    wire = Wire(slow)
    with slow.answers(wire.environ, lambda: False):
        slow.check_bodies()
        assert wire.theirs.recv(1) == b""
    wire.theirs.close()
    wire.ours.close()


def test_a_client_whose_right_ended_meanwhile_can_send_nothing_more() -> None:
    may = [True, False]
    slow = SlowBodies(Clock(ASKED_S / 2))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: may.pop(0)):
        body = wire.environ["wsgi.input"]
        while may:
            assert body.read(PIECE * 100) == b"waits on" or not may
        assert wire.ours.recv(1) == b""
    slow.check_bodies()
    wire.theirs.close()
    wire.ours.close()


def test_an_answered_request_is_no_longer_watched() -> None:
    slow = SlowBodies(Clock(1e6))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: True):
        pass
    slow.check_bodies()
    wire.ours.settimeout(0.1)
    with pytest.raises(TimeoutError):
        wire.ours.recv(1)
    wire.theirs.close()
    wire.ours.close()


class Endpoint:
    """One that a user named: it answers as it is told to, and goes on for as long as somebody listens."""

    def __init__(self, begins: bytes, drips: bytes) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.heard = threading.Event()
        threading.Thread(target=self._serve, args=(begins, drips), daemon=True).start()

    def _serve(self, begins: bytes, drips: bytes) -> None:
        connection, _ = self._server.accept()
        with connection, self._server:
            connection.recv(1 << 16)
            try:
                connection.sendall(begins)
                while True:
                    connection.sendall(drips)
                    time.sleep(0.01)
            except OSError:
                self.heard.set()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("begins", "drips"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"H"),
        (OK, b"X"),
        (OK + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 60000\r\n\r\n", b"x"),
    ],
    ids=["interim", "status", "header", "body", "chunks", "size of a chunk", "trailers", "refusal"],
)
def test_attacks_an_endpoint_that_drips_is_left_after_a_while(
    begins: bytes, drips: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(begins, drips)
    monkeypatch.setattr(addresses, "HEAD_S", 0.2)
    monkeypatch.setattr(addresses, "patience", ConnectionPatience(look_s=0.02))
    monkeypatch.setattr(read_through, "PAGE_S", 0.2)
    monkeypatch.setattr(read_through, "patience", ConnectionPatience(look_s=0.02))
    said = {
        "url": f"http://{endpoint.host}/",
        "host": endpoint.host,
        "bucket": "b",
        "prefix": "",
        "secret": False,
    }
    door: Any = SimpleNamespace(open_source=lambda *_: ServiceAnswer(200, said))
    tree = SourceTree(SourceClient(door, [endpoint.host]), Access("u", "ann", "pets", None))
    with pytest.raises(DAVError) as error:
        tree.names(())
    assert error.value.value == 502
    assert endpoint.heard.wait(PATIENCE_S), "nobody listens any more"


def test_attacks_a_file_that_drips_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(OK + b"Content-Length: 1000000\r\n\r\n", b"x")
    monkeypatch.setattr(read_through, "SPARE_S", 0.2)
    monkeypatch.setattr(read_through, "LOWEST", 1e9)
    monkeypatch.setattr(read_through, "patience", ConnectionPatience(look_s=0.02))
    client = addresses.client([endpoint.host], certifi.where())
    answer = client.urlopen("GET", f"http://{endpoint.host}/", preload_content=False, retries=False)
    file = SourceFile(lambda _: SourceAnswer(answer, endpoint.host, ""), 1_000_000)
    with pytest.raises(DAVError) as error:
        list(iter(lambda: file.read(PIECE), b""))
    file.close()
    assert error.value.value == 502
    assert endpoint.heard.wait(PATIENCE_S)


def test_a_connection_that_delivers_in_time_is_left_alone() -> None:
    patience = ConnectionPatience(look_s=0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for _ in range(3):
            with patience.within(ours, 60.0):
                time.sleep(0.03)
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"


def test_attacks_a_few_who_hold_all_they_may_of_sources_leave_a_place_for_each_other(tmp_path: Path) -> None:
    service: Any = SimpleNamespace()
    door = make_door(tmp_path / "tree", service)

    def held(user: str) -> bool:
        """Have one more request of a user's under way; tell whether it has a place."""
        try:
            places.enter_context(door._source_tree(Access("u", user, "pets", None)))
        except NotServed as refused:
            return refused.status != 429
        return True

    with contextlib.ExitStack() as places:
        for hostile in range(4):
            while held(f"hostile{hostile}"):
                pass
        others = [f"user{n}" for n in range(30)]
        assert sum(held(user) for user in others) >= 15, "four held up all others"
    with contextlib.ExitStack() as places:
        assert sum(held("ann") for _ in range(20)) == 8
