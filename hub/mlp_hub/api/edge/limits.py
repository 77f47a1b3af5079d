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


def rates(
    *,
    api: float = 500,
    change: float = 0.1,
    metrics: float = 200,
    signup: float = 0.2,
    unknown_token: float = 20,
) -> Mapping[str, Rate]:
    """Return the buckets by their requests a second, per caller; sign-ups and unknown tokens are per address.

    `app-visit`: ways of a browser into an app, each of which is stored. `change`: entries of the audit
    log by callers that are not platform admins. `service`: the platform's own parts, which ask for
    everybody. The burst of each is in proportion, and one request at least.
    """
    return {
        "api": _rate(api, 10),
        "app-visit": Rate(1, 100),
        "change": _rate(change, 5_000),
        "metrics": _rate(metrics, 10),
        "service": Rate(20_000, 100_000),
        "signup": _rate(signup, 50),
        "unknown-token": _rate(unknown_token, 5),
    }


def _rate(per_second: float, times: int) -> Rate:
    return Rate(per_second, max(1.0, per_second * times))


RATES = rates()
"""The buckets of an installation that sets none."""


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
