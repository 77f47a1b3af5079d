"""The line of one tenant in one cycle: its classes in the order in which their first jobs are looked at.

Those that sleep cannot start, but the first of them are owed a reservation; as soon as there is none left for them they
are passed over. Who stands behind them waits for its turn all the same, as if they had been looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from mlp_hub.scheduler.ordering import JobKey
from mlp_hub.scheduler.queues import Asleep, Head, JobClass


class Line:
    """What is left of a line, given as sorted heads of classes."""

    __slots__ = ("_again", "_at", "_heads")

    def __init__(self, heads: list[Head]) -> None:
        self._heads = heads
        self._at = 0
        self._again: list[Head] = []  # whose first job was served, with the next one

    def push(self, cls: JobClass) -> None:
        """Let the next job of a class stand in line."""
        heappush(self._again, (cls.jobs[0], cls.serial, cls))

    def pop(self) -> JobClass | None:
        """Take the class that is next, asleep or not; None when nobody is left."""
        heads, at = self._heads, self._at
        if self._again and (at == len(heads) or self._again[0] < heads[at]):
            return heappop(self._again)[2]
        if at == len(heads):
            return None
        self._at = at + 1
        return heads[at][2]

    def pass_sleepers(self, promised: str | None) -> tuple[JobKey, float] | None:
        """Go on to the next that is awake. None when nobody is left.

        Returns its key, and when the youngest of those passed over was queued; `promised` is none of them.
        """
        heads, at, end = self._heads, self._at, len(self._heads)
        again = self._again[0] if self._again else None
        latest = -math.inf
        while at < end:
            head = heads[at]
            if again is not None and again < head:
                break
            cls, key = head[2], head[0][0]
            if cls.asleep is Asleep.NO:
                self._at = at
                return key, latest
            if key[1] > latest and key[2] != promised:
                latest = key[1]
            at += 1
        self._at = at
        return None if again is None else (again[0][0], latest)

    def next(self) -> JobKey | None:
        """Return the key of the next one, None when nobody is left."""
        heads, at = self._heads, self._at
        if self._again and (at == len(heads) or self._again[0] < heads[at]):
            return self._again[0][0][0]
        return None if at == len(heads) else heads[at][0][0]

    def narrow(self, awake: Iterable[JobClass]) -> None:
        """Leave of those that were not looked at yet only the ones that are awake."""
        if self._at == len(self._heads):
            return
        front = self._heads[self._at]
        known = {serial for _, serial, _ in self._again}
        heads = ((cls.jobs[0], cls.serial, cls) for cls in awake if cls.serial not in known)
        self._again += [head for head in heads if head >= front]
        heapify(self._again)
        self._heads, self._at = [], 0
