"""The notebook server's way to the service: who may take it, what passes, and that nothing is left open behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

LOGIN = "the-browsers-own-token"
TOKEN = "the-servers-token"
JOB = "/users/ann/jobs/digits"


class Service:
    """Stands for the service on its socket, and notes what it was asked and what ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[dict[str, Any]] = []
        self.ended = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._open())
        self.ready.set()
        self.loop.run_forever()

    async def _open(self) -> None:
        service = self

        class Rest(RequestHandler):
            async def answer(self) -> None:
                service.asked.append(
                    {
                        "what": f"{self.request.method} {self.request.uri}",
                        "headers": dict(self.request.headers),
                        "body": self.request.body.decode(),
                    }
                )
                if "long" in self.request.path:
                    with contextlib.suppress(StreamClosedError):
                        for _ in range(2000):
                            self.write(b"x" * 1000)
                            await self.flush()
                            await asyncio.sleep(0.01)
                    return
                if "over" in self.request.path:
                    self.set_status(401)
                self.set_header("X-Next-Cursor", "c1")
                if "content" in self.request.path:
                    self.set_header("Content-Disposition", "attachment; filename*=UTF-8''page.html")
                if "cut" in self.request.path:  # a file that its program makes smaller while it is read
                    self.set_header("Content-Length", "1000")
                    self.write(b"x" * 100)
                    await self.flush()
                    self.request.connection.stream.close()
                    return
                self.set_header("Set-Cookie", "evil=1")
                self.write({"msg": "fine"})

            get = put = delete = post = answer

            def on_connection_close(self) -> None:
                service.ended.set()

        class Stream(WebSocketHandler):
            async def get(self, *args: str, **kwargs: str) -> None:
                service.asked.append(
                    {"what": f"WS {self.request.uri}", "headers": dict(self.request.headers), "body": ""}
                )
                if "none" in self.request.path:
                    self.set_status(403)
                    self.finish({"msg": "job none does not exist", "reason": "NotFound"})
                    return
                await super().get(*args, **kwargs)

            def open(self, *_args: str, **_kwargs: str) -> None:
                self.write_message(json.dumps({"type": "synced"}))
                if "short" in self.request.path:
                    self.close(4401, "the token is not valid any more")

            def on_message(self, message: str | bytes) -> None:
                service.asked.append({"what": f"message {message!r}", "headers": {}, "body": ""})

            def on_close(self) -> None:
                service.ended.set()

        app = Application(
            [(r"/services/mlp/api/v1/.*:stream", Stream), (r".*", Rest)], websocket_ping_interval=0
        )
        self.server = HTTPServer(app)
        self.server.add_socket(bind_unix_socket(str(self.path)))

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


class Server:
    """A notebook server with the extension, by itself."""

    def __init__(self, home: Path, service: Path) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}/user/ann"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "MLP_API_URL": f"http+unix://{quote(str(service), safe='')}/services/mlp/api/v1",
            "MLP_TOKEN": TOKEN,
        }
        argv = [sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser", "--ip=127.0.0.1"]
        argv += [
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            "--ServerApp.base_url=/user/ann/",
        ]
        argv += [f"--IdentityProvider.token={LOGIN}", "--ServerApp.jpserver_extensions={'mlp.bridge': True}"]
        self.log = (home / "log").open("wb")
        self.child = subprocess.Popen(argv, env=env, cwd=home, stdout=self.log, stderr=self.log)
        self.http = httpx.Client(base_url=f"{self.base}/mlp/api/v1", timeout=PATIENCE_S, trust_env=False)
        self.http.headers["Authorization"] = f"token {LOGIN}"

    def answers(self) -> bool:
        assert self.child.poll() is None, Path(self.log.name).read_text()
        try:
            return httpx.get(f"{self.base}/api", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def socket(self, path: str, *, login: str = LOGIN, **more: Any) -> ClientConnection:
        url = f"ws://127.0.0.1:{self.port}/user/ann/mlp/api/v1{path}"
        headers = {"Authorization": f"token {login}", **more.pop("headers", {})}
        return connect(url, additional_headers=headers, proxy=None, **more)

    def stop(self) -> None:
        self.http.close()
        self.child.terminate()
        self.child.wait(30)
        self.log.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    made = Service(tmp_path_factory.mktemp("s") / "mlp.sock")
    made.thread.start()
    assert made.ready.wait(10)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, service: Service) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("home"), service.path)
    try:
        wait_for(made.answers)
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def _fresh(service: Service) -> None:
    service.asked.clear()
    service.ended.clear()


