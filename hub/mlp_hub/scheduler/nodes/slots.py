"""Slots: ranks that fit on the nodes, from a view for frequent demands, otherwise counted state by state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.nodes.node import NodeRecord, record_of
from mlp_hub.scheduler.nodes.persistent_dict import Layered
from mlp_hub.scheduler.nodes.placement import NODE, domain_label
from mlp_hub.scheduler.nodes.states import Catalog, NodeClass, NodeState, PreparedDemand, slots_of
from mlp_hub.scheduler.nodes.views import Domains, Totals, Views

FEW_STATES = 32
"""Tuning: different states of nodes that are counted through in less time than a view takes to catch up."""
MANY_STATES = 256
"""Tuning: different states of nodes up to which all are counted through for a rare demand, whose view would be far behind."""


class Slots:
    """The part of `NodeIndex` that counts ranks."""

    catalog: Catalog
    _records: Layered[str, NodeRecord]
    _names: dict[int, str]
    _members: dict[NodeState, list[int]]
    _views: Views
    _fitting: dict[tuple[Demand, str | None], int]
    _drained: dict[str, NodeClass]
    _empty: dict[NodeState, list[int]] | None
    _emptied: dict[Demand, tuple[int, int]]

    def slots(self, name: str, demand: Demand) -> int:
        """Count the ranks of this demand that fit on the node now."""
        return self.slots_on(self._records[name], demand)

    def slots_on(self, record: NodeRecord, demand: Demand) -> int:
        """Count the ranks of this demand that fit on a node with this record."""
        return 0 if record.state is None else slots_of(record.state, self.catalog.ask(demand))

    def nodes_by_slots(self, demand: Demand) -> dict[int, int]:
        """Return how many nodes have room for one rank, for two and so on."""
        return dict(self.totals(self.catalog.ask(demand)).by_slots)

    def total_slots(self, demand: Demand, topology: str | None = None) -> int:
        """Count the ranks that fit on all nodes; for a required topology, in the best single domain."""
        known = self._fitting.get((demand, topology))
        if known is None:
            known = self._fitting[demand, topology] = self._count_slots(demand, topology)
        return known

    def could_hold(self, demand: Demand, ranks: int, *, drained: bool = False) -> bool:
        """Return whether `ranks` ranks would fit on open nodes (with `drained`: also those) after all jobs end.

        Amounts of holders other than jobs stay theirs. Domains are not looked at.
        """
        known = self._emptied.get(demand)
        if known is None:
            ask = self.catalog.ask(demand)
            slots = [(slots_of(state, ask), n) for state, n in self._empty_states().items()]
            known = sum(each * n[0] for each, n in slots), sum(each * n[1] for each, n in slots)
            self._emptied[demand] = known
        return known[0] + drained * known[1] >= ranks

    def _empty_states(self) -> dict[NodeState, list[int]]:
        """Return the states of nodes once all jobs have ended, and the numbers of open and drained nodes in each."""
        if self._empty is None:
            self._empty = {}
            for record in self._records.values():
                if not record.node.up and record.node.name not in self._drained:
                    continue
                state = record_of(self.catalog, record.number, replace(record.node, up=True)).state
                if state is not None:
                    self._empty.setdefault(state, [0, 0])[not record.node.up] += 1
        return self._empty

    def has_slots(self, demand: Demand, ranks: int, topology: str | None = None) -> bool:
        """Whether `total_slots` is as many as that, without counting on once it is."""
        known = self._fitting.get((demand, topology))
        if known is not None:
            return known >= ranks
        if domain_label(topology)[1] or self._has_view(self.catalog.ask(demand)):
            return self.total_slots(demand, topology) >= ranks
        found = 0
        for slots, numbers in self._with_room(demand):
            found += slots * len(numbers)
            if found >= ranks:
                return True
        self._fitting[demand, topology] = found
        return found >= ranks

    def has_common_slots(self, other: Slots, demand: Demand, ranks: int) -> bool:
        """Return whether `ranks` ranks fit on nodes with room for them in this index and in `other`.

        The other index also knows these nodes. Where nodes are in many different states it is not checked,
        and the answer is True.
        """
        if len(self._members) > MANY_STATES:
            return True
        both = 0
        for slots, numbers in self._with_room(demand):
            for number in numbers:
                both += min(slots, other.slots(self._names[number], demand))
                if both >= ranks:
                    return True
        return both >= ranks

    def _has_view(self, ask: PreparedDemand) -> bool:
        """Whether a view tells sooner how many ranks fit than looking through all states does."""
        states = len(self._members)
        if FEW_STATES < states <= MANY_STATES:
            return self._views.is_near((Totals, ask))
        return states > MANY_STATES

    def _with_room(self, demand: Demand) -> Iterator[tuple[int, list[int]]]:
        """Yield the number of ranks that fit on a node, and the node numbers, for each state with room.

        The state that changed last comes first.
        """
        ask = self.catalog.ask(demand)
        cpu, ram, gpu = ask.cpu, ask.ram, ask.gpu
        for state in reversed(self._members):
            if state.cpu >= cpu and state.ram >= ram and state.idle >= gpu:  # a quick no for most
                slots = slots_of(state, ask)
                if slots:
                    yield slots, self._members[state]

    def _count_slots(self, demand: Demand, topology: str | None) -> int:
        label, required = domain_label(topology)
        ask = self.catalog.ask(demand)
        if label is None or not required:
            if self._has_view(ask):
                return self.totals(ask).total
            return sum([slots * len(numbers) for slots, numbers in self._with_room(demand)])
        if label == NODE:
            return max(self.totals(ask).by_slots, default=0)
        return max(self.domains(ask, label).totals.values(), default=0)

    def totals(self, ask: PreparedDemand) -> Totals:
        """Return how many ranks fit, up to date."""
        key = (Totals, ask)
        return self._views.get(key, lambda: Totals(ask), Totals, self._members, self._records.values)

    def domains(self, ask: PreparedDemand, label: str) -> Domains:
        """Return how many ranks fit per value of a label, up to date."""
        key = (Domains, ask, label)
        return self._views.get(key, lambda: Domains(ask, label), Domains, self._members, self._records.values)
