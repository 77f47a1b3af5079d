"""Jobs whose expected start a change of a tenant would move, though it starts and stops nobody at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import Forecast
from mlp_hub.scheduler.model.types import PendingWorkload
from mlp_language.message import Message, Span, msg

MOST_JOBS = 100
"""Tuning: jobs whose start is worked out, those that are first in their tenants: time of an answer, for how far it looks."""
MOST_STEPS = 1000
"""Tuning: ends of jobs up to which each of the two forecasts goes: time of an answer, for how far it looks."""
MOST_EFFORT = 15_000
"""Tuning: effort of each of the two forecasts (`ClusterState.effort`), at most: about a quarter of a second."""
SLACK_S = 60.0
"""Tuning: seconds; a start that moves by less is told to nobody: fewer lines to read, for how small a change is told."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A waiting job that is expected at another time then; None where no time can be told."""

    job: PendingWorkload
    was: float | None
    then: float | None

    @property
    def is_later(self) -> bool:
        """Whether it would lose by the change."""
        return self.then is None or (self.was is not None and self.then > self.was)

    def words(self, now: float) -> Message:
        """Say of whom, when then, and when not any more."""
        if self.was is None:
            return msg(
                "{job} {then}; now no time can be estimated", job=self.job.ref, then=_when(self.then, now)
            )
        return msg(
            "{job} {then} instead of {was}",
            job=self.job.ref,
            then=_when(self.then, now),
            was=_when(self.was, now),
        )


def moved(before: Core, after: Core, jobs: Sequence[PendingWorkload], now: float) -> list[Moved]:
    """Return those of these jobs, which wait in both cores, whose expected start differs; both have planned at `now`.

    Where one of the looks had to end early, a start that only the other one found tells nothing.
    """
    uids = [j.uid for j in jobs[:MOST_JOBS]]
    was, then = (Forecast(core, now, uids, MOST_STEPS, MOST_EFFORT) for core in (before, after))
    cut = any(look.steps >= MOST_STEPS or look.effort >= MOST_EFFORT for look in (was, then))
    found = []
    for job in jobs[:MOST_JOBS]:
        a, b = was.starts[job.uid], then.starts[job.uid]
        known = a is not None and b is not None
        if (abs(a - b) >= SLACK_S) if known else (a is not b and not cut):  # type: ignore[operator]
            found.append(Moved(job, a, b))
    return found


def _when(at: float | None, now: float) -> Message:
    if at is None:
        return msg("at an unknown time")
    return msg("in {span}", span=Span(at - now)) if at - now >= 1 else msg("at once")
