"""Horizon of a run's forecasts for new waiting jobs: bounded by a part of the run's own time."""

from __future__ import annotations

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import MOST_STEPS, Forecast

FORECAST_CREDIT = 40_000.0
"""Initial credit for forecasts, in addition to a part of the run's own plans, in units of `State.effort`."""
FORECAST_PART = 1 / 3
"""Of what its own plans take; forecasts are about a quarter of a long run."""
CREDIT_PER_INSTANT = 2.0
JOBS_PER_UNIT = 8.0
"""Jobs, or nodes, whose copying takes as long as looking at one class."""
LEAST_STEPS = 20
"""So far a look ahead must be able to go, as steps were lately, or it waits: a shorter one rarely tells anything."""
LATELY = 0.25
"""Weight of the last forecast in the recent cost of steps."""


class Foresight:
    """Forecasts on credit, which grows with the run's own cost; the rest is saved until it is enough."""

    def __init__(self) -> None:
        self._credit = FORECAST_CREDIT
        self._step_takes = 1.0  # lately

    def earn(self, effort: float) -> None:
        """Note what a plan took, in the units of `State.effort`."""
        self._credit += FORECAST_PART * effort

    def earn_instant(self) -> None:
        """Note that something happens again."""
        self._credit += CREDIT_PER_INSTANT

    def foresee_starts(self, core: Core, now: float, uids: list[str], copied: int) -> dict[str, float | None]:
        """Return when these jobs will start, as far as it can be told; `copied` are the jobs and nodes there are."""
        copying = 1.0 + copied / JOBS_PER_UNIT
        left = self._credit - copying
        if left < LEAST_STEPS * self._step_takes:
            return {}
        found = Forecast(core, now, uids, MOST_STEPS, left)
        if not found.steps:
            return found.starts  # nothing was copied either
        took = found.steps + found.effort
        self._credit -= copying + took
        self._step_takes += LATELY * (took / found.steps - self._step_takes)
        return found.starts
