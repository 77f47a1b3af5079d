"""The proxy where parts are pods: it waits for one that is replaced, and is itself replaced without a request lost."""

from __future__ import annotations

import http.client
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mlp_hub.proxy import Succession
from support.ports import free_port
from support.proxy.running_proxy import TOKEN, RunningProxy
from support.waiting import PATIENCE_S, wait_for

BODY = b"x" * 3_000_000
"""More than what lies in buffers between client and part."""


class Part:
    """A part of the platform at a port, which answers a POST with the length of its body; to /slow once it may."""

    def __init__(self, port: int) -> None:
        self.may, self.asked = threading.Event(), threading.Event()
        part = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = len(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path.endswith("/slow"):
                    part.asked.set()
                    part.may.wait(PATIENCE_S)
                body = str(length).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.may.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def running(tmp_path: Path, port: int) -> Iterator[RunningProxy]:
    made = RunningProxy(tmp_path, pods=Succession(hold_s=60, leave_s=1))
    made.start()
    assert made.routes("POST", "/part", {"target": f"http://127.0.0.1:{port}"}).status == 201
    assert (
        made.routes("POST", "/user/ann", {"target": f"http://127.0.0.1:{port}", "user": "ann"}).status == 201
    )
    yield made
    made.stop(kill=True)


def post(proxy: RunningProxy, path: str, body: bytes = BODY) -> tuple[int, bytes]:
    answer = httpx.post(f"http://localhost:{proxy.port}{path}", content=body, timeout=PATIENCE_S)
    return answer.status_code, answer.content


class Posting(threading.Thread):
    """A POST in a thread."""

    def __init__(self, proxy: RunningProxy, path: str) -> None:
        super().__init__()
        self.proxy, self.path = proxy, path
        self.came: tuple[int, bytes] | None = None
        self.start()

    def run(self) -> None:
        self.came = post(self.proxy, self.path)

    def answer(self) -> tuple[int, bytes] | None:
        self.join(PATIENCE_S)
        return self.came


def test_requests_wait_for_a_part_that_is_replaced_with_all_of_their_bodies(
    running: RunningProxy, port: int
) -> None:
    waiting = [Posting(running, "/part/any") for _ in range(5)]
    # a user's server that is away is told of at once: it may never come
    assert post(running, "/user/ann/any")[0] == 503
    assert all(each.is_alive() for each in waiting)
    part = Part(port)
    try:
        assert [each.answer() for each in waiting] == [(200, str(len(BODY)).encode())] * 5
        part.close()
        again = Posting(running, "/part/any")  # at a connection that is none any more
        part = Part(port)
        assert again.answer() == (200, str(len(BODY)).encode())
    finally:
        part.close()


def test_a_proxy_that_ends_answers_all_that_was_asked_and_ends_connections_by_its_answers(
    running: RunningProxy, port: int
) -> None:
    part = Part(port)
    kept = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    try:
        slow = Posting(running, "/part/slow")
        assert part.asked.wait(PATIENCE_S)
        kept.request("POST", "/part/any", body=b"ab", headers={"Host": "localhost"})
        first = kept.getresponse()
        assert (first.status, first.read(), first.will_close) == (200, b"2", False)
        assert running.child is not None
        running.child.terminate()
        wait_for(lambda: not running.api.exists(), message="for the proxy to begin to leave")
        kept.request("POST", "/part/any", body=b"abc", headers={"Host": "localhost"})
        last = kept.getresponse()
        assert (last.status, last.read(), last.will_close) == (200, b"3", True)
        part.may.set()
        assert slow.answer() == (200, str(len(BODY)).encode())
        assert running.child.wait(PATIENCE_S) == 0
    finally:
        kept.close()
        part.close()


def test_a_new_proxy_begins_with_the_routes_of_the_one_before(running: RunningProxy, tmp_path: Path) -> None:
    running.stop(kill=False)
    before = RunningProxy(running.directory, api=("127.0.0.1", free_port()))
    before.start()
    assert "/user/ann" in before.routes().json()
    folder = tmp_path / "next"
    folder.mkdir()
    after = RunningProxy(folder, pods=Succession(routes_from=before.limits["api"]))
    try:
        after.start()
        assert after.routes().json()["/user/ann"]["user"] == "ann"
        assert after.routes().json().keys() == before.routes().json().keys()
        after.stop(kill=True)
        before.stop(kill=True)
        began = time.monotonic()
        after.start()  # nobody is there to be asked
        assert time.monotonic() - began < PATIENCE_S
    finally:
        for one in (before, after):
            one.stop(kill=True)


def test_a_proxy_that_asks_with_another_token_gets_no_routes(running: RunningProxy, tmp_path: Path) -> None:
    running.stop(kill=False)
    before = RunningProxy(running.directory, api=("127.0.0.1", free_port()))
    before.start()
    folder = tmp_path / "next"
    folder.mkdir()
    env = {"CONFIGPROXY_AUTH_TOKEN": f"not-{TOKEN}"}
    after = RunningProxy(folder, pods=Succession(routes_from=before.limits["api"]), env=env)
    try:
        after.start()
        assert "/user/ann" not in after.routes(token=env["CONFIGPROXY_AUTH_TOKEN"]).json()
    finally:
        for one in (before, after):
            one.stop(kill=True)
