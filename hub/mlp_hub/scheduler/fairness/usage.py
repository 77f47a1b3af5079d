"""Decayed usage of each tenant, and of members where they take turns: the memory of fair share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Account:
    """Usage of one tenant; replaced and never changed, so that forks share it."""

    value: float  # share-seconds at `as_of`
    as_of: float
    share: float = 0.0  # held since then


class UsageMeter:
    """Integrates each tenant's dominant share over time, halving what is `half_life_s` old.

    The value is in share-seconds; a tenant that holds a constant share long enough has
    share x half-life / ln 2.
    """

    def __init__(self, half_life_s: float) -> None:
        self.half_life = max(half_life_s, 1.0)
        self._accounts: dict[str, _Account] = {}

    def load(self, tenant: str, value: float, as_of: float) -> None:
        """Continue from a value; holdings while nobody measured are unknown."""
        self._accounts[tenant] = _Account(value, as_of)

    def value(self, tenant: str, now: float) -> float:
        """Return the tenant's decayed usage at `now` in share-seconds."""
        account = self._accounts.get(tenant)
        if account is None:
            return 0.0
        decay = math.exp2(-max(0.0, now - account.as_of) / self.half_life)
        return account.value * decay + account.share * (1.0 - decay) * self.half_life / math.log(2)

    def average(self, tenant: str, now: float) -> float:
        """Return the average share over the time that is remembered."""
        return self.value(tenant, now) * math.log(2) / self.half_life

    def standings(self, tenants: Iterable[str], now: float, *, remembers: bool) -> dict[str, float]:
        """Return these tenants' shares; with `remembers` what each held lately on average is added, as `average` tells."""
        accounts = self._accounts
        if not remembers:
            return {tenant: accounts[tenant].share for tenant in tenants}
        half_life, ln2, exp2 = self.half_life, math.log(2), math.exp2
        standings = {}
        for tenant in tenants:
            account = accounts[tenant]
            share = account.share
            decay = exp2(-max(0.0, now - account.as_of) / half_life)
            value = account.value * decay + share * (1.0 - decay) * half_life / ln2
            standings[tenant] = share + value * ln2 / half_life
        return standings

    def drift(self, standing: float, share: float) -> float:
        """Return the most that a standing changes by itself in a second while the tenant holds that share."""
        return abs(standing - 2 * share) * math.log(2) / self.half_life

    def share(self, tenant: str) -> float:
        """Return the share that the tenant is taken to hold."""
        account = self._accounts.get(tenant)
        return 0.0 if account is None else account.share

    def set_share(self, tenant: str, share: float, now: float) -> None:
        """Note what share of the machines the tenant holds from `now` on."""
        account = self._accounts.get(tenant)
        if account is None:
            self._accounts[tenant] = _Account(0.0, now, share)
        elif account.share != share:
            self._accounts[tenant] = _Account(self.value(tenant, now), max(now, account.as_of), share)

    def accounts(self) -> list[str]:
        """Return the names of all who are metered."""
        return list(self._accounts)

    def forget(self, tenant: str) -> None:
        """Drop a tenant that is gone."""
        self._accounts.pop(tenant, None)

    def fork(self) -> UsageMeter:
        """Return an independent copy."""
        other = UsageMeter(self.half_life)
        other._accounts = self._accounts.copy()
        return other
