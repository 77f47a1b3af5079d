"""Turns at answers that cost much: a few at a time, and users who had much of them lately let the others go first."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

TOO_MANY = msg("too many of these are in progress; wait until one of them is done")

HALF_LIFE_S = 10.0
"""Safety: half-life, in seconds, of the time that counts against a user.

A user who asked for much waits behind others, and this fades.
"""
FORGOTTEN_S = 0.001
"""Safety: seconds of counted time below which a user's entry is dropped: bounds memory."""


class CostlyTurns:
    """Turns, `abreast` at a time; the next is for the user with the least recent time, then the first asker.

    Whatever number of turns one user wants, and whatever little time they had, others wait for at most
    one of them. With `full`, a message with a hole for the {count} in progress, nobody waits at all.
    """

    def __init__(
        self, abreast: int = 1, *, full: Message | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._full = full
        self._free = self._abreast = abreast
        self._bounded: Counter[str] = Counter()  # of each user, those under way or waiting that are bounded
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order in which users came
        self._before: dict[str, set[str]] = {}  # who had a turn while this user waits
        self._had: dict[str, tuple[float, float]] = {}  # seconds, and when that was so

    @asynccontextmanager
    async def turn(
        self, user: str, most: int | None = None, too_many: Message = TOO_MANY
    ) -> AsyncIterator[None]:
        """Wait for a turn of this user, and have it; with `most`, more turns of one user are refused."""
        if most is None:
            async with self._turn(user):
                yield
            return
        if self._bounded[user] >= most:
            raise Refused(Reason.CONFLICT, too_many)
        self._bounded[user] += 1
        try:
            async with self._turn(user):
                yield
        finally:
            self._bounded[user] -= 1
            self._bounded = +self._bounded

    @asynccontextmanager
    async def _turn(self, user: str) -> AsyncIterator[None]:
        if self._full is not None and not self._free:
            raise Refused(Reason.CONFLICT, replace(self._full, args={"count": self._abreast}))
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
        if self._free:
            self._free -= 1
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
        """Give the turn to the next; it is free where nobody waits."""
        now = self._clock()
        self._had = {u: had for u, had in self._had.items() if self._had_lately(u, now) > FORGOTTEN_S}
        for user, line in list(self._waiting.items()):
            while line and line[0].done():  # who waited is gone
                line.popleft()
            if not line:
                del self._waiting[user], self._before[user]
        if not self._waiting:
            self._free += 1
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
