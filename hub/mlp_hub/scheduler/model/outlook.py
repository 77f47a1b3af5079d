"""Forecast of one job by run times of earlier runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Quantiles 0.1, 0.5 and 0.9 of a time, in seconds since the epoch."""

    p10: float
    p50: float
    p90: float

    def holds(self, at: float) -> int:
        """Return -1 if a time is before this range as people read it, in whole minutes, 1 if it is after it, 0 if inside."""
        if at < self.p10 // 60 * 60:
            return -1
        return 1 if at >= (self.p90 // 60 + 1) * 60 else 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of a job by earlier runs.

    `runs` counts its own earlier runs, `learned` the jobs ahead of it whose earlier runs were used. `outlasted`: it has
    run longer than nine of ten of its own.
    """

    start: TimeRange | None = None
    end: TimeRange | None = None
    runs: int = 0
    learned: int = 0
    outlasted: bool = False
    longest: bool = False  # it has run longer than all of its own
