"""Tenants that hold more than their nominal quota, so that others could have a claim on their work; the largest share first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping
from itertools import islice

from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.pending import Queue

ShareKey = tuple[float, int, str]
"""Sort key of a tenant: its weighted share, negated; the number in which it came; its name."""


class Overshare:
    """Tenants above nominal: they hold more than their nominal quota; computed again only after a change."""

    def __init__(self, quotas: QuotaTree, meter: UsageMeter, queues: Mapping[str, Queue]) -> None:
        self._quotas = quotas
        self._meter = meter
        self._queues = queues
        self._line: list[ShareKey] = []
        self._entered: dict[str, ShareKey] = {}
        self._number: dict[str, int] = {}  # in the order in which they first had work that may be stopped
        self._changed: dict[str, None] = {}

    def changed(self, tenant: str) -> None:
        """Note that what a tenant holds has changed, or its weight."""
        self._changed[tenant] = None

    def all_changed(self) -> None:
        """Note that quotas, or the trees, have changed."""
        self._changed.update(dict.fromkeys(self._number))

    def line(self, holders: Collection[str]) -> list[ShareKey]:
        """Return the ones above nominal of those that have, or had, work that may be stopped; those with the largest share first.

        Of equal ones the first is who had such work first; `holders` are in that order and none of them is ever left out.
        """
        for name in islice(holders, len(self._number), None):
            self._number[name] = len(self._number)
            self._changed[name] = None
        for name in self._changed:
            old = self._entered.pop(name, None)
            if old is not None:
                del self._line[bisect_left(self._line, old)]
            if name in self._number and self._is_above_nominal(name):
                share = self._meter.share(name) / max(self._queues[name].tenant.weight, 1e-9)
                new = self._entered[name] = (-share, self._number[name], name)
                insort(self._line, new)
        self._changed.clear()
        return self._line

    def any_but(self, tenant: str, holders: Collection[str]) -> bool:
        """Whether others than this tenant are in the line of these holders."""
        return any(name != tenant for _, _, name in self.line(holders)[:2])

    def _is_above_nominal(self, tenant: str) -> bool:
        """Return whether others could have a claim on some of a tenant's holdings."""
        if tenant not in self._queues:
            return False
        quotas = self._quotas
        used = quotas.used(tenant)
        return bool(used) and (
            any(quotas.nominal(tenant, d) is None for d in used) or quotas.borrows(tenant, used)
        )

    def fork(self, quotas: QuotaTree, meter: UsageMeter, queues: Mapping[str, Queue]) -> Overshare:
        """Return a copy that looks at these copies."""
        other = Overshare(quotas, meter, queues)
        other._line, other._entered = self._line[:], dict(self._entered)
        other._number, other._changed = dict(self._number), dict(self._changed)
        return other
