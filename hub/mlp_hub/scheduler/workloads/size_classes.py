"""Cells of requests of about the same size: if none of many different ones fits, few tries are needed.

Sizes between two powers of two are about the same. The smallest amounts of a cell fit wherever one
of its requests does.
"""

from __future__ import annotations

from functools import lru_cache

from mlp_hub.scheduler.model.demand import Demand


class Cell:
    """The least that requests of one cell ask for; compared by identity."""

    __slots__ = ("demand", "topology")

    def __init__(self, demand: Demand, topology: str | None) -> None:
        self.demand, self.topology = demand, topology


def cell_of(demand: Demand, topology: str | None) -> Cell:
    """Return the cell of a request."""
    least = Demand(
        _floor(demand.cpu),
        _floor(demand.ram),
        _floor(demand.rom),
        demand.whole,
        _floor(demand.part),
        demand.gpu_kind,
        demand.tenant,
        tuple([(d, _floor(amount)) for d, amount in demand.amounts]) if demand.amounts else (),
    )
    return _cell(least, topology)


@lru_cache(maxsize=1 << 14)
def _cell(least: Demand, topology: str | None) -> Cell:
    return Cell(least, topology)


def _floor(amount: int) -> int:
    """Return the largest power of two that is not above an amount, 0 for 0."""
    return 1 << (amount.bit_length() - 1) if amount else 0
