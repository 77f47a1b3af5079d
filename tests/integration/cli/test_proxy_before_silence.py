"""A part of the platform that takes connections and does not answer: who asks for it is told so soon, and then at once."""

from __future__ import annotations

import http.client
import http.server
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S, wait_for


class Part:
    """A server on a UNIX socket whose answers can be held back: all of them, or those to /slow only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers = threading.Event()
        self.slow = threading.Event()
        self.asked: list[str] = []
        self.answers.set()
        part = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open

            def do_GET(self) -> None:
                part.asked.append(self.path)
                (part.slow if self.path == "/slow" else part.answers).wait(60)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def address_string(self) -> str:
                return "socket"

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

            def handle_error(self, *args: object) -> None:
                """Who gave up is no error."""

        self.server = Server(str(path), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.answers.set()
        self.slow.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Part]:
    made = Part(tmp_path / "part.sock")
    yield made
    made.close()


@pytest.fixture
def running(tmp_path: Path, part: Part) -> Iterator[RunningProxy]:
    made = RunningProxy(tmp_path)
    made.start()
    target = {"target": url_of(part.path)}
    assert made.routes("POST", "/part", target).status == 201
    assert made.routes("POST", "/", target).status == 201
    yield made
    made.stop(kill=True)


def in_background(work: Callable[[], int]) -> Callable[[], int]:
    """Begin it in a thread; return what waits for its result."""
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()

    def result() -> int:
        thread.join(60)
        return results[0]

    return result


def test_waiting_requests_get_503_and_later_requests_are_not_even_sent_to_a_silent_part(
    running: RunningProxy, part: Part
) -> None:
    assert running.get("/part").status == 200
    part.answers.clear()
    waiting = [in_background(lambda: running.get("/part", Accept="text/html").status) for _ in range(5)]
    assert {result() for result in waiting} == {503}
    asked = part.asked.count("/part")
    for _ in range(20):
        assert running.get("/part").status == 503
    assert part.asked.count("/part") == asked
    link = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    link.request(
        "GET", "/part", headers={"Host": "localhost", "Connection": "Upgrade", "Upgrade": "websocket"}
    )
    assert link.getresponse().status == 503
    link.close()
    part.answers.set()
    wait_for(lambda: running.get("/part").status == 200)
    log = (running.directory / "log").read_text()
    assert log.count(f"{part.path} does not answer") == 1
    assert log.count(f"{part.path} answers again") == 1


def test_a_part_that_takes_over_the_socket_of_a_hanging_one_is_asked_at_once(
    running: RunningProxy, part: Part, tmp_path: Path
) -> None:
    assert running.get("/part").status == 200
    part.answers.clear()
    assert in_background(lambda: running.get("/part").status)() == 503  # it is known to hang
    other = Part(tmp_path / "other.sock")
    try:
        other.path.rename(part.path)
        assert [running.get("/part").status for _ in range(5)] == [200] * 5
        assert other.asked.count("/part") == 5
    finally:
        other.close()


def test_requests_after_a_takeover_use_no_connection_to_the_process_before(
    running: RunningProxy, part: Part
) -> None:
    part.answers.clear()
    first = [in_background(lambda: running.get("/part").status) for _ in range(4)]
    wait_for(lambda: part.asked.count("/part") == 4)
    part.answers.set()
    assert {result() for result in first} == {200}  # and four connections stay open
    part.path.unlink()
    other = Part(part.path)
    try:
        assert [running.get("/part").status for _ in range(5)] == [200] * 5
        assert (part.asked.count("/part"), other.asked.count("/part")) == (4, 5)
    finally:
        other.close()


def test_a_request_that_takes_long_is_left_alone_while_its_part_answers_others(
    running: RunningProxy, part: Part
) -> None:
    slow = in_background(lambda: running.get("/slow").status)
    wait_for(lambda: part.asked.count("/") >= 2)  # it was wondered about, twice
    assert running.get("/part").status == 200
    part.slow.set()
    assert slow() == 200


def test_requests_after_another_process_replaced_a_silent_one_reach_it(
    running: RunningProxy, part: Part
) -> None:
    part.answers.clear()
    first = [in_background(lambda: running.get("/part").status) for _ in range(4)]
    wait_for(lambda: part.asked.count("/part") == 4)
    part.answers.set()
    assert {result() for result in first} == {200}  # and four connections stay open
    part.answers.clear()
    waits = in_background(lambda: running.get("/part").status)
    wait_for(lambda: part.asked.count("/part") == 5)
    part.path.unlink()
    other = Part(part.path)
    try:
        later: list[Callable[[], int]] = []

        def reached() -> bool:
            if "/part" not in other.asked:
                later.append(in_background(lambda: running.get("/part").status))
            return "/part" in other.asked

        wait_for(reached)
        assert later[-1]() == 200
        part.answers.set()
        assert waits() == 200  # it may have been a long answer
    finally:
        other.close()


def test_one_that_ended_is_refused_as_ever_and_is_not_called_silent(
    running: RunningProxy, part: Part
) -> None:
    part.server.shutdown()
    part.server.server_close()
    assert running.get("/part").status == 503
    assert "does not answer" not in (running.directory / "log").read_text()


def test_the_api_answers_a_health_check_on_its_socket_without_a_token(running: RunningProxy) -> None:
    link = http.client.HTTPConnection("localhost")
    link.sock = socket.socket(socket.AF_UNIX)
    link.sock.connect(str(running.api))
    link.request("GET", "/health")
    assert link.getresponse().status == 200
    link.close()
