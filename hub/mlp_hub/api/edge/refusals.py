"""Log lines of refused requests: the id of a request leads to its line, and a flood does not fill the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tornado.httputil import HTTPServerRequest

from mlp_hub.api.edge.connections import network_of
from mlp_hub.api.edge.decode import clip
from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.logs.concern import about, current

log = logging.getLogger("mlp_hub.refused")
LINES = {"caller": Rate(1, 60), "all": Rate(5, 600)}
"""Safety: lines a second and at once, of one caller and of all: bounds the log at about 100 MiB a day."""
PATH_MOST = 200
"""Safety: characters of a path in a line."""


class RefusalLog:
    """Writes one line for each refused request, within limits of each caller and of all. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._limiter = Limiter(clock, LINES)
        self._left_out = 0

    def note(self, request: HTTPServerRequest, status: int, reason: str, address: str) -> None:
        """Write the line of a request that was answered with an error; `reason` may be empty.

        The line has no word of the answer: answers repeat values of the caller, such as addresses with keys.
        """
        user = current().user
        key = f"user:{user}" if user else network_of(address)
        if self._limiter.take_token("caller", key) or self._limiter.take_token("all", ""):
            self._left_out += 1
            return
        if self._left_out:
            with about(""):  # they were not of this caller
                log.info("%d refused requests before the next line have no line of their own", self._left_out)
            self._left_out = 0
        by = clip(user or address or "a caller without an address")
        shown = f"{status} {reason}".rstrip()
        log.info(
            "%s %s was refused: %s, to %s",
            clip(request.method or ""),
            clip(request.path, PATH_MOST),
            shown,
            by,
        )