def test_a_request_passes_with_the_servers_token_and_nothing_of_the_browsers(
    server: Server, service: Service
) -> None:
    answer = server.http.put(
        f"{JOB}:cancel?x=%20y",
        json={"a": 1},
        headers={"Cookie": "secret=1", "X-Forwarded-For": "9.9.9.9", "X-Tenant-ID": "red"},
    )
    assert (answer.status_code, answer.json()) == (200, {"msg": "fine"})
    assert answer.headers["x-next-cursor"] == "c1"
    assert answer.headers["cache-control"] == "no-store"
    assert "evil" not in answer.headers.get("set-cookie", "")
    (asked,) = service.asked
    assert asked["what"] == f"PUT /services/mlp/api/v1{JOB}:cancel?x=%20y"
    assert asked["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert json.loads(asked["body"]) == {"a": 1}
    assert not {"Cookie", "X-Forwarded-For", "X-Tenant-Id"} & set(asked["headers"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/session"),
        ("GET", "/announcements"),
        ("GET", JOB),
        ("GET", f"{JOB}/why"),
        ("GET", f"{JOB}/decisions"),
        ("GET", f"{JOB}/files?limit=100&path=ckpt"),
        ("GET", f"{JOB}/files/content?path=ckpt%2Fa%20b"),
        ("GET", "/users/ann/jobs"),
        ("GET", "/users/ann/quota"),
        ("GET", "/tenants/red/queue"),
        ("GET", "/runtimes"),
        ("POST", "/users/ann/jobs"),
        ("DELETE", JOB),
        ("GET", "/users/a%40b/jobs/x-1.y_z"),
    ],
)
def test_requests_of_the_monitor_pass_unchanged(
    server: Server, service: Service, method: str, path: str
) -> None:
    assert server.http.request(method, path).status_code == 200
    assert [a["what"] for a in service.asked] == [f"{method} /services/mlp/api/v1{path}"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users/ann/token"),
        ("GET", "/users"),
        ("PUT", "/users/ann"),
        ("DELETE", "/users/ann"),
        ("GET", "/tenants"),
        ("GET", "/tenants/red"),
        ("GET", "/tenants/red/members"),
        ("GET", "/tenants/red/runtimes"),
        ("GET", "/tenants/../queue"),
        ("POST", "/tenants/red/queue"),
        ("POST", "/runtimes"),
        ("POST", "/announcements"),
        ("DELETE", "/announcements/3"),
        ("POST", "/users/ann/tokens"),
        ("POST", "/users/ann/models"),
        ("POST", "/users/ann/jobs/digits:cancel"),
        ("POST", "/users/ann%2fjobs/x/jobs"),
        ("POST", "/users/ann/jobs/"),
        ("PUT", "/users/ann/jobs"),
        ("DELETE", "/users/ann/jobs"),
        ("PUT", JOB),
        ("POST", f"{JOB}/metrics"),
        ("PUT", f"{JOB}/files/content"),
        ("GET", f"{JOB}/files/other"),
        ("GET", f"{JOB}/logs/content"),
        ("GET", "/users/ann/models/net/files/content"),
        ("GET", "/audit"),
        ("GET", ""),
        ("GET", "/users/ann/jobs/%2e%2e/token"),
        ("GET", "/users/ann/jobs/..%2ftoken"),
        ("GET", "/users/ann/jobs/%2E%2E%5Ctoken"),
        ("GET", "/users/ann/jobs/x%00"),
        ("GET", "//session"),
        ("GET", "/users/ann/jobs/x/"),
        ("PATCH", JOB),
    ],
)
def test_nothing_else_passes(server: Server, service: Service, method: str, path: str) -> None:
    assert server.http.request(method, path).status_code in (404, 405)
    assert not service.asked


def test_a_submission_passes_with_its_key_and_nothing_else_of_the_browsers(
    server: Server, service: Service
) -> None:
    told = {"Idempotency-Key": "k1", "X-Tenant-ID": "red", "Content-Type": "text/plain"}
    answer = server.http.post("/users/ann/jobs", json={"name": "digits", "entry": "train.py"}, headers=told)
    assert answer.status_code == 200
    (asked,) = service.asked
    assert asked["what"] == "POST /services/mlp/api/v1/users/ann/jobs"
    assert asked["headers"]["Idempotency-Key"] == "k1"
    assert asked["headers"]["Content-Type"] == "application/json"
    assert "X-Tenant-Id" not in asked["headers"]
    assert json.loads(asked["body"]) == {"name": "digits", "entry": "train.py"}


