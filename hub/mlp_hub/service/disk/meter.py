"""Remembers what directories of tenants take on disk, and what their processes write, to tell how fast that grows.

A directory is measured again not later than it could have come half the way to its bound at its present speed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mlp_hub.executors.base import DiskUse
from mlp_hub.executors.workspace import Home, Place, Size, Sizes
from mlp_hub.service.disk.rules import WINDOW_S

LEAST_S, MOST_S = 1.0, 10.0
"""Between two measurements of a directory."""


@dataclass(slots=True)
class Measured:
    """Measurements of one directory; `history` has (time, bytes) of the last minute and the one before that."""

    size: Size = field(default_factory=lambda: Size(0))
    history: deque[tuple[float, int]] = field(default_factory=deque)
    counter: int = 0  # what was taken in last by `count`

    def wait_s(self, bound: int) -> float:
        """Return the seconds until the next measurement."""
        if len(self.history) < 2:
            return LEAST_S
        grown, over = self.grown()
        if not grown or not bound:
            return MOST_S
        return min(max((bound - self.size.used) * over / grown / 2, LEAST_S), MOST_S)

    def note(self, now: float, size: Size) -> None:
        """Take in a measurement."""
        self.size = size
        self.history.append((now, size.used))
        while len(self.history) > 2 and self.history[1][0] <= now - WINDOW_S:
            self.history.popleft()

    def count(self, now: float, counter: int) -> None:
        """Note the value of a counter, which falls where processes end."""
        self.note(now, Size(self.size.used + max(counter - self.counter, 0)))
        self.counter = counter

    def grown(self) -> tuple[int, float]:
        """Return by how much it grew in the last minute, and in how many seconds that was."""
        if len(self.history) < 2:
            return 0, 0.0
        (since, before), (now, used) = self.history[0], self.history[-1]
        return max(used - before, 0), now - since


@dataclass(frozen=True, slots=True)
class Bounded:
    """Knowledge of a directory before it is measured.

    `extra` belongs to it but no longer has a name in it. `news` is the part of its first measured size
    that was written just before, where that is known.
    """

    bound: int
    extra: int = 0
    news: int | None = None


class DiskMeter:
    """Remembers how large directories were."""

    def __init__(self) -> None:
        self.known: dict[Place, Measured] = {}
        self._so_far: Mapping[Place, int] = {}

    def knows(self, place: Place) -> bool:
        """Whether the directory was ever measured."""
        return place in self.known and bool(self.known[place].history)

    def least(self, place: Place) -> int:
        """Return the measured size of the directory, or the part found so far in its first measurement."""
        return self.known[place].size.used if self.knows(place) else self._so_far.get(place, 0)

    def waits(self, places: Mapping[Place, Bounded], *, hurry: bool) -> dict[Place, float]:
        """Return the seconds until the next measurement of each place; others are forgotten."""
        self.known = {place: self.known.get(place) or Measured() for place in places}
        return {p: LEAST_S if hurry else self.known[p].wait_s(b.bound) for p, b in places.items()}

    def note(self, places: Mapping[Place, Bounded], sizes: Sizes) -> Collection[Place]:
        """Store the results; return the places with complete ones."""
        self._so_far = sizes.so_far
        now = time.monotonic()
        for place, size in sizes.done.items():
            one, known = self.known[place], places[place]
            used = size.used + known.extra
            if not one.history and known.news is not None:
                one.note(now - LEAST_S, Size(max(used - known.news, 0)))
            one.note(now, replace(size, used=used))
        return sizes.done.keys()


Whose = str | Home
"""An attempt, or a user's notebook servers."""


class Processes:
    """Remembers what processes did to the disk, by whose they are."""

    def __init__(self) -> None:
        self.unlinked: dict[Whose, int] = {}
        self.written: dict[Whose, Measured] = {}
        self.stored: dict[Whose, Measured] = {}

    def wrote(self, whose: Whose) -> int:
        """Return what they wrote in the last minute: to a disk, where the kernel counts that."""
        if whose not in self.stored:
            return 0
        return self.stored[whose].grown()[0] or self.written[whose].grown()[0]

    def note(
        self, asked: Collection[Whose], found: Mapping[Whose, DiskUse], gone: Collection[Whose] = ()
    ) -> None:
        """Store the results for those asked for; others are forgotten, except those that are `gone`."""
        keys = {*asked, *gone}
        self.unlinked = {key: self.unlinked.get(key, 0) for key in asked}
        self.written = {key: self.written.get(key) or Measured() for key in keys}
        self.stored = {key: self.stored.get(key) or Measured() for key in keys}
        now = time.monotonic()
        for key, use in found.items():
            self.unlinked[key] = use.unlinked
            self.written[key].count(now, use.written)
            self.stored[key].count(now, use.stored)
