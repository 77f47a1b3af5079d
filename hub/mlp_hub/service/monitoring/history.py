"""Numbers for the alert rules: the present values of metrics, and the windows that rates need, in memory and bounded."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.service.monitoring.measures import LabelSet, Vector, Windowed
from mlp_hub.service.monitoring.table import MetricKind

SAMPLES = 60
"""Tuning: samples of a window that are kept of each series: finer rates, for about a kilobyte a series."""
MOST_SERIES = 4000
"""Safety: series of one metric that are kept; further ones have no rates: bounds memory to a few megabytes."""
COUNTING = frozenset({"rate", "increase"})
"""Functions of counters, which begin at 0 again when their owner does."""
TOTAL = "increase"
"""Function whose first sample is compared with the start of the service. A rate needs two samples, as for Prometheus."""


class _KeptSeries:
    """Samples of one series within a window. A counter that begins again continues from where it was."""

    __slots__ = ("_added", "_raw", "times", "values")

    def __init__(self) -> None:
        self.times, self.values = array("d"), array("d")
        self._added = self._raw = 0.0

    def take(self, at: float, value: float, window_s: float, *, counts: bool) -> None:
        if counts and value < self._raw:
            self._added += self._raw
        self._raw = value
        times, values = self.times, self.values
        if len(times) > 1 and times[-1] - times[-2] < window_s / SAMPLES:
            times[-1], values[-1] = at, value + self._added
        else:
            times.append(at)
            values.append(value + self._added)
        gone = bisect_left(times, at - window_s)
        if gone:
            del times[:gone]
            del values[:gone]

    def result(self, function: str) -> float | None:
        """Return what a function makes of the window; None where it has too few samples."""
        if function == "avg_over_time":
            return sum(self.values) / len(self.values)
        if len(self.times) < 2:
            return None
        grown = self.values[-1] - self.values[0]
        return grown if function == "increase" else grown / (self.times[-1] - self.times[0])


class SampleHistory:
    """The numbers of some rules. `take` gives it new ones; times of windows come from a clock that nobody sets."""

    def __init__(self, rules: Iterable[AlertRule]) -> None:
        self.now = 0.0
        self._present: Mapping[str, Vector] = {}
        self._at = 0.0
        self._since: dict[str, float] = {}
        self._windows: dict[tuple[str, int], dict[LabelSet, _KeptSeries]] = {}
        self._counts: set[str] = set()
        self._totals: set[str] = set()
        self._from_zero: set[str] = set()
        names = set()
        for rule in rules:
            for one in rule.selections():
                metric = one.of.metric if isinstance(one, Windowed) else one.metric
                names.add(metric)
                if isinstance(one, Windowed):
                    self._windows[metric, one.window_s] = {}
                    if one.function in COUNTING:
                        self._counts.add(metric)
                    if one.function == TOTAL:
                        self._totals.add(metric)
        self.metrics = frozenset(names)
        """Names of all metrics that the rules read."""

    def begin(self, at: float, counters: Mapping[str, Vector]) -> None:
        """Take the service's own counters as it starts to evaluate: what they gain before the first `take` counts.

        A series of theirs that appears later began at 0, so its first value counts too.
        """
        known = {metric: values for metric, values in counters.items() if metric in self._totals}
        self._from_zero |= known.keys()
        self._keep(at, known)
        self._at = at

    def take(self, at: float, now: float, samples: Mapping[str, Vector]) -> None:
        """Take the values of metrics; `at` is steady, `now` is in seconds since the epoch. A metric that is missing is not known now."""
        self._keep(at, samples)
        self.now, self._at, self._present = now, at, samples

    def _keep(self, at: float, samples: Mapping[str, Vector]) -> None:
        for (metric, window_s), kept in self._windows.items():
            values = samples.get(metric)
            if values is None:
                continue
            is_known = metric in self._since
            self._since.setdefault(metric, at)
            for labels in [labels for labels in kept if labels not in values]:
                del kept[labels]
            for labels, value in values.items():
                series = kept.get(labels)
                if series is None:
                    if len(kept) >= MOST_SERIES:
                        self._from_zero.discard(metric)  # one that gets room later is not new
                        continue
                    series = kept[labels] = _KeptSeries()
                    if is_known and metric in self._from_zero:
                        series.take(self._at, 0.0, window_s, counts=True)
                series.take(at, value, window_s, counts=metric in self._counts)

    def covers(self, rule: AlertRule) -> bool:
        """Return whether the windows of a rule are full: a service that has just begun knows nothing of the time before."""
        windows = [one for one in rule.selections() if isinstance(one, Windowed)]
        return all(
            one.of.metric in self._since and self._at - self._since[one.of.metric] >= one.window_s
            for one in windows
        )

    def instant(self, metric: str) -> Vector | None:
        """Return the present values of a metric; None: they are not known now."""
        return self._present.get(metric)

    def over(self, function: str, metric: str, window_s: float) -> Vector | None:
        """Return a function of a metric over a window; None: it is not known now."""
        if metric not in self._present:
            return None
        found = {}
        for labels, series in self._windows[metric, int(window_s)].items():
            value = series.result(function)
            if value is not None:
                found[labels] = value
        return found


def samples_of(families: Iterable[Family], metrics: frozenset[str]) -> dict[str, Vector]:
    """Return the values by name and labels of those metrics; a histogram has those of its buckets, added up."""
    found: dict[str, Vector] = {}
    for row, samples in families:
        histogram = row.kind is MetricKind.HISTOGRAM
        name = f"{row.name}_bucket" if histogram else row.name
        if name not in metrics:
            continue
        values: dict[LabelSet, float] = {}
        for given, value in samples:
            if isinstance(value, tuple):
                values.update(_buckets(row.labels, given, row.buckets, value[0]))
            else:
                values[_labelled(row.labels, given)] = value
        found[name] = values
    return found


def _buckets(
    names: Sequence[str], given: Sequence[str], bounds: Sequence[float], counts: Sequence[int]
) -> Iterable[tuple[LabelSet, float]]:
    total = 0
    for bound, count in zip((*map(repr, map(float, bounds)), "+Inf"), counts, strict=True):
        total += count
        yield _labelled((*names, "le"), (*given, bound)), float(total)


def _labelled(names: Sequence[str], values: Sequence[str]) -> LabelSet:
    return tuple(sorted(zip(names, values, strict=True)))
