"""A Jupyter server extension: below the server's own `mlp/` the browser reaches the platform's service.

The job monitor in a cell asks its own notebook server, which already knows the browser. The server
asks the service over its UNIX socket with its own token. So the page needs no cookie and no token
of the platform, which has another host name. The requests that pass are listed here, and the rights
of the server's token bound them too.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Any
from urllib.parse import quote

import aiohttp
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.ioloop import IOLoop
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from yarl import URL

from mlp import language
from mlp.client import settings
from mlp.client.transport import Address
from mlp.errors import MLPError
from mlp.language import say
from mlp.notebook_server import absent_pages, kernel_activity, kernel_deaths, lab_settings, real_use

PREFIX = "mlp"
BODY_MAX = 1 << 20
FRAME_MAX = 64 << 20
ANSWER_S = 60.0
UNSPOKEN = (1005, 1006, 1015)  # codes that say how a connection broke and are never sent
PASSED_ON = ("Time-Zone", "Idempotency-Key")
PASSED_BACK = (
    "Content-Type",
    "Content-Language",
    "Content-Disposition",
    "Content-Length",  # a file that ends early is not taken for whole
    "Retry-After",
    "X-Next-Cursor",
)
_NAME = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._~%@+=-]+"
_JOB = rf"users/{_NAME}/jobs/{_NAME}"
_SWEEP = rf"users/{_NAME}/sweeps/{_NAME}"
HTTP: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "GET",
        re.compile(
            rf"session|runtimes|offer|announcements|tenants/{_NAME}/queue|users/{_NAME}/(?:quota|jobs|sweeps|idle_servers)|{_JOB}(?:/[a-z]+|/files/content)?"
        ),
    ),
    ("POST", re.compile(rf"users/{_NAME}/jobs")),
    ("PUT", re.compile(rf"{_JOB}:[a-z]+")),
    ("PUT", re.compile(rf"users/{_NAME}/idle_servers:keep")),
    ("DELETE", re.compile(_JOB)),
    ("GET", re.compile(rf"{_SWEEP}(?:/curves)?")),
    ("PUT", re.compile(rf"{_SWEEP}:[a-z]+")),
)
SOCKETS = re.compile(rf"{_JOB}:stream")
_ENCODED = re.compile(r"%(?:2e|2f|5c|00)", re.IGNORECASE)


def service_gone() -> str:
    """Say that nothing comes from there now, and that nothing is lost by it."""
    return say("MLP Hub's service does not answer now; jobs continue")


def allowed(method: str, path: str) -> bool:
    """Whether a request passes; `path` is below the API's base, as it came."""
    return not _ENCODED.search(path) and any(m == method and p.fullmatch(path) for m, p in HTTP)


class _Service:
    """The way to the service."""

    def __init__(self) -> None:
        found = settings.load()
        self._address = Address.parse(found.url)
        self._headers = {"Authorization": f"Bearer {found.token}", "Accept": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            unix = self._address.scheme == "http+unix"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(path=self._address.host) if unix else None,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_S, sock_read=ANSWER_S),
            )
        return self._session

    def url(self, path: str, query: str) -> URL:
        address = self._address
        where = "http://mlp" if address.scheme == "http+unix" else f"{address.scheme}://{address.shown}"
        # as it came: what is encoded in a name stays so
        return URL(f"{where}{address.base}/{path}{f'?{query}' if query else ''}", encoded=True)

    async def report_use(self, idle_s: float) -> float | None:
        """Report how long this server is not used, in seconds; return the rest of its countdown, None without one."""
        user, server = (os.environ.get(f"JUPYTERHUB_{name}", "") for name in ("USER", "SERVER_NAME"))
        url = self.url(f"users/{quote(user, safe='')}/idle_servers:report", "")
        async with self.session.put(url, json={"server": server, "idle_s": idle_s}) as answer:
            found = await answer.json() if answer.status == 200 else {}
        left = found.get("left_s")
        return left if isinstance(left, (int, float)) else None


class _Asked(JupyterHandler):
    """Common part of both kinds of requests."""

    def initialize(self, service: _Service, base: str) -> None:
        self.service = service
        self.base = base

    @property
    def path(self) -> str:
        return self.request.path.removeprefix(self.base)

    @property
    def target(self) -> URL:
        return self.service.url(self.path, self.request.query)


