"""Who a request is from: the named proxies in front are believed, from the right, and nobody else is."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.behind import Behind
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S, wait_for

OUTER, GATE, STRANGER = "127.0.0.3", "127.0.0.2", "127.0.0.9"  # both proxies are named, the last is anybody
FORGED = {
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Proto": "http",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Prefix": "/evil",
    "Forwarded": "for=203.0.113.7;proto=http;host=evil.example",
    "X-Real-IP": "203.0.113.7",
    "X-Scheme": "http",
}
TOLD = {"x-forwarded-host": "hub.example.org", "x-forwarded-proto": "https", "x-forwarded-port": "443"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "x",
    "Sec-WebSocket-Version": "13",
}


class _Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the headers that it was sent, also who asks for a WebSocket."""

    def do_GET(self) -> None:
        told = {name.lower(): self.headers.get_all(name) for name in self.headers}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Strict-Transport-Security", "max-age=1; includeSubDomains")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextlib.contextmanager
def started(directory: Path, **limits: object) -> Iterator[RunningProxy]:
    """Start a proxy whose only server tells what it was sent."""
    running = RunningProxy(directory, **{"hosts": ["hub.example.org"], **limits})  # type: ignore[arg-type]
    with _Server(str(directory / "echo.sock"), _Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.start()
        try:
            target = url_of(directory / "echo.sock")
            assert running.routes("POST", "/services/echo", {"target": target}).status == 201
            yield running
        finally:
            running.stop(kill=True)
            server.shutdown()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """A proxy that is told of two in front of it, and that browsers reach over TLS."""
    with started(
        tmp_path_factory.mktemp("gate"),
        platform="https://hub.example.org",
        trusted=[f"{GATE}/32", f"{OUTER}/32", "2001:db8:1::/48"],
        hsts=600,
    ) as running:
        yield running


def asked(
    running: RunningProxy, sender: str, headers: dict[str, str], host: str = "hub.example.org"
) -> tuple[http.client.HTTPResponse, dict[str, list[str]]]:
    """Ask once from an address of the loopback; return the answer and which headers the server was sent."""
    link = http.client.HTTPConnection(
        "127.0.0.1", running.port, timeout=PATIENCE_S, source_address=(sender, 0)
    )
    with contextlib.closing(link):
        link.request("GET", "/services/echo", headers={"Host": host, **headers})
        answer = link.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return answer, json.loads(body)


def sent_on(told: dict[str, list[str]]) -> dict[str, str]:
    """Return what was sent on that says who sent a request."""
    return {
        name: ",".join(values)
        for name, values in told.items()
        if name.startswith("x-forwarded") or name in ("forwarded", "x-real-ip", "x-scheme")
    }


@pytest.mark.parametrize("more", [{}, UPGRADE], ids=["page", "WebSocket"])
def test_forwarded_headers_of_an_untrusted_client_are_dropped(
    gate: RunningProxy, more: dict[str, str]
) -> None:
    _, told = asked(gate, STRANGER, FORGED | more)
    assert sent_on(told) == {"x-forwarded-for": STRANGER, **TOLD}


@pytest.mark.parametrize("more", [{}, UPGRADE], ids=["page", "WebSocket"])
def test_a_named_proxy_is_believed_about_the_address_only(gate: RunningProxy, more: dict[str, str]) -> None:
    _, told = asked(gate, GATE, FORGED | more)
    assert sent_on(told) == {"x-forwarded-for": "203.0.113.7", **TOLD}


@pytest.mark.parametrize(
    ("said", "sender"),
    [
        ("198.51.100.4", "198.51.100.4"),
        # what a client wrote stands on the left, and what the proxy saw on the right
        ("10.0.0.1, 127.0.0.1, 198.51.100.4", "198.51.100.4"),
        (f"{GATE}, 198.51.100.4", "198.51.100.4"),
        (f"198.51.100.4, {OUTER}", "198.51.100.4"),
        (f"10.0.0.1, 198.51.100.4, 2001:db8:1::5, {OUTER}", "198.51.100.4"),
        ("2001:db8:2::7", "2001:db8:2::7"),
        ("[2001:db8:2::7]:4433", "2001:db8:2::7"),
        ("198.51.100.4:51000", "198.51.100.4"),
        ("::ffff:198.51.100.4", "198.51.100.4"),
        ("fe80::1%eth0", "fe80::1"),
        # without an address at the right end it is the proxy's own
        ("", GATE),
        ("unknown", GATE),
        ("198.51.100.4, unknown", GATE),
        ("198.51.100.4,", GATE),
        ("198.51.100.4; rm -rf /", GATE),
        ("1.2.3.4.5", GATE),
        (OUTER, OUTER),
    ],
)
def test_addresses_are_counted_from_the_right(gate: RunningProxy, said: str, sender: str) -> None:
    _, told = asked(gate, GATE, {"X-Forwarded-For": said})
    assert told["x-forwarded-for"] == [sender]


def test_one_port_takes_both_kinds_of_addresses(tmp_path: Path) -> None:
    with started(tmp_path, bind="::", platform="http://hub.example.org", trusted=["::1/128"]) as running:
        for address, sender, forwarded, seen in (
            ("::1", "::1", "198.51.100.4", "198.51.100.4"),
            ("::1", "::1", "unknown", "::1"),
            ("127.0.0.1", STRANGER, "198.51.100.4", STRANGER),
        ):
            with socket.create_connection((address, running.port), PATIENCE_S, (sender, 0)) as link:
                link.sendall(
                    b"GET /services/echo HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n"
                    b"X-Forwarded-For: %b\r\n\r\n" % forwarded.encode()
                )
                answer = link.makefile("rb").read()
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["x-forwarded-for"] == [seen]


def test_several_headers_are_read_as_one(gate: RunningProxy) -> None:
    with socket.create_connection(("127.0.0.1", gate.port), PATIENCE_S, (GATE, 0)) as link:
        link.sendall(
            b"GET /services/echo HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n"
            b"X-Forwarded-For: 198.51.100.4\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n"
        )
        answer = link.makefile("rb").read()
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["x-forwarded-for"] == ["203.0.113.7"]


def test_nobody_is_believed_unless_named(tmp_path: Path) -> None:
    with started(tmp_path, platform="http://hub.example.org:8000") as running:
        _, told = asked(running, "127.0.0.1", FORGED)
        assert sent_on(told) == {
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-host": "hub.example.org",
            "x-forwarded-proto": "http",
            "x-forwarded-port": "8000",
        }


def test_browsers_are_told_to_keep_to_tls_by_the_proxy_alone(gate: RunningProxy) -> None:
    answer, _ = asked(gate, STRANGER, {})
    assert answer.headers.get_all("Strict-Transport-Security") == ["max-age=600"]


@pytest.mark.parametrize(
    ("platform", "hsts"),
    [
        ("http://hub.example.org", 600),
        ("https://hub.example.org", 0),
        # all programs of a machine share this name
        ("https://localhost:8443", 600),
        ("https://hub.localhost", 600),
    ],
)
def test_browsers_are_not_told_so(tmp_path: Path, platform: str, hsts: int) -> None:
    with started(tmp_path, platform=platform, hsts=hsts) as running:
        answer, _ = asked(running, STRANGER, {})
        assert answer.headers["Strict-Transport-Security"] is None


class Gateway:
    """A proxy in front, which brings the requests of its clients on connections of its own."""

    def __init__(self, running: RunningProxy, links: contextlib.ExitStack) -> None:
        self.running, self.links = running, links

    def connect(self) -> socket.socket:
        place = ("127.0.0.1", self.running.port)
        return self.links.enter_context(socket.create_connection(place, PATIENCE_S, (GATE, 0)))

    def bring(self, client: str, path: str, link: socket.socket | None = None, *, ws: bool = False) -> bytes:
        """Ask for a client; return the answer's first line."""
        link = link or self.connect()
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.9.9.9, {client}\r\n"
        head += "Connection: Upgrade\r\nUpgrade: websocket\r\n" if ws else ""
        link.sendall(f"{head}\r\n".encode())
        return link.recv(65536).partition(b"\r\n")[0]


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[RunningProxy]:
    """A proxy that holds 100 connections, 20 of one address, behind a gateway."""
    with Behind(tmp_path / "behind.sock") as behind:
        running = RunningProxy(tmp_path, connections=100, per_address=20, trusted=[f"{GATE}/32"])
        running.start()
        try:
            target = url_of(behind.path)
            assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
            yield running
        finally:
            running.stop(kill=True)


def test_a_client_that_floods_through_a_gateway_locks_out_nobody_else(bounded: RunningProxy) -> None:
    with contextlib.ExitStack() as links:
        gateway = Gateway(bounded, links)
        held = [gateway.bring("203.0.113.7", "/user/ann/echo", ws=True) for _ in range(30)]
        assert [line.split()[1] for line in held] == [b"101"] * 20 + [b"503"] * 10
        assert gateway.bring("203.0.113.7", "/user/ann/lab").split()[1] == b"503"
        assert gateway.bring("203.0.113.8", "/user/ann/lab").split()[1] == b"200"
        assert gateway.bring("203.0.113.8", "/user/ann/echo", ws=True).split()[1] == b"101"


def test_one_connection_of_a_gateway_counts_for_each_client_in_turn(bounded: RunningProxy) -> None:
    """Also kept ones: more of them than one address may have are no one's while nothing is asked."""
    with contextlib.ExitStack() as links:
        gateway = Gateway(bounded, links)
        kept = [gateway.connect() for _ in range(40)]
        for link in kept:
            assert gateway.bring("203.0.113.7", "/user/ann/lab", link).split()[1] == b"200"
        for link in kept:
            assert gateway.bring("203.0.113.8", "/user/ann/lab", link).split()[1] == b"200"
        # and the ones that this client has open now are all of theirs
        opened = [gateway.bring("203.0.113.7", "/user/ann/echo", ws=True) for _ in range(20)]
        assert {line.split()[1] for line in opened} == {b"101"}
        assert gateway.bring("203.0.113.7", "/user/ann/lab", kept[0]).split()[1] == b"503"
        assert gateway.bring("203.0.113.8", "/user/ann/lab", kept[1]).split()[1] == b"200"


MADE = re.compile("[0-9a-f]{16}")


@pytest.mark.parametrize("more", [{}, UPGRADE], ids=["page", "WebSocket"])
def test_an_id_of_a_request_is_made_here_unless_a_named_proxy_gives_a_good_one(
    gate: RunningProxy, more: dict[str, str]
) -> None:
    good = "edge-7f3a.2026_01"
    answer, told = asked(gate, GATE, {"X-Request-ID": good} | more)
    assert told["x-request-id"] == [good]
    if not more:
        assert answer.headers.get_all("X-Request-ID") == [good]
    answer, told = asked(gate, STRANGER, {"X-Request-ID": good} | more)
    (made,) = told["x-request-id"]
    assert MADE.fullmatch(made)
    if not more:
        assert answer.headers.get_all("X-Request-ID") == [made]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "short",
        "x" * 65,
        "x" * 10_000,
        "a b c d e f g",
        "<script>alert(1)",
        "-leading-dash",
        "ünïcödé-id",
        "a\tbcdefgh",
    ],
    ids=["empty", "short", "long", "10 kB", "blanks", "markup", "dash", "not ASCII", "tab"],
)
def test_a_bad_id_of_a_request_is_replaced_whoever_gives_it(gate: RunningProxy, given: str) -> None:
    _, told = asked(gate, GATE, {"X-Request-ID": given.encode().decode("latin1")})
    assert MADE.fullmatch(",".join(told["x-request-id"]))


