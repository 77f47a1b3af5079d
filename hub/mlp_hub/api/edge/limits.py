"""Token buckets: a caller that asks too often gets a time to retry, and other callers notice nothing."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

KEPT = 10_000
"""Safety: buckets; the one unused longest is forgotten first: bounds memory."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`burst` requests at once, refilled by `per_second`."""

    per_second: float
    burst: float


RATES: Mapping[str, Rate] = {
    "api": Rate(500, 5_000),
    "app-visit": Rate(1, 100),
    "change": Rate(0.1, 500),
    "metrics": Rate(200, 2_000),
    "service": Rate(20_000, 100_000),
    "signup": Rate(0.2, 10),
    "unknown-token": Rate(20, 100),
}
"""Buckets, per caller; sign-ups and unknown tokens are per address.

`app-visit`: ways of a browser into an app, each of which is stored. `change`: entries of the audit
log by callers that are not platform admins. `service`: the platform's own parts, which ask for
everybody.
"""


class Limiter:
    """All buckets of the service. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float], rates: Mapping[str, Rate] = RATES) -> None:
        self._clock = clock
        self._rates = rates
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take_token(self, bucket: str, key: str) -> int:
        """Take one; 0 when it was there, else the whole seconds until one will be."""
        rate = self._rates[bucket]
        now = self._clock()
        level, then = self._buckets.pop((bucket, key), (rate.burst, now))
        level = min(rate.burst, level + (now - then) * rate.per_second)
        wait = 0 if level >= 1 else math.ceil((1 - level) / rate.per_second)
        self._buckets[bucket, key] = (level if wait else level - 1, now)
        if len(self._buckets) > KEPT:
            self._buckets.popitem(last=False)
        return wait

    def return_token(self, bucket: str, key: str) -> None:
        """Put one back that was taken and is not to count."""
        level, then = self._buckets.get((bucket, key), (0.0, 0.0))
        if (bucket, key) in self._buckets:
            self._buckets[bucket, key] = (min(self._rates[bucket].burst, level + 1), then)
