"""Connections that are kept and never say anything, and bodies that never end."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from mlp_hub.api.build import make_server
from mlp_hub.api.edge import connections, exchange
from mlp_hub.api.edge.connections import Gate, address_of, network_of, peer_of
from mlp_hub.api.edge.limits import Rate
from mlp_hub.api.edge.listeners import bind_socket
from mlp_hub.web.site import make_application
from support.rigs.api_rig import HOST, PLENTY, ApiRig
from support.waiting import PATIENCE_S

HEALTH = f"GET /api/v1/health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
STALLED = "POST /api/v1/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\nx"


@contextlib.contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE_S)
        link.connect(str(path))
        yield link


def to_its_end(link: socket.socket) -> bytes:
    found = b""
    while data := link.recv(65536):
        found += data
    return found


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("users/ann/jobs", HOST, b"401"), ("nothing", HOST, b"401"), ("users", "evil.example", b"403")],
)
def test_a_refused_request_whose_body_never_ends_is_answered_and_closed(
    rig: ApiRig, monkeypatch: pytest.MonkeyPatch, path: str, host: str, status: bytes
) -> None:
    monkeypatch.setattr(exchange, "DRAIN_S", 0.05)
    with connected(rig.sockets[True]) as link:
        link.sendall(STALLED.format(path=path, host=host).encode())
        answer = to_its_end(link)
    assert answer.split(b" ")[1] == status
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1") == 1


def test_sign_ups_beyond_the_limit_hold_no_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "DRAIN_S", 0.05)
    with ApiRig(tmp_path, rates={**PLENTY, "signup": Rate(0.001, 1)}) as rig, contextlib.ExitStack() as links:
        attack = STALLED.format(path="users", host=HOST).encode()
        held = [links.enter_context(connected(rig.sockets[True])) for _ in range(20)]
        for link in held:
            link.sendall(attack)
        # whichever is read first is within the limit, and waited for
        ended: list[bytes] = []
        while len(ended) < 19:
            readable, _, _ = select.select(held, [], [], 30)
            assert readable, f"only {len(ended)} were answered"
            for link in readable:
                held.remove(link)
                ended.append(to_its_end(link).split(b" ")[1])
        assert set(ended) == {b"429"}


def test_connections_are_limited_per_tenant_and_in_total(
    rig: ApiRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = ["uid:300001"]
    monkeypatch.setattr(connections, "peer_of", lambda _: who[0])
    path = tmp_path / "gated.sock"
    servers: list[HTTPServer] = []

    async def serve() -> None:
        gate = Gate(per_peer=5, total=8)
        server = make_server(rig.service, make_application(rig.service), behind_proxy=False, gate=gate)
        server.add_socket(bind_socket(path, 0o600))
        servers.append(server)

    async def unserve() -> None:
        servers[0].stop()
        await servers[0].close_all_connections()

    def is_served(link: socket.socket) -> bool:
        link.sendall(HEALTH)
        return link.recv(65536).split(b" ")[1] == b"200"

    rig.run(serve())
    try:
        with contextlib.ExitStack() as links:

            def connect() -> socket.socket:
                return links.enter_context(connected(path))

            def is_refused() -> bool:
                return to_its_end(connect()).split(b" ")[1] == b"503"

            mine = [connect() for _ in range(5)]
            assert all(map(is_served, mine))
            assert is_refused()
            who[0] = "uid:300002"
            others = [connect() for _ in range(3)]
            assert all(map(is_served, others))
            assert is_refused()  # all tenants together have theirs
            who[0] = connections.PLATFORM
            assert is_served(connect())
            who[0] = "uid:300001"
            mine[0].close()
            while True:  # the server hears of it when it hears of it
                with contextlib.suppress(OSError):
                    if is_served(connect()):
                        break
            assert all(map(is_served, mine[1:]))
    finally:
        rig.run(unserve())


def asked(headers: dict[str, str]) -> HTTPServerRequest:
    start = RequestStartLine("GET", "/", "HTTP/1.1")
    return HTTPServerRequest(start_line=start, headers=HTTPHeaders({"Host": "x", **headers}))


def test_a_peer_is_told_by_the_system_and_only_the_platforms_own_headers_count() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other, socket.socket(socket.AF_INET) as tcp:
        assert peer_of(one) == connections.PLATFORM
        assert peer_of(tcp) == ""
        assert peer_of(None) == ""

        class Stream:
            socket = one

        class Connection:
            stream = Stream()
            context = None

        request = asked({"X-Forwarded-For": "6.6.6.6, 9.9.9.9", "X-Real-Ip": "7.7.7.7"})
        request.connection = Connection()  # type: ignore[assignment]
        assert address_of(request) == "9.9.9.9"


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("2001:db8:1:2::5", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::6", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::5", "2001:db8:1:3::/64"),
        ("::ffff:9.9.9.9", "9.9.9.9"),
        ("nonsense", "nonsense"),
    ],
)
def test_an_ipv6_network_counts_as_one_sender(said: str, counted: str) -> None:
    request = asked({"X-Forwarded-For": f"6.6.6.6, {said}"})
    request.connection = None  # type: ignore[assignment]
    assert address_of(request) == counted
    assert network_of(counted) == counted


def test_a_tenants_peer_cannot_name_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "peer_of", lambda _: "uid:300001")
    assert address_of(asked({"X-Forwarded-For": "9.9.9.9"})) == "uid:300001"
