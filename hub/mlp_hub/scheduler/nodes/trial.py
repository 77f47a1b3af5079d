"""Trial of the view that a demand would have of the nodes if some ranks were gone; the index is unchanged.

Moves are only noted until a caller asks whether ranks fit: a job that would also lack the quota
never asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import Devices
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.node import NodeRecord
from mlp_hub.scheduler.nodes.placement import NODE, domain_label
from mlp_hub.scheduler.nodes.states import slots_of


class Scratch:
    """Counts how many ranks of one demand fit while others are given back and taken again on trial."""

    def __init__(self, index: NodeIndex, demand: Demand, topology: str | None) -> None:
        self._index = index
        self._ask = index.catalog.ask(demand)
        self._label, self._required = domain_label(topology)
        self._records: dict[str, NodeRecord] = {}
        self._by_slots: dict[int, int] = {}  # change of how many nodes hold so many ranks
        self._by_value: dict[str, int] = {}  # change of the ranks that fit by value of the label
        self._total = index.total_slots(demand)
        self._noted: list[tuple[Demand, Sequence[str], Devices, int]] = []

    def fitting(self) -> int:
        """Count the ranks that fit; with a required topology, in the best single domain."""
        self._catch_up()
        if not self._required:
            return self._total
        if self._label == NODE:
            base = self._index.totals(self._ask).by_slots
            counts = {k: base.get(k, 0) + self._by_slots.get(k, 0) for k in (*base, *self._by_slots)}
            return max((k for k, n in counts.items() if n > 0), default=0)
        base_of = self._index.domains(self._ask, str(self._label)).totals
        values = (*base_of, *self._by_value)
        return max((base_of.get(v, 0) + self._by_value.get(v, 0) for v in values), default=0)

    def release_ranks(self, demand: Demand, placement: Sequence[str], devices: Devices) -> None:
        """Count these ranks as gone."""
        self._noted.append((demand, placement, devices, 1))

    def reserve_ranks(self, demand: Demand, placement: Sequence[str], devices: Devices) -> None:
        """Count these ranks as there again."""
        self._noted.append((demand, placement, devices, -1))

    def _catch_up(self) -> None:
        for move in self._noted:
            self._move(*move)
        self._noted.clear()

    def _move(self, demand: Demand, placement: Sequence[str], devices: Devices, sign: int) -> None:
        seats: dict[str, list[tuple[int, ...]]] = {}
        for name, numbers in zip(placement, devices, strict=True):
            seats.setdefault(name, []).append(numbers)
        for name, held in seats.items():
            if name not in self._index:
                continue
            old = self._record(name)
            new = self._index.moved(old, demand, held, sign)
            self._records[name] = new
            before, after = self._slots(old), self._slots(new)
            if before == after:
                continue
            self._total += after - before
            self._by_slots[before] = self._by_slots.get(before, 0) - 1
            self._by_slots[after] = self._by_slots.get(after, 0) + 1
            if self._label:
                value = old.node.labels.get(self._label)
                if value is not None:
                    self._by_value[value] = self._by_value.get(value, 0) + after - before

    def _record(self, name: str) -> NodeRecord:
        known = self._records.get(name)
        return self._index.record(name) if known is None else known

    def _slots(self, record: NodeRecord) -> int:
        return 0 if record.state is None else slots_of(record.state, self._ask)
