"""Measures many things in turns: who takes long is left after a moment and gone on with at the next look.

So that no home of millions of files, and no process with as many open, makes the others or the floor wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlp_hub.executors.workspace import LOOK_EVERY_S

K = TypeVar("K")
T = TypeVar("T")
Steps = Generator[int, None, T]
"""Measures something. It may be left for any time where it yields what it found so far, in bytes."""
LOOK_S = 0.25
"""Tuning: seconds of one look that go into what is begun anew, and as many into what is gone on with."""
COSTS = 20
"""Tuning: one part in so many of a thread's time goes into one thing: how much a disk is kept busy, for how fresh what is
known of it is."""
HURRY = 4
"""Tuning: one part in so many of a thread's time goes into one thing while the disk is nearly full, and into what nothing is
known of yet."""


@dataclass(slots=True)
class Turn(Generic[T]):
    """Of one thing that is measured again and again. Times are of a clock that nobody sets."""

    begun: float = float("-inf")  # the last measurement
    cost_s: float = 0.0  # of it, so far
    so_far: int = 0  # bytes that it has found, which are at least there
    last: float = float("-inf")  # when it last had its turn
    known: bool = False
    going: Steps[T] | None = None

    def is_due(self, now: float, wait_s: float, *, hurry: bool) -> bool:
        """Whether to go on with it, or to begin anew: after that time, or later where it takes much of the thread's."""
        return self.going is not None or now >= self.begun + max(
            wait_s, self.cost_s * (HURRY if hurry else COSTS)
        )

    def take(self, make: Callable[[], Steps[T]], most_s: float) -> list[T]:
        """Measure for so long; return what was found, once it is."""
        now = self.last = time.monotonic()
        if self.going is None:
            self.going, self.begun, self.cost_s = make(), now, 0.0
        until = now + most_s
        try:
            while True:
                self.so_far = next(self.going)
                if time.monotonic() >= until:
                    return []
        except StopIteration as end:
            self.going, self.known = None, True
            return [end.value]
        except BaseException:
            self.going = None
            raise
        finally:
            self.cost_s += time.monotonic() - now


class Turns(Generic[K, T]):
    """Of all that is measured now, by key."""

    def __init__(self) -> None:
        self.of: dict[K, Turn[T]] = {}

    def keep(self, keys: Mapping[K, object]) -> None:
        """Forget all others."""
        for key in [key for key in self.of if key not in keys]:
            going = self.of.pop(key).going
            if going is not None:
                going.close()

    def take(
        self, what: Mapping[K, Callable[[], Steps[T]]], wait_s: Callable[[K], float], *, hurry: bool
    ) -> Iterator[tuple[K, T]]:
        """Give a turn to each whose time has come, who had none for longest first; yield what was found."""
        self.keep(what)
        now = time.monotonic()
        turns = [(key, self.of.setdefault(key, Turn())) for key in what]
        due = [(key, turn) for key, turn in turns if turn.is_due(now, wait_s(key), hurry=hurry)]
        due.sort(key=lambda one: one[1].last)
        for long in (False, True):
            until = time.monotonic() + LOOK_S
            for key, turn in [one for one in due if (one[1].going is not None) is long and one[1].last < now]:
                left = until - time.monotonic()
                if left <= 0:
                    break
                part = HURRY if hurry or not turn.known else COSTS
                for found in turn.take(what[key], min(left, LOOK_EVERY_S / part)):
                    yield key, found
