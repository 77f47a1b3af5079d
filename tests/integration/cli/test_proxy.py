"""The bundled proxy with node: its routes outlive it, and it answers for who is not there."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import socketserver
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.executors.small_disk import small_disk
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S


class _Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if "Upgrade" in self.headers:
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.end_headers()
            self.wfile.write(b"welcome")
            self.rfile.read()
            return
        if self.path == "/user/ann/follow":  # a log of a job that waits
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.rfile.read(1)
            return
        body = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Refuse it, and tell what was heard of the connection: as it asks, it is closed at once or kept."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.protocol_version = "HTTP/1.1"
        body = json.dumps({"connection": self.headers["Connection"]}).encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.headers["Connection"] == "close"

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningProxy]:
    """Start a proxy, hand it out, end it."""
    made = RunningProxy(tmp_path)
    made.start()
    yield made
    made.stop(kill=True)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    """Serve on a UNIX socket and hand out its URL."""
    with _Server(str(tmp_path / "target.sock"), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield url_of(tmp_path / "target.sock")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kill", [True, False])
def test_routes_are_there_again_after_the_proxy_died(running: RunningProxy, target: str, kill: bool) -> None:
    assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    assert running.get("/user/ann/lab").json() == {"path": "/user/ann/lab"}
    running.stop(kill=kill)
    running.start()
    assert running.get("/user/ann/lab").json() == {"path": "/user/ann/lab"}
    assert running.routes().json()["/user/ann"]["user"] == "ann"
    assert running.routes("DELETE", "/user/ann").status == 204
    running.stop(kill=kill)
    running.start()
    assert "/user/ann" not in running.routes().json()


def test_the_head_of_an_answer_does_not_wait_for_its_body(running: RunningProxy, target: str) -> None:
    assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as asked:
        asked.sendall(b"GET /user/ann/follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert asked.recv(4096).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["/user/ann/ws", "/user/nobody/ws"])
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
@pytest.mark.parametrize("wait", [True, False])
def test_a_websocket_that_is_reset_costs_nobody_else_anything(
    running: RunningProxy, target: str, path: str, host: str, wait: bool
) -> None:
    assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as browser:
        browser.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".encode()
        )
        if wait:
            browser.recv(1000)
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
    assert running.child is not None
    with pytest.raises(subprocess.TimeoutExpired):
        running.child.wait(0.3)
    assert running.get("/user/ann/lab").json() == {"path": "/user/ann/lab"}


@pytest.mark.parametrize("more", [{}, {"Expect": "100-continue"}])
@pytest.mark.parametrize("wish", ["close", "keep-alive"])
def test_the_connection_header_of_a_client_is_not_forwarded_to_the_upstream(
    running: RunningProxy, target: str, wish: str, more: dict[str, str]
) -> None:
    """Told to close, a server would have, before the proxy made its last write of a request: the answer was lost."""
    assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    for _ in range(60):
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
        connection.request("POST", "/user/ann/jobs", b"{}", {"Connection": wish, **more})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (403, wish)
        assert json.loads(answer.read()) == {"connection": "keep-alive"}
        connection.close()


def test_a_websocket_is_asked_for_in_the_header_of_the_connection(running: RunningProxy, target: str) -> None:
    assert running.routes("POST", "/user/ann", {"target": target, "user": "ann"}).status == 201
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as browser:
        browser.sendall(
            b"GET /user/ann/ws HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        heard = b""
        while not heard.endswith(b"welcome"):
            heard += browser.recv(1000) or b"(closed) welcome"
    assert heard.startswith(b"HTTP/1.1 101 ")
    assert b"(closed)" not in heard


def test_broken_routes_cost_the_routes_and_not_the_start(running: RunningProxy) -> None:
    running.stop(kill=True)
    (running.directory / "routes.json").write_text('{"/user/ann": ')
    running.start()
    assert set(running.routes().json()) == {"/"}


def test_the_api_wants_its_token(running: RunningProxy) -> None:
    assert running.routes(token="wrong").status == 403
    assert running.api.stat().st_mode & 0o077 == 0


def test_without_a_hub_browsers_get_a_page_and_programs_get_json(running: RunningProxy) -> None:
    page = running.get("/hub/login", Accept="text/html")
    assert page.status == 503
    assert b"tries again by itself" in page.body
    assert "Not there at the moment" in running.get("/hub/login").json()["msg"]


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "MY.example:1", "hub.localhost"]
)
def test_our_own_names_and_all_addresses_are_answered(running: RunningProxy, host: str) -> None:
    assert running.get("/hub/login", Host=host).status == 503


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "my.example.evil", "", "my.example@evil"]
)
def test_a_foreign_host_name_is_refused(running: RunningProxy, host: str) -> None:
    refused = running.get("/hub/login", Host=host)
    assert refused.status == 421
    assert b"MLP_ALLOWED_HOSTS" in refused.body


def test_a_foreign_host_name_opens_no_websocket(running: RunningProxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    headers = {
        "Host": "evil.example",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "x",
        "Sec-WebSocket-Version": "13",
    }
    connection.request("GET", "/user/ann/api", headers=headers)
    assert connection.getresponse().status == 421
    connection.close()


def test_a_port_that_is_taken_ends_the_proxy_with_its_own_status(
    running: RunningProxy, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    second = RunningProxy(tmp_path / "second")
    second.port = running.port
    try:
        second.launch()
        assert second.child is not None
        assert second.child.wait(PATIENCE_S) == 98
    finally:
        second.stop(kill=True)
    assert "EADDRINUSE" in (second.directory / "log").read_text()


def test_a_full_disk_takes_lines_of_its_log_and_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        running = RunningProxy(disk.root)
        running.start()
        try:
            disk.fill()
            for _ in range(200):  # more than the last block of the log has room for
                assert running.get("/hub/login").status == 503
            assert running.get("/_chp_healthz").status == 200
            disk.free()
            assert running.get("/hub/login").status == 503
            last = (disk.root / "log").read_text().splitlines()[-2:]
            assert last[0].endswith("lines of this log were lost: there was no room")
            assert " error 503 GET /hub/login" in last[1]
        finally:
            running.stop(kill=True)
