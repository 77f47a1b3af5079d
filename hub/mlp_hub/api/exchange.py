"""One HTTP exchange of the API: find the route, identify, authorise, read, validate, handle, answer.

The order is fixed. Nobody's body is read before they were identified; nothing is looked up for who may not.
The body of a request that is refused is read and dropped for some seconds, so that the refusal reaches its sender;
who sends it slower is answered and disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import Awaitable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError

from mlp_hub.api import answers, decode
from mlp_hub.api.auth import TooMany, Unauthorized, check_browser
from mlp_hub.api.authorize import authorize
from mlp_hub.api.call import Call, Reply, Service
from mlp_hub.api.patience import Patience
from mlp_hub.api.principal import Kind, Principal
from mlp_hub.api.replay import check_key
from mlp_hub.api.routes import Found, Relation, RouteTable
from mlp_hub.domain.errors import Reason, Refused

log = logging.getLogger(__name__)
access = logging.getLogger("mlp_hub.access")
DRAINED = 64 * 1024 * 1024
DRAIN_S = 5.0
BODY_TIMEOUT_S = 120.0
"""In which a body must have come."""
ANONYMOUS = Principal(Kind.USER, "")
_tasks: set[asyncio.Task[None]] = set()


class Exchange(HTTPMessageDelegate):
    """Serves one API request."""

    def __init__(
        self,
        service: Service,
        table: RouteTable,
        request: HTTPServerRequest,
        path: str,
        address: str,
        *,
        patience: Patience,
    ) -> None:
        self._service = service
        self._table = table
        self._patience = patience
        self._stream = request.connection.stream  # type: ignore[union-attr] # a server's own
        self._request = request
        self._path = path
        self._address = address
        self._chunks: list[bytes] = []
        self._size = 0
        self._found: Found | None = None
        self._principal = ANONYMOUS
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._early = False  # answered before the body's end, which ends the connection
        self._gone = False
        self._begun = time.perf_counter()

    # ------------------------------------------------- what Tornado calls

    def headers_received(self, start_line: object, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Identify and authorise before any of the body is read."""
        assert isinstance(start_line, RequestStartLine)  # noqa: S101 - a server's delegate gets requests only
        connection: Any = self._request.connection
        connection.set_max_body_size(DRAINED)
        # Tornado's own limit makes a task and four futures of each body, most of which are here already
        connection.set_body_timeout(None)
        self._patience.until(self._stream, BODY_TIMEOUT_S)
        return self._admit(headers)

    def data_received(self, chunk: bytes) -> None:
        """Keep the body while it is wanted and within its limit."""
        if self._error is not None or self._found is None:
            return
        self._size += len(chunk)
        if self._size > self._found.route.body_limit:
            self._chunks.clear()
            self._refuse(_too_large(self._found))
        else:
            self._chunks.append(chunk)

    def finish(self) -> None:
        """Handle the request now that it is complete."""
        self._forget_late()
        if self._task is not None:
            return
        self._begin()
        connection: Any = self._request.connection
        connection.set_close_callback(self._on_gone)

    def on_connection_close(self) -> None:
        """Forget it: nobody is there to read an answer."""
        self._forget_late()
        self._gone = True

    def _is_gone(self) -> bool:
        return self._gone

    def _on_gone(self) -> None:
        # what was begun is carried through (it may have changed something); only streams look at this
        self._gone = True

    # ------------------------------------------------------------- inside

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._serve())
        _tasks.add(self._task)
        self._task.add_done_callback(_tasks.discard)

    def _refuse(self, error: BaseException) -> None:
        """Note the refusal, and see to it that it is sent soon, whether the body ends or not."""
        self._error = error
        self._late = asyncio.get_running_loop().call_later(DRAIN_S, self._answer_early)

    def _answer_early(self) -> None:
        self._early = True
        self._begin()

    def _forget_late(self) -> None:
        self._patience.over(self._stream)
        if self._late is not None:
            self._late.cancel()

    async def _admit(self, headers: HTTPHeaders) -> None:
        try:
            self._found = await self._check(headers)
        except Exception as err:  # noqa: BLE001 - every error becomes an answer, once the body was read
            self._refuse(err)

    async def _check(self, headers: HTTPHeaders) -> Found:
        request, service = self._request, self._service
        found = self._table.find(request.method or "", self._path)
        if found is not None and found.route.relation is Relation.PUBLIC:
            self._take(found.route.bucket, self._address)
        else:
            principal = await service.auth.identify(service.auth.credential(headers), self._address)
            # a route that gives something away asks for what changing something asks for
            unsafe = found is not None and found.route.unsafe
            method = "POST" if unsafe else request.method or ""
            check_browser(headers, method, principal, _xsrf_of(request.query))
            self._take(_bucket(found, principal), principal.key)
            if found is None:
                raise Refused(
                    Reason.NOT_FOUND, f"there is no {request.method} {decode.clip(request.path)} here"
                )
            self._principal = principal
            await authorize(found.route, principal, found.params, service.platform)
        length = headers.get("Content-Length", "0")
        if length.isascii() and length.isdigit() and int(length[:15]) > found.route.body_limit:
            raise _too_large(found)
        return found

    def _take(self, bucket: str, key: str) -> None:
        wait = self._service.limiter.take(bucket, key)
        if wait:
            raise TooMany(wait)

    async def _serve(self) -> None:
        request = self._request
        status = 200
        extra: Mapping[str, str]
        try:
            found = self._admitted()
            result = await self._handle(found)
            status = found.route.status
            if isinstance(result, Reply):
                await self._send(status, result.media, result.body, result.headers, result.stream)
            else:
                await self._send(status, answers.JSON, answers.encode(result), {}, None)
        except StreamClosedError:
            pass
        except asyncio.CancelledError:
            raise
        except Exception as err:  # noqa: BLE001 - every error becomes an answer
            operation = self._found.route.operation if self._found else decode.clip(request.path)
            status, body, extra = answers.of_error(err, f"{request.method} {operation}")
            _let_go(err)
            with contextlib.suppress(StreamClosedError):
                await self._send(status, answers.JSON, answers.encode(body), extra, None)
        if access.isEnabledFor(logging.INFO):
            took = (time.perf_counter() - self._begun) * 1000
            access.info("%s %s %s %.1f ms", request.method, decode.clip(request.path), status, took)

    def _admitted(self) -> Found:
        if self._error is not None:
            raise self._error
        assert self._found is not None  # noqa: S101 - set, or an error was
        return self._found

    async def _handle(self, found: Found) -> Any:
        route = found.route
        raw = b"".join(self._chunks)
        self._chunks.clear()
        call = Call(
            self._service,
            route,
            self._principal,
            found.params,
            query=decode.query(self._request.query, route.query),
            accept=self._request.headers.get("Accept", ""),
            address=self._address,
        )
        if route.body is not None and (raw or not route.body_optional):
            self._check_media()
            call.body = decode.body(raw, route.body)
        if route.method == "POST":
            call.idempotency_key = check_key(self._request.headers.get("Idempotency-Key"))
            if route.idempotent and call.idempotency_key is not None:
                return await self._service.answers.once(
                    self._principal.key if self._principal.name else f"address:{self._address}",
                    route.operation,
                    call.idempotency_key,
                    raw,
                    lambda: route.handler(call),
                )
        return await route.handler(call)

    def _check_media(self) -> None:
        # a form or text/plain is what another site can make a browser send without asking
        media = self._request.headers.get("Content-Type", answers.JSON).partition(";")[0].strip().lower()
        if media != answers.JSON and not media.endswith("+json"):
            raise Refused(Reason.INVALID, f"the body is {decode.clip(media)}; it must be application/json")

    def _is_plain(self) -> bool:
        """Whether the answer needs no header that depends on how it was asked, and has a body."""
        request = self._request
        return (
            request.version == "HTTP/1.1"
            and not self._early
            and request.method != "HEAD"
            and "Connection" not in request.headers
        )

    async def _send(self, status: int, media: str, body: bytes, extra: Any, stream: Any) -> None:
        connection: Any = self._request.connection
        if self._is_gone():
            return
        if stream is None and not extra and self._is_plain():
            future = connection.write(answers.plain(status, media, body))
            connection.finish()
            await future
            return
        headers = answers.headers_for(media)
        for name, value in extra.items():
            headers[name] = value
        if self._early:
            headers["Connection"] = "close"
        start = ResponseStartLine("HTTP/1.1", status, answers.REASONS[status])
        if stream is None:
            headers["Content-Length"] = str(len(body))
            future = connection.write_headers(start, headers, b"" if self._request.method == "HEAD" else body)
            connection.finish()
            await future
            return
        await connection.write_headers(start, headers, body)
        await self._send_stream(connection, stream)

    async def _send_stream(self, connection: Any, stream: Any) -> None:
        try:
            async for chunk in stream:
                if self._is_gone():
                    return
                await connection.write(chunk)
        except StreamClosedError:
            return
        except Exception:
            # the status is sent already; an early end is all that can be said
            log.exception("a stream of %s failed", decode.clip(self._request.path))
        finally:
            await stream.aclose()
            if not self._is_gone():
                connection.finish()


