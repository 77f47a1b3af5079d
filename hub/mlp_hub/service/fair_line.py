"""A line before work that is done one at a time: who had much of it lately lets the others go first."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

HALF_LIFE_S = 10.0
"""In which half of the time that a user had is forgotten."""
FORGOTTEN_S = 0.001


class FairLine:
    """One turn at a time. The next goes to the user who had the least time lately, and of those to whom asked first.

    However many turns one user wants, and however little they had: nobody waits for more than one of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order in which users came
        self._before: dict[str, set[str]] = {}  # who had a turn while this user waits
        self._had: dict[str, tuple[float, float]] = {}  # seconds, and when that was so

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait for a turn of this user, and have it."""
        await self._wait(user)
        begun = self._clock()
        try:
            yield
        finally:
            now = self._clock()
            self._had[user] = (self._had_lately(user, now) + now - begun, now)
            for had in self._before.values():
                had.add(user)
            self._next()

    async def _wait(self, user: str) -> None:
        if not self._taken:
            self._taken = True
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(mine)
        self._before.setdefault(user, set())
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._next()  # it was given the turn, and is gone
            raise

    def _next(self) -> None:
        """Give the turn to the next; it stays taken until nobody waits."""
        now = self._clock()
        self._had = {u: had for u, had in self._had.items() if self._had_lately(u, now) > FORGOTTEN_S}
        for user, line in list(self._waiting.items()):
            while line and line[0].done():  # who waited is gone
                line.popleft()
            if not line:
                del self._waiting[user], self._before[user]
        if not self._waiting:
            self._taken = False
            return
        # who waits longest is in nobody's way, so that there is always one
        may = [u for u in self._waiting if not any(u in had for v, had in self._before.items() if v != u)]
        user = min(may, key=lambda u: self._had_lately(u, now))
        line = self._waiting.pop(user)
        del self._before[user]
        line.popleft().set_result(None)
        if line:
            self._waiting[user] = line  # behind who asked since
            self._before[user] = set()

    def _had_lately(self, user: str, now: float) -> float:
        seconds, then = self._had.get(user, (0.0, now))
        return seconds * math.exp2((then - now) / HALF_LIFE_S)
