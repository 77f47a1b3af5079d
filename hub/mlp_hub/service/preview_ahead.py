"""Whose expected start a change of a tenant would move, though it starts and stops nobody at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forward import Forecast
from mlp_hub.scheduler.model import WaitingJob
from mlp_hub.scheduler.words import span

MOST_JOBS = 100
"""Jobs whose start is looked for, those that are first in their tenants;"""
MOST_STEPS = 1000
MOST_EFFORT = 15_000
"""how far each of the two looks goes: ends of jobs, and what planning looks at (`State.effort`), about a quarter of a second."""
SLACK_S = 60.0
"""A start that moves by less is told to nobody."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A waiting job that is expected at another time then; None where no time can be told."""

    job: WaitingJob
    was: float | None
    then: float | None

    @property
    def is_later(self) -> bool:
        """Whether it would lose by the change."""
        return self.then is None or (self.was is not None and self.then > self.was)

    def words(self, now: float) -> str:
        """Say of whom, when then, and when not any more: "lstm of carol (blue) in 2 h, not in 5 min"."""
        who = f"{self.job.name} of {self.job.user} ({self.job.tenant})"
        if self.was is None:
            return f"{who} {_in(self.then, now)}, where no time can be told now"
        return f"{who} {_in(self.then, now)}, not {_in(self.was, now)}"


def moved(before: Core, after: Core, jobs: Sequence[WaitingJob], now: float) -> list[Moved]:
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


def _in(at: float | None, now: float) -> str:
    if at is None:
        return "at no time that can be told"
    return f"in {span(at - now)}" if at - now >= 1 else "at once"
