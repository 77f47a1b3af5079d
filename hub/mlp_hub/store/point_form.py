"""Points of metrics as bytes: each name is there once for the job, and points with equal names share them.

The first byte gives the form. Older rows have none: a list of points with the names in each, which
is read as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from mlp_hub.domain.jobs.points import bounded
from mlp_hub.store.records import Sample, StoredPoint

ROW_POINTS = 2000
"""Points in one row at most, so that a reader in the middle of a job unpacks little that it drops."""
ROW_VALUES = 20_000
"""Values in one row, about: some 200 KiB, so that pages of readers end near their bound."""
MOST_NAMES = 1000
"""Limit of runs: names of metrics of one job; values of further names are left out."""

_FORM = 1  # no list of msgpack begins with it
_encode = msgspec.msgpack.Encoder().encode
_old = msgspec.msgpack.Decoder(list[tuple[float, dict[str, float | int]]]).decode
_runs = msgspec.msgpack.Decoder(list[tuple[list[int], list[float], list[float | int]]]).decode
_names = msgspec.msgpack.Decoder(list[str]).decode
Shape = tuple[list[int], list[str] | None]
Run = tuple[list[int], list[float], list[float | int]]
"""Points that have the same names, by their numbers; the times; the values of all, one point after the other."""


class MetricNames:
    """The names of a job's metrics in the order in which they came; the place of one stands for it in points."""

    def __init__(self, stored: bytes | None = None) -> None:
        self.names = [] if stored is None else _names(stored)
        self._ids = {name: i for i, name in enumerate(self.names)}
        self._known = len(self.names)
        self.left_out = False

    @property
    def grew(self) -> bool:
        """Whether there are names that are not stored."""
        return len(self.names) > self._known

    @property
    def grown(self) -> int:
        """Number of bytes that these take."""
        return sum(len(name.encode()) + 2 for name in self.names[self._known :])

    def stored(self) -> bytes:
        """Return them as they are stored."""
        return _encode(self.names)

    def shape(self, names: Sequence[str]) -> Shape:
        """Return what stands for these names, and which of them are kept where not all are."""
        ids = []
        for name in names:
            found = self._ids.get(name)
            if found is None and len(self.names) < MOST_NAMES:
                found = self._ids[name] = len(self.names)
                self.names.append(name)
            if found is not None:
                ids.append(found)
        if len(ids) == len(names):
            return ids, None
        self.left_out = True
        return ids, [name for name in names if name in self._ids]


def packed(points: Sequence[Sample], names: MetricNames) -> Iterator[tuple[int, bytes]]:
    """Yield rows of these points: how many are in each, and the bytes. Adds their names."""
    for at in range(0, len(points), ROW_POINTS):
        part = points[at : at + ROW_POINTS]
        values = [p.v for p in part]
        shapes = set(map(tuple, values))
        if len(shapes) > 1 or (len(values[0]) + 1) * len(part) > ROW_VALUES:
            yield from _mixed(part, names)
            continue
        # nearly all that is reported: the same names in all of them
        ids, kept = names.shape(shapes.pop())
        if kept is not None:
            values = [{name: each[name] for name in kept} for each in values]
        yield (
            len(part),
            _bytes([(ids, [p.t for p in part], [*chain.from_iterable(v.values() for v in values)])]),
        )


def _mixed(points: Sequence[Sample], names: MetricNames) -> Iterator[tuple[int, bytes]]:
    runs: list[Run] = []
    known: tuple[str, ...] | None = None
    count = weight = width = 0
    for p in points:
        values = p.v
        if (keys := tuple(values)) != known:
            known = keys
            ids, kept = names.shape(keys)
            width = len(ids) + 1
            run: Run = (ids, [], [])
            runs.append(run)
            time, add = run[1].append, run[2].extend
        time(p.t)
        add(values.values() if kept is None else [values[name] for name in kept])
        count += 1
        weight += width
        if count == ROW_POINTS or weight >= ROW_VALUES:
            yield count, _bytes(runs)
            runs, known, count, weight = [], None, 0, 0
    if count:
        yield count, _bytes(runs)


def _bytes(runs: list[Run]) -> bytes:
    try:
        return bytes((_FORM,)) + _encode(runs)
    except OverflowError:  # an integer beyond 64 bits: near enough as a float
        return bytes((_FORM,)) + _encode(
            [(ids, times, [bounded(v) for v in values]) for ids, times, values in runs]
        )


def points_in(
    payload: bytes, names: Sequence[str], first: int, rank: int, after: int
) -> Iterator[StoredPoint]:
    """Yield the points of a row whose first has that number, those above `after`."""
    number = first
    for time, values in _points(payload, names):
        if number > after:
            yield StoredPoint(number, rank, time, dict(values))
        number += 1


def _points(payload: bytes, names: Sequence[str]) -> Iterator[tuple[float, Mapping[str, float | int]]]:
    if not payload or payload[0] != _FORM:
        yield from _old(payload)
        return
    for ids, times, values in _runs(memoryview(payload)[1:]):
        keys = [names[i] for i in ids]
        if not keys:
            yield from ((time, {}) for time in times)
            continue
        rest = iter(values)
        for time in times:
            yield time, dict(zip(keys, rest, strict=False))
