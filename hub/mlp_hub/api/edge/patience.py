"""How long a connection may keep the server waiting: for a request's headers, then for its body.

One look over all connections now and then does for them what a timer for each request would, at a part of its cost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tornado.iostream import BaseIOStream

LOOK_S = 1.0
"""Tuning: seconds that a connection may keep waiting beyond what it was given: fewer timers, for how late it ends."""


class Patience:
    """Closes the connections that are not heard of in time; for use on one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[BaseIOStream, float] = {}
        self._next: asyncio.TimerHandle | None = None

    def until(self, stream: BaseIOStream, seconds: float) -> None:
        """Set the time to wait for the next data of a connection; it replaces the time set before."""
        self._ends[stream] = self._clock() + seconds
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def over(self, stream: BaseIOStream) -> None:
        """Wait no more: all came, or the connection is gone."""
        self._ends.pop(stream, None)

    def close_late(self) -> None:
        """Close the connections whose time is over."""
        now = self._clock()
        for stream in [stream for stream, end in self._ends.items() if end <= now]:
            self.over(stream)
            stream.close()

    def _look(self) -> None:
        self._next = None
        self.close_late()
        if self._ends:
            self._next = asyncio.get_running_loop().call_later(LOOK_S, self._look)
