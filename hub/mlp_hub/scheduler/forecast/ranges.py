"""Ranges of expected starts and ends, from run times of earlier runs: the core run forward several times.

In each of these scenarios all jobs take the same quantile of their earlier runs: jobs that are submitted together are slow or quick
together, and independent ones would give ranges far too narrow (Philly's trace: 8 % of the starts inside). Jobs without earlier runs end at their limits, as in `forecast`. The plans use what the scheduler knows, which is limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from mlp_hub.domain.jobs.run_times import PastRuns, quantile
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import Forecast, Lengths
from mlp_hub.scheduler.model.outlook import Outlook, TimeRange
from mlp_hub.scheduler.model.types import PendingWorkload

SHARES = (0.125, 0.375, 0.625, 0.875)
"""Tuning: quantile of the run times that all jobs have in each scenario: a finer range, for work in proportion."""
MOST_ENDS = 2000
"""Tuning: ends of jobs that a scenario goes through: time of an answer, for how far it looks."""
LOW, MIDDLE, HIGH = 0.1, 0.5, 0.9

Past = Callable[[str], tuple[PastRuns, float] | None]
"""Earlier runs of a job by its uid, and the seconds that its earlier attempts ran; None where too little is known."""


def outlooks(
    core: Core, uids: Collection[str], now: float, past: Past, most_effort: float
) -> dict[str, Outlook]:
    """Return when these waiting jobs start and end by run times of earlier runs; without jobs of which too little is known.

    All scenarios together take as much effort as given. `core` has planned at `now`; it is left as it is.
    """
    known = _LengthsLearned(past)
    if not any(known.of(uid) for uid in core.state.running) and not any(known.of(uid) for uid in uids):
        return {}
    found: list[dict[str, float | None]] = []
    for n in range(len(SHARES)):
        ahead = Forecast(core, now, uids, MOST_ENDS, most_effort / len(SHARES), lengths=known.lengths(n))
        found.append(ahead.starts)
    return {
        uid: outlook
        for uid in uids
        if (outlook := _outlook(uid, [one[uid] for one in found], known)) is not None
    }


def _outlook(uid: str, starts: list[float | None], known: _LengthsLearned) -> Outlook | None:
    told = [at for at in starts if at is not None]
    learned = known.used - {uid}
    if len(told) < len(starts) or not learned:
        return None
    own, end = known.of(uid), None
    if own is not None:
        ends = [at + (known.length(uid, n, 0.0) or 0.0) for n, at in enumerate(told)]
        end = _range(ends)
    return Outlook(_range(told), end, 0 if own is None else len(own[0].times), len(learned))


def running(own: PastRuns, began: float, ran: float, now: float) -> Outlook:
    """Return when a job ends that began its attempt at `began`, and ran for `ran` seconds in earlier ones."""
    passed = ran + max(now - began, 0.0)
    runs = len(own.times)
    if own.outlasted(passed):
        return Outlook(runs=runs, outlasted=True, longest=passed > own.times[-1])
    longer = [t for t in own.times if t >= passed]
    start = now - passed
    low, middle, high = (start + quantile(longer, q) for q in (LOW, MIDDLE, HIGH))
    return Outlook(end=TimeRange(low, middle, high), runs=runs)


def ending(own: PastRuns, start: float) -> Outlook:
    """Return when a job ends that starts then."""
    low, middle, high = (start + own.quantile(q) for q in (LOW, MIDDLE, HIGH))
    return Outlook(end=TimeRange(low, middle, high), runs=len(own.times))


def _range(times: list[float]) -> TimeRange:
    """Return the range of a time of which each scenario gave one: the outer ones are its p10 and p90, near enough."""
    ordered = sorted(times)
    return TimeRange(ordered[0], quantile(ordered, MIDDLE), ordered[-1])


class _LengthsLearned:
    """Run times of one look ahead; each job is looked up once. `used`: uids of jobs whose earlier runs counted."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._found: dict[str, tuple[PastRuns, float] | None] = {}
        self.used: set[str] = set()

    def of(self, uid: str) -> tuple[PastRuns, float] | None:
        """Return the earlier runs of a job, and how long its earlier attempts ran."""
        if uid not in self._found:
            self._found[uid] = self._past(uid)
        return self._found[uid]

    def length(self, uid: str, scenario: int, passed: float) -> float | None:
        """Return how long the attempt of a job runs in a scenario that has run for `passed` seconds."""
        found = self.of(uid)
        if found is None:
            return None
        own, ran = found
        return max(own.length(SHARES[scenario], ran + passed) - ran, passed)

    def lengths(self, scenario: int) -> Lengths:
        """Return the lengths of all jobs in a scenario."""

        def length(job: PendingWorkload, passed: float) -> float | None:
            found = self.length(job.uid, scenario, passed)
            if found is not None:
                self.used.add(job.uid)
            return found

        return length
