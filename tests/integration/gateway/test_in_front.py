"""The hub's proxy behind real nginx and Envoy, with the configurations of docs/gateway: what passes, and who is believed."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.certificates import certificate
from support.proxy.bodies_told_twice import WAYS, told_twice
from support.proxy.gateways import Gateway, gateway
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S

HOST, USERS = "hub.example.org", "hub-users.example.net"
ANN = f"ann.{USERS}"
CLIENT = "127.0.0.7"
MIB = 1 << 20


class _Behind(http.server.BaseHTTPRequestHandler):
    """Tells what it was sent; `slow` answers in two parts, the second when the test has seen the first."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: _Server = self.server  # type: ignore[assignment]
        server.asked.append(self.path)
        if self.path.endswith("/slow"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nfirst\r\n")
            server.seen.wait(PATIENCE_S)
            self.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")
            return
        if self.headers.get("Upgrade") == "websocket":
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.end_headers()
            while data := self.connection.recv(65536):
                self.wfile.write(data)
            self.close_connection = True
            return
        self._tell({name.lower(): ",".join(self.headers.get_all(name) or []) for name in self.headers})

    def do_POST(self) -> None:
        server: _Server = self.server  # type: ignore[assignment]
        server.asked.append(self.path)
        left, got = int(self.headers["Content-Length"] or 0), 0
        self.close_connection = "Transfer-Encoding" in self.headers  # whose body it does not read
        while got < left and (data := self.rfile.read1(min(MIB, left - got))):
            got += len(data)
        self._tell(got)

    def _tell(self, what: object) -> None:
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.asked: list[str] = []
        self.seen = threading.Event()
        super().__init__(str(path), _Behind)


class Site:
    """All of it: the gateway, the hub's proxy behind it, and the server of ann behind that."""

    def __init__(self, front: Gateway, server: _Server, pem: Path) -> None:
        self.front, self.server = front, server
        self.context = ssl.create_default_context(cafile=str(pem))

    def connect(self, host: str = HOST, *, to: str = "127.0.0.1", by: str = CLIENT) -> ssl.SSLSocket:
        raw = socket.create_connection((to, self.front.port), PATIENCE_S, (by, 0))
        try:
            return self.context.wrap_socket(raw, server_hostname=host)
        except BaseException:
            raw.close()
            raise

    @contextlib.contextmanager
    def asked(
        self,
        path: str,
        host: str = HOST,
        body: bytes | None = None,
        name: str = "",
        **headers: str,
    ) -> Iterator[http.client.HTTPResponse]:
        """Ask for a path; `name` is the Host header's where it is another than TLS was told."""
        link = http.client.HTTPConnection("127.0.0.1")
        link.sock = self.connect(host)
        named = {"Host": f"{name or host}:{self.front.port}"}
        with contextlib.closing(link):
            link.request("POST" if body is not None else "GET", path, body=body, headers=named | headers)
            yield link.getresponse()


@pytest.fixture(scope="module", params=["nginx", "envoy"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One of both in front."""
    directory = tmp_path_factory.mktemp(request.param)
    pem = certificate(directory, HOST, f"*.{USERS}")
    running = RunningProxy(
        directory,
        hosts=[HOST],
        platform=f"https://{HOST}",
        users=USERS,
        trusted=["127.0.0.1/32"],
        hsts=600,
        base="/mlp",
    )
    with _Server(directory / "behind.sock") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.start()
        try:
            target = url_of(directory / "behind.sock")
            for route in (f"/{HOST}/mlp/services/mlp", f"/{ANN}/mlp/user/ann"):
                assert running.routes("POST", route, {"target": target}).status == 201
            with gateway(request.param, directory / "front", pem, running.port) as front:
                yield Site(front, server, pem)
        finally:
            running.stop(kill=True)
            server.shutdown()


PAGES = [(HOST, "/mlp/services/mlp/x"), (ANN, "/mlp/user/ann/x")]


@pytest.mark.parametrize(("host", "path"), PAGES)
def test_only_the_client_address_is_accepted_from_the_gateway(site: Site, host: str, path: str) -> None:
    forged = {
        "X-Forwarded-For": "203.0.113.7, 127.0.0.1",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Port": "1",
        "Forwarded": "for=203.0.113.7;host=evil.example",
        "X-Real-IP": "203.0.113.7",
    }
    for headers in ({}, forged):
        with site.asked(path, host, **headers) as answer:
            told = json.loads(answer.read())
            assert answer.headers.get_all("Strict-Transport-Security") == ["max-age=600"]
        said = {
            k: v for k, v in told.items() if k.startswith("x-forwarded") or k in ("forwarded", "x-real-ip")
        }
        assert said == {
            "x-forwarded-for": CLIENT,
            "x-forwarded-host": f"{host}:{site.front.port}",
            "x-forwarded-proto": "https",
            "x-forwarded-port": "443",
        }
        assert told["host"] == f"{host}:{site.front.port}"


def test_a_client_may_come_by_ipv6(site: Site) -> None:
    with site.connect(to="::1", by="::1") as link:
        link.sendall(
            f"GET /mlp/services/mlp/x HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n"
            "X-Forwarded-For: 2001:db8::7\r\n\r\n".encode()
        )
        answer = link.makefile("rb").read()
    seen = json.loads(answer.partition(b"\r\n\r\n")[2])["x-forwarded-for"]
    if site.front.kind == "nginx":
        assert seen == "::1"
    else:  # who comes from the machine itself is written as the machine's own address
        assert seen != "2001:db8::7"


@pytest.mark.parametrize(("host", "path"), PAGES)
def test_websockets_pass(site: Site, host: str, path: str) -> None:
    with site.connect(host) as link:
        link.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert link.recv(4096).startswith(b"HTTP/1.1 101 ")
        link.sendall(b"hello")
        assert link.recv(100) == b"hello"


def test_the_first_part_of_a_response_arrives_before_the_server_sends_more(site: Site) -> None:
    site.server.seen.clear()
    with site.asked("/mlp/services/mlp/slow") as answer:
        assert answer.read(5) == b"first"
        site.server.seen.set()
        assert answer.read() == b"second"


def test_large_bodies_pass(site: Site) -> None:
    with site.asked("/mlp/user/ann/x", ANN, body=bytes(48 * MIB)) as answer:
        assert json.loads(answer.read()) == 48 * MIB


def test_many_cookies_pass(site: Site) -> None:
    with site.asked(
        "/mlp/services/mlp/x", Cookie="; ".join(f"c{n}={'x' * 900}" for n in range(12))
    ) as answer:
        assert answer.status == 200


def test_names_that_are_not_ours_reach_nothing(site: Site) -> None:
    before = len(site.server.asked)
    for name in ("evil.example", f"{HOST}.evil.example", f"a.b.{USERS}", USERS):
        with site.asked("/mlp/services/mlp/x", name=name) as answer:
            assert answer.status in (404, 421), name
    assert len(site.server.asked) == before


def test_a_users_name_has_nothing_of_the_platform(site: Site) -> None:
    with site.asked("/mlp/services/mlp/x", ANN) as answer:
        assert answer.status == 421


@pytest.mark.parametrize("way", WAYS)
def test_a_body_whose_end_is_told_twice_hides_no_second_request(site: Site, way: str) -> None:
    with site.connect() as link:
        with contextlib.suppress(OSError):  # it may end in the middle of this
            link.sendall(told_twice(way, "/mlp/services/mlp/x", HOST, "/mlp/services/mlp/smuggled"))
        link.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):
            link.recv(65536)
    # the next request of the gateway on the same connection to the hub is answered as itself
    for _ in range(3):
        with site.asked("/mlp/services/mlp/own") as answer:
            assert answer.status == 200
            answer.read()
    assert not any(path.endswith("/smuggled") for path in site.server.asked)


def test_a_header_cannot_be_written_into_another(site: Site) -> None:
    with site.asked("/mlp/services/mlp/x?next=%0d%0aSet-Cookie:%20a=b") as answer:
        assert answer.headers.get_all("Set-Cookie") is None


def test_a_request_without_tls_is_redirected_to_it(site: Site) -> None:
    if site.front.kind == "envoy":  # its file has no port for that
        with socket.create_connection(("127.0.0.1", site.front.port), PATIENCE_S) as link:
            link.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            assert not link.recv(100).startswith(b"HTTP/1.1 200")
        return
    link = http.client.HTTPConnection("127.0.0.1", site.front.plain, timeout=PATIENCE_S)
    with contextlib.closing(link):
        link.request("GET", "/mlp/hub/login?x", headers={"Host": ANN})
        assert link.getresponse().headers["Location"] == f"https://{ANN}/mlp/hub/login?x"