class Http(_Asked, APIHandler):
    """Passes one request on, and its answer back as it comes."""

    _track_activity = False
    """Whether a request is use of the server: an open panel sends some, whoever looks at it."""
    _passing: asyncio.Task[None] | None = None
    _begun = False
    """Whether the answer is on its way to the browser, so that it cannot change."""

    @web.authenticated
    async def get(self, _path: str) -> None:
        """Pass it."""
        if not allowed(str(self.request.method), self.path):
            raise web.HTTPError(404)
        if len(self.request.body) > BODY_MAX:
            raise web.HTTPError(413, f"the body has {len(self.request.body)} bytes; it may have {BODY_MAX}")
        self._passing = asyncio.ensure_future(self._pass())
        try:
            await self._passing
        except (asyncio.CancelledError, StreamClosedError):
            return  # the browser has left
        except (aiohttp.ClientError, OSError, TimeoutError):
            if not self._begun:
                self.set_status(503)
                self.set_header("Retry-After", "2")
                self.finish({"msg": service_gone()})

    post = put = delete = get

    async def _pass(self) -> None:
        body = self.request.body or None
        headers = {n: self.request.headers[n] for n in PASSED_ON if n in self.request.headers}
        headers |= {"Content-Type": "application/json"} if body else {}
        # not the browser's: the monitor speaks as the magics beside it
        headers["Accept-Language"] = language.asked_for()
        async with self.service.session.request(
            str(self.request.method), self.target, data=body, headers=headers, allow_redirects=False
        ) as answer:
            language.answered_in(answer.headers.get("Content-Language"))
            # that this server's token is over is no question of who the browser is
            self.set_status(503 if answer.status == 401 else answer.status)
            for name in PASSED_BACK:
                if name in answer.headers:
                    self.set_header(name, answer.headers[name])
            self.set_header("Cache-Control", "no-store")
            async for chunk in answer.content.iter_chunked(1 << 16):
                self._begun = True
                self.write(chunk)
                await self.flush()
        self.finish()

    def on_connection_close(self) -> None:
        """End what is asked of the service for a browser that has left."""
        super().on_connection_close()
        if self._passing is not None:
            self._passing.cancel()


class Socket(WebSocketMixin, WebSocketHandler, _Asked):
    """Passes what the service sends; browsers have nothing to say here."""

    _upstream: aiohttp.ClientWebSocketResponse | None = None
    _pump: asyncio.Task[None] | None = None

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Ask the service first, so that its refusal is the answer to the handshake."""
        if _ENCODED.search(self.path) or not SOCKETS.fullmatch(self.path):
            raise web.HTTPError(404)
        if not self.check_origin():
            raise web.HTTPError(403)  # Tornado asks too late: after the service
        try:
            self._upstream = await self.service.session.ws_connect(
                self.target, max_msg_size=FRAME_MAX, autoping=True
            )
        except aiohttp.WSServerHandshakeError as error:
            raise web.HTTPError(403 if error.status in (401, 403) else 503) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise web.HTTPError(503, service_gone()) from error
        try:
            await super().get(*args, **kwargs)
        finally:
            if self.ws_connection is None:
                await self._upstream.close()

    def open(self, *args: str, **kwargs: str) -> None:
        """Begin to pass."""
        super().open(*args, **kwargs)
        self._pump = asyncio.ensure_future(self._pass())

    async def _pass(self) -> None:
        upstream = self._upstream
        assert upstream is not None  # noqa: S101 - `get` opened it
        try:
            async for message in upstream:
                if message.type is aiohttp.WSMsgType.TEXT:
                    # awaited: a slow browser slows its own stream
                    await self.write_message(message.data)
            self.close(upstream.close_code if upstream.close_code not in (None, *UNSPOKEN) else 1011)
        except (WebSocketClosedError, StreamClosedError):
            pass
        finally:
            await upstream.close()

    def on_message(self, _message: str | bytes) -> None:
        """Drop it."""

    def on_close(self) -> None:
        """End the stream of the service with the browser's."""
        if self._pump is not None:
            self._pump.cancel()


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "mlp.bridge"}]


def _guard_cookies(app: Any) -> None:
    """Restrict the cookie `_xsrf` of a server's pages to TLS if the hub's cookies are restricted.

    JupyterHub does so for its own pages only.
    """
    options = json.loads(os.environ.get("JUPYTERHUB_COOKIE_OPTIONS") or "{}")
    if options.get("secure"):
        app.web_app.settings.setdefault("xsrf_cookie_kwargs", {"path": app.base_url})["secure"] = True


def _tell_what_is_left_out(app: Any) -> None:
    """Have Lab's pages say that the server runs without its user's settings, and why; the launcher notes it."""
    why = os.environ.get("MLP_WITHOUT_SETTINGS")
    if not why:
        return
    said = (
        say(
            "This server runs without your settings, as you chose. Fix or remove the faulty files in your home (~/.jupyter, ~/.ipython, ~/.local), then start the server again."
        )
        if why == "chosen"
        else say(
            "This server did not start with your settings of Jupyter and runs without them: {why}. Fix or remove the faulty files in your home (~/.jupyter, ~/.local), then start the server again.",
            why=why.rstrip("."),
        )
    )
    app.web_app.settings.setdefault("page_config_data", {})["mlpWithoutSettings"] = said
    app.log.warning("mlp: %s", said)


def _load_jupyter_server_extension(app: Any) -> None:
    _tell_what_is_left_out(app)
    kernel_activity.watch(app)
    kernel_deaths.watch(app)
    absent_pages.watch(app)
    lab_settings.tolerate(app.log)
    _guard_cookies(app)
    try:
        service = _Service()
    except MLPError as error:
        app.log.warning("mlp: no live monitor here: %s", error)
        return
    if os.environ.get("JUPYTERHUB_USER"):
        real_use.watch_saves(app)
        reports = real_use.UseReports(real_use.RealUse(app), service.report_use)
        IOLoop.current().add_callback(reports.run)
    base = url_path_join(app.base_url, PREFIX, "api", "v1") + "/"
    given = {"service": service, "base": base}
    app.web_app.add_handlers(
        ".*$", [(f"{re.escape(base)}(.*):stream", Socket, given), (f"{re.escape(base)}(.*)", Http, given)]
    )
