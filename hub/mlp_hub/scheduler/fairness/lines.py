"""The line of one tenant in one cycle: its classes in the order in which their first jobs are looked at.

Inadmissible classes cannot start, but the first of them get a reservation. As soon as none is left
for them they are passed over. The classes behind them still wait for their turns, as if they had
been looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush, heapreplace

from mlp_hub.scheduler.fairness.members import MemberKey
from mlp_hub.scheduler.policy import JobKey
from mlp_hub.scheduler.workloads.pending import Awaits, Head, JobClass


class Line:
    """Rest of a line, given as sorted heads of classes."""

    __slots__ = ("_again", "_at", "_heads")

    def __init__(self, heads: list[Head]) -> None:
        self._heads = heads
        self._at = 0
        self._again: list[Head] = []  # whose first job was served, with the next one

    def push(self, cls: JobClass) -> None:
        """Queue the next job of a class."""
        heappush(self._again, (cls.jobs[0], cls.serial, cls))

    def pop(self) -> JobClass | None:
        """Take the class that is next, active or not; None when nobody is left."""
        heads, at = self._heads, self._at
        if self._again and (at == len(heads) or self._again[0] < heads[at]):
            return heappop(self._again)[2]
        if at == len(heads):
            return None
        self._at = at + 1
        return heads[at][2]

    def pass_inadmissible(self, promised: str | None) -> tuple[JobKey, float] | None:
        """Go on to the next that is active. None when nobody is left.

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
            if cls.awaits is Awaits.NOTHING:
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

    def narrow(self, active: Iterable[JobClass]) -> None:
        """Leave of those that were not looked at yet only the ones that are active."""
        if self._at == len(self._heads):
            return
        front = self._heads[self._at]
        known = {serial for _, serial, _ in self._again}
        heads = ((cls.jobs[0], cls.serial, cls) for cls in active if cls.serial not in known)
        self._again += [head for head in heads if head >= front]
        heapify(self._again)
        self._heads, self._at = [], 0


TurnOf = Callable[[str, JobKey], MemberKey]
"""Function that gives the sort key of a member, by name, whose next job has this key."""


class MemberLines:
    """Lines of a tenant's members, who take turns; replaces `Line`, which is for a queue ordered by its jobs."""

    __slots__ = ("_heap", "_is_narrow", "_last", "_late", "_lines", "_turn")

    def __init__(self, lanes: dict[str, list[Head]], turn: TurnOf) -> None:
        """`lanes` are the sorted heads of each member."""
        self._turn = turn
        self._lines = {user: Line(heads) for user, heads in lanes.items()}
        self._heap = [(turn(user, heads[0][0][0]), user) for user, heads in lanes.items()]
        heapify(self._heap)
        self._last: str | None = None  # whose job was looked at; its share may be another one since
        self._is_narrow = False
        self._late: dict[str, float] = {}  # when the youngest that was passed over in a line was queued

    def push(self, cls: JobClass) -> None:
        """Queue the next job of a class."""
        self._lines[cls.user].push(cls)

    def pop(self) -> JobClass | None:
        """Take the class that is next, active or not; None when nobody is left."""
        self._line_up()
        if not self._heap:
            return None
        self._last = heappop(self._heap)[1]
        self._late.pop(self._last, None)
        return self._lines[self._last].pop()

    def pass_inadmissible(self, promised: str | None) -> tuple[JobKey, float] | None:
        """Go on to the next that is active, as `Line.pass_inadmissible` does."""
        self._line_up()
        passed = -math.inf
        while self._heap:
            turn, user = self._heap[0]
            found = self._lines[user].pass_inadmissible(promised)
            if found is None:
                heappop(self._heap)
                continue
            head, latest = found
            passed = max(passed, latest)
            # who stands behind them waits for its turn all the same
            late = self._late[user] = max(latest, self._late.get(user, -math.inf))
            share, lately, at, _ = self._turn(user, head)
            anew = (share, lately, max(at, late), user)
            if anew == turn:
                return head, passed
            heapreplace(self._heap, (anew, user))
        return None

    def next(self) -> JobKey | None:
        """Return the key of the next one, None when nobody is left."""
        self._line_up()
        return self._lines[self._heap[0][1]].next() if self._heap else None

    def narrow(self, active: Iterable[JobClass]) -> None:
        """Leave of those that were not looked at yet only the ones that are active."""
        if self._is_narrow:
            return
        self._is_narrow = True
        of_user: dict[str, list[JobClass]] = {user: [] for user in self._lines}
        for cls in active:
            of_user[cls.user].append(cls)
        for user, classes in of_user.items():
            self._lines[user].narrow(classes)
        # others are next in their lines, or nobody
        firsts = ((user, self._lines[user].next()) for _, user in self._heap)
        self._heap = [(self._turn(user, head), user) for user, head in firsts if head is not None]
        heapify(self._heap)

    def _line_up(self) -> None:
        """Put the member that was looked at last where its share places it now."""
        user, self._last = self._last, None
        head = None if user is None else self._lines[user].next()
        if user is not None and head is not None:
            heappush(self._heap, (self._turn(user, head), user))
