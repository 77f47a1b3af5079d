"""Stands for the platform's service where only the front end is tested: REST and WebSocket shapes, all in memory.

`FrontService` runs in a thread of its own; a test changes `.data` and calls `push`, `drop` and `feed` from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketHandler

from mlp_hub.api.edge.reader import language_asked
from mlp_hub.web import docs
from support.front import data as shapes
from support.front.files import DATA, FrontDav
from support.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
PANEL = ROOT / "hub" / "mlp_hub" / "web" / "static"
LAB = ROOT / "widgets" / "build" / "labextension" / "static"
HARNESS = Path(__file__).parent / "harness"
API = "/services/mlp/api/v1"
PASSED = "/user/ann/mlp/api/v1"
"""Where ann's notebook server passes requests on."""
# the policy of the real pages: what breaks under it must break here
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'"
)
SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>MLP Hub</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="mlp-base" content="/services/mlp/">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/services/mlp/static/panel.css">
<script defer src="/services/mlp/static/panel.js"></script></head><body><div id="app"></div></body></html>"""


class FrontService:
    """The service's stand-in on a loopback port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.data = shapes.Data()
        self.sockets: set[Stream] = set()
        self.seen: list[str] = []
        self.queries: list[str] = []
        """Pages of the documentation by name."""
        self.accept = True
        """False: WebSockets are refused, as by a proxy whose service is away."""
        self.gates: dict[str, asyncio.Event] = {}
        self.waiting: list[str] = []
        """What was asked for and its answer is kept back."""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def stop(self) -> None:
        self.call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def call(self, coroutine: Any) -> Any:
        """Run a coroutine in the service's loop and give its result."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(120)

    @contextlib.contextmanager
    def kept_back(self, key: str) -> Iterator[None]:
        """Answer who asks for this meanwhile with what was there when they asked, but not before the end."""
        gate = self.gates[key] = asyncio.Event()
        try:
            yield
        finally:
            self.gates.pop(key, None)
            self._loop.call_soon_threadsafe(gate.set)

    def push(self, *frames: dict[str, Any]) -> None:
        """Send frames to every open job stream, and keep them for replays."""

        async def send() -> None:
            for frame in frames:
                self.data.keep(frame)
                for socket in list(self.sockets):
                    socket.frame(frame)

        self.call(send())

    def drop(self) -> None:
        """Cut every WebSocket."""

        async def cut() -> None:
            for socket in list(self.sockets):
                if socket.ws_connection is not None:
                    socket.ws_connection.stream.close()

        self.call(cut())

    def feed(self, rate: int, seconds: float, ranks: int = 2, tick: float = 0.01) -> None:
        """Report `rate` points a second, spread over ranks, each with loss and accuracy."""

        async def run() -> None:
            start = time.time()
            sent = 0
            while (passed := time.time() - start) < seconds:
                due = int(passed * rate)
                points = [self.data.point(i // ranks, i % ranks) for i in range(sent, due)]
                sent = due
                if points:
                    frame = {"type": "metrics", "points": points}
                    self.data.keep(frame)
                    for socket in list(self.sockets):
                        socket.frame(frame)
                await asyncio.sleep(tick)

        self.call(run())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()

    async def _open(self) -> None:
        files = StaticFileHandler
        app = Application(
            [
                (r"/services/mlp/static/(.*)", files, {"path": str(PANEL)}),
                (r"/lab/(.*)", files, {"path": str(LAB)}),
                (r"/harness/(.*)", files, {"path": str(HARNESS)}),
                (rf"(?:{API}|{PASSED})/users/([^/]+)/jobs/([^/]+):stream", Stream, {"front": self}),
                (rf"{API}/queue:stream", Hints, {"front": self}),
                (rf"(?:{API}|{PASSED})(/.*)", Rest, {"front": self}),
                (
                    r"/services/mlp/login",
                    Page,
                    {"text": "<!doctype html><title>Log in</title><h1>Log in</h1>"},
                ),
                (rf"{DATA}/(.+)", FrontDav, {"front": self}),
                (r"/services/mlp/docs/(.*)", Document),
                (r"/services/mlp/.*", Page, {"text": SHELL}),
                (
                    r"/hub/home",
                    Page,
                    {
                        "text": "<!doctype html><link rel=icon href=data:,><title>Hub home</title><h1>Hub home</h1>"
                    },
                ),
            ]
        )
        self._server = HTTPServer(app)
        self._server.add_sockets(bind_sockets(self.port, "127.0.0.1"))

    async def _close(self) -> None:
        for socket in list(self.sockets):
            if socket.ws_connection is not None:
                socket.ws_connection.stream.close()
        self._server.stop()
        await self._server.close_all_connections()
        await asyncio.sleep(0)


class Page(RequestHandler):
    def initialize(self, text: str) -> None:
        self.text = text

    def get(self) -> None:
        self.set_header("Content-Security-Policy", POLICY)
        self.finish(self.text)


class Document(RequestHandler):
    """A page of the documentation or a file of it, as it was built."""

    def get(self, name: str) -> None:
        found = docs.page(name or docs.FIRST, language_asked(self.request.headers))
        if found is None:
            raise HTTPError(404)
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Content-Type", found[2])
        self.finish(found[0])


class Rest(RequestHandler):
    def initialize(self, front: FrontService) -> None:
        self.front = front

    async def _answer(self, path: str) -> None:
        data = self.front.data
        key = f"{self.request.method} {path}"
        self.front.seen.append(key)
        self.front.queries.append(f"{key}?{self.request.query}")
        passed = self.request.path.startswith(PASSED)  # as Jupyter does: asked for with each request
        if (passed or self.request.method != "GET") and self.request.headers.get("X-XSRFToken") != data.xsrf:
            status, body = 403, {"msg": "the XSRF token does not match", "reason": "Forbidden"}
        elif passed and not data.logged_in:
            status, body = 403, {"message": "Forbidden", "reason": None}
        elif not data.logged_in:
            status, body = 401, {"msg": "a valid token is needed"}
        elif key in data.forced:
            status, body = data.forced[key]
        else:
            sent = json.loads(self.request.body) if self.request.body else {}
            asked = {key: self.get_query_argument(key) for key in self.request.query_arguments}
            status, body = data.answer(str(self.request.method), path, sent, asked)
            if name := self.get_query_argument("name", ""):
                body = [j for j in body if j["name"] == name]
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        if data.session["language"]:
            self.set_header("Content-Language", data.session["language"])
        if key == "GET /users" and isinstance(body, list):
            body = self._users(body)
        if isinstance(body, list) and key in data.page_of:
            body = self._page(body, data.page_of[key])
        answer = json.dumps(body)
        if gate := self.front.gates.get(key):
            self.front.waiting.append(key)
            await gate.wait()
            self.front.waiting.remove(key)
        self.finish(answer)

    def _users(self, rows: list[Any]) -> list[Any]:
        """Those that are asked for, on the first page."""
        wanted = self.get_query_argument("search", "")
        found = [u for u in rows if wanted in u["username"]]
        if self.get_query_argument("waiting", "") == "true":
            found = [u for u in found if u["new"]]
        limit = int(self.get_query_argument("limit", "100"))
        self.set_header("X-Total-Count", str(len(found)))
        if len(found) > limit:
            self.set_header("X-Next-Cursor", found[limit - 1]["username"])
        return found[:limit]

    def _page(self, rows: list[Any], size: int) -> list[Any]:
        """Give one page of a list, with the cursor of the next one: here the place where that begins."""
        start = int(self.get_query_argument("cursor", "0"))
        if start + size < len(rows):
            self.set_header("X-Next-Cursor", str(start + size))
        return rows[start : start + size]

    get = post = put = patch = delete = _answer


class Stream(WebSocketHandler):
    """One job's stream: replay from `since`, then what is pushed."""

    def initialize(self, front: FrontService) -> None:
        self.front = front

    async def get(self, *args: str, **kwargs: str) -> None:
        if not (self.front.accept and self.front.data.logged_in):
            self.set_status(403)
            return
        await super().get(*args, **kwargs)

    def open(self, user: str, name: str) -> None:  # type: ignore[override]
        since = int(self.get_query_argument("since", "0"))
        self.front.seen.append(f"stream {user}/{name} since {since}")
        self.key = (user, name)
        for frame in self.front.data.replay(user, name, since):
            self.write_message(json.dumps(frame))
        self.front.sockets.add(self)

    def frame(self, frame: dict[str, Any]) -> None:
        self.write_message(json.dumps(frame))

    def on_message(self, message: str | bytes) -> None:
        """Clients only listen."""

    def on_close(self) -> None:
        self.front.sockets.discard(self)


class Hints(Stream):
    def open(self) -> None:  # type: ignore[override]
        self.front.sockets.add(self)

    def frame(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "changed":
            self.write_message(json.dumps(frame))
