"""Counters and histograms that are fed where things happen, at the cost of a few additions each.

They are plain numbers: nothing of the library is loaded before the first scrape. Each instrument has one thread that feeds
it. All begin at 0 with the process, as Prometheus expects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from math import isfinite
from typing import TypeVar

from mlp_hub.service.monitoring.table import MetricKind, MetricRow

V = TypeVar("V")
MOST_SERIES = 20_000
"""Safety: combinations of labels of one metric; further ones are counted without names: bounds memory and a scrape's size."""
Labels = tuple[str, ...]
"""Values of a metric's labels, in the order of its row."""


class CountedMetric:
    """Counter by labels."""

    __slots__ = ("_values", "row")

    def __init__(self, row: MetricRow) -> None:
        assert row.kind is MetricKind.COUNTER  # noqa: S101 - of our own table
        self.row = row
        self._values: dict[Labels, float] = {} if row.labels else {(): 0.0}

    def add(self, *labels: str, amount: float = 1.0) -> None:
        """Count."""
        values = self._values
        if labels not in values and len(values) >= MOST_SERIES:
            labels = ("",) * len(labels)
        values[labels] = values.get(labels, 0.0) + amount

    def begin(self, *labels: str) -> None:
        """Show a count of 0: without it, rates would miss the first event."""
        if len(self._values) < MOST_SERIES:
            self._values.setdefault(labels, 0.0)

    def samples(self) -> list[tuple[Labels, float]]:
        """Return the counts by labels."""
        return list(self._values.items())

    def keep(self, tenants: Collection[str]) -> None:
        """Forget tenants other than these, which are gone."""
        self._values = _kept(self.row, self._values, tenants)


class Spread:
    """Numbers of values up to each bucket's bound, and the sum of all values."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.total = 0.0


class ObservedMetric:
    """Histogram by labels; without buckets, a summary of number and sum."""

    __slots__ = ("_values", "row")

    def __init__(self, row: MetricRow) -> None:
        assert row.kind in (MetricKind.HISTOGRAM, MetricKind.SUMMARY)  # noqa: S101 - of our own table
        self.row = row
        self._values: dict[Labels, Spread] = {} if row.labels else {(): Spread(len(row.buckets))}

    def observe(self, value: float, *labels: str) -> None:
        """Add a value; one below 0, as after a clock was put back, counts as 0, and one that is not finite does not count."""
        if not isfinite(value):
            return
        value = max(value, 0.0)
        spread = self._values.get(labels)
        if spread is None:
            if len(self._values) >= MOST_SERIES:
                labels = ("",) * len(labels)
            spread = self._values.setdefault(labels, Spread(len(self.row.buckets)))
        spread.counts[bisect_left(self.row.buckets, value)] += 1
        spread.total += value

    def samples(self) -> list[tuple[Labels, tuple[list[int], float]]]:
        """Return by labels the number of values for each bucket, not added up, and their sum."""
        return [(labels, (list(one.counts), one.total)) for labels, one in list(self._values.items())]

    def keep(self, tenants: Collection[str]) -> None:
        """Forget tenants other than these, which are gone."""
        self._values = _kept(self.row, self._values, tenants)


def _kept(row: MetricRow, values: dict[Labels, V], tenants: Collection[str]) -> dict[Labels, V]:
    at = row.labels.index("tenant") if "tenant" in row.labels else None
    if at is None or all(labels[at] in tenants or not labels[at] for labels in values):
        return values
    return {labels: value for labels, value in values.items() if labels[at] in tenants or not labels[at]}