def test_no_page_of_another_origin_submits(server: Server, service: Service) -> None:
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        browser.get(f"{server.base}/login")
        browser.get(f"{server.base}/api/status?token={LOGIN}")
        url = f"{server.base}/mlp/api/v1/users/ann/jobs"
        # a form of another page sends the cookies, and cannot know the token that must come with them
        for headers in ({}, {"Origin": "http://evil.example"}, {"X-XSRFToken": "guessed"}):
            assert browser.post(url, content="{}", headers=headers).status_code in (403, 404)
        assert not service.asked
        own = {"X-XSRFToken": browser.cookies["_xsrf"]}
        assert browser.post(url, json={}, headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/session", JOB, "/nothing"])
def test_a_caller_without_a_server_login_learns_nothing(server: Server, service: Service, path: str) -> None:
    for headers in ({}, {"Authorization": "token wrong"}, {"Authorization": f"Bearer {TOKEN}"}):
        assert (
            httpx.get(f"{server.base}/mlp/api/v1{path}", headers=headers, trust_env=False).status_code == 403
        )
    with pytest.raises(InvalidStatus, match="403"):
        server.socket(f"{JOB}:stream", login="wrong")
    assert not service.asked


def test_a_large_body_is_refused_here(server: Server, service: Service) -> None:
    assert server.http.put(f"{JOB}:cancel", content=b"x" * (2 << 20)).status_code == 413
    assert not service.asked


def test_an_expired_token_of_the_server_is_not_reported_as_an_expired_login(server: Server) -> None:
    assert server.http.get("/users/ann/jobs/over").status_code == 503


def test_a_browser_that_leaves_in_the_middle_ends_what_the_service_does_for_it(
    server: Server, service: Service
) -> None:
    with server.http.stream("GET", "/users/ann/jobs/long") as answer:
        assert next(answer.iter_bytes())
    assert service.ended.wait(20)


def test_a_file_is_served_as_a_download_and_an_early_end_is_not_a_whole_file(
    server: Server, service: Service
) -> None:
    answer = server.http.get(f"{JOB}/files/content?path=page.html")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    with pytest.raises(httpx.RemoteProtocolError):
        server.http.get("/users/ann/jobs/cut/files/content?path=x")


def test_a_socket_passes_what_the_service_sends_and_its_end(server: Server, service: Service) -> None:
    with server.socket(f"{JOB}:stream?since=7") as browser:
        assert json.loads(browser.recv(PATIENCE_S)) == {"type": "synced"}
        browser.send("a browser has nothing to say")
    assert service.ended.wait(20)
    assert [a["what"] for a in service.asked] == [f"WS /services/mlp/api/v1{JOB}:stream?since=7"]
    assert service.asked[0]["headers"]["Authorization"] == f"Bearer {TOKEN}"
    with server.socket("/users/ann/jobs/short:stream") as browser:
        browser.recv(PATIENCE_S)
        with pytest.raises(ConnectionClosed) as closed:
            browser.recv(PATIENCE_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


def test_a_browser_that_vanishes_leaves_no_socket_at_the_service(server: Server, service: Service) -> None:
    browser = server.socket(f"{JOB}:stream", legacy=True)
    browser.recv(PATIENCE_S)
    browser.socket.shutdown(socket.SHUT_RDWR)
    browser.socket.close()
    assert service.ended.wait(20)


def test_no_page_of_another_origin_opens_a_socket(server: Server, service: Service) -> None:
    with httpx.Client(trust_env=False, follow_redirects=True) as browser:
        browser.get(f"{server.base}/api/status?token={LOGIN}")
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    own = f"http://127.0.0.1:{server.port}"
    for origin in ("http://evil.example", f"http://mal.localhost:{server.port}", "null"):
        with pytest.raises(InvalidStatus, match="403"):
            server.socket(
                f"{JOB}:stream", login="", headers={"Authorization": "", "Cookie": cookies, "Origin": origin}
            )
    assert not service.asked
    with server.socket(
        f"{JOB}:stream", headers={"Authorization": "", "Cookie": cookies, "Origin": own}
    ) as socket_:
        assert socket_.recv(PATIENCE_S)


@pytest.mark.parametrize("path", ["/queue:stream", "/users/ann/jobs/..%2fx:stream", "/users/ann:stream"])
def test_no_other_stream_passes(server: Server, service: Service, path: str) -> None:
    with pytest.raises(InvalidStatus, match="404"):
        server.socket(path)
    assert not service.asked


def test_a_stream_that_the_service_refuses_is_refused(server: Server) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        server.socket("/users/ann/jobs/none:stream")


def test_without_the_service_the_answer_is_503_in_words(tmp_path: Path) -> None:
    alone = Server(tmp_path, tmp_path / "nobody.sock")
    try:
        wait_for(alone.answers)
        answer = alone.http.get("/session")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "does not answer" in answer.json()["msg"]
        with pytest.raises(InvalidStatus, match="503"):
            alone.socket(f"{JOB}:stream")
    finally:
        alone.stop()
