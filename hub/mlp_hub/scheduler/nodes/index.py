"""The nodes and their free amounts, down to single GPUs; the cost of a question follows the changes.

Nodes of one class with the same amounts free share a `NodeState`. A demand has a view of all
states, which catches up from a log of changes when it is next asked for (`views`). Where states are
few, they are counted through (`slots`). Decisions here never scan nodes, except the first time a
demand is seen.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mlp_hub.domain.resources import MILLI, ZERO, Resources
from mlp_hub.scheduler.model.demand import NOTHING, Demand, with_rest
from mlp_hub.scheduler.model.resources import Vector
from mlp_hub.scheduler.model.types import Devices, Node
from mlp_hub.scheduler.nodes.fragmentation import Fragmentation
from mlp_hub.scheduler.nodes.node import NodeRecord, changed_to, choose_devices, moved, record_of, with_state
from mlp_hub.scheduler.nodes.persistent_dict import Layered
from mlp_hub.scheduler.nodes.placement import place
from mlp_hub.scheduler.nodes.slots import Slots
from mlp_hub.scheduler.nodes.states import (
    DRAINED,
    RULES,
    Catalog,
    NodeClass,
    NodeState,
    PreparedDemand,
    Shut,
    gpus_of,
    slots_of,
    why_shut,
)
from mlp_hub.scheduler.nodes.views import Domains, PlaceOrder, Totals, ViewKey, Views

NONE_FREE = [0, 0, 0, 0, *NOTHING]
"""Given: free amounts of no nodes."""
FURTHER = range(5, len(NONE_FREE))
"""Given: indices of the counted dimensions there, most often none."""


class NodeIndex(Slots):
    """Nodes, what is free on them and where ranks fit.

    `typical` is what is asked for here, with its share (see `fragmentation`); `rule` is how placements are chosen
    (one of `RULES`); `seed` is that of the rule `random`. Amounts are as in `Resources`. Nodes are told apart by name
    and ordered as they were added.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        typical: Sequence[tuple[Demand, float]] = (),
        rule: str = "fgd",
        seed: int = 0,
    ) -> None:
        if rule not in RULES:
            raise ValueError(f"no placement rule {rule!r}; there are {', '.join(RULES)}")
        self.rule = rule
        self.seed = seed
        self.version = 0
        self.total = ZERO
        self.changes = 0  # of any kind; the rule `random` draws by it
        self.catalog = Catalog(Fragmentation(typical))
        self._records: Layered[str, NodeRecord] = Layered()
        self._names: dict[int, str] = {}
        self._next = 0
        self._members: dict[NodeState, list[int]] = {}
        self._mine: set[NodeState] = set()  # states whose lists no fork shares
        self._names_shared = False
        self._free: dict[
            NodeClass, list[int]
        ] = {}  # cpu, ram, gpu and number of the nodes that are up, and the rest
        self._views = Views()
        self._shut: dict[tuple[Shut, str | None], int] = {}  # nodes that take nothing, by kind of GPU too
        self._drained: dict[str, NodeClass] = {}  # nodes that an administrator took out of service
        self._absent: dict[str, Layered[str, NodeRecord]] = {}  # nodes that could be added, by their group
        self._kinds: tuple[str, ...] | None = None  # of GPUs; None: to be looked up
        # what was asked since the last change; a fork shares these answers until either changes
        self._fitting: dict[tuple[Demand, str | None], int] = {}
        self._places: dict[tuple[Demand, int, str | None, str], tuple[str, ...] | None] = {}
        # and since the last change of a node itself, whatever jobs hold
        self._empty: dict[NodeState, list[int]] | None = None
        self._emptied: dict[Demand, tuple[int, int]] = {}
        self._returning: dict[Demand, tuple[str, ...]] = {}
        self.vectors: dict[tuple[Demand, tuple[str, ...]], Vector] = {}  # kept by `assign.fit`
        for node in nodes:
            self.add(node)

    # ---- the nodes -------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all nodes, down ones too, in the order they were added."""
        return tuple(self._records)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    @property
    def count(self) -> int:
        """Return how many nodes there are, down ones too."""
        return len(self._names)

    def node(self, name: str) -> Node:
        """Return a node; KeyError when there is none of that name."""
        return self._records[name].node

    def kind(self, name: str) -> str | None:
        """Return the kind of GPU that a node has; None without GPUs, and for a node that is gone."""
        record = self._records.get(name)
        return None if record is None or not record.cls.gpu else record.cls.kind

    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of GPU that nodes have, sorted."""
        if self._kinds is None:
            nodes = (record.node for record in self._records.values())
            self._kinds = tuple(sorted({n.gpu_kind for n in nodes if n.gpu_kind and n.capacity.gpu}))
        return self._kinds

    def free(self, name: str) -> Resources:
        """Return what is free on a node; below zero where its capacity was lowered under what is held."""
        r = self._records[name]
        return with_rest(r.cpu, sum(r.devices), r.ram, r.rest)

    def devices(self, name: str) -> tuple[int, ...]:
        """Return the free thousandths of each GPU of a node, by GPU number."""
        return self._records[name].devices

    def add(self, node: Node) -> None:
        """Add a node, or replace the one of the same name (capacity, labels, taints); held amounts stay held."""
        old = self._records.get(node.name)
        if old is None:
            new = record_of(self.catalog, self._next, node)
            self._own_names()[self._next] = node.name
            self._next += 1
        else:
            new = changed_to(self.catalog, old, node)
            if old.node.up:
                self.total -= old.node.counts
        if node.up:
            self.total += node.counts
        if old is None or (old.node.gpu_kind, old.node.capacity) != (node.gpu_kind, node.capacity):
            self._kinds = None
        self._put(old, new)
        self.version += 1

    def remove(self, name: str) -> None:
        """Forget a node; giving back what was held on it is allowed after that, and does nothing."""
        old = self._records[name]
        del self._records[name]
        self._kinds = None
        if old.node.up:
            self.total -= old.node.counts
        del self._own_names()[old.number]
        self._changed(old, None)
        self.version += 1

    def set_up(self, name: str, up: bool) -> None:
        """Note that a node is up or down; a node that is down hosts nothing new, and its holdings stay counted."""
        old = self._records[name]
        if old.node.up == up:
            return
        node = replace(old.node, up=up)
        self.total = self.total + node.counts if up else self.total - node.counts
        self._put(old, with_state(self.catalog, replace(old, node=node)))
        self.version += 1

    # ---- questions -------------------------------------------------------------------------------------------

    def groups(self, demand: Demand) -> list[tuple[Resources, int, str]]:
        """List what is free on the nodes that may host the demand: (amount, how many such nodes, the first's name)."""
        ask = self.catalog.ask(demand)
        return [
            (with_rest(s.cpu, s.idle, s.ram, s.rest), len(numbers), self._names[numbers[0]])
            for s, numbers in self._members.items()
            if (ask.open[s.cls] if s.cls in ask.open else ask.suits(s.cls))
        ]

    def free_for(self, demand: Demand) -> tuple[Resources, int]:
        """Return what is free in all on the nodes that may host the demand, and how many they are."""
        ask = self.catalog.ask(demand)
        total = NONE_FREE
        for cls, free in self._free.items():
            if ask.open[cls] if cls in ask.open else ask.suits(cls):
                total = [a + b for a, b in zip(total, free, strict=True)]
        cpu, ram, gpu, nodes, *rest = total
        return with_rest(cpu, gpu, ram, tuple(rest)), nodes

    def shut(self, demand: Demand) -> dict[Shut, int]:
        """Return how many nodes of the demand's kind take nothing new from anybody, by why."""
        kinds = self.catalog.ask(demand).kinds if demand.gpu else None
        found: dict[Shut, int] = {}
        for (why, kind), n in sorted(self._shut.items(), key=lambda one: (one[0][0], one[0][1] or "")):
            if kinds is None or kind in kinds:
                found[why] = found.get(why, 0) + n
        return found

    def drained(self, demand: Demand) -> tuple[str, ...]:
        """Name the nodes that may host the demand once an administrator puts them back into service."""
        if not self._drained:
            return ()
        known = self._returning.get(demand)
        if known is None:
            ask = self.catalog.ask(demand)
            known = tuple(sorted(name for name, cls in self._drained.items() if ask.suits(cls)))
            self._returning[demand] = known
        return known

    def could_grow(self, demand: Demand) -> str | None:
        """Return a group by whose next node a rank of the demand would fit, where no node that is open could ever hold one."""
        ask = self.catalog.ask(demand)
        for cls, free in self._free.items():
            if free[3] and ask.suits(cls) and cls.cpu >= ask.cpu and cls.gpu >= ask.gpu:
                return None
        for _, group in self.shut(demand):
            # all nodes of a group are alike: one of them tells
            record = next(self._absent[group].values(), None) if group is not None else None
            if record is not None:
                state = self.catalog.state(
                    record.cls, record.cpu, record.ram, record.rest, gpus_of(record.devices)
                )
                if slots_of(state, ask):
                    return group
        return None

    @property
    def variety(self) -> int:
        """Return in how many different states nodes are."""
        return len(self._members)

    def place(
        self,
        demand: Demand,
        ranks: int,
        topology: str | None = None,
        avoid: Collection[str] = (),
        rule: str | None = None,
    ) -> tuple[str, ...] | None:
        """Return the node of each of `ranks` ranks, or None when they do not fit all at once. Changes nothing."""
        rule = rule or self.rule
        if avoid:
            return place(self, demand, ranks, topology, avoid=avoid, rule=rule)
        if rule in RULES and not self.has_slots(demand, ranks):
            return None
        key = (demand, ranks, topology, rule)
        if key not in self._places:
            self._places[key] = place(self, demand, ranks, topology, avoid=(), rule=rule)
        return self._places[key]

    # ---- holding and giving back -----------------------------------------------------------------------------

    def reserve_ranks(
        self,
        demand: Demand,
        placement: Sequence[str],
        devices: Devices | None = None,
        *,
        force: bool = False,
    ) -> Devices:
        """Hold what ranks of this demand need on the named nodes; with `devices`, exactly those GPUs.

        Returns the GPU numbers of each rank: the whole ones, then the one it shares. Raises ValueError, and changes
        nothing, where something is not free; with `force` it is held all the same (a node's capacity was lowered).
        """
        ask = self.catalog.ask(demand)
        given: list[tuple[int, ...]] = [()] * len(placement)
        seats: dict[str, list[int]] = {}
        for rank, name in enumerate(placement):
            seats.setdefault(name, []).append(rank)
        changed: list[tuple[NodeRecord, NodeRecord]] = []
        for name, ranks in seats.items():
            old = self._records[name]
            if devices is not None:
                numbers = [tuple(devices[rank]) for rank in ranks]
            elif not ask.gpu:
                numbers = [()] * len(ranks)
            else:
                numbers = choose_devices(self.catalog, old, ask, len(ranks), self.rule, force=force)
            new = moved(self.catalog, old, ask, numbers, -1)
            if not force and (
                new.cpu < min(old.cpu, 0)
                or new.ram < min(old.ram, 0)
                or (ask.rest and any(now < min(had, 0) for had, now in zip(old.rest, new.rest, strict=True)))
                or _are_overdrawn(old.devices, new.devices)
            ):
                raise ValueError(
                    f"{len(ranks)} ranks of {demand} do not fit on {name}: {self.free(name)} is free"
                )
            changed.append((old, new))
            for rank, got in zip(ranks, numbers, strict=True):
                given[rank] = got
        for old, new in changed:
            self._put(old, new)
        return tuple(given)

    def release_ranks(self, demand: Demand, placement: Sequence[str], devices: Devices) -> None:
        """Give back what `reserve_ranks` held, with the devices it returned. Nodes removed since then are passed over."""
        ask = self.catalog.ask(demand)
        seats: dict[str, list[tuple[int, ...]]] = {}
        for name, numbers in zip(placement, devices, strict=True):
            seats.setdefault(name, []).append(tuple(numbers))
        changed: list[tuple[NodeRecord, NodeRecord]] = []
        for name, held in seats.items():
            old = self._records.get(name)
            if old is None:
                continue
            new = moved(self.catalog, old, ask, held, 1)
            capacity, used = old.node.capacity, old.node.used
            if (
                new.cpu > capacity.cpu - used.cpu
                or new.ram > capacity.ram - used.ram
                or any(d > MILLI for d in new.devices)
            ):
                raise ValueError(f"more given back on {name} than was held: {demand} on GPUs {held}")
            changed.append((old, new))
        for old, new in changed:
            self._put(old, new)
        self.version += 1

    def fork(self) -> NodeIndex:
        """Return an independent copy. Records, states and what was worked out on them are shared, as are views until either changes."""
        for key in self._views.take_missed():
            self._refresh(key)  # once here, and not again in each fork
        self._mine, self._names_shared = set(), True
        other = NodeIndex.__new__(NodeIndex)
        other.__dict__.update(
            self.__dict__,
            _records=self._records.fork(),
            _members=dict(self._members),
            _mine=set(),
            _free={cls: free[:] for cls, free in self._free.items()},
            _views=self._views.fork(),
            _shut=dict(self._shut),
            _drained=dict(self._drained),
            _absent={group: nodes.fork() for group, nodes in self._absent.items()},
        )
        return other

    # ---- what `placement` looks at -----------------------------------------------------------------------------

    def order(self, ask: PreparedDemand, ranks: int, rule: str, *, exact: bool = False) -> PlaceOrder:
        """Return the states for `ranks` ranks on one node, the best first, up to date."""
        key = (PlaceOrder, ask, ranks, rule, exact)
        return self._views.get(
            key,
            lambda: PlaceOrder(self.catalog, ask, ranks, rule, exact=exact),
            PlaceOrder,
            self._members,
            self._records.values,
        )

    def compared(self, demand: Demand, ranks: int) -> PlaceOrder | None:
        """Return the order by which ranks on one node were just placed; None where no search has gone through it as things are now."""
        ask = self.catalog.ask(demand)
        return self._views.fresh((PlaceOrder, ask, ranks, self.rule, False), PlaceOrder)

    def _refresh(self, key: ViewKey) -> None:
        match key:
            case (kind, PreparedDemand() as ask) if kind is Totals:
                self.totals(ask)
            case (kind, PreparedDemand() as ask, int(ranks), str(rule), bool(exact)) if kind is PlaceOrder:
                self.order(ask, ranks, rule, exact=exact)
            case (kind, PreparedDemand() as ask, str(label)) if kind is Domains:
                self.domains(ask, label)

    @property
    def logged(self) -> int:
        """Return how many changes there were, of whatever kind, for `states_since`."""
        return self._views.end

    def states_since(self, logged: int) -> set[NodeState] | None:
        """Return in which states those nodes are that changed since then; None where it cannot be told, or they are most."""
        if self._views.end - logged > len(self._members):
            return None
        changes = self._views.since(logged)
        if changes is None:
            return None
        latest = {new.number: new.state for _, new in changes if new is not None}
        return {state for state in latest.values() if state is not None}

    @property
    def by_state(self) -> Mapping[NodeState, Sequence[int]]:
        """Return the states that nodes are in, with the numbers of those nodes, rising."""
        return self._members

    def name_of(self, number: int) -> str:
        """Return the name of a node by its number."""
        return self._names[number]

    def number_of(self, name: str) -> int | None:
        """Return the number of a node, None when there is none."""
        record = self._records.get(name)
        return None if record is None else record.number

    def record(self, name: str) -> NodeRecord:
        """Return a node as it is now; KeyError if no node has that name."""
        return self._records[name]

    def moved(
        self, record: NodeRecord, demand: Demand, ranks: Sequence[tuple[int, ...]], sign: int
    ) -> NodeRecord:
        """Return a node as it would be with ranks of a demand given back (+1) or taken (-1); changes nothing."""
        return moved(self.catalog, record, self.catalog.ask(demand), ranks, sign)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _put(self, old: NodeRecord | None, new: NodeRecord) -> None:
        self._records[new.node.name] = new
        self._changed(old, new)

    def _changed(self, old: NodeRecord | None, new: NodeRecord | None) -> None:
        if old is None or new is None or old.node is not new.node:
            self._empty, self._emptied, self._returning = None, {}, {}  # new ones: forks go on with the old
            self._count_shut(old, -1)
            self._count_shut(new, 1)
        before = None if old is None else old.state
        after = None if new is None else new.state
        members = self._members
        if before is not after:
            self._count_free(before, -1)
            self._count_free(after, 1)
            if before is not None and old is not None:
                numbers = self._own(before)
                if len(numbers) == 1:
                    del members[before]
                    self._mine.discard(before)
                else:
                    del numbers[bisect_left(numbers, old.number)]
            if after is not None and new is not None:
                if after in members:
                    insort(self._own(after), new.number)
                else:
                    members[after] = [new.number]
                    self._mine.add(after)
        self._note_change()
        if self._views.note(old, new, len(self._names) + 2048):
            states = self.catalog.states
            if len(states) > 2 * len(members) + 4000:
                # forget states that no node is in; one that comes back is made anew
                self.catalog.states = {state.key: state for state in members}

    def _note_change(self) -> None:
        self.changes += 1
        self._fitting, self._places, self.vectors = {}, {}, {}  # new ones, since forks may go on with the old

    def _own(self, state: NodeState) -> list[int]:
        """Return the numbers of a state's nodes, to be changed: forks share lists until either changes one."""
        numbers = self._members[state]
        if state not in self._mine:
            numbers = self._members[state] = numbers[:]
            self._mine.add(state)
        return numbers

    def _own_names(self) -> dict[int, str]:
        if self._names_shared:
            self._names, self._names_shared = dict(self._names), False
        return self._names

    def _count_shut(self, record: NodeRecord | None, sign: int) -> None:
        why = None if record is None else why_shut(record.node, record.cls)
        if record is None or why is None:
            return
        key = (why, record.cls.kind if record.cls.gpu else None)
        if why.why == DRAINED and sign > 0:
            self._drained[record.node.name] = record.cls
        elif why.why == DRAINED:
            del self._drained[record.node.name]
        if why.group is not None:
            nodes = self._absent.setdefault(why.group, Layered())
            if sign > 0:
                nodes[record.node.name] = record
            else:
                del nodes[record.node.name]
        left = self._shut.get(key, 0) + sign
        if left:
            self._shut[key] = left
        else:
            del self._shut[key]

    def _count_free(self, state: NodeState | None, sign: int) -> None:
        if state is None:
            return
        free = self._free.setdefault(state.cls, NONE_FREE[:])
        free[0] += sign * state.cpu
        free[1] += sign * state.ram
        free[2] += sign * state.idle
        free[3] += sign
        free[4] += sign * state.rest[0]
        for at in FURTHER:
            free[at] += sign * state.rest[at - 4]


def _are_overdrawn(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether more was taken of a GPU than it had; one that had less than nothing already need not be touched."""
    return before is not after and any(
        now < 0 and (i >= len(before) or now < before[i]) for i, now in enumerate(after)
    )
