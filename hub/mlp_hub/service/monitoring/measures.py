"""Measures: the value that an alert rule compares with its threshold, as data. Each writes its PromQL, and computes the same from our own numbers.

Only the few forms that the rules need are here, with the meaning that Prometheus gives them. `rate` and `increase` do
not extrapolate to the ends of their window, so a count of events is a whole number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isnan, nan
from typing import Protocol

LabelSet = tuple[tuple[str, str], ...]
"""Labels of a series by name, in the order of their names."""
Vector = Mapping[LabelSet, float]
"""Values by labels."""


class Readings(Protocol):
    """Interface for the numbers of one evaluation. `now` is in seconds since the epoch."""

    now: float

    def instant(self, metric: str) -> Vector | None:
        """Return the present values of a metric; None: they are not known now."""
        ...

    def over(self, function: str, metric: str, window_s: float) -> Vector | None:
        """Return `rate`, `increase` or `avg_over_time` of a metric over a window; None: it is not known now."""
        ...


class Measure(Protocol):
    """Interface for measures."""

    @property
    def promql(self) -> str:
        """The query."""
        ...

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield all that it reads."""
        ...

    def value(self, readings: Readings) -> Vector | None:
        """Return the values by labels; None where a number that it needs is not known now."""
        ...


@dataclass(frozen=True, slots=True)
class Where:
    """Condition on a label: it has one of these values, or, `negated`, none of them."""

    label: str
    values: tuple[str, ...]
    negated: bool = False

    @property
    def promql(self) -> str:
        """The matcher of a selector."""
        several = len(self.values) > 1
        op = ("!~" if several else "!=") if self.negated else ("=~" if several else "=")
        return f'{self.label}{op}"{"|".join(self.values)}"'

    def holds(self, labels: LabelSet) -> bool:
        """Return whether a series has it; a label that it lacks is empty."""
        return (_value_of(labels, self.label) in self.values) is not self.negated


@dataclass(frozen=True, slots=True)
class Selected:
    """Present values of a metric, of the series under all conditions."""

    metric: str
    where: tuple[Where, ...] = ()

    @property
    def promql(self) -> str:
        """The selector."""
        matchers = ",".join(one.promql for one in self.where)
        return f"{self.metric}{{{matchers}}}" if matchers else self.metric

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield itself."""
        yield self

    def value(self, readings: Readings) -> Vector | None:
        """Return the present values."""
        return self.chosen(readings.instant(self.metric))

    def chosen(self, values: Vector | None) -> Vector | None:
        """Return the values under all conditions."""
        if values is None or not self.where:
            return values
        return {labels: v for labels, v in values.items() if all(one.holds(labels) for one in self.where)}


@dataclass(frozen=True, slots=True)
class Windowed:
    """`rate`, `increase` or `avg_over_time` of a selection, over a window of seconds."""

    function: str
    of: Selected
    window_s: int

    @property
    def promql(self) -> str:
        """The call with its range."""
        hours, rest = divmod(self.window_s, 3600)
        return f"{self.function}({self.of.promql}[{f'{self.window_s // 60}m' if rest else f'{hours}h'}])"

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield itself."""
        yield self

    def value(self, readings: Readings) -> Vector | None:
        """Return what the window has."""
        return self.of.chosen(readings.over(self.function, self.of.metric, self.window_s))


class MeasureOfOne(ABC):
    """Base of measures that are computed from one other measure, their field `of`."""

    __slots__ = ()
    of: Measure

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield those of its measure."""
        yield from self.of.selections()

    def value(self, readings: Readings) -> Vector | None:
        """Return what becomes of the values of its measure; None where they are not known now."""
        values = self.of.value(readings)
        return None if values is None else self.computed(values, readings)

    @abstractmethod
    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return the values of this measure by those of the other one."""


@dataclass(frozen=True, slots=True)
class Grouped(MeasureOfOne):
    """`sum`, `avg`, `min` or `max` over all labels other than `by`."""

    function: str
    of: Measure
    by: tuple[str, ...] = ()

    @property
    def promql(self) -> str:
        """The aggregation."""
        if not self.by:
            return f"{self.function}({self.of.promql})"
        return f"{self.function} by ({', '.join(self.by)}) ({self.of.promql})"

    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return one value for each group; without any series, none."""
        del readings
        groups: dict[LabelSet, list[float]] = defaultdict(list)
        for labels, value in values.items():
            groups[_only(labels, self.by)].append(value)
        return {labels: _FUNCTIONS[self.function](found) for labels, found in groups.items()}


@dataclass(frozen=True, slots=True)
class Quotient:
    """One measure divided by another of the same labels, without those that are ignored."""

    of: Measure
    by: Measure
    ignoring: tuple[str, ...] = ()

    @property
    def promql(self) -> str:
        """The division."""
        op = f"/ ignoring ({', '.join(self.ignoring)})" if self.ignoring else "/"
        return f"{self.of.promql} {op} {self.by.promql}"

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield those of both."""
        yield from self.of.selections()
        yield from self.by.selections()

    def value(self, readings: Readings) -> Vector | None:
        """Return the quotients of series that both have."""
        above, below = self.of.value(readings), self.by.value(readings)
        if above is None or below is None:
            return None
        divisors = {_without(labels, self.ignoring): value for labels, value in below.items()}
        numbers = {_without(labels, self.ignoring): value for labels, value in above.items()}
        return {
            labels: _divided(value, divisors[labels])
            for labels, value in numbers.items()
            if labels in divisors
        }


