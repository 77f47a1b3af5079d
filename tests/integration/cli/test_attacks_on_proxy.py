"""Who opens many connections, or never ends a request, has fewer of their own and takes none of others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from running_proxy import RunningProxy

STALLED = b"POST /services/mlp/api/v1/users HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx"
HEALTH = b"GET /_chp_healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[RunningProxy]:
    """Start a proxy that holds 30 connections, 20 of one address."""
    made = RunningProxy(tmp_path, connections=30, per_address=20)
    made.start()
    yield made
    made.stop(kill=True)


class Attacker:
    """Opens connections from one address of the loopback and keeps them."""

    def __init__(self, running: RunningProxy, address: str, links: contextlib.ExitStack) -> None:
        self.running, self.address, self.links = running, address, links

    def connect(self, first: bytes) -> socket.socket:
        place = ("127.0.0.1", self.running.port)
        link = self.links.enter_context(socket.create_connection(place, 20, (self.address, 0)))
        with contextlib.suppress(OSError):  # it may be closed already
            link.sendall(first)
        return link

    def is_served(self) -> bool:
        """Whether one more connection is answered, and not told that it is one too many."""
        link = self.connect(HEALTH)
        try:
            answer = link.recv(65536)
        except ConnectionResetError:
            return False
        finally:
            link.close()
        assert answer.split(b" ")[1] in (b"200", b"503")
        return answer.split(b" ")[1] == b"200"


def test_one_address_gets_so_many_connections_and_leaves_others_theirs(bounded: RunningProxy) -> None:
    with contextlib.ExitStack() as links:
        mallory, ann, rest = (Attacker(bounded, f"127.0.0.{n}", links) for n in (2, 3, 4))
        held = [mallory.connect(STALLED) for _ in range(25)]
        assert not mallory.is_served()
        assert ann.is_served()
        for _ in range(9):
            rest.connect(STALLED[:20])
        rest.connect(STALLED[:20])
        assert not ann.is_served()  # all have what there is
        for link in held:
            link.close()
        while not mallory.is_served():  # the proxy hears of it when it hears of it
            pass
        assert ann.is_served()


def test_the_limit_of_open_files_is_never_reached(tmp_path: Path) -> None:
    """However many connections are allowed: there are fewer than descriptors, with some in reserve."""
    running = RunningProxy(tmp_path, open_files=600, connections=100_000, per_address=100_000)
    running.start()
    try:
        with contextlib.ExitStack() as links:
            mallory = Attacker(running, "127.0.0.2", links)
            for _ in range(700):
                mallory.connect(STALLED)
            assert not mallory.is_served()
        while not mallory.is_served():
            pass
        said = (tmp_path / "log").read_text()
        assert "No more than 44 connections at once" in said
        assert "127.0.0.2 gets no more connections" in said
        assert "EMFILE" not in said
    finally:
        running.stop(kill=True)
