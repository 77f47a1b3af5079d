"""Server of one model by the Open Inference Protocol, version 2, as Triton's and KServe's clients speak it over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
import traceback
import zlib
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer, ThreadingMixIn
from typing import Any
from urllib.parse import unquote

from mlp.serving import tensors
from mlp.serving.errors import BadRequest
from mlp.serving.knocking import is_let_in
from mlp.serving.loaders import LoadedModel, Tensor

MOST_BODY = 512 << 20
"""Limit of apps: bytes of one request to the model server."""
IDLE_S = 75.0
"""Safety: seconds that a connection may say nothing."""
END_S = 10.0
"""Safety: seconds that an end of the server waits for requests in progress."""
_MODEL = re.compile(
    r"/v2/models/(?P<name>[^/]+)(/versions/(?P<version>[^/]+))?(?P<rest>/ready|/infer|/config)?"
)


class ModelServer(ThreadingMixIn, BaseServer):
    """The server; as many requests as there are cores are worked on at a time, the others wait for their turn.

    With a `key` those alone are answered who know it.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self, listener: socket.socket, model: LoadedModel, name: str, version: str, key: str = ""
    ) -> None:
        BaseServer.__init__(self, listener.getsockname(), Handler)
        self.socket = listener
        self.model, self.name, self.version, self.key = model, name, version, key
        self.turns = threading.BoundedSemaphore(max(len(os.sched_getaffinity(0)), 1))
        self._at_work = 0
        self._changed = threading.Condition()

    def fileno(self) -> int:
        """Return what is waited on."""
        return self.socket.fileno()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection."""
        connection, _ = self.socket.accept()
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, ("client", 0)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection, in a separate thread."""
        if not self.key or is_let_in(request, self.key):
            super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
        request.close()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Have an end of the server wait for this."""
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def server_close(self) -> None:
        """Take no more, and wait for requests in progress; connections without one are cut."""
        self.socket.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, END_S)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say what went wrong with a connection, unless it was merely cut."""
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            traceback.print_exc()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "mlp"
    sys_version = ""
    timeout = IDLE_S
    disable_nagle_algorithm = False
    server: ModelServer

    def address_string(self) -> str:
        """Return no name: the client is the gateway."""
        return "-"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the class has it
        """Say nothing of requests: the gateway counts them."""

    def do_GET(self) -> None:
        """Answer what is asked about the server and its model."""
        with self.server.at_work():
            self._describe()

    def do_POST(self) -> None:
        """Infer."""
        with self.server.at_work():
            self._work()

    def _describe(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path in {"/v2/health/live", "/v2/health/ready"}:
            self._answer(HTTPStatus.OK, {"live" if path.endswith("live") else "ready": True})
        elif path == "/v2":
            about = {"name": "mlp", "version": "2", "extensions": ["binary_tensor_data"]}
            self._answer(HTTPStatus.OK, about)
        elif path == "":
            self._answer(HTTPStatus.OK, {"models": [self.server.name], "protocol": "/v2"})
        elif (meant := self._meant(path)) is not None:
            if meant == "/ready":
                self._answer(HTTPStatus.OK, {"name": self.server.name, "ready": True})
            elif meant == "/infer":
                self._fail(HTTPStatus.METHOD_NOT_ALLOWED, "POST what is to be inferred")
            else:
                self._answer(HTTPStatus.OK, self._metadata())

    def _work(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        try:
            body = self._body()
        except BadRequest as error:
            self.close_connection = True
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
            return
        meant = self._meant(path)
        if meant is None:
            return
        if meant != "/infer":
            self._fail(HTTPStatus.METHOD_NOT_ALLOWED, "GET this")
            return
        try:
            self._infer(body)
        except BadRequest as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))

    def _infer(self, body: bytes) -> None:
        length = self._header_length(len(body))
        try:
            header = json.loads(body[:length])
        except ValueError as error:
            raise BadRequest(f"the request is no JSON: {error}") from None
        if not isinstance(header, dict):
            raise BadRequest("the request is no JSON object")
        inputs = tensors.read(header, body[length:])
        with self.server.turns:
            try:
                outputs = self.server.model.predict(inputs)
            except BadRequest:
                raise
            except (ValueError, TypeError, KeyError) as error:  # what does not fit the model
                raise BadRequest(f"the model refuses it: {error}") from error
            except Exception as error:  # noqa: BLE001 - a model is anybody's program
                traceback.print_exc()
                self._fail(
                    HTTPStatus.INTERNAL_SERVER_ERROR, f"the model failed: {type(error).__name__}: {error}"
                )
                return
        answer = {"model_name": self.server.name, "model_version": self.server.version}
        if isinstance(header.get("id"), str):
            answer["id"] = header["id"]
        content, cut = tensors.write(answer, outputs, header)
        headers = {} if cut is None else {tensors.LENGTH: str(cut)}
        media = "application/json" if cut is None else "application/octet-stream"
        self._send(HTTPStatus.OK, content, media, headers)

    def _meant(self, path: str) -> str | None:
        """Return what of the model is meant; None where it is not this one, which was answered then."""
        found = _MODEL.fullmatch(path)
        if found is None:
            self._fail(
                HTTPStatus.NOT_FOUND,
                f"there is no {path}; what there is begins with /v2/models/{self.server.name}",
            )
            return None
        asked = unquote(found["name"]), found["version"] or self.server.version
        if asked != (self.server.name, self.server.version):
            self._fail(
                HTTPStatus.NOT_FOUND,
                f"there is no model {asked[0]} {asked[1]}; this is {self.server.name} {self.server.version}",
            )
            return None
        return found["rest"] or ""

    def _metadata(self) -> dict[str, Any]:
        model = self.server.model
        return {
            "name": self.server.name,
            "versions": [self.server.version],
            "platform": model.platform,
            "inputs": [_described(each) for each in model.inputs],
            "outputs": [_described(each) for each in model.outputs],
        }

    def _header_length(self, size: int) -> int:
        given = self.headers.get(tensors.LENGTH)
        if given is None:
            return size
        if not given.isascii() or not given.isdigit() or int(given) > size:
            raise BadRequest(f"{tensors.LENGTH} is {given}, and the body has {size} bytes")
        return int(given)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            body = b"".join(self._chunks())
        else:
            given = self.headers.get("Content-Length", "0")
            if not given.isascii() or not given.isdigit() or int(given) > MOST_BODY:
                raise BadRequest(f"Content-Length is {given}; {MOST_BODY} bytes are the most")
            body = self.rfile.read(int(given))
            if len(body) != int(given):
                raise BadRequest("the request was cut short")
        return _unpacked(body, self.headers.get("Content-Encoding", "identity").lower())

    def _chunks(self) -> Any:
        total = 0
        while True:
            line = self.rfile.readline(256).partition(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError:
                raise BadRequest("a chunk of the request has no length") from None
            total += size
            if size < 0 or total > MOST_BODY:
                raise BadRequest(f"the request is too long; {MOST_BODY} bytes are the most")
            data = self.rfile.read(size + 2)
            if len(data) != size + 2:
                raise BadRequest("the request was cut short")
            if not size:
                return
            yield data[:size]

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, json.dumps(content).encode(), "application/json", {})

    def _fail(self, status: HTTPStatus, text: str) -> None:
        self._answer(status, {"error": text})

    def _send(self, status: HTTPStatus, content: bytes, media: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _described(each: Tensor) -> dict[str, Any]:
    return {"name": each.name, "datatype": each.datatype, "shape": list(each.shape)}


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Undo what a client packed a request with, of which no more comes than a request may have."""
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "deflate"}:
        raise BadRequest(f"Content-Encoding is {encoding}; right: gzip or deflate")
    try:
        unpacker = zlib.decompressobj(31 if encoding == "gzip" else 15)
        plain = unpacker.decompress(body, MOST_BODY)
    except zlib.error as error:
        raise BadRequest(f"the request is not packed as it says: {error}") from None
    if unpacker.unconsumed_tail:
        raise BadRequest(f"the request is too long; {MOST_BODY} bytes are the most")
    return plain
