"""Capacity of the machines held free for tenants: permanent reservations, and booked windows.

Quotas can add up to more than there is. Even then others may not take reserved capacity. In each
dimension with a reservation, every tenant counts with its use or with the amount kept for it,
whichever is more. The sum stays within the capacity. So a tenant always gets the amount kept for
it. A tenant that needs more takes from the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlp_hub.scheduler.model.resources import Vector


class ReservedCapacity:
    """Capacity that is kept for tenants, and what that leaves for others."""

    __slots__ = ("_capacity", "_held", "_kept", "_used")

    def __init__(self, capacity: Vector, kept: Mapping[str, Vector], used: Mapping[str, Vector]) -> None:
        """`capacity` of all nodes that are up, `kept` and `used` by tenant."""
        dimensions = {d for vector in kept.values() for d, v in vector.items() if v}
        self._capacity = {d: capacity.get(d, 0) for d in dimensions}
        self._kept = {t: {d: v for d, v in vector.items() if v} for t, vector in kept.items()}
        self._used: dict[tuple[str, str], int] = {}  # by tenant and dimension
        self._held = dict.fromkeys(dimensions, 0)
        for tenant, vector in used.items():
            for d in dimensions:
                self._used[tenant, d] = vector.get(d, 0)
        for tenant in {**kept, **used}:
            for d in dimensions:
                self._held[d] += max(self._used.get((tenant, d), 0), self.kept(tenant, d))

    def kept(self, tenant: str, dimension: str) -> int:
        """Return what is kept for the tenant, used or not."""
        return self._kept.get(tenant, {}).get(dimension, 0)

    def charge(self, tenant: str, vector: Vector, sign: int = 1) -> None:
        """Count what the tenant takes or, with -1, gives back."""
        for d, amount in vector.items():
            if d not in self._held or not amount:
                continue
            kept = self.kept(tenant, d)
            before = self._used.get((tenant, d), 0)
            after = self._used[tenant, d] = before + sign * amount
            self._held[d] += max(after, kept) - max(before, kept)

    def room(self, tenant: str, dimension: str) -> int | None:
        """Return how much more the tenant may take; None in a dimension that nobody reserves in."""
        held = self._held.get(dimension)
        if held is None:
            return None
        own = max(0, self.kept(tenant, dimension) - self._used.get((tenant, dimension), 0))
        return own + max(0, self._capacity[dimension] - held)

    def most(self, tenant: str, dimension: str) -> int | None:
        """Return what the tenant may hold when nobody else holds anything; None where nobody reserves."""
        if dimension not in self._held:
            return None
        others = sum(v.get(dimension, 0) for t, v in self._kept.items() if t != tenant)
        return max(self._capacity[dimension] - others, self.kept(tenant, dimension))

    def unused(self, dimension: str, but: str) -> Iterator[tuple[str, int]]:
        """Yield who else has something kept free, and how much."""
        for tenant in self._kept:
            free = self.kept(tenant, dimension) - self._used.get((tenant, dimension), 0)
            if tenant != but and free > 0:
                yield tenant, free

    def fork(self) -> ReservedCapacity:
        """Return an independent copy."""
        copy = ReservedCapacity.__new__(ReservedCapacity)
        copy._capacity, copy._kept = self._capacity, self._kept  # noqa: SLF001 # never written to
        copy._held, copy._used = self._held.copy(), self._used.copy()  # noqa: SLF001
        return copy
