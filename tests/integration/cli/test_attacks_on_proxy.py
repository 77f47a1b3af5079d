"""Who opens many connections, or never ends a request, has fewer of their own and takes none of others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.behind import Behind
from support.proxy.running_proxy import RunningProxy
from support.waiting import wait_for

TOTAL, PER_ADDRESS, PER_SERVER = 100, 40, 20
HEALTH = b"GET /_chp_healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE = b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
FLOODS = {
    "idle": b"",
    "half-sent headers": HEALTH[:20],
    "slow bodies": b"POST /hub/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx",
    "kept after an answer": HEALTH,
    "upgrades that are not answered": UPGRADE % b"/services/slow/never",
    "upgrades of a user's server that are not answered": UPGRADE % b"/user/mallory/never",
    "requests of a user's server that are not answered": b"GET /user/mallory/never HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "answers that are not taken": b"GET /user/mallory/zeros HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "WebSockets of a user's server": UPGRADE % b"/user/mallory/echo",
}


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """Hand out a server that misbehaves as it is asked to."""
    with Behind(tmp_path / "behind.sock") as made:
        yield made


@pytest.fixture
def bounded(tmp_path: Path, behind: Behind) -> Iterator[RunningProxy]:
    """Start a proxy that holds 100 connections, 40 of one address and 20 to a user's server."""
    made = RunningProxy(tmp_path, connections=TOTAL, per_address=PER_ADDRESS, per_server=PER_SERVER)
    made.start()
    target = url_of(behind.path)
    for user in ("ann", "mallory"):
        assert made.routes("POST", f"/user/{user}", {"target": target, "user": user}).status == 201
    assert made.routes("POST", "/services/slow", {"target": target, "service": "slow"}).status == 201
    yield made
    made.stop(kill=True)


class Client:
    """Opens connections from one address of the loopback and keeps them."""

    def __init__(self, running: RunningProxy, address: str, links: contextlib.ExitStack) -> None:
        self.running, self.address, self.links = running, address, links

    def connect(self, first: bytes) -> socket.socket:
        place = ("127.0.0.1", self.running.port)
        link = self.links.enter_context(socket.create_connection(place, 20, (self.address, 0)))
        with contextlib.suppress(OSError):  # it may be closed already
            link.sendall(first)
        return link

    def is_served(self, request: bytes = HEALTH) -> bool:
        """Whether one more connection is answered, and not closed or told that it is one too many."""
        link = self.connect(request)
        try:
            answer = link.recv(65536)
        except ConnectionResetError:
            return False
        finally:
            link.close()
        return answer.startswith(b"HTTP/1.1 200 ")

    def websocket(self) -> socket.socket:
        link = self.connect(UPGRADE % b"/user/ann/echo")
        assert link.recv(1000).startswith(b"HTTP/1.1 101 ")
        return link


def works(link: socket.socket) -> bool:
    link.sendall(b"hello")
    return link.recv(100) == b"hello"


@pytest.mark.parametrize("first", FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("addresses", [1, 5])
def test_a_flood_leaves_others_theirs(
    bounded: RunningProxy, behind: Behind, addresses: int, first: bytes
) -> None:
    """Also those of the flood's own address, as all are behind a reverse proxy, who have a WebSocket open."""
    with contextlib.ExitStack() as links:
        ann = Client(bounded, "127.0.0.9", links)
        flood = [Client(bounded, f"127.0.0.{2 + n}", links) for n in range(addresses)]
        open_before = [ann.websocket(), flood[0].websocket()]
        for n in range(3 * TOTAL):
            flood[n % addresses].connect(first)
            if n % 50 == 0:
                assert ann.is_served()
        assert ann.is_served()
        assert ann.is_served(b"GET /user/ann/lab HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert flood[0].is_served()
        assert all(map(works, open_before))
        assert bounded.descriptors() < 2 * TOTAL + 60
        assert behind.open < TOTAL


def test_connections_to_one_users_server_are_limited_and_leave_its_owner_room(bounded: RunningProxy) -> None:
    with contextlib.ExitStack() as links:
        ann, mallory = Client(bounded, "127.0.0.9", links), Client(bounded, "127.0.0.2", links)
        mine = ann.websocket()
        for _ in range(PER_SERVER + 5):  # who does not let anybody answer gives way
            mallory.connect(UPGRADE % b"/user/ann/never")
        assert ann.is_served(b"GET /user/ann/lab HTTP/1.1\r\nHost: localhost\r\n\r\n")
        theirs = [mallory.websocket() for _ in range(PER_SERVER - 1)]
        assert not mallory.is_served(b"GET /user/ann/lab HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert ann.is_served(b"GET /user/ann/lab HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert works(mine)
        assert sum(map(is_open, theirs)) == PER_SERVER - 2


def is_open(link: socket.socket) -> bool:
    try:
        return works(link)
    except OSError:
        return False


@pytest.mark.parametrize(
    "first", [b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n", UPGRADE], ids=["page", "WebSocket"]
)
def test_a_request_to_the_platform_does_not_wait_for_the_thousands_of_another(
    tmp_path: Path, behind: Behind, first: bytes
) -> None:
    running = RunningProxy(tmp_path)
    running.start()
    try:
        assert running.routes("POST", "/services/slow", {"target": url_of(behind.path)}).status == 201
        with contextlib.ExitStack() as links:
            ann, mallory = Client(running, "127.0.0.9", links), Client(running, "127.0.0.2", links)
            for _ in range(600):
                mallory.connect(first % b"/services/slow/never")
            assert ann.is_served(b"GET /services/slow/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert behind.open < 500
            gone = mallory.connect(first % b"/services/slow/never")
            gone.close()
        wait_for(lambda: behind.open <= 32)
        assert running.get("/services/slow/x").status == 200
    finally:
        running.stop(kill=True)


def test_a_client_with_only_its_fair_share_gets_503_when_all_connections_are_taken(
    bounded: RunningProxy,
) -> None:
    """All are being answered, and nobody has more than who asks."""
    target = [f"/user/{name}/echo".encode() for name in ("ann", "mallory")]
    with contextlib.ExitStack() as links:
        clients = [Client(bounded, f"127.0.0.{n}", links) for n in range(2, 22)]
        held = [client.connect(UPGRADE % target[n % 2]) for n, client in enumerate(clients * 2)]
        assert all(link.recv(1000).startswith(b"HTTP/1.1 101 ") for link in held)
        link = clients[0].connect(UPGRADE % target[0])
        answer = link.recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After" in answer
        assert all(map(works, held))


def test_the_limit_of_open_files_is_never_reached(tmp_path: Path) -> None:
    """However many connections are allowed: there are fewer than descriptors, with some in reserve."""
    running = RunningProxy(tmp_path, open_files=600, connections=100_000, per_address=100_000)
    running.start()
    try:
        with contextlib.ExitStack() as links:
            mallory = Client(running, "127.0.0.2", links)
            for _ in range(700):
                mallory.connect(FLOODS["slow bodies"])
            assert mallory.is_served()
            assert running.descriptors() < 150
        said = (tmp_path / "log").read_text()
        assert "No more than 44 connections at once" in said
        assert "127.0.0.2 asks for one connection too many" in said
        assert "EMFILE" not in said
    finally:
        running.stop(kill=True)
