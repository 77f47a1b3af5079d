"""Facts of a reason: the small table below its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlp_language.message import Arg, Message, Quantity, Span, msg


@dataclass(frozen=True, slots=True)
class Fact:
    """Row of facts: its meaning (`key` of `LABELS`), its dimension, its value, and the ones it is about."""

    key: str
    value: Arg
    dimension: str = ""
    who: tuple[Arg, ...] = ()

    @property
    def name(self) -> str:
        """Name of its number among those of a reason: `cpu_free`, `ranks`."""
        return f"{self.dimension}_{self.key}" if self.dimension else self.key

    @property
    def number(self) -> float | None:
        """Its number, None where it has none."""
        match self.value:
            case Quantity(amount, _):
                return amount
            case Span(seconds):
                return seconds
            case int() | float():
                return self.value
        return None


LABELS: Mapping[str, Message] = {
    "asked": msg("asked"),
    "limit": msg("may use"),
    "nominal": msg("its own"),
    "inuse": msg("in use"),
    "borrowed": msg("of it borrowed"),
    "beyond": msg("of it beyond the quota"),
    "others": msg("used by others"),
    "lent": msg("lent"),
    "free": msg("free"),
    "kept": msg("kept free for others"),
    "held": msg("held by servers"),
    "may_stop": msg("jobs that may be stopped"),
    "beside": msg("workers that could start next to servers"),
    "ranks": msg("ranks"),
    "each": msg("each rank asks for"),
    "fitting": msg("ranks that fit now"),
    "nodes": msg("nodes"),
    "free_on": msg("free on nodes"),
    "shut": msg("nodes that accept no new work"),
    "kinds": msg("kinds of gpu here"),
    "stopping": msg("jobs that are stopped"),
    "priority": msg("its priority"),
    "ahead_priority": msg("priority of the one ahead"),
    "preemptor_priority": msg("priority of the other"),
    "ahead_starts": msg("the one ahead starts"),
    "opens_in": msg("the window opens in"),
    "window": msg("length of the window"),
    "booked": msg("booked"),
    "budget": msg("budget"),
    "lost_work": msg("work lost"),
    "workers": msg("workers left"),
    "workers_min": msg("its minimum of workers"),
    "given_up": msg("workers given up"),
    "free_mib": msg("free on the disk"),
    "floor_mib": msg("kept free on the disk"),
    "shortage": msg("the disk has"),
}
"""Label of each key of a fact."""


def numbers_of(facts: tuple[Fact, ...]) -> dict[str, float]:
    """Return the numbers of facts by their names."""
    return {fact.name: n for fact in facts if (n := fact.number) is not None}
