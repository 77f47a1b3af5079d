"""Windows that tenants booked: the amounts kept free, for which tenant and when."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable

from mlp_hub.scheduler.model.resources import limits_of
from mlp_hub.scheduler.model.types import CapacityWindow


class BookedWindows:
    """All windows that are not over, in the order in which they open. Never changes."""

    def __init__(self, bookings: Iterable[CapacityWindow] = ()) -> None:
        self.all = tuple(sorted(bookings, key=lambda b: (b.start, b.end, b.tenant, b.name)))
        times = {t for b in self.all for t in (b.start, b.end)}
        self._times = sorted(times)

    def __bool__(self) -> bool:
        return bool(self.all)

    def at(self, now: float) -> dict[str, dict[str, int]]:
        """Return what is booked at a time, as vectors by tenant."""
        booked: dict[str, dict[str, int]] = {}
        for booking in self.all:
            if booking.start <= now < booking.end:
                vector = booked.setdefault(booking.tenant, {})
                for dimension, amount in limits_of(booking.amount).items():
                    vector[dimension] = vector.get(dimension, 0) + amount
        return booked

    def open_at(self, now: float, tenant: str, dimension: str) -> list[CapacityWindow]:
        """Return a tenant's windows that are open at a time and keep something of a dimension free."""
        return [
            b
            for b in self.all
            if b.tenant == tenant and b.start <= now < b.end and limits_of(b.amount).get(dimension)
        ]

    def changing_at(self, now: float) -> list[CapacityWindow]:
        """Return the windows that open or close at this time."""
        return [b for b in self.all if now in (b.start, b.end)]

    def after(self, now: float) -> tuple[CapacityWindow, ...]:
        """Return the windows that open after a time, the next one first."""
        return self.all[bisect_right(self.all, now, key=lambda b: b.start) :]

    def next_change(self, now: float) -> float | None:
        """Return when the next window opens or closes; None when none does."""
        i = bisect_right(self._times, now)
        return self._times[i] if i < len(self._times) and self._times[i] < math.inf else None
