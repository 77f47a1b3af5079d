"""Bodies of requests to the hub: small ones, with a limit on the total of all incomplete ones.

Tornado keeps a body in memory before any handler is called, so before the sender is known. If too
much is kept, the sender with the most of it (an address, a tenant) loses its longest waiting
request.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)

from mlp_hub.api.edge.connections import address_of

log = logging.getLogger(__name__)
SMALL = 64 * 1024
"""Bytes of a body, where no larger one is meant."""
LARGE = 4 * 1024 * 1024
"""Bytes of a body that may name many users."""
LARGE_PATHS = ("/hub/api/users", "/hub/api/groups/")
"""Below the path of all of the hub."""
BUDGET = 16 * 1024 * 1024
"""Bytes of all bodies that are not complete."""
DROPPED = 64 * 1024 * 1024
"""Bytes of a body that is too large which are read and dropped, so that its sender hears why."""
LOG_EVERY_S = 60.0


def limit_of(path: str, base: str = "") -> int:
    """Return how many bytes a body may have that is sent to this path; all paths begin with `base`."""
    path = path.partition("?")[0].removeprefix(base)
    return LARGE if path == LARGE_PATHS[0] or path.startswith(LARGE_PATHS[1]) else SMALL


class Bodies:
    """Incomplete bodies, by sender."""

    def __init__(self, budget: int = BUDGET, base: str = "") -> None:
        self.base = base
        self._budget = budget
        self._all = 0
        self._of: dict[str, dict[Receiving, int]] = defaultdict(dict)
        self._logged = float("-inf")

    def count_received(self, body: Receiving, size: int) -> None:
        """Count received bytes, and end requests without room."""
        mine = self._of[body.sender]
        mine[body] = mine.get(body, 0) + size
        self._all += size
        while self._all > self._budget:
            greediest = max(self._of.values(), key=lambda bodies: sum(bodies.values()))
            oldest = next(iter(greediest))
            if time.monotonic() - self._logged >= LOG_EVERY_S:
                self._logged = time.monotonic()
                log.warning(
                    "%s has %d unfinished requests; the oldest are ended", oldest.sender, len(greediest)
                )
            oldest.end()

    def forget_received(self, body: Receiving) -> None:
        """Count a body no more: it is complete, or its connection gone."""
        if (mine := self._of.get(body.sender)) is None:
            return
        self._all -= mine.pop(body, 0)
        if not mine:
            del self._of[body.sender]


class Receiving(HTTPMessageDelegate):
    """Stands before the hub's own receiver of one request."""

    def __init__(self, bodies: Bodies, receiver: HTTPMessageDelegate, connection: Any) -> None:
        self._bodies = bodies
        self._receiver = receiver
        self._connection = connection
        self._too_large = ""
        self.sender = ""
        """An address, a tenant's system user, or the platform itself."""

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Find the limit of the body; a request that announces more is refused once it was read."""
        assert isinstance(start_line, RequestStartLine)  # noqa: S101 - a server's delegate gets requests only
        length = headers.get("Content-Length", "0")
        if length != "0" or "Transfer-Encoding" in headers:
            request = HTTPServerRequest(connection=self._connection, start_line=start_line, headers=headers)
            self.sender = address_of(request)
            limit = limit_of(start_line.path, self._bodies.base)
            if length.isascii() and length.isdigit() and int(length[:15]) > limit:
                self._too_large = f"the body has {length[:15]} bytes; at most {limit} may be sent here"
                self._connection.set_max_body_size(DROPPED)
                return None
            self._connection.set_max_body_size(limit)
        return self._receiver.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Count it, and hand it on unless the request ends here."""
        if self._too_large:
            return None
        self._bodies.count_received(self, len(chunk))
        return self._receiver.data_received(chunk)

    def finish(self) -> None:
        """Hand over what is complete; how long it takes from here is not its sender's to say."""
        if self._too_large:
            self._answer(413, "Content Too Large", self._too_large)
        else:
            self._let_go().finish()

    def on_connection_close(self) -> None:
        """Forget it."""
        if not self._too_large:
            self._let_go().on_connection_close()

    def end(self) -> None:
        """Answer that the room is used up; Tornado closes a connection that is answered before its end."""
        self._let_go().on_connection_close()
        self._answer(
            503, "Service Unavailable", "there are too many unfinished requests; try again in a moment"
        )

    def _let_go(self) -> HTTPMessageDelegate:
        """Return the receiver and know it no more: a connection that has ended lives on until the next collection."""
        self._bodies.forget_received(self)
        receiver, self._receiver = self._receiver, HTTPMessageDelegate()
        return receiver

    def _answer(self, status: int, reason: str, text: str) -> None:
        body = json.dumps({"status": status, "message": text}).encode()
        headers = HTTPHeaders({"Content-Type": "application/json", "Content-Length": str(len(body))})
        self._connection.write_headers(ResponseStartLine("HTTP/1.1", status, reason), headers, body)
        self._connection.finish()
