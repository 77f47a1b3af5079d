"""A node as it is, or as it would be with ranks taken or given back, down to the numbers of its GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.model.demand import Rest, rest_after, rest_of
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes.gpus import pick_whole
from mlp_hub.scheduler.nodes.states import (
    Catalog,
    NodeClass,
    NodeState,
    PreparedDemand,
    gpus_of,
    split_devices,
)


@dataclass(slots=True, eq=False)
class NodeRecord:
    """Node as it is; replaced, never changed. `state` is None while it is down or gone.

    The class is not `frozen`, which would make instances several times as expensive: trials make very
    many.
    """

    number: int
    node: Node
    cls: NodeClass
    cpu: int
    ram: int
    rest: Rest
    devices: tuple[int, ...]
    state: NodeState | None


Change = tuple[NodeRecord | None, NodeRecord | None]
"""Record of a node before and after a change; None where there was, or is, none."""


def record_of(catalog: Catalog, number: int, node: Node) -> NodeRecord:
    """Return the record of a node on which no job holds anything."""
    return with_state(catalog, _stateless(catalog, number, node))


def _stateless(catalog: Catalog, number: int, node: Node) -> NodeRecord:
    capacity, used = node.capacity, node.used
    cpu, ram, rest = (
        capacity.cpu - used.cpu,
        capacity.ram - used.ram,
        rest_after(rest_of(capacity), rest_of(used), 1),
    )
    devices = split_devices(capacity.gpu, used.gpu)
    return NodeRecord(number, node, catalog.node_class(node), cpu, ram, rest, devices, None)


def changed_to(catalog: Catalog, old: NodeRecord, node: Node) -> NodeRecord:
    """Return the record of a node that replaces another of the same name; the holdings of jobs stay held."""
    was, used = old.node.capacity, old.node.used
    new = _stateless(catalog, old.number, node)
    before = split_devices(was.gpu, used.gpu)
    before += (0,) * (len(old.devices) - len(before))
    held = [a - b for a, b in zip(before, old.devices, strict=True)]
    size = max(len(new.devices), max((i + 1 for i, h in enumerate(held) if h), default=0))
    full = new.devices + (0,) * (size - len(new.devices))
    return with_state(
        catalog,
        replace(
            new,
            cpu=new.cpu - (was.cpu - used.cpu - old.cpu),
            ram=new.ram - (was.ram - used.ram - old.ram),
            rest=rest_after(new.rest, rest_after(rest_after(rest_of(was), rest_of(used), 1), old.rest, 1), 1),
            devices=tuple(d - (held[i] if i < len(held) else 0) for i, d in enumerate(full)),
        ),
    )


def with_state(catalog: Catalog, r: NodeRecord) -> NodeRecord:
    """Return a record with the state that belongs to it."""
    state = catalog.state(r.cls, r.cpu, r.ram, r.rest, gpus_of(r.devices)) if r.node.up else None
    return NodeRecord(r.number, r.node, r.cls, r.cpu, r.ram, r.rest, r.devices, state)


def moved(
    catalog: Catalog, r: NodeRecord, ask: PreparedDemand, ranks: Sequence[tuple[int, ...]], sign: int
) -> NodeRecord:
    """Return a record with ranks taken off (-1) or given back (+1), of each of which the GPU numbers are told."""
    devices = r.devices
    if ask.gpu:
        now = list(devices)
        for numbers in ranks:
            if len(numbers) != ask.whole + (ask.part > 0):
                if sign < 0 and not now:
                    continue  # forced onto a node that has no GPU any more
                raise ValueError(f"{ask.demand} needs {ask.whole + (ask.part > 0)} GPUs, not {numbers}")
            for i, number in enumerate(numbers):
                if number >= len(now):
                    now += [0] * (number + 1 - len(now))
                now[number] += sign * (MILLI if i < ask.whole else ask.part)
        devices = tuple(now)
    n = sign * len(ranks)
    cpu, ram, rest = (
        r.cpu + n * ask.cpu,
        r.ram + n * ask.ram,
        rest_after(r.rest, ask.rest, -n) if ask.rest else r.rest,
    )
    state = None
    if r.node.up:
        gpus = r.state.gpus if not ask.gpu and r.state is not None else gpus_of(devices)
        state = catalog.state(r.cls, cpu, ram, rest, gpus)
    return NodeRecord(r.number, r.node, r.cls, cpu, ram, rest, devices, state)


def choose_devices(
    catalog: Catalog, r: NodeRecord, ask: PreparedDemand, ranks: int, rule: str, *, force: bool
) -> list[tuple[int, ...]]:
    """Choose the GPUs of ranks on one node: of each rank the whole ones, then the one that it shares.

    ValueError where they do not fit; with `force` those are chosen that have most left.
    """
    state = r.state or NodeState(r.cls, r.cpu, r.ram, r.rest, gpus_of(r.devices))
    free = list(r.devices)
    chosen: list[tuple[int, ...]] = []
    try:
        shared = catalog.fill(state, ask, ranks, rule)[1] if ask.part else ()
        for rank in range(ranks):
            whole = pick_whole(free, ask.whole)
            for number in whole:
                free[number] = 0
            if ask.part:
                value = shared[rank]
                number = pick_whole(free, 1)[0] if value == MILLI else free.index(value)
                free[number] -= ask.part
                whole = (*whole, number)
            chosen.append(whole)
    except ValueError as error:
        if not force:
            raise ValueError(f"{ranks} ranks of {ask.demand} do not fit on {r.node.name}: {error}") from None
        return _most_left(r, ask, ranks)
    return chosen


def _most_left(r: NodeRecord, ask: PreparedDemand, ranks: int) -> list[tuple[int, ...]]:
    """Choose the GPUs with most left, whether or not that is enough."""
    need = ask.whole + (ask.part > 0)
    free = list(r.devices) + [0] * max(0, need - len(r.devices))
    chosen = []
    for _ in range(ranks):
        numbers = sorted(sorted(range(len(free)), key=lambda i: (-free[i], i))[:need])
        for i, number in enumerate(numbers):
            free[number] -= MILLI if i < ask.whole else ask.part
        chosen.append(tuple(numbers))
    return chosen
