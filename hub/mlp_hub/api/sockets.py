"""The WebSocket around a stream of frames: authenticated like any request, and closed when its token ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPServerRequest
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from mlp_hub.api import answers, decode
from mlp_hub.api.auth import Credential, TooMany, Unauthorized, check_browser
from mlp_hub.api.authorize import authorize
from mlp_hub.api.call import Call, Service
from mlp_hub.api.routes import RouteTable
from mlp_hub.domain.errors import Reason, Refused, Unavailable

log = logging.getLogger(__name__)
TOKEN_ENDED = 4401
FORBIDDEN = 4403
FAULT = 1011
GOING_AWAY = 1001
_living: set[StreamSocket] = set()


class StreamSocket(WebSocketHandler):
    """Serves every WebSocket route of the table."""

    def initialize(self, service: Service, table: RouteTable, path: str, address: str) -> None:
        """Take what the route is found with."""
        self._service = service
        self._table = table
        self._path = path
        self._address = address
        self._call: Call | None = None
        self._credential: Credential | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        """Identify and authorise before the handshake; a refusal is an ordinary HTTP answer."""
        try:
            await self._admit()
        except Exception as err:  # noqa: BLE001 - every error becomes an answer
            status, body, extra = answers.of_error(err, f"WebSocket {decode.clip(self.request.path)}")
            self.set_status(status)
            for name, value in {**answers.API_HEADERS, "Content-Type": answers.JSON, **extra}.items():
                self.set_header(name, value)
            self.finish(answers.encode(body))

    async def open(self, *args: str, **kwargs: str) -> None:
        """Begin to send."""
        del args, kwargs
        self.set_nodelay(True)
        _living.add(self)
        self._tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._recheck())]

    def on_message(self, message: str | bytes) -> None:
        """Clients have nothing to say here; what they send is dropped."""

    def on_close(self) -> None:
        """Stop the stream."""
        _living.discard(self)
        for task in self._tasks:
            task.cancel()

    def check_origin(self, origin: str) -> bool:
        """Refuse: Tornado asks only about origins that are not this host."""
        del origin
        return False

    # ------------------------------------------------------------- inside

    async def _admit(self) -> None:
        service = self._service
        credential = service.auth.credential(self.request.headers)
        principal = await service.auth.identify(credential, self._address)
        check_browser(self.request.headers, "WS", principal)
        wait = service.limiter.take("api", principal.key)
        if wait:
            raise TooMany(wait)
        self._check_origin(self.request)
        found = self._table.find("WS", self._path) if self.request.method == "GET" else None
        if found is None:
            raise Refused(Reason.NOT_FOUND, f"there is no WebSocket {decode.clip(self.request.path)} here")
        await authorize(found.route, principal, found.params, service.platform)
        if "job" in found.params:
            await service.platform.jobs.get(found.params["user"], found.params["job"])
        query = decode.query(self.request.query, found.route.query)
        self._call = Call(service, found.route, principal, found.params, query=query)
        self._credential = credential

    @staticmethod
    def _check_origin(request: HTTPServerRequest) -> None:
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
            raise Refused(Reason.FORBIDDEN, "WebSockets from another site are refused")

    async def _pump(self) -> None:
        call = self._call
        assert call is not None  # noqa: S101 - open() comes after prepare() only
        frames: Any = call.route.handler(call)
        try:
            async for frame in frames:
                # awaiting the write is the back-pressure: a slow client slows its own stream only
                await self.write_message(answers.encode(frame))
            self.close(1000, "the end")
        except (WebSocketClosedError, asyncio.CancelledError):
            pass
        except Refused as err:
            self.close(FORBIDDEN, _short(err.msg))
        except Unavailable as err:
            self.close(FAULT, _short(err.msg))
        except Exception:
            log.exception("the stream %s failed", call.route.operation)
            self.close(FAULT, "something went wrong here; it was logged")
        finally:
            await frames.aclose()

    async def _recheck(self) -> None:
        call, credential = self._call, self._credential
        assert call is not None  # noqa: S101
        assert credential is not None  # noqa: S101
        while True:
            await asyncio.sleep(self._service.config.recheck_s)
            try:
                principal = await self._service.auth.identify(credential, self._address)
                await authorize(call.route, principal, call.params, self._service.platform)
            except (Unauthorized, Refused):
                self.close(TOKEN_ENDED, "the token is not valid any more")
                return
            except (Unavailable, TooMany):
                continue  # who cannot be asked cannot have said no


def close_all() -> None:
    """Tell all clients that the service goes down; they come back by themselves."""
    for living in list(_living):
        living.close(GOING_AWAY, "the service restarts")


def _short(text: str) -> str:
    return text.encode()[:120].decode(errors="ignore")
