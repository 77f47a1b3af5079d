"""Reports of live trials on the metric of their sweep, as far as they were read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlp_hub.store.records import StoredPoint

MOST_KEPT = 256
"""Tuning: values of one trial that are kept once it has ended: a curve that is drawn has no more."""
ALL_OF = 2_000
"""Safety: values of one trial of which each is looked at, which costs the more the more there are; of later steps the round ones are."""
DIGITS = 3
"""Tuning: digits of a round step, the rest zeros: the delay of an early end, as a share of a trial's work."""
MOST_NAMES = 20
"""Safety: names of reported values that a refusal could list."""
DONE = 100
"""Given: percent of progress at which a program is complete."""
RESOURCES = ("epoch", "step")
"""Given: names of values that say how far a trial is; the first of them that it reports counts, else its values are counted."""


@dataclass(slots=True)
class Reported:
    """Values of one trial by step, the first of each step; those of one rank, the first that reports any.

    `count` are all that came, `curve` those that are looked at: two million of them would fill memory, and hold up the service.
    """

    metric: str
    seq: int = 0
    rank: int | None = None
    by: str | None = None  # which value says how far it is; empty: they are counted
    curve: dict[int, float] = field(default_factory=dict)
    count: int = 0
    last: float | None = None
    at: int = 0  # the step of the last
    complete: bool = False  # its last progress is 100 %
    names: dict[str, None] = field(default_factory=dict)

    def add_points(self, points: Sequence[StoredPoint]) -> list[tuple[int, float]]:
        """Take in further points; return the values that are new and looked at."""
        fresh: list[tuple[int, float]] = []
        for point in points:
            self.seq = point.seq
            if len(self.names) < MOST_NAMES:
                self.names.update(dict.fromkeys(point.values))
            if self.rank is not None and point.rank != self.rank:
                continue
            if (progress := point.values.get("progress")) is not None:  # `mlp.progress` reports it by itself
                self.complete = progress >= DONE
            value = point.values.get(self.metric)
            if value is None:
                continue
            self.rank = point.rank
            self.last = float(value)
            step = self.at = self._step(point)
            if step in self.curve:
                continue
            self.count += 1
            if len(self.curve) < ALL_OF or _is_round(step):
                self.curve[step] = self.last
                fresh.append((step, self.last))
        return fresh

    def _step(self, point: StoredPoint) -> int:
        if self.by is None:
            self.by = next((name for name in RESOURCES if _is_step(point.values.get(name))), "")
        at = point.values.get(self.by) if self.by else None
        if at is not None and _is_step(at):
            return int(at)
        return self.count + 1

    def kept(self) -> tuple[tuple[int, float], ...]:
        """Return the curve as it is stored: every n-th of many values, and the last."""
        known = (
            self.curve if self.last is None else {**self.curve, self.at: self.curve.get(self.at, self.last)}
        )
        finite = sorted((step, value) for step, value in known.items() if math.isfinite(value))
        return thinned(finite, MOST_KEPT)


def thinned(points: Sequence[tuple[int, float]], most: int) -> tuple[tuple[int, float], ...]:
    """Return about `most` of the points (at most one more), evenly chosen, the last one among them."""
    if len(points) <= most:
        return tuple(points)
    every = -(-len(points) // most)
    return (*points[:-1][::every], points[-1])


def _is_step(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value >= 0 and value == int(value) and value < 2**53


def _is_round(step: int) -> bool:
    return not step % 10 ** max(len(str(step)) - DIGITS, 0)
