"""Sums of samples: the sums of two spans are those of both, so thinning keeps every mean and count exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, floor, log
from typing import Any, NamedTuple

DIMENSIONS = ("cpu", "ram", "gpu")
"""Contract: dimensions of amounts, in the order in which samples have them."""
ENDS = ("finished", "failed", "cancelled")
"""Contract: results of jobs, in the order in which samples have them."""
SLOWER = -1
"""Contract: key of answers that kept none of the gateway's bounds."""
SHORTEST_S = 0.1
"""Tuning: seconds of the first bucket of waits: shorter ones count as none."""
RATIO = 1.2
"""Tuning: bound of a bucket of waits, divided by the one before: exactness of quantiles, for rows of more bytes."""
MOST_BUCKET = 110
"""Safety: last bucket of waits, of more than a year."""

Three = tuple[int, int, int]
NONE: Three = (0, 0, 0)


class SpanSums(NamedTuple):
    """Sums over the samples of a span of time, of a tenant or of the cluster.

    Amounts are in the order of `DIMENSIONS` and in whole units: thousandths of cores and devices, MiB. `held` is what the
    ledger charged, `used` what was measured of it, `limit` the last known quota, or the capacity of the cluster's nodes; None
    is unlimited. Those with `most` are the largest of one sample. `gpu_samples` are the samples in which the use of GPUs was
    known. `waits` are numbers of admissions by bucket of their waits (`wait_bucket`), `ends` those of ended jobs in the order
    of `ENDS`, and `latency` those of answers of apps by the bound in milliseconds that they kept.

    It is stored as its values in this order: new fields come last, with a default.
    """

    samples: int = 0
    held: Three = NONE
    held_most: Three = NONE
    used: Three = NONE
    used_most: Three = NONE
    gpu_samples: int = 0
    limit: tuple[int | None, int | None, int | None] = (None, None, None)
    waiting: int = 0
    waiting_most: int = 0
    running: int = 0
    running_most: int = 0
    reasons: Mapping[str, int] = {}
    waits: Mapping[int, int] = {}
    ends: Three = NONE
    requests: int = 0
    errors: int = 0
    latency: Mapping[int, int] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to keep."""
        return not (
            any(self.held)
            or any(self.used)
            or self.waiting
            or self.running
            or self.waits
            or any(self.ends)
            or self.requests
        )


def together(sums: Iterable[SpanSums]) -> SpanSums:
    """Return the sums of several spans, the earlier ones first."""
    several = list(sums)
    if len(several) < 2:
        return several[0] if several else SpanSums()
    # by column: it is done for each tenant, while others wait for the database
    columns: Any = SpanSums(*zip(*several, strict=True))  # type: ignore[arg-type]
    return SpanSums(
        sum(columns.samples),
        _added(columns.held),
        _largest(columns.held_most),
        _added(columns.used),
        _largest(columns.used_most),
        sum(columns.gpu_samples),
        several[-1].limit,
        sum(columns.waiting),
        max(columns.waiting_most),
        sum(columns.running),
        max(columns.running_most),
        _counted(columns.reasons),
        _counted(columns.waits),
        _added(columns.ends),
        sum(columns.requests),
        sum(columns.errors),
        _counted(columns.latency),
    )


def wait_bucket(seconds: float) -> int:
    """Return the bucket of a wait; one that is not a number of seconds counts as none."""
    if not seconds > SHORTEST_S:
        return 0
    return (
        min(floor(log(seconds / SHORTEST_S) / log(RATIO)) + 1, MOST_BUCKET) if seconds < 1e12 else MOST_BUCKET
    )


def wait_quantile(waits: Mapping[int, int], share: float) -> float | None:
    """Return the seconds within which this share of waits was over, within a tenth; None if there are none."""
    bucket = _at(waits, share)
    if bucket is None:
        return None
    return SHORTEST_S * exp((bucket - 0.5) * log(RATIO)) if bucket > 0 else 0.0


def latency_quantile(latency: Mapping[int, int], share: float) -> int | None:
    """Return the bound in milliseconds that this share of answers kept, the largest one if they were slower; None if there are none."""
    known = max(latency, default=0)
    bound = _at({known + 1 if ms == SLOWER else ms: number for ms, number in latency.items()}, share)
    return None if bound is None else max(min(bound, known), 0)


def _at(counts: Mapping[int, int], share: float) -> int | None:
    wanted, seen = share * sum(counts.values()), 0
    if wanted <= 0:
        return None
    for key in sorted(counts):
        seen += counts[key]
        if seen >= wanted:
            return key
    return max(counts)


def _added(rows: Any) -> Three:
    cpu, ram, gpu = (sum(column) for column in zip(*rows, strict=True))
    return cpu, ram, gpu


def _largest(rows: Any) -> Three:
    cpu, ram, gpu = (max(column) for column in zip(*rows, strict=True))
    return cpu, ram, gpu


def _counted(rows: Any) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row in rows:
        for key, number in row.items():
            found[key] = found.get(key, 0) + number
    return found
