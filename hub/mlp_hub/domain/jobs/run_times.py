"""Run times and memory of earlier runs, in memory and bounded: the base of forecasts and of the right size. Pure.

Runs are alike if they have the same user, the same shape, and the same program (with its arguments) or the same name. Only
runs that finished count: a failed or a cancelled one says little of the next one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from mlp_hub.domain.jobs.job import JobSpec

Key = bytes
V = TypeVar("V")
LEAST_RUNS = 2
"""Tuning: earlier runs from which a run time is forecast: forecasts of more jobs, for worse ones."""
KEPT = 5
"""Tuning: newest run times that are kept for one key: wider experience, for how soon the old ones go.

On Philly's trace the median error of a start is 6 min with 5, 10 min with 10 or 20 and 13 min with 100.
"""
KEYS_OF_USER = 200
"""Safety: keys of one user whose run times are kept; the key whose last run is longest ago goes first."""
KEYS = 20_000
"""Safety: keys of all users together, at most 9 MB; keys of the user whose last run is longest ago go first."""
LONGEST_S = 10 * 366 * 86_400.0
"""Safety: seconds beyond which a run time is taken for a clock that jumped, and is not kept."""


def keys_of(spec: JobSpec, *, any_size: bool = False) -> tuple[Key, ...]:
    """Return the keys of a job, the closest likeness first: program with arguments and shape, then name and shape.

    With `any_size` the shape leaves out cores and memory of a rank: runs that differ in these only are alike.
    A replica of an app has none: it runs until somebody ends it.
    """
    if spec.replica is not None:
        return ()
    each = spec.per_worker
    shape = (
        spec.runtime,
        each.gpu if any_size else (each.cpu, each.gpu, each.ram, each.amounts),
        (spec.workers_min, spec.workers_max, spec.ps),
        spec.gpu_kind,
    )
    name = spec.name if spec.trial is None else spec.trial.name
    by_name = _key("name", name, shape)
    if spec.entry is None and spec.code is None:
        return (by_name,)
    data = tuple((use.user, use.name) for use in spec.data)
    params = tuple(sorted((k, repr(v)) for k, v in spec.params.items()))
    code = None if spec.code is None else _key(spec.code)
    program = (spec.entry, code, spec.workdir, spec.args, params, data)
    return _key("program", program, shape), by_name


def _key(*parts: object) -> Key:
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class PastRuns:
    """Run times of alike runs in seconds, sorted; `LEAST_RUNS` of them at least."""

    times: tuple[float, ...]

    def quantile(self, q: float) -> float:
        """Return a quantile, linear between two run times."""
        return quantile(self.times, q)

    def outlasted(self, ran: float) -> bool:
        """Whether a run of `ran` seconds is longer than nine of ten earlier ones (their p90)."""
        return ran > self.quantile(0.9)

    def length(self, q: float, ran: float) -> float:
        """Return the run time at quantile q of those that are longer than `ran` seconds.

        If no earlier run was as long, the time left is of the order of the time so far (Pareto's law with index 1).
        """
        longer = [t for t in self.times if t > ran]
        if not longer:
            return min(ran / (1.0 - min(q, 0.9)), ran + LONGEST_S)
        return longer[min(int(q * len(longer)), len(longer) - 1)]


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return a quantile of sorted numbers, linear between two of them."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


class NewestOfKeys(Generic[V]):
    """The newest values of each key of each user, such as run times.

    Values are tuples that are replaced, and never changed, so another thread may read while one adds.
    """

    def __init__(self, keys_of_user: int = KEYS_OF_USER, keys: int = KEYS) -> None:
        self._keys_of_user, self._most = keys_of_user, keys
        self._users: OrderedDict[str, OrderedDict[Key, tuple[V, ...]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._count

    @staticmethod
    def believable(value: V) -> bool:
        """Whether a value can have been measured; others are left out."""
        return value is not None

    def add(self, user: str, keys: Iterable[Key], value: V) -> None:
        """Add the value of a run that ended."""
        if not self.believable(value):
            return
        mine = self._users.get(user)
        for key in keys:
            if mine is None:
                mine = self._users[user] = OrderedDict()
            known = mine.pop(key, None)
            if known is None:
                self._count += 1
                known = ()
            mine[key] = (*known, value)[-KEPT:]
        if mine is None:
            return
        self._users.move_to_end(user)
        while len(mine) > self._keys_of_user:
            mine.popitem(last=False)
            self._count -= 1
        while self._count > self._most:
            oldest, theirs = next(iter(self._users.items()))
            theirs.popitem(last=False)
            self._count -= 1
            if not theirs:
                del self._users[oldest]

    def newest(self, user: str, keys: Iterable[Key], least: int) -> tuple[V, ...]:
        """Return the values of the closest likeness with at least `least` of them, the oldest first; none if no likeness has."""
        mine = self._users.get(user)
        for key in keys:
            values = () if mine is None else mine.get(key, ())
            if len(values) >= least:
                return values
        return ()

    def update(self, later: NewestOfKeys[V]) -> None:
        """Add the values of another one, which are newer."""
        for user, keys in later._users.items():
            for key, values in keys.items():
                for value in values:
                    self.add(user, (key,), value)

    def forget(self, user: str) -> None:
        """Forget all of a user."""
        self._count -= len(self._users.pop(user, ()))

    def clear(self) -> None:
        """Forget everything."""
        self._users.clear()
        self._count = 0


class RunTimes(NewestOfKeys[float]):
    """The newest run times, in seconds."""

    @staticmethod
    def believable(value: float) -> bool:
        """Whether a clock can have measured it."""
        return math.isfinite(value) and 0 <= value <= LONGEST_S

    def of(self, user: str, keys: Iterable[Key]) -> PastRuns | None:
        """Return the runs of the closest likeness with enough runs; None if no likeness has."""
        times = self.newest(user, keys, LEAST_RUNS)
        return PastRuns(tuple(sorted(times))) if times else None
