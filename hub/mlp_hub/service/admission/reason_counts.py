"""Numbers of jobs that wait by reason, and the oldest of each: kept with each change, so that a look costs nothing per job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

SLACK = 64
"""Tuning: entries of jobs that wait no more, beyond which a heap is made again: memory, for the work of making it."""


class ReasonCounts:
    """Reasons of jobs that wait, with the times from which on they do."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, float]] = {}
        self._tenants: dict[str, str] = {}  # of these uids
        self._counts: Counter[str] = Counter()
        self._by_tenant: dict[str, Counter[str]] = {}
        self._heaps: dict[str, list[tuple[float, str]]] = {}

    def put(self, uid: str, reason: str, since: float, tenant: str = "") -> None:
        """Note why a job of a tenant waits, and since when, in seconds since the epoch."""
        if self._of.get(uid) == (reason, since):
            return
        self.remove(uid)
        self._of[uid] = (reason, since)
        self._tenants[uid] = tenant
        self._counts[reason] += 1
        self._by_tenant.setdefault(tenant, Counter())[reason] += 1
        heap = self._heaps.setdefault(reason, [])
        heappush(heap, (since, uid))
        if len(heap) > 2 * self._counts[reason] + SLACK:
            heap[:] = [entry for entry in set(heap) if self._of.get(entry[1]) == (reason, entry[0])]
            heapify(heap)

    def remove(self, uid: str) -> None:
        """Note that a job waits no more."""
        known = self._of.pop(uid, None)
        if known is None:
            return
        self._counts[known[0]] -= 1
        if not self._counts[known[0]]:
            del self._counts[known[0]]
            self._heaps.pop(known[0], None)
        tenant = self._tenants.pop(uid)
        counts = self._by_tenant[tenant]
        counts[known[0]] -= 1
        if not counts[known[0]]:
            del counts[known[0]]
        if not counts:
            del self._by_tenant[tenant]

    def of_tenant(self, tenant: str) -> Mapping[str, int]:
        """Return by reason how many jobs of a tenant wait for it."""
        return self._by_tenant.get(tenant, {})

    @property
    def total(self) -> int:
        """Number of jobs of which a reason is known."""
        return len(self._of)

    def by_reason(self) -> dict[str, tuple[int, float]]:
        """Return by reason how many wait for it, and since when the oldest does."""
        return {reason: (count, self._oldest(reason)) for reason, count in self._counts.items()}

    def _oldest(self, reason: str) -> float:
        heap = self._heaps[reason]
        while self._of.get(heap[0][1]) != (reason, heap[0][0]):
            heappop(heap)
        return heap[0][0]
