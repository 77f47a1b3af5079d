"""States of nodes, what is free on one as a value: equal nodes share one state, and all that is pure is worked out on states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import NamedTuple

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.model.demand import Demand, Rest, rest_after
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes.fragmentation import Fragmentation, Gpus, Kept

UNBOUNDED = 1 << 30
"""Given: ranks of a demand that has no limit in a dimension."""
ASKS = 1 << 15
"""Tuning: demands that are remembered: memory for not working it out again."""
RULES = ("fgd", "fgd-plain", "bestfit", "packing", "spread", "random")
# The largest node that FGD's authors scale their best fit by: 128 cores and 8 GPUs.
BESTFIT_CPU, BESTFIT_GPU = 128_000, 8 * MILLI
TENANT_TAINT = "tenant="
"""Prefix of a taint that leaves a node to the tenant that it names; any other taint closes the node."""

ABSENT = "Absent"
"""Contract: status of a node that is not there but could be added."""
DRAINED = "Drained"
"""Contract: status of a node that an administrator took out of service."""
GROUP = "mlp-hub/node-group"
"""Contract: label of such a node: the group that could grow."""
DOWN = "NotReady"
"""Contract: why a node takes nothing of which is known only that it is down."""

Score = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class NodeClass:
    """Properties that nodes have in common whatever is free on them; compared by identity. `tenant` is whom they are kept for."""

    number: int
    kind: str | None
    tenant: str | None
    closed: bool
    cpu: int
    gpu: int
    kept: Kept


class NodeState:
    """An amount free on nodes of one class. Compared by identity: a catalog makes each only once."""

    __slots__ = ("cls", "cpu", "gpus", "idle", "key", "lost", "lost_plain", "ram", "rest", "serial", "whole")

    def __init__(
        self, cls: NodeClass, cpu: int, ram: int, rest: Rest, gpus: Gpus, *, serial: int = 0
    ) -> None:
        self.serial = serial
        self.cls = cls
        self.cpu = cpu
        self.ram = ram
        self.rest = rest
        self.gpus = gpus
        self.idle = sum(gpus)
        self.whole = gpus.count(MILLI)
        self.key = (cls.number, cpu, ram, rest, gpus)
        self.lost: float | None = None
        self.lost_plain: float | None = None


class PreparedDemand:
    """A demand made ready for being asked for many times; compared by identity."""

    __slots__ = ("cpu", "demand", "gpu", "kinds", "open", "part", "ram", "rest", "whole")

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.cpu = demand.cpu
        self.ram = demand.ram
        self.rest = demand.rest
        self.whole = demand.whole
        self.part = demand.part
        self.gpu = demand.gpu
        self.kinds = None if demand.gpu_kind is None else frozenset(demand.gpu_kind.split("|"))
        self.open: dict[NodeClass, bool] = {}  # what `suits` has found

    def suits(self, cls: NodeClass) -> bool:
        """Whether nodes of this class may host it: the kind is right, and they are kept for nobody else."""
        fine = not cls.closed and cls.tenant in (None, self.demand.tenant)
        if self.kinds is not None and self.gpu:
            fine = fine and cls.kind in self.kinds
        self.open[cls] = fine
        return fine


class Shut(NamedTuple):
    """Reason why a node takes nothing new: its status, or a taint; or the group that could grow by it."""

    why: str
    group: str | None = None


def why_shut(node: Node, cls: NodeClass) -> Shut | None:
    """Return why a node takes nothing new from anybody; None where it does."""
    if not node.up:
        why = node.wrong[0] if node.wrong else DOWN
        return Shut(why, node.labels.get(GROUP, "") if why == ABSENT else None)
    if not cls.closed:
        return None
    taints = node.taints
    return Shut(next((taint for taint in taints if not taint.startswith(TENANT_TAINT)), taints[0]))


def slots_of(state: NodeState, ask: PreparedDemand) -> int:
    """Count the ranks that fit into what is free."""
    fine = ask.open.get(state.cls)
    if fine is None:
        fine = ask.suits(state.cls)
    if not fine:
        return 0
    n = _gpu_slots(state, ask) if ask.gpu else UNBOUNDED
    if n <= 0:
        return 0
    if ask.cpu:
        n = min(n, state.cpu // ask.cpu)
    if ask.ram:
        n = min(n, state.ram // ask.ram)
    if ask.rest:
        n = min(n, *[have // one for have, one in zip(state.rest, ask.rest, strict=True) if one])
    return max(n, 0)


def _gpu_slots(state: NodeState, ask: PreparedDemand) -> int:
    """Count the ranks whose GPUs fit."""
    if state.idle < ask.gpu:
        return 0
    whole, part = ask.whole, ask.part
    if not part:
        return state.whole // whole
    if not whole:
        n = 0
        for g in state.gpus:
            if g < part:
                break  # they fall
            n += g // part
        return n
    # whole GPUs and a part of one more: untouched ones serve for either
    broken = sum(g // part for g in state.gpus[state.whole :])
    n = state.whole // whole
    while n and broken + (state.whole - n * whole) * (MILLI // part) < n:
        n -= 1
    return n


class Catalog:
    """Interns classes, states and asks, and scores them. Shared by an index and its forks: it holds only values."""

    def __init__(self, fragmentation: Fragmentation) -> None:
        self.fragmentation = fragmentation
        self.states: dict[tuple[int, int, int, Rest, Gpus], NodeState] = {}
        self._classes: dict[tuple[object, ...], NodeClass] = {}
        self._asks: dict[Demand, PreparedDemand] = {}
        self._made = 0

    def ask(self, demand: Demand) -> PreparedDemand:
        """Return the ask of a demand."""
        ask = self._asks.get(demand)
        if ask is None:
            if len(self._asks) >= ASKS:
                self._asks.clear()  # views of forgotten asks age out by themselves
            ask = self._asks[demand] = PreparedDemand(demand)
        return ask

    def node_class(self, node: Node) -> NodeClass:
        """Return the class of a node."""
        tenants = {t.removeprefix(TENANT_TAINT) for t in node.taints if t.startswith(TENANT_TAINT)}
        closed = len(tenants) > 1 or any(not t.startswith(TENANT_TAINT) for t in node.taints)
        tenant = min(tenants, default=None)
        key = (node.gpu_kind, tenant, closed, node.capacity.cpu, node.capacity.gpu)
        cls = self._classes.get(key)
        if cls is None:
            cls = NodeClass(
                len(self._classes),
                node.gpu_kind,
                tenant,
                closed,
                node.capacity.cpu,
                node.capacity.gpu,
                (node.gpu_kind, tenant),
            )
            self._classes[key] = cls
        return cls

    def state(self, cls: NodeClass, cpu: int, ram: int, rest: Rest, gpus: Gpus) -> NodeState:
        """Return the one state that is equal to these amounts."""
        key = (cls.number, cpu, ram, rest, gpus)
        state = self.states.get(key)
        if state is None:
            self._made += 1
            state = self.states[key] = NodeState(cls, cpu, ram, rest, gpus, serial=self._made)
        return state

    def lost(self, state: NodeState) -> float:
        """Return the fragmentation of a state."""
        if state.lost is None:
            c = state.cls
            state.lost = self.fragmentation.loss(c.kept, state.cpu, state.ram, state.rest, state.gpus)
        return state.lost

    def lost_plain(self, state: NodeState) -> float:
        """Return the fragmentation of a state as FGD has it."""
        if state.lost_plain is None:
            c = state.cls
            state.lost_plain = self.fragmentation.measure(
                c.kept, state.cpu, state.ram, state.rest, state.gpus
            )
        return state.lost_plain

    def fill(
        self, state: NodeState, ask: PreparedDemand, ranks: int, rule: str
    ) -> tuple[Gpus, tuple[int, ...]]:
        """Put `ranks` ranks, which must fit, on the GPUs of a state.

        Returns the GPUs after that, and for each rank that shares a GPU what is free on that GPU before it comes.
        """
        gpus = state.gpus
        if not ask.gpu:
            return gpus, ()
        if not ask.part:
            return gpus[ask.whole * ranks :], ()
        chosen: list[int] = []
        for _ in range(ranks):
            gpus = gpus[ask.whole :]
            candidates = sorted({g for g in gpus if g >= ask.part})
            # ranks that also need whole GPUs break another one only when they must, or fewer of them would fit
            if ask.whole and len(candidates) > 1 and candidates[-1] == MILLI:
                candidates.pop()
            if not candidates:
                raise ValueError(f"{ranks} ranks of {ask.demand} do not fit on GPUs {state.gpus}")
            if len(candidates) > 1 and rule in {"fgd", "fgd-plain"}:
                value = self._least(state, ask, ranks, gpus, candidates)
            else:
                value = candidates[-1] if rule == "spread" else candidates[0]
            chosen.append(value)
            gpus = _less(gpus, value, ask.part)
        return gpus, tuple(chosen)

    def _least(
        self, state: NodeState, ask: PreparedDemand, ranks: int, gpus: Gpus, candidates: list[int]
    ) -> int:
        """Return the free part of the GPU whose use leaves the least fragmentation; of equal ones the tightest."""
        measure, kept = self.fragmentation.measure, state.cls.kept
        cpu = state.cpu - ranks * ask.cpu
        ram = state.ram - ranks * ask.ram
        rest = rest_after(state.rest, ask.rest, ranks) if ask.rest else state.rest
        return min(candidates, key=lambda v: measure(kept, cpu, ram, rest, _less(gpus, v, ask.part)))

    def score(self, state: NodeState, ask: PreparedDemand, ranks: int, rule: str) -> Score:
        """Rate putting `ranks` ranks, which must fit, on a node of this state: the least is the best."""
        if rule == "random":
            return ()
        gpus, _ = self.fill(state, ask, ranks, rule)
        cpu = state.cpu - ranks * ask.cpu
        ram = state.ram - ranks * ask.ram
        rest = rest_after(state.rest, ask.rest, ranks) if ask.rest else state.rest
        idle = state.idle - ranks * ask.gpu
        c = state.cls
        if rule == "fgd":
            after = self.fragmentation.loss(c.kept, cpu, ram, rest, gpus) if gpus else 0.0
            return (round(after - self.lost(state), 3), idle, cpu, ram) + rest  # noqa: RUF005 - a third of the time
        if rule == "fgd-plain":
            after = self.fragmentation.measure(c.kept, cpu, ram, rest, gpus) if gpus else 0.0
            # as its authors' simulator has it: whole points of 100; then the first name
            return (-int(100 / (1 + exp((after - self.lost_plain(state)) / MILLI))),)
        if rule == "bestfit":
            return (round(cpu / BESTFIT_CPU + idle / BESTFIT_GPU, 9),)
        if rule == "packing":
            opened = state.whole - gpus.count(MILLI)
            untouched = state.cpu == c.cpu and state.idle == c.gpu
            return (opened, untouched, idle, cpu, ram)
        if rule == "spread":
            return (-slots_of(state, ask), -idle, -cpu, -ram)
        raise ValueError(f"no placement rule {rule!r}; there are {', '.join(RULES)}")


def _less(gpus: Gpus, value: int, part: int) -> Gpus:
    """Take `part` off one GPU that has `value` free."""
    at = gpus.index(value)
    rest = value - part
    if not rest:
        return gpus[:at] + gpus[at + 1 :]
    end = at + 1
    while end < len(gpus) and gpus[end] > rest:
        end += 1
    return (*gpus[:at], *gpus[at + 1 : end], rest, *gpus[end:])


def are_kept_for_tenants(nodes: Iterable[Node]) -> bool:
    """Whether any of these nodes is left to a tenant: only then demands have to tell whose they are."""
    return any(t.startswith(TENANT_TAINT) for n in nodes for t in n.taints)


@lru_cache(maxsize=1 << 14)
def gpus_of(devices: tuple[int, ...]) -> Gpus:
    """Return what is free per GPU, by GPU number, as part of a state."""
    return tuple(sorted((d for d in devices if d > 0), reverse=True))


def split_devices(capacity: int, used: int) -> tuple[int, ...]:
    """Return the free thousandths of each GPU of a node; holders other than jobs use its last GPUs."""
    whole, part = divmod(max(capacity, 0), MILLI)
    devices = [MILLI] * whole + ([part] if part else [])
    for number in range(len(devices) - 1, -1, -1):
        held = min(devices[number], used)
        devices[number] -= held
        used -= held
    return tuple(devices)
