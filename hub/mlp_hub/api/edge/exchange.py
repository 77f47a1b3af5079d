"""One HTTP exchange of the API: admit, read, validate, handle, answer.

The order is fixed. Nobody's body is read before the gatekeeper let them in.
The body of a request that is refused is read and dropped for some seconds, so that the refusal reaches its sender;
who sends it slower is answered and disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPOutputError,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError

from mlp_hub.api.auth.gatekeeper import Admitted, Gatekeeper
from mlp_hub.api.auth.principal import Principal
from mlp_hub.api.edge import answers, decode
from mlp_hub.api.edge.call import Call, Reply, Service
from mlp_hub.api.edge.patience import Patience
from mlp_hub.api.edge.reader import language_asked, reader_of, setting_of, viewer_of
from mlp_hub.api.edge.refusals import RefusalLog
from mlp_hub.api.edge.replay import check_key
from mlp_hub.api.routes import Route
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.logs.concern import concerns
from mlp_language.message import Viewer, msg
from mlp_language.render import Reader

log = logging.getLogger(__name__)
access = logging.getLogger("mlp_hub.access")
DRAINED = 64 * 1024 * 1024
"""Safety: bytes of a refused body that are still read, so that its sender sees the answer: bounds what it can make us read."""
DRAIN_S = 5.0
"""Safety: seconds that the rest of a refused body is read for before it is answered and closed: ends a sender that does not
stop."""
BODY_TIMEOUT_S = 120.0
"""Limit of requests: seconds until the body of a request must have come."""
_tasks: set[asyncio.Task[None]] = set()
_streaming: set[asyncio.Task[None]] = set()
"""Those of them whose answer comes piece by piece, for as long as it likes."""


class Exchange(HTTPMessageDelegate):
    """Serves one API request."""

    def __init__(
        self,
        service: Service,
        gatekeeper: Gatekeeper,
        request: HTTPServerRequest,
        path: str,
        address: str,
        *,
        patience: Patience,
        request_id: str,
    ) -> None:
        self._service = service
        self._request_id = request_id
        self._gatekeeper = gatekeeper
        self._patience = patience
        self._stream = request.connection.stream  # type: ignore[union-attr] # a server's own
        self._request = request
        self._path = path
        self._address = address
        self._chunks: list[bytes] = []
        self._size = 0
        self._found: Admitted | None = None
        self._caller = ""
        self._error: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self._late: asyncio.TimerHandle | None = None
        self._early = False  # answered before the body's end, which ends the connection
        self._gone = False
        self._streams = False  # all is done, and the answer comes piece by piece, for as long as it likes
        self._begun = time.perf_counter()

    # ------------------------------------------------- what Tornado calls

    def headers_received(self, start_line: object, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Identify and authorise before any of the body is read."""
        del headers  # the request has them
        assert isinstance(start_line, RequestStartLine)  # noqa: S101 - a server's delegate gets requests only
        connection: Any = self._request.connection
        connection.set_max_body_size(DRAINED)
        # Tornado's own limit makes a task and four futures of each body, most of which are here already
        connection.set_body_timeout(None)
        self._patience.until(self._stream, BODY_TIMEOUT_S)
        concerns(self._request_id)
        return self._admit()

    def data_received(self, chunk: bytes) -> None:
        """Keep the body while it is wanted and within its limit."""
        if self._error is not None or self._found is None:
            return
        self._size += len(chunk)
        if self._size > self._found.route.body_limit:
            self._chunks.clear()
            self._refuse(_too_large(self._found.route))
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
        # what was begun is carried through (it may have changed something), but for what says otherwise
        self._gone = True
        ends = self._streams or (self._found is not None and self._found.route.ends_with_client)
        if self._task is not None and ends:
            self._task.cancel()

    # ------------------------------------------------------------- inside

    def _begin(self) -> None:
        found = self._found
        if found is None:
            concerns(self._request_id, self._caller)
        else:
            concerns(self._request_id, found.principal.name, found.params.get("job", ""))
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

    async def _admit(self) -> None:
        try:
            self._found = await self._check()
        except Exception as err:  # noqa: BLE001 - every error becomes an answer, once the body was read
            self._refuse(err)

    async def _check(self) -> Admitted:
        request = self._request
        admitted = await self._gatekeeper.admit(
            request, self._path, self._address, socket=False, on_identified=self._identified
        )
        length = request.headers.get("Content-Length", "0")
        if length.isascii() and length.isdigit() and int(length[:15]) > admitted.route.body_limit:
            raise _too_large(admitted.route)
        return admitted

    def _identified(self, principal: Principal) -> None:
        self._caller = principal.name

    async def _serve(self) -> None:
        request = self._request
        status = 200
        viewer, took = answers.STRANGER, 0.0
        extra: Mapping[str, str]
        try:
            found = self._admitted()
            call = await self._call(found)
            viewer = call.viewer
            result = await self._handle(found, call)
            took = self._since_begun()  # an answer that is sent piece by piece may take hours
            status = found.route.status
            if isinstance(result, Reply):
                status = result.status or status
                await self._send(
                    status,
                    result.media,
                    result.body,
                    result.headers,
                    result.stream,
                    language=call.reader.language,
                )
            else:
                await self._send(
                    status, answers.JSON, call.encode(result), {}, None, language=call.reader.language
                )
        except StreamClosedError:
            pass
        except asyncio.CancelledError:
            raise
        except Exception as err:  # noqa: BLE001 - every error becomes an answer
            operation = self._found.route.operation if self._found else decode.clip(request.path)
            what = f"{request.method} {operation}"
            viewer = await self._viewer()
            status, body, extra = answers.of_error(err, what, await self._reader(), viewer)
            took = self._since_begun()
            self._service.refusals.note(request, status, body.get("reason", ""), self._address)
            _let_go(err)
            with contextlib.suppress(StreamClosedError):
                await self._send(status, answers.JSON, answers.encode(body), extra, None)
        self._service.platform.monitoring.events.request(*self._concerns(viewer, status), status, took)
        if access.isEnabledFor(logging.INFO):
            took_ms = self._since_begun() * 1000
            access.info("%s %s %s %.1f ms", request.method, decode.clip(request.path), status, took_ms)

    def _since_begun(self) -> float:
        return time.perf_counter() - self._begun

    def _concerns(self, viewer: Viewer, status: int) -> tuple[str, str]:
        """Return for metrics the group of routes and the tenant that a request was for: `none` and empty where nobody knows.

        A tenant is named only if it exists: callers can put any name into a path.
        """
        found = self._found
        if found is None:
            return "none", ""
        own = viewer.own
        tenant = found.params.get("tenant", "")
        if tenant and (status >= 400 if own is None else tenant not in own):
            tenant = ""
        if not tenant and own is not None and len(own) == 1:
            (tenant,) = own
        return found.route.group, tenant

    def _admitted(self) -> Admitted:
        if self._error is not None:
            raise self._error
        assert self._found is not None  # noqa: S101 - set, or an error was
        return self._found

    async def _viewer(self) -> Viewer:
        try:
            return answers.STRANGER if self._found is None else await self._viewer_of(self._found)
        except Unavailable:
            return answers.STRANGER

    async def _viewer_of(self, found: Admitted) -> Viewer:
        return await viewer_of(self._service.platform, found.principal)

    async def _reader(self) -> Reader:
        found = self._found
        setting = await setting_of(self._service.platform, found.principal) if found is not None else ""
        return await reader_of(self._request.headers, setting=setting)

    async def _call(self, found: Admitted) -> Call:
        return Call(
            self._service,
            found.route,
            found.principal,
            found.params,
            found.context,
            query=decode.query(self._request.query, found.route.query),
            accept=self._request.headers.get("Accept", ""),
            range=self._request.headers.get("Range", ""),
            if_range=self._request.headers.get("If-Range", ""),
            address=self._address,
            reader=await self._reader(),
            viewer=await self._viewer_of(found),
        )

    async def _handle(self, found: Admitted, call: Call) -> Any:
        route = found.route
        raw = b"".join(self._chunks)
        self._chunks.clear()
        if route.body is not None and (raw or not route.body_optional):
            self._check_media()
            call.body = decode.body(raw, route.body)
        if route.takes_key:
            call.idempotency_key = check_key(self._request.headers.get("Idempotency-Key"))
            if route.idempotent and call.idempotency_key is not None:
                return await self._service.answers.once(
                    found.principal.key if found.principal.name else f"address:{self._address}",
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
            raise Refused(
                Reason.INVALID,
                msg("the body is {media}; it must be application/json", media=decode.clip(media)),
            )

    def _is_plain(self) -> bool:
        """Whether the answer needs no header that depends on how it was asked, and has a body."""
        request = self._request
        connection: Any = request.connection
        return (
            request.version == "HTTP/1.1"
            and not self._early
            and request.method != "HEAD"
            and "Connection" not in request.headers
            and not connection.params.no_keep_alive
        )

    async def _send(
        self, status: int, media: str, body: bytes, extra: Any, stream: Any, *, language: str = ""
    ) -> None:
        connection: Any = self._request.connection
        if self._is_gone():
            if stream is not None:
                await stream.aclose()
            return
        if stream is None and not extra and self._is_plain():
            future = connection.write(answers.plain(status, media, body, language))
            connection.finish()
            await future
            return
        headers = answers.headers_for(media, language)
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
        try:
            await connection.write_headers(start, headers, body)
        except BaseException:
            await stream.aclose()
            raise
        await self._send_stream(connection, stream)

    async def _end_with_token(self) -> None:
        """Close a connection in the middle when its caller loses access, so that the data never seems complete."""
        found = self._admitted()
        if found.credential is None:
            return
        await self._gatekeeper.watch(found, self._address, self._service.config.recheck_s)
        self._stream.close()

    async def _send_stream(self, connection: Any, stream: Any) -> None:
        self._streams = True
        task = self._task
        assert task is not None  # noqa: S101 - who sends runs in it
        _streaming.add(task)
        ending = asyncio.ensure_future(self._end_with_token())
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
            self._streams = False
            _streaming.discard(task)
            ending.cancel()
            await stream.aclose()
            if not self._is_gone():
                with contextlib.suppress(
                    HTTPOutputError
                ):  # less than was announced: Tornado ends the connection
                    connection.finish()


async def finish_requests(seconds: float) -> None:
    """Return once all requests of this process are answered, or after `seconds`; streams are not waited for."""
    if waited_for := _tasks - _streaming:
        await asyncio.wait(waited_for, timeout=seconds)


def _let_go(error: BaseException) -> None:
    """Free the objects of the calls that an error came through, such as a body of some MiB.

    Where one of the calls waited for a future, the error and the calls hold each other until the next
    collection, which is rare here. The calls themselves are left alone. An error can be that of many,
    for example where a commit of many writes fails. Then it can lead to the calls of another one that
    has caught it and continues. To clear those calls would end that one without a message.
    """
    at: BaseException | None = error
    while at is not None:
        at.__traceback__ = None
        at = at.__context__


def _too_large(route: Route) -> Refused:
    return Refused(
        Reason.INVALID,
        msg(
            "the body is too large; at most {body_limit} bytes may be sent here", body_limit=route.body_limit
        ),
    )


class Rejected(HTTPMessageDelegate):
    """Answers a request that is refused before its route matters (a Host that is not ours, a service that stands by)."""

    def __init__(
        self,
        request: HTTPServerRequest,
        error: Refused | Unavailable,
        *,
        refusals: RefusalLog,
        address: str,
        request_id: str,
        keep: bool = True,
    ) -> None:
        self._refusals = refusals
        self._address = address
        self._request_id = request_id
        self._keep = keep
        self._request = request
        self._error = error
        self._late: asyncio.TimerHandle | None = None

    def headers_received(self, start_line: object, headers: HTTPHeaders) -> None:
        """Read on; the answer comes at the end, or before it where that is far."""
        del start_line, headers
        connection: Any = self._request.connection
        connection.set_max_body_size(DRAINED)
        self._late = asyncio.get_running_loop().call_later(DRAIN_S, self._answer, False)

    def data_received(self, chunk: bytes) -> None:
        """Drop it."""

    def on_connection_close(self) -> None:
        """Nobody is there to read an answer."""
        if self._late is not None:
            self._late.cancel()

    def finish(self) -> None:
        """Send the refusal."""
        self.on_connection_close()
        self._answer(self._keep)

    def _answer(self, keep: bool) -> None:
        concerns(self._request_id)
        request = self._request
        status, body, extra = answers.of_error(self._error, "", Reader(language_asked(request.headers)))
        self._refusals.note(request, status, body.get("reason", ""), self._address)
        data = answers.encode(body)
        headers = answers.headers_for(answers.JSON)
        for name, value in extra.items():
            headers[name] = value
        headers["Content-Length"] = str(len(data))
        if not keep:
            headers["Connection"] = "close"
        connection: Any = request.connection
        connection.write_headers(
            ResponseStartLine("HTTP/1.1", status, answers.REASONS[status]), headers, data
        )
        connection.finish()