@dataclass(frozen=True, slots=True)
class Complement(MeasureOfOne):
    """1 minus a part of 1."""

    of: Measure

    @property
    def promql(self) -> str:
        """The difference."""
        return f"1 - {self.of.promql}"

    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return the other parts."""
        del readings
        return {labels: 1 - value for labels, value in values.items()}


@dataclass(frozen=True, slots=True)
class AgeOf(MeasureOfOne):
    """Seconds since a time that a metric has, in seconds since the epoch."""

    of: Measure

    @property
    def promql(self) -> str:
        """The difference."""
        return f"time() - {self.of.promql}"

    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return the ages."""
        return {labels: readings.now - at for labels, at in values.items()}


@dataclass(frozen=True, slots=True)
class TimeUntil(MeasureOfOne):
    """Seconds until a time that a metric has, in seconds since the epoch."""

    of: Measure

    @property
    def promql(self) -> str:
        """The difference."""
        return f"{self.of.promql} - time()"

    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return what is left; less than 0: the time is over."""
        return {labels: at - readings.now for labels, at in values.items()}


@dataclass(frozen=True, slots=True)
class FirstOf:
    """A measure, and for labels that it does not have, another one."""

    of: Measure
    other: Measure

    @property
    def promql(self) -> str:
        """The `or`, in brackets: it binds less than all that may follow."""
        return f"({self.of.promql} or {self.other.promql})"

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield those of both."""
        yield from self.of.selections()
        yield from self.other.selections()

    def value(self, readings: Readings) -> Vector | None:
        """Return the values of both; where both have the same labels, the first one's."""
        values, others = self.of.value(readings), self.other.value(readings)
        return None if values is None or others is None else {**others, **values}


@dataclass(frozen=True, slots=True)
class QuantileOf(MeasureOfOne):
    """Quantile, from 0 to 1, of a histogram: of the rates of its buckets by `le`."""

    quantile: float
    of: Measure

    @property
    def promql(self) -> str:
        """The call."""
        return f"histogram_quantile({self.quantile:.15g}, {self.of.promql})"

    def computed(self, values: Vector, readings: Readings) -> Vector:
        """Return the quantiles by the other labels, interpolated within a bucket."""
        del readings
        spreads: dict[LabelSet, list[tuple[float, float]]] = defaultdict(list)
        for labels, rate in values.items():
            spreads[_without(labels, ("le",))].append((float(_value_of(labels, "le")), rate))
        return {labels: _quantile(self.quantile, sorted(buckets)) for labels, buckets in spreads.items()}


@dataclass(frozen=True, slots=True)
class AbsentOf:
    """1 where no series of a selection is known. The service itself always has its own: only Prometheus can see it absent."""

    of: Selected

    @property
    def promql(self) -> str:
        """The call."""
        return f"absent({self.of.promql})"

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield what it looks for."""
        yield self.of

    def value(self, readings: Readings) -> Vector | None:
        """Return 1 without labels, or nothing."""
        return {} if self.of.value(readings) else {(): 1.0}


@dataclass(frozen=True, slots=True)
class RuleGuard:
    """Further condition: a measure with the same labels `on` has this relation to a number."""

    on: tuple[str, ...]
    of: Measure
    op: str
    number: float

    @property
    def promql(self) -> str:
        """The right side of an `and`."""
        return f"on ({', '.join(self.on)}) ({self.of.promql} {self.op} {self.number:.15g})"

    def kept(self, values: Vector, readings: Readings) -> Vector | None:
        """Return the values for which it holds; None where it is not known."""
        found = self.of.value(readings)
        if found is None:
            return None
        holds = {
            _only(labels, self.on) for labels, value in found.items() if COMPARE[self.op](value, self.number)
        }
        return {labels: value for labels, value in values.items() if _only(labels, self.on) in holds}


COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}
"""Relations by their sign in PromQL."""
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "avg": lambda values: sum(values) / len(values),
}


def _value_of(labels: LabelSet, name: str) -> str:
    return next((value for label, value in labels if label == name), "")


def _only(labels: LabelSet, names: tuple[str, ...]) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] in names)


def _without(labels: LabelSet, names: tuple[str, ...]) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] not in names) if names else labels


def _divided(a: float, b: float) -> float:
    if b == 0:
        return nan if a == 0 or isnan(a) else inf
    return a / b


def _quantile(quantile: float, buckets: list[tuple[float, float]]) -> float:
    """Return a quantile of values up to each bound, as `histogram_quantile` does; nan without any value."""
    total = buckets[-1][1]
    if buckets[-1][0] != inf or len(buckets) < 2 or not total > 0:
        return nan
    rank = quantile * total
    at = next((i for i, (_, count) in enumerate(buckets) if count >= rank), len(buckets) - 1)
    if at == len(buckets) - 1:
        return buckets[-2][0]
    bound, count = buckets[at]
    start, before = buckets[at - 1] if at else (0.0, 0.0)
    if count <= before:
        return bound
    return start + (bound - start) * (rank - before) / (count - before)
