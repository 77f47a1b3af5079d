"""How long to wait before a component is started again."""

from __future__ import annotations

from mlp_hub.service.support.backoff import wait_after

FIRST = 0.1
LONGEST = 30.0
STABLE = 60.0  # seconds a component has to live before earlier deaths are forgotten


class Backoff:
    """Doubles the wait with each death in a row. Times are seconds of any monotonic clock."""

    __slots__ = ("deaths",)

    def __init__(self) -> None:
        self.deaths = 0

    def died(self, started: float, now: float) -> float:
        """Note a death and return when to start again."""
        if now - started >= STABLE:
            self.deaths = 0
        self.deaths += 1
        return now + wait_after(self.deaths, FIRST, LONGEST)
