"""Expected starts of waiting jobs: the core itself, run forward from one expected end to the next.

Ends are those that estimates and time limits promise. A job whose end nobody knows holds what it has for ever here;
who waits for that gets no time. Later submissions are not known, so the times hold unless more important work comes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Admit, AdmittedWorkload, PendingWorkload, Preempt, Resize

Lengths = Callable[[PendingWorkload, float], float | None]
"""How long an attempt of a job runs that has run for so many seconds; None where nothing but its limit tells."""

MOST_STEPS = 200
"""Tuning: ends of jobs that a forecast goes through; a job that has not started by then gets no time."""
MOST_RIPE = 20
"""Tuning: times, other than ends, that a forecast goes through: a running job can be stopped from then on.

It trades the time of an answer for the distance that it looks ahead.
"""


def expected_end(running: AdmittedWorkload, now: float) -> float | None:
    """Return when a running job ends at the latest: by its estimate, or by its time limit where that is past.

    None when nothing tells: without either, or when it outlived both.
    """
    limit = running.job.time_limit
    for end in (running.expected_end, None if limit is None else running.started_at + limit):
        if end is not None and end > now:
            return end
    return None


class Forecast:
    """One run forward: `starts` by uid, what lets each begin (see `ended_by`, `gives_way`), and the `steps` it took.

    A start is None where none can be told. `core` has planned at `now` already; it is left as it is. One run serves all
    jobs asked for. With `lengths`, jobs end when these say, and at their limit at the latest. The plans still know limits and
    estimates only, as the scheduler does.
    """

    def __init__(
        self,
        core: Core,
        now: float,
        uids: Collection[str],
        most_steps: int = MOST_STEPS,
        most_effort: float = math.inf,
        *,
        lengths: Lengths | None = None,
    ) -> None:
        self._lengths = lengths
        self.starts: dict[str, float | None] = dict.fromkeys(uids)
        self.after: dict[str, str | None] = {}
        self._stopped: dict[str, tuple[str, ...]] = {}
        self._shrunk: dict[str, tuple[str, ...]] = {}
        self.steps = 0
        self.effort = 0  # see `State`
        # who is not admitted, or whose tenant is gone, starts by no end of others
        self._open = {uid for uid in uids if uid in core.state.waiting}
        self._ends: list[tuple[float, str]] = []
        self._end_of: dict[str, float] = {}  # an end in the heap that differs is out of date
        self._jobs: dict[str, PendingWorkload] = {}
        if not self._open:
            return
        for uid, running in core.running.items():
            self._jobs[uid] = running.job
            self._will_end(uid, self._end(running, now))
        self._at = now
        self._core = core
        self._ripe_until = now + core.state.policy.min_run_s
        self._ripe_left = MOST_RIPE
        if not self._ends and core.state.bookings.next_change(now) is None and self._ripe() is None:
            return  # nothing is foreseen: not worth a copy
        self._core = core.fork()
        while self._open and self.steps < most_steps and self.effort < most_effort:
            ended = self._next()
            if ended is None:
                break
            self._step(*ended)
            self.effort = self._core.state.effort - core.state.effort

    def ended_by(self, uid: str) -> PendingWorkload | None:
        """Return the job whose end lets this one start; None: a booked window does, or a job that may be stopped then.

        Raises `KeyError` when no start was found.
        """
        after = self.after[uid]
        return None if after is None else self._jobs[after]

    def gives_way(self, uid: str) -> tuple[list[PendingWorkload], list[PendingWorkload]]:
        """Return the jobs that are stopped so that this one starts, and those that give up workers for it."""
        stopped, shrunk = self._stopped.get(uid, ()), self._shrunk.get(uid, ())
        return [self._jobs[u] for u in stopped], [self._jobs[u] for u in shrunk]

    def _end(self, running: AdmittedWorkload, now: float) -> float | None:
        latest = expected_end(running, now)
        if self._lengths is None:
            return latest
        length = self._lengths(running.job, max(now - running.started_at, 0.0))
        if length is None:
            return latest
        end = max(running.started_at + length, now)
        return end if latest is None else min(end, latest)

    def _will_end(self, uid: str, at: float | None) -> None:
        if at is None:
            self._end_of.pop(uid, None)
        else:
            self._end_of[uid] = at
            heapq.heappush(self._ends, (at, uid))

    def _running(self, uid: str) -> AdmittedWorkload:
        return self._core.state.running[uid].run

    def _ripe(self) -> float | None:
        """Return the next time at which one that runs already has run long enough to be stopped."""
        timers = self._core.state.inadmissible.timers
        near = bool(timers) and self._ripe_left > 0 and timers[0][0] <= self._ripe_until
        return timers[0][0] if near else None

    def _next(self) -> tuple[float, list[str]] | None:
        """Take the next time at which jobs end, may be stopped, or a window opens or closes; and the jobs that end."""
        while self._ends and self._end_of.get(self._ends[0][1]) != self._ends[0][0]:
            heapq.heappop(self._ends)
        at = self._core.state.bookings.next_change(self._at)
        if self._ends and (at is None or self._ends[0][0] <= at):
            at = self._ends[0][0]
        ripe = self._ripe()
        if ripe is not None and (at is None or ripe < at):
            at = ripe
            self._ripe_left -= 1
        if at is None:
            return None
        self._at = at
        ended: list[str] = []
        while self._ends and self._ends[0][0] <= at:
            end, uid = heapq.heappop(self._ends)
            if self._end_of.get(uid) == end:
                del self._end_of[uid]
                ended.append(uid)
        return at, ended

    def _step(self, at: float, ended: list[str]) -> None:
        self.steps += 1
        for uid in ended:
            self._core.end(uid, at)
        again: list[PendingWorkload] = []
        shrunk: dict[str | None, tuple[str, ...]] = {}  # by who gets it
        for decision in self._core.plan_unheard(at):
            uid = decision.uid
            if isinstance(decision, Admit):
                running = self._running(uid)
                self._jobs[uid] = running.job
                self._will_end(uid, self._end(running, at))
                if uid in self._open:
                    self._open.discard(uid)
                    self.starts[uid] = at
                    self.after[uid] = ended[-1] if ended else None
                    self._stopped[uid], self._shrunk[uid] = decision.after, shrunk.get(uid, ())
            elif isinstance(decision, Resize):
                shrunk[decision.for_uid] = (*shrunk.get(decision.for_uid, ()), uid)
                self._will_end(uid, self._end(self._running(uid), at))
            elif isinstance(decision, Preempt):
                self._end_of.pop(uid, None)
                again.append(self._jobs[uid])
        for job in again:
            self._core.submit(job)
