"""Requests to an app, or to all apps of a tenant: counts of the gateway's processes, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

MINUTES = 60
"""Given: minutes of which each is known by itself."""


@dataclass(frozen=True, slots=True)
class MinuteOfUse:
    """Requests in one minute, counted from the epoch."""

    minute: int
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class AppUse:
    """Requests since some moment.

    `latency` counts answers by the first of `bounds_ms` that they kept, and slower ones.
    """

    since: float
    requests: int = 0
    errors: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    last: float = 0.0
    bounds_ms: tuple[int, ...] = ()
    latency: tuple[int, ...] = ()
    minutes: tuple[MinuteOfUse, ...] = ()

    def within_ms(self, share: float) -> int | None:
        """Return the bound that such a share of all answers kept; None where there is none, or they were slower."""
        wanted, seen = share * sum(self.latency), 0
        if not wanted:
            return None
        for bound, number in zip(self.bounds_ms, self.latency, strict=False):
            seen += number
            if seen >= wanted:
                return bound
        return None


@dataclass(frozen=True, slots=True)
class StoredUse:
    """Stored count: the last reported one of one process (`run`), and the sum of all before it."""

    run: str
    counted: AppUse
    before: AppUse | None = None

    def without(self, run: str) -> AppUse | None:
        """Return all that was counted but by this process, which tells its own part; None where there is nothing."""
        return self.before if run == self.run else self.total

    @property
    def total(self) -> AppUse:
        """Return all that was counted."""
        return self.counted if self.before is None else together(self.before, self.counted)


def merged_report(stored: StoredUse | None, run: str, counted: AppUse) -> StoredUse:
    """Return the count to store after a process's report.

    A repeated report, or a late older one, changes nothing.
    """
    if stored is None:
        return StoredUse(run, counted)
    if stored.run != run:
        return StoredUse(run, counted, stored.total)
    if (counted.requests, counted.last) < (stored.counted.requests, stored.counted.last):
        return stored
    newer = {one.minute: one for one in counted.minutes}
    minutes = {one.minute: one for one in stored.counted.minutes} | newer
    return replace(stored, counted=replace(counted, minutes=_latest(list(minutes.values()))))


def together(a: AppUse, b: AppUse) -> AppUse:
    """Return the sum of two counts; if their histograms have different bounds, the later one is kept."""
    later = max(a, b, key=lambda one: one.last)
    latency = later.latency
    if a.bounds_ms == b.bounds_ms:
        latency = tuple(x + y for x, y in zip_longest(a.latency, b.latency, fillvalue=0))
    minutes: dict[int, MinuteOfUse] = {}
    for one in (*a.minutes, *b.minutes):
        other = minutes.get(one.minute)
        minutes[one.minute] = one if other is None else _sum(one, other)
    return AppUse(
        since=min(a.since, b.since),
        requests=a.requests + b.requests,
        errors=a.errors + b.errors,
        bytes_in=a.bytes_in + b.bytes_in,
        bytes_out=a.bytes_out + b.bytes_out,
        last=later.last,
        bounds_ms=later.bounds_ms,
        latency=latency,
        minutes=_latest(list(minutes.values())),
    )


def _latest(minutes: Sequence[MinuteOfUse]) -> tuple[MinuteOfUse, ...]:
    return tuple(sorted(minutes, key=lambda one: one.minute)[-MINUTES:])


def _sum(a: MinuteOfUse, b: MinuteOfUse) -> MinuteOfUse:
    return MinuteOfUse(
        a.minute,
        a.requests + b.requests,
        a.errors + b.errors,
        a.bytes_in + b.bytes_in,
        a.bytes_out + b.bytes_out,
    )