def test_two_ids_of_one_request_are_none(gate: RunningProxy) -> None:
    with socket.create_connection(("127.0.0.1", gate.port), PATIENCE_S, (GATE, 0)) as link:
        link.sendall(
            b"GET /services/echo HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n"
            b"X-Request-ID: first-one\r\nX-Request-ID: second-one\r\n\r\n"
        )
        answer = link.makefile("rb").read()
    (made,) = json.loads(answer.partition(b"\r\n\r\n")[2])["x-request-id"]
    assert MADE.fullmatch(made)


def test_a_request_that_the_proxy_refuses_has_a_log_line_with_its_id_and_without_its_query(
    gate: RunningProxy,
) -> None:
    """A flood from one address has few lines, and hides none of another's."""

    def refused(sender: str, path: str, host: str) -> tuple[int, str]:
        link = http.client.HTTPConnection(
            "127.0.0.1", gate.port, timeout=PATIENCE_S, source_address=(sender, 0)
        )
        with contextlib.closing(link):
            link.request("GET", path, headers={"Host": host})
            answer = link.getresponse()
            answer.read()
            return answer.status, str(answer.headers["X-Request-ID"])

    def lines() -> str:
        return (gate.directory / "log").read_text()

    status, found = refused(STRANGER, "/hub/login?token=secret", "evil.example")
    assert status == 421
    wait_for(lambda: f"GET /hub/login was refused: 421, to {STRANGER} [{found}]" in lines())
    status, found = refused(GATE, "/nothing/is/here", "hub.example.org")
    assert status in (404, 503)
    wait_for(lambda: found in lines())
    for _ in range(60):
        refused(STRANGER, "/hub/login", "evil.example")
    status, found = refused("127.0.0.10", "/hub/login", "evil.example")
    wait_for(lambda: found in lines())
    assert "secret" not in lines()
    assert lines().count(f"421, to {STRANGER} [") <= 20
    assert "refused requests before the next line have no line of their own" in lines()


def test_the_page_of_the_proxy_names_the_request(gate: RunningProxy) -> None:
    link = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=PATIENCE_S, source_address=(GATE, 0))
    with contextlib.closing(link):
        headers = {"Host": "hub.example.org", "X-Request-ID": "edge-0001"}
        link.request("GET", "/nothing/is/here", headers=headers)
        answer = link.getresponse()
        assert json.loads(answer.read())["request_id"] == "edge-0001"
        assert answer.status in (404, 503)
        link.request("GET", "/nothing/is/here", headers=headers | {"Accept": "text/html"})
        assert "<p>Request edge-0001</p>" in link.getresponse().read().decode()
