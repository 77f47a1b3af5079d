"""Curves of a run as far as a comparison can show them: of points side by side the lowest and the highest stay; pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Literal

from mlp_api.jobs.runs import Curve
from mlp_hub.domain.jobs.run import AXES

By = Literal["step", "epoch", "time"]
MOST_METRICS = 20
"""Limit of runs: metrics of a run whose curves are in one answer."""
COMPACT_AT = 65_536
"""Safety: points of a curve that are held; beyond, those before are thinned: bounds memory."""


class _CurveLine:
    __slots__ = ("rank", "x", "y")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.x = array("d")
        self.y = array("d")

    def add(self, x: float, y: float) -> None:
        self.x.append(x)
        self.y.append(y)
        if len(self.x) >= COMPACT_AT:
            self.x, self.y = thinned(self.x, self.y, COMPACT_AT // 2)


class CurveMaker:
    """Takes a run's points in their order; `by` says what is on the x axis, `low` and `high` which part of it."""

    def __init__(self, by: By, metric: str | None, low: float | None, high: float | None) -> None:
        self._by = by
        self._metric = metric
        self._low = -math.inf if low is None else low
        self._high = math.inf if high is None else high
        self._lines: dict[str, _CurveLine] = {}
        self._first: float | None = None
        self.seen = 0
        self.more = False

    def add(self, points: Iterable[tuple[int, float, Mapping[str, float | int]]]) -> None:
        """Take further points: rank, time, values."""
        for rank, time, values in points:
            self.seen += 1
            if self._first is None:
                self._first = time
            at = self._x(time, values)
            if at is None or not self._low <= at <= self._high:
                continue
            names = values if self._metric is None else (self._metric,) if self._metric in values else ()
            for name in names:
                line = None if name in AXES else self._line(name, rank)
                if line is not None:
                    line.add(at, float(values[name]))

    def _x(self, time: float, values: Mapping[str, float | int]) -> float | None:
        if self._by == "time":
            return time - (self._first or 0.0)
        value = values.get(self._by)
        if value is None:
            return None if self._by == "epoch" else float(values.get("epoch", self.seen - 1))
        return float(value) if math.isfinite(value) else None

    def _line(self, name: str, rank: int) -> _CurveLine | None:
        line = self._lines.get(name)
        if line is None and len(self._lines) >= MOST_METRICS:
            self.more = True
            return None
        if line is None or rank < line.rank:  # as in the table: of the lowest rank that reports it
            line = self._lines[name] = _CurveLine(rank)
        return line if rank == line.rank else None

    def curves(self, points: int) -> list[Curve]:
        """Return the curves with at most `points` points each."""
        found = []
        for name, line in self._lines.items():
            x, y = _ascending(line.x, line.y)
            x, y = thinned(x, y, points)
            ys = [v if math.isfinite(v) else None for v in y]
            found.append(Curve(metric=name, rank=line.rank, x=list(x), y=ys))
        return found


def _ascending(x: array[float], y: array[float]) -> tuple[array[float], array[float]]:
    """Return the points by x: a run that went on from a checkpoint has steps twice."""
    if all(a <= b for a, b in pairwise(x)):
        return x, y
    order = sorted(range(len(x)), key=x.__getitem__)
    return array("d", (x[i] for i in order)), array("d", (y[i] for i in order))


def thinned(x: array[float], y: array[float], points: int) -> tuple[array[float], array[float]]:
    """Return `points` of these at most: the first, the last, and of each part the lowest and the highest, in their order."""
    n = len(x)
    if n <= points:
        return x, y
    parts = max(1, (points - 2) // 2)
    keep = [0]
    for part in range(parts):
        start, end = 1 + part * (n - 2) // parts, 1 + (part + 1) * (n - 2) // parts
        if end <= start:
            continue
        piece = y[start:end]
        finite = [v for v in piece if v - v == 0]
        if not finite:
            keep.append(start)
            continue
        low, high = start + piece.index(min(finite)), start + piece.index(max(finite))
        keep += sorted({low, high})
    keep.append(n - 1)
    return array("d", (x[i] for i in keep)), array("d", (y[i] for i in keep))
