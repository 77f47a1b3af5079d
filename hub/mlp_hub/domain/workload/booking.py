"""Windows of time for which tenants booked capacity."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.resources import Quota
from mlp_language.message import Message


@dataclass(frozen=True, slots=True)
class Shortfall:
    """That a window can no longer be held in full: since when, how much of it is held, and why."""

    since: float
    left: Quota
    message: Message


@dataclass(frozen=True, slots=True)
class BookedWindow:
    """From `start` to before `end` (seconds since the epoch) `amount` is kept free on nodes for the tenant."""

    tenant: str
    name: str  # unique within the tenant
    start: float
    end: float
    amount: Quota
    made_by: str = ""
    made_at: float = 0.0
    short: Shortfall | None = None  # None: all of it can be held

    @property
    def in_force(self) -> Quota:
        """Return what is kept free for it as things are."""
        return self.amount if self.short is None else self.short.left

    def overlaps(self, start: float, end: float) -> bool:
        """Whether any moment from `start` to before `end` is in the window."""
        return self.start < end and start < self.end
