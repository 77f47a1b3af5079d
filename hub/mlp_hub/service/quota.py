"""Whether an amount fits a tenant's quota and a node, and the sentences that say why not.

Two refusals are told apart: what could never fit (`ExceedsMaxQuota`), and what only does not fit now
(`WaitingForQuota`, and `WaitingForResources` where the quota has room and the node has not).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.ledger import APPLIERS, ResourceRequest
from mlp_hub.domain.resources import ZERO, Quota, Resources
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler import words as plain
from mlp_hub.scheduler.words import amount as words
from mlp_hub.scheduler.words import listing

NODE_DIMENSIONS = ("cpu", "gpu", "ram")
GIB = 2**30


def number(dimension: str, value: int) -> str:
    """Write an amount without its unit; nobody reads storage in bytes."""
    return f"{value / GIB:.4g}" if dimension == "rom" else plain.number(dimension, value)


def unit(dimension: str) -> str:
    """Name the unit of a dimension."""
    return "GiB storage (rom)" if dimension == "rom" else plain.unit(dimension)


def capacity_of(node: NodeInfo) -> Resources:
    """Return what the node may give out, its gpus under their kind."""
    c = node.capacity
    return Resources(c.cpu, c.gpu, c.ram, c.rom, ((node.gpu_kind, c.gpu),) if node.gpu_kind and c.gpu else ())


def limits(tenant: Tenant, nodes: Sequence[NodeInfo]) -> Quota:
    """Return what the tenant may use at most: its quota, and what the nodes have where it has none.

    Nodes that are down count: they are expected back, and a limit must not flicker. Storage is not a
    matter of nodes: without a quota it has no limit.
    """
    have = ZERO
    for node in nodes:
        have += capacity_of(node)
    q = tenant.quota
    return Quota(
        cpu=have.cpu if q.cpu is None else q.cpu,
        gpu=have.gpu if q.gpu is None else q.gpu,
        ram=have.ram if q.ram is None else q.ram,
        rom=q.rom,
        kinds={**dict(have.kinds), **q.kinds},
    )


def check_quota(
    tenant: Tenant,
    limit: Quota,
    asked: Resources,
    in_use: Resources,
    holders: Sequence[ResourceRequest],
) -> None:
    """Raise `Refused` unless the amount fits beside what is in use.

    Only dimensions that are asked for count: a quota lowered below its use in one of them stops no work
    that needs none of it.
    """
    who = tenant.name
    never = limit.exceeded_by(asked)
    missing = [(f"gpu:{k}", v, 0) for k, v in asked.kinds if v and k not in limit.kinds]
    if missing:
        kinds = listing(sorted(k for k, v in limit.kinds.items() if v)) or "none at all"
        raise Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            f"there is no {unit(missing[0][0])} here; the kinds of gpu are: {kinds}",
        )
    if never:
        may = listing(f"{number(d, top)} {unit(d)}" for d, _, top in never)
        wants = listing(f"{number(d, want)} {unit(d)}" for d, want, _ in never)
        source = "" if _own(tenant, never[0][0]) else ", which is what the nodes have"
        raise Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            f"{who} may use {may}{source}; this asks for {wants}, which can never start. "
            f"Ask for {may} at most, or have the quota of {who} raised",
        )
    over = [(d, _part(in_use, d), top) for d, _, top in limit.exceeded_by(in_use + asked) if _part(asked, d)]
    if not over:
        return
    clauses = [
        f"{who} may use {number(d, top)} {unit(d)}; {number(d, used)} in use{_by(d, holders)}; "
        f"this asks for {number(d, _part(asked, d))}"
        for d, used, top in over
    ]
    left = [(d, top - used) for d, used, top in over]
    smaller = ""
    if all(n > 0 for _, n in left):
        smaller = f"Ask for {listing(f'{number(d, n)} {unit(d)}' for d, n in left)} at most, wait"
    raise Refused(
        Reason.WAITING_FOR_QUOTA,
        f"{'. '.join(clauses)}. {smaller or 'Wait'} until what is in use is given back, "
        f"or have the quota of {who} raised",
    )


def choose_node(
    asked: Resources, nodes: Sequence[NodeInfo], used: Mapping[str, Resources], wanted: str | None = None
) -> str:
    """Return the node that holds the amount and is left with the least room, or the one that is wanted.

    Raises `Refused` when none has the room.
    """
    need = asked.but(rom=0)
    if wanted is not None:
        nodes = [n for n in nodes if n.name == wanted]
        if not nodes:
            raise Refused(Reason.NOT_FOUND, f"there is no node {wanted}")
    if not any(need.fits(capacity_of(n)) for n in nodes):
        biggest = listing(f"{n.name} has {words(n.capacity.but(rom=0))}" for n in nodes) or "there is none"
        raise Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            f"no node can hold {words(need)}, which can never start: {biggest}. Ask for less",
        )
    free = {n.name: capacity_of(n) - used.get(n.name, ZERO) for n in nodes if n.up}
    fitting = [name for name, room in free.items() if _fits(need, room)]
    if fitting:
        return min(fitting, key=lambda name: (free[name].gpu, free[name].ram, free[name].cpu, name))
    have = (
        listing(f"{name} has {words(_positive(room))} free" for name, room in free.items()) or "no node is up"
    )
    raise Refused(
        Reason.WAITING_FOR_RESOURCES,
        f"no node has room for {words(need)} now: {have}. Ask for less, or wait until something ends",
    )


def check_nodes(
    placement: Mapping[str, Resources], nodes: Sequence[NodeInfo], used: Mapping[str, Resources]
) -> None:
    """Raise `Refused` unless each node has the room that the placement takes of it."""
    by_name = {n.name: n for n in nodes}
    for name, share in placement.items():
        node = by_name.get(name)
        if node is None or not node.up:
            raise Refused(
                Reason.WAITING_FOR_RESOURCES, f"node {name} is {'gone' if node is None else 'down'}"
            )
        free = capacity_of(node) - used.get(name, ZERO)
        if not _fits(share.but(rom=0), free):
            raise Refused(
                Reason.WAITING_FOR_RESOURCES,
                f"node {name} has {words(_positive(free))} free; this asks for {words(share.but(rom=0))}",
            )


def holder_of(request: ResourceRequest) -> str:
    """Name who holds a request, for people."""
    if request.holder:
        return request.holder
    if request.applier == "sp" and request.user:
        return f"{request.user}'s notebook"
    return f"{APPLIERS.get(request.applier, request.applier)} request {request.id}"


def _own(tenant: Tenant, dimension: str) -> bool:
    """Whether the limit is the tenant's own, not the nodes'."""
    base, _, kind = dimension.partition(":")
    return kind in tenant.quota.kinds if kind else getattr(tenant.quota, base) is not None


def _part(amount: Resources, dimension: str) -> int:
    base, _, kind = dimension.partition(":")
    return dict(amount.kinds).get(kind, 0) if kind else int(getattr(amount, base))


def _by(dimension: str, holders: Sequence[ResourceRequest]) -> str:
    names = [holder_of(h) for h in holders if _part(h.amount, dimension)]
    return f" by {listing(names)}" if names else ""


def _fits(need: Resources, room: Resources) -> bool:
    """Whether the need fits where it needs anything: a node over its capacity in memory can still give a gpu."""
    if any(getattr(need, d) and getattr(need, d) > getattr(room, d) for d in NODE_DIMENSIONS):
        return False
    have = dict(room.kinds)
    return all(v <= have.get(k, 0) for k, v in need.kinds)


def _positive(room: Resources) -> Resources:
    return Resources(max(room.cpu, 0), max(room.gpu, 0), max(room.ram, 0))