def _let_go(error: BaseException) -> None:
    """Free what the calls held that an error came through: a body and what was made of it, of some MiB perhaps.

    Where one of them waited for a future, error and calls hold each other until the next collection, which is rare here.
    """
    at: BaseException | None = error
    while at is not None:
        traceback.clear_frames(at.__traceback__)
        at = at.__context__


def _bucket(found: Found | None, principal: Principal) -> str:
    """Return from which bucket a request is taken."""
    if principal.kind is Kind.SERVICE:
        return "service"
    bucket = found.route.bucket if found else "api"
    return "api" if bucket == "change" and principal.is_platform_admin else bucket


def _too_large(found: Found) -> Refused:
    return Refused(
        Reason.INVALID, f"the body is too large; at most {found.route.body_limit} bytes may be sent here"
    )


def _xsrf_of(query: str) -> str:
    if "_xsrf=" not in query:
        return ""
    return dict(parse_qsl(query, max_num_fields=100)).get("_xsrf", "")


class Rejected(HTTPMessageDelegate):
    """Answers a request that is refused before its route matters (a Host that is not ours)."""

    def __init__(self, request: HTTPServerRequest, error: Refused | Unauthorized) -> None:
        self._request = request
        self._error = error
        self._late: asyncio.TimerHandle | None = None

    def headers_received(self, start_line: object, headers: HTTPHeaders) -> None:
        """Read on; the answer comes at the end, or before it where that is far."""
        del start_line, headers
        connection: Any = self._request.connection
        connection.set_max_body_size(DRAINED)
        self._late = asyncio.get_running_loop().call_later(DRAIN_S, self._answer, "close")

    def data_received(self, chunk: bytes) -> None:
        """Drop it."""

    def on_connection_close(self) -> None:
        """Nobody is there to read an answer."""
        if self._late is not None:
            self._late.cancel()

    def finish(self) -> None:
        """Send the refusal."""
        self.on_connection_close()
        self._answer()

    def _answer(self, connection_is: str = "") -> None:
        status, body, extra = answers.of_error(self._error, "")
        data = answers.encode(body)
        headers = answers.headers_for(answers.JSON)
        for name, value in extra.items():
            headers[name] = value
        headers["Content-Length"] = str(len(data))
        if connection_is:
            headers["Connection"] = connection_is
        connection: Any = self._request.connection
        connection.write_headers(
            ResponseStartLine("HTTP/1.1", status, answers.REASONS[status]), headers, data
        )
        connection.finish()
