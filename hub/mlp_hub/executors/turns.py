"""Measurement of many things in turns: a slow one is suspended, and continues at the next look.

So a home of millions of files, or a process with as many open, does not delay the others or the
check of the disk's floor.
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
"""Tuning: seconds of one look for new measurements, and as many for those in progress."""
COSTS = 20
"""Tuning: divisor of a thread's time for one thing: load of a disk, for fresh results."""
HURRY = 4
"""Tuning: divisor of a thread's time for one thing while the disk is nearly full, or without a result yet."""


@dataclass(slots=True)
class TimeSlice(Generic[T]):
    """Of one thing that is measured again and again. Times are of a clock that nobody sets."""

    begun: float = float("-inf")  # the last measurement
    cost_s: float = 0.0  # of it, so far
    so_far: int = 0  # bytes that it has found, which are at least there
    last: float = float("-inf")  # when it last had its turn
    known: bool = False
    going: Steps[T] | None = None

    def is_due(self, now: float, wait_s: float, *, hurry: bool) -> bool:
        """Return whether to continue it, or to start it again: after `wait_s`, or later if it takes long."""
        return self.going is not None or now >= self.begun + max(
            wait_s, self.cost_s * (HURRY if hurry else COSTS)
        )

    def measure_slice(self, make: Callable[[], Steps[T]], most_s: float) -> list[T]:
        """Measure for at most `most_s` seconds; return the result, once it is complete."""
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


class TimeSlices(Generic[K, T]):
    """Of all that is measured now, by key."""

    def __init__(self) -> None:
        self.of: dict[K, TimeSlice[T]] = {}

    def keep(self, keys: Mapping[K, object]) -> None:
        """Forget all others."""
        for key in [key for key in self.of if key not in keys]:
            going = self.of.pop(key).going
            if going is not None:
                going.close()

    def measure_due(
        self, what: Mapping[K, Callable[[], Steps[T]]], wait_s: Callable[[K], float], *, hurry: bool
    ) -> Iterator[tuple[K, T]]:
        """Give a turn to each whose time has come, who had none for longest first; yield what was found."""
        self.keep(what)
        now = time.monotonic()
        turns = [(key, self.of.setdefault(key, TimeSlice())) for key in what]
        due = [(key, turn) for key, turn in turns if turn.is_due(now, wait_s(key), hurry=hurry)]
        due.sort(key=lambda one: one[1].last)
        for long in (False, True):
            until = time.monotonic() + LOOK_S
            for key, turn in [one for one in due if (one[1].going is not None) is long and one[1].last < now]:
                left = until - time.monotonic()
                if left <= 0:
                    break
                part = HURRY if hurry or not turn.known else COSTS
                for found in turn.measure_slice(what[key], min(left, LOOK_EVERY_S / part)):
                    yield key, found
