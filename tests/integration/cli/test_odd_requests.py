"""Requests that mean nothing or two things: refused with a word, never a fault of the proxy; and processes that hang."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.behind import Behind
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S, wait_for

WEBSOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n"
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningProxy]:
    """Start a proxy with an ordinary server in the hub's place."""
    with Behind(tmp_path / "hub.sock"):
        made = RunningProxy(tmp_path)
        made.start()
        yield made
        made.stop(kill=True)


def ask(running: RunningProxy, target: str, *headers: str, method: str = "GET") -> tuple[int, str]:
    """Send a request as it stands, and return its answer's status and body."""
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as link:
        lines = [f"{method} {target} HTTP/1.1", *headers, "Connection: close"]
        link.sendall("".join(f"{line}\r\n" for line in lines).encode("latin1") + b"\r\n")
        answer = b""
        while data := link.recv(65536):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body.decode()


@pytest.mark.parametrize("more", ["", WEBSOCKET], ids=["page", "WebSocket"])
@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("//", "two slashes"),
        ("//[", "two slashes"),
        ("//evil.example/hub/login", "two slashes"),
        ("/\\evil.example/hub/login", "two slashes"),
        ("http://localhost//evil.example/", "two slashes"),
        ("/%E0%A4%A", "%"),
        ("/%", "%"),
        ("/hub/%zz", "%"),
        ("/%FF", "UTF-8"),
        ("http://[/", "cannot be read"),
    ],
)
def test_an_address_that_says_nothing_is_refused_with_a_word(
    running: RunningProxy, target: str, word: str, more: str
) -> None:
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as link:
        link.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
        answer = link.recv(65536).decode()
        assert answer.startswith("HTTP/1.1 400 ")
        assert word in answer
        while link.recv(65536):
            pass
    assert " 500 " not in (running.directory / "log").read_text()


@pytest.mark.parametrize("more", [(), tuple(WEBSOCKET.splitlines())], ids=["page", "WebSocket"])
@pytest.mark.parametrize("second", ["localhost", "evil.example"])
def test_two_hosts_are_refused(running: RunningProxy, second: str, more: tuple[str, ...]) -> None:
    status, text = ask(running, "/hub/login", "Host: localhost", f"host: {second}", *more)
    assert status == 400
    assert "two Host headers" in text


@pytest.mark.parametrize(
    "target",
    [
        "/constructor",
        "/__proto__/a",
        "/user/toString",
        "/hub/login//",
        "/hub//login",
        "/a/" + "b/" * 7000,
        "/hub/login?next=%E0%A4%A",
        "/%C3%A9",
        "/hub/a%2F%2e%2e%2Fb",
        "http://localhost/hub/login",
        "/?",
    ],
)
def test_an_odd_address_is_somebodys(running: RunningProxy, target: str) -> None:
    assert ask(running, target, "Host: localhost") == (200, "ok")


def test_every_method_and_the_asterisk_are_somebodys(running: RunningProxy) -> None:
    assert ask(running, "*", "Host: localhost", method="OPTIONS")[0] == 200
    for method in ("PROPFIND", "TRACE", "M-SEARCH", "DELETE"):
        assert ask(running, "/hub/login", "Host: localhost", method=method)[0] == 200


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that answers, in the hub's place."""
    code = "import sys, http.server as h, socketserver as s\nclass H(h.SimpleHTTPRequestHandler):\n def address_string(self): return ''\ns.ThreadingUnixStreamServer.request_queue_size=50\ns.ThreadingUnixStreamServer(sys.argv[1], H).serve_forever()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "hub.sock")], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as child:
        wait_for((tmp_path / "hub.sock").exists)
        yield child
        child.kill()


def test_a_process_of_the_platform_that_hangs_is_told_and_found_again(
    hanging: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    running = RunningProxy(tmp_path)
    running.start()
    try:
        with Behind(tmp_path / "behind.sock") as behind:
            slow = {"target": url_of(behind.path)}
            assert running.routes("POST", "/user/ann", {**slow, "user": "ann"}).status == 201
            assert running.routes("POST", "/services/slow", {**slow, "service": "slow"}).status == 201
            assert running.get("/").status == 200
            before = running.descriptors()
            with (
                socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as theirs,
                socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as service,
            ):
                theirs.sendall(b"GET /user/ann/never HTTP/1.1\r\nHost: localhost\r\n\r\n")
                service.sendall(b"GET /services/slow/never HTTP/1.1\r\nHost: localhost\r\n\r\n")
                os.kill(hanging.pid, signal.SIGSTOP)
                with socket.create_connection(("127.0.0.1", running.port), PATIENCE_S) as ws:
                    ws.sendall(f"GET /hub/ws HTTP/1.1\r\nHost: localhost\r\n{WEBSOCKET}\r\n".encode())
                    page = running.get("/hub/login", Accept="text/html")
                    assert page.status == 503
                    assert b"tries again by itself" in page.body
                    assert ws.recv(1000).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                # from now on nobody waits for it
                for _ in range(30):
                    assert running.get("/hub/login", Accept="text/html").status == 503
                assert running.get("/user/ann/lab").status == 200
                assert running.get("/services/slow/x").status == 200
                os.kill(hanging.pid, signal.SIGCONT)
                wait_for(lambda: running.get("/").status == 200)
                for link in (theirs, service):  # whoever answers others may take long for one
                    link.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        link.recv(1)
            wait_for(lambda: behind.open <= 1)
            wait_for(lambda: running.descriptors() <= before + 2)
            said = (tmp_path / "log").read_text()
            assert said.count("hub.sock does not answer") == 1
            assert said.count("hub.sock answers again") == 1
    finally:
        running.stop(kill=True)
