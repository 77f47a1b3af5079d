"""Decayed usage of each tenant: what fair share remembers of the past."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlp_hub.store.records import DecayedUsage


class UsageMeter:
    """Integrates each tenant's dominant share over time, halving what is `half_life_s` old.

    The value is in share-seconds; a tenant that holds a constant share long enough has
    share x half-life / ln 2.
    """

    def __init__(self, half_life_s: float) -> None:
        self._half_life = max(half_life_s, 1.0)
        self._values: dict[str, DecayedUsage] = {}
        self._shares: dict[str, float] = {}

    def load(self, stored: Mapping[str, DecayedUsage]) -> None:
        """Go on from what was stored; what was held while nobody measured is not known."""
        self._values = dict(stored)

    def value(self, tenant: str, now: float) -> float:
        """Return the tenant's decayed usage at `now`."""
        known = self._values.get(tenant)
        share = self._shares.get(tenant, 0.0)
        if known is None:
            return 0.0
        span = max(0.0, now - known.as_of)
        decay = math.exp2(-span / self._half_life)
        return known.value * decay + share * (1.0 - decay) * self._half_life / math.log(2)

    def set_shares(self, shares: Mapping[str, float], now: float) -> dict[str, DecayedUsage]:
        """Note what share of the machines each tenant holds from `now` on; return the values to be stored."""
        changed: dict[str, DecayedUsage] = {}
        for tenant in {*self._shares, *shares}:
            before, after = self._shares.get(tenant, 0.0), shares.get(tenant, 0.0)
            if before == after and tenant in self._values:
                continue
            changed[tenant] = self._values[tenant] = DecayedUsage(self.value(tenant, now), now)
        self._shares = dict(shares)
        return changed
