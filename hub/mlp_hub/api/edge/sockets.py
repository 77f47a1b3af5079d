"""The WebSocket around a stream of frames: authenticated like any request, and closed when its token ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tornado.websocket import WebSocketClosedError, WebSocketHandler

from mlp_hub.api.auth.gatekeeper import Admitted, Gatekeeper
from mlp_hub.api.auth.owned import KINDS, kind_in
from mlp_hub.api.auth.principal import Principal
from mlp_hub.api.edge import answers, decode
from mlp_hub.api.edge.call import Call, Service
from mlp_hub.api.edge.reader import reader_of, setting_of, viewer_of
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.logs.concern import concerns, current
from mlp_hub.service.state.frames import Shared
from mlp_language.render import Reader, render

log = logging.getLogger(__name__)
TOKEN_ENDED = 4401
"""Given: close code of a WebSocket whose token has ended."""
FORBIDDEN = 4403
"""Given: close code of a WebSocket whose owner may no longer watch."""
FAULT = 1011
"""Given: close code of RFC 6455 for an error of the server."""
GOING_AWAY = 1001
"""Given: close code of RFC 6455 for a server that stops."""
_living: set[StreamSocket] = set()


class StreamSocket(WebSocketHandler):
    """Serves every WebSocket route of the table."""

    def initialize(self, service: Service, gatekeeper: Gatekeeper, path: str, address: str) -> None:
        """Take what the route is found with."""
        self._service = service
        self._gatekeeper = gatekeeper
        self._path = path
        self._address = address
        self._call: Call | None = None
        self._admitted: Admitted | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        """Identify and authorise before the handshake; a refusal is an ordinary HTTP answer."""
        try:
            await self._admit()
        except Exception as err:  # noqa: BLE001 - every error becomes an answer
            what = f"WebSocket {decode.clip(self.request.path)}"
            status, body, extra = answers.of_error(err, what, await self._reader())
            self._service.refusals.note(self.request, status, body.get("reason", ""), self._address)
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
        """Drop a client's message; clients have nothing to send here."""

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
        service, request = self._service, self.request
        admitted = await self._gatekeeper.admit(
            request, self._path, self._address, socket=True, on_identified=_identified
        )
        params, kind = admitted.params, kind_in(admitted.params)
        if kind is not None:
            await KINDS[kind].must_exist(service.platform, admitted.context, params["user"], params[kind])
        query = decode.query(request.query, admitted.route.query)
        reader = await self._reader(await setting_of(service.platform, admitted.principal))
        viewer = await viewer_of(service.platform, admitted.principal)
        self._call = Call(
            service,
            admitted.route,
            admitted.principal,
            params,
            admitted.context,
            query=query,
            reader=reader,
            viewer=viewer,
        )
        self._admitted = admitted

    async def _reader(self, setting: str = "") -> Reader:
        # a browser's script can give a WebSocket no header
        zone, language = (self.get_query_argument(name, "") for name in ("zone", "language"))
        return await reader_of(self.request.headers, zone, language, setting)

    async def _pump(self) -> None:
        call = self._call
        assert call is not None  # noqa: S101 - open() comes after prepare() only
        frames: Any = call.route.handler(call)
        try:
            async for frame in frames:
                # awaiting the write is the back-pressure: a slow client slows its own stream only
                await self.write_message(frame.json() if isinstance(frame, Shared) else call.encode(frame))
            self.close(1000, "the end")
        except (WebSocketClosedError, asyncio.CancelledError):
            pass
        except Refused as err:
            self.close(FORBIDDEN, _short(err.text(call.reader)))
        except Unavailable as err:
            self.close(FAULT, _short(err.text(call.reader)))
        except Exception:
            log.exception("the stream %s failed", call.route.operation)
            self.close(FAULT, _short(render(answers.FAULT, call.reader)))
        finally:
            await frames.aclose()

    async def _recheck(self) -> None:
        admitted, call = self._admitted, self._call
        assert admitted is not None  # noqa: S101
        assert call is not None  # noqa: S101

        async def update_viewer(again: Admitted) -> None:
            call.viewer = await viewer_of(self._service.platform, again.principal)

        await self._gatekeeper.watch(admitted, self._address, self._service.config.recheck_s, update_viewer)
        self.close(TOKEN_ENDED, "the token is not valid any more")


def _identified(principal: Principal) -> None:
    concerns(current().request_id, principal.name)


def open_sockets() -> int:
    """Return the number of open WebSockets."""
    return len(_living)


def close_all() -> None:
    """Tell all clients that the service goes down; they come back by themselves."""
    for living in list(_living):
        living.close(GOING_AWAY, "the service restarts")


def _short(text: str) -> str:
    return text.encode()[:120].decode(errors="ignore")
