"""Jobs whose points a target did not take, and the decision whether they are tried again or dropped.

A target may be away, and then all points wait. It may also refuse the points of one job for ever, with an answer that looks the same.
So a job is put aside only while the target takes others, and its points are dropped only after that happened often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mlp_hub.service.support.backoff import wait_after

DOUBT_MOST_S = 3600.0
"""Tuning: seconds until the next try of a job that the target does not take while it takes others, at most."""
MOST_DOUBTS = 12
"""Tuning: times that the target takes others and not a job, after which the points of that are dropped: the waits double, an hour in all."""
MOST_FAULTS = 6
"""Tuning: faults of the target in a row at the same points, each after it took others, after which these are dropped."""


class ExportDoubts:
    """Doubts about jobs at one target. `retry_s`, `most_s`: seconds until the next try after a fault, at first and at most."""

    def __init__(self, retry_s: float, most_s: float) -> None:
        self._retry_s, self._most_s = retry_s, most_s
        self._not_taken: dict[str, None] = {}  # since the target took another one
        self._passed_over: Counter[str] = Counter()  # how often it took others and not this job
        self._taken = False  # whether it took any since jobs were put aside
        self._tries: Counter[str] = Counter()  # faults in a row
        self._faults: Counter[str] = Counter()  # those of them that count
        self._doubtful: set[str] = set()  # jobs with a fault since the target took any

    def __bool__(self) -> bool:
        """Whether the target did not take a job, and it is not known yet whether it takes others."""
        return bool(self._not_taken)

    def failed(self, uid: str) -> float | None:
        """Note a fault of the target at a job's points; return the wait before the next try; None: drop them.

        If the target took nothing since the last one, the fault is not counted: it may be the target's, whatever it is sent.
        """
        if uid not in self._doubtful:
            if self._faults[uid] + 1 >= MOST_FAULTS:
                return None
            self._faults[uid] += 1
            self._doubtful.add(uid)
        self._tries[uid] += 1
        return wait_after(self._tries[uid], self._retry_s, self._most_s)

    def is_doubtful(self, uid: str) -> bool:
        """Return whether the target had a fault at a job's points, and took nothing since."""
        return uid in self._doubtful

    def not_taken(self, uid: str) -> bool:
        """Note that the target took no points of a job, alone in its request; return whether to drop them."""
        if self._passed_over[uid] >= MOST_DOUBTS:
            return True
        self._not_taken[uid] = None
        return False

    def taken(self, uids: Iterable[str]) -> None:
        """Note that the target took points of jobs."""
        for uid in uids:
            self.forget(uid)
        self._taken = True
        self._doubtful.clear()

    def others_taken(self) -> Iterator[tuple[str, float]]:
        """Return the jobs to put aside, each with its wait in seconds; none if the target took nothing since the last call."""
        if not self._taken:
            return
        self._taken = False
        jobs, self._not_taken = self._not_taken, {}
        for uid in jobs:
            self._passed_over[uid] += 1
            yield uid, wait_after(self._passed_over[uid], self._retry_s, DOUBT_MOST_S)

    def dropped(self, uid: str) -> None:
        """Note that points of a job were dropped. Its next ones are dropped sooner, unless the target takes some."""
        self._not_taken.pop(uid, None)
        self._faults.pop(uid, None)
        self._tries.pop(uid, None)
        self._doubtful.discard(uid)

    def forget(self, uid: str) -> None:
        """Forget a job whose points the target took, or that is gone."""
        self.dropped(uid)
        self._passed_over.pop(uid, None)
