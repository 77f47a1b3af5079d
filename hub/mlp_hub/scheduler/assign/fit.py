"""Fit of a whole gang into a quota tree and a set of nodes, present or on trial, and its right to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector, vector_of_ranks
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.pending import JobClass, QuotaStanding


def vector_on(index: NodeIndex, demand: Demand, placement: tuple[str, ...]) -> Vector:
    """Return what ranks on these nodes take of a quota, GPUs by their nodes' kinds too; not to be changed."""
    known = index.vectors.get((demand, placement))
    if known is None:
        known = index.vectors[demand, placement] = _vector_on(index, demand, placement)
    return known


def _vector_on(index: NodeIndex, demand: Demand, placement: tuple[str, ...]) -> Vector:
    vector = vector_of_ranks(demand, len(placement))
    if gpu := demand.gpu:
        vector = {d: v for d, v in vector.items() if not d.startswith("gpu:")}
        for name in placement:
            kind = index.kind(name)
            if kind:
                vector[f"gpu:{kind}"] = vector.get(f"gpu:{kind}", 0) + gpu
    return vector


def seats(
    index: NodeIndex, quotas: QuotaTree, cls: JobClass, workers: int, avoid: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Return the node of each rank (workers first, then PS) for `workers` workers, None if they do not fit."""
    ranks = workers + cls.ps
    demand = cls.demand
    if not quotas.fits(cls.tenant, cls.vector if ranks == cls.ranks_min else vector_of_ranks(demand, ranks)):
        return None
    found = index.place(demand, ranks, cls.topology, avoid)
    if found is None:
        return None
    if demand.gpu and not demand.gpu_kind and not quotas.fits(cls.tenant, vector_on(index, demand, found)):
        # the quota of one kind of GPU is used up: look for another kind
        for kind in index.kinds():
            one = replace(demand, gpu_kind=kind)
            if not quotas.fits(cls.tenant, vector_of_ranks(one, ranks)):
                continue
            found = index.place(one, ranks, cls.topology, avoid)
            if found is not None:
                return in_rank_order(found, workers, cls.ps)
        return None
    return in_rank_order(found, workers, cls.ps)


def most_seats(
    index: NodeIndex, quotas: QuotaTree, cls: JobClass, avoid: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Return the seats of as many workers as fit, between the least and the most; None below the least."""
    low, high = cls.workers_min, cls.workers_max
    if high > low:
        for dimension, one in vector_of_ranks(cls.demand, 1).items():
            room = quotas.available(cls.tenant, dimension)
            if room is not None:
                high = min(high, room // one - cls.ps)
        high = min(high, index.total_slots(cls.demand, cls.topology) - cls.ps)
        if high < low:
            return None
        best = seats(index, quotas, cls, high, avoid)
        if best is not None:
            return best
        high -= 1
    best = seats(index, quotas, cls, low, avoid)
    if best is None:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        found = seats(index, quotas, cls, middle, avoid)
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
    return best


def in_rank_order(seats: tuple[str, ...], workers: int, ps: int) -> tuple[str, ...]:
    """Deal seats out to workers and parameter servers in turn, so that a PS sits beside its worker."""
    if not ps:
        return seats
    order: list[int] = []
    for i in range(max(workers, ps)):
        if i < workers:
            order.append(i)
        if i < ps:
            order.append(workers + i)
    placement = [""] * len(seats)
    for rank, node in zip(order, seats, strict=True):
        placement[rank] = node
    return tuple(placement)


def _quota_standing(quotas: QuotaTree, cls: JobClass) -> QuotaStanding:
    """Return the known standing of a class to its quota since the last charge or release in its tree."""
    known, stamp = cls.standing, quotas.stamp_of(cls.tenant)
    if known is None or known.stamp != stamp:
        known = cls.standing = QuotaStanding(stamp)
    return known


def has_quota(quotas: QuotaTree, cls: JobClass) -> bool:
    """Whether its tenant may take the smallest gang of a class now."""
    known = _quota_standing(quotas, cls)
    if known.fits is None:
        known.fits = quotas.fits(cls.tenant, cls.vector)
    return known.fits


def stays_inside(quotas: QuotaTree, cls: JobClass) -> bool:
    """Whether its tenant stays inside nominal quota with the smallest gang of a class; see `is_inside`."""
    known = _quota_standing(quotas, cls)
    if known.inside is None:
        known.inside = is_inside(quotas, cls.tenant, cls.vector)
    return known.inside


def has_claim(quotas: QuotaTree, cls: JobClass) -> bool:
    """Whether its tenant was promised room on nodes for the smallest gang of a class; see `is_entitled`."""
    known = _quota_standing(quotas, cls)
    if known.entitled is None:
        known.entitled = is_entitled(quotas, cls.tenant, cls.vector)
    return known.entitled


def is_too_large(quotas: QuotaTree, cls: JobClass) -> bool:
    """Whether the quota is too small for the smallest gang of a class, even with all others idle."""
    known = cls.never
    if known is None or known[0] is not quotas.quotas:
        limits = ((quotas.limit_of_quota(cls.tenant, d), asked) for d, asked in cls.vector.items())
        never = any(limit is not None and asked > limit for limit, asked in limits)
        known = cls.never = (quotas.quotas, never)
    return known[1]


def is_entitled(quotas: QuotaTree, tenant: str, vector: Vector) -> bool:
    """Whether a tenant was promised room on nodes for this and asks for no more than that.

    The promise is nominal quota of GPUs, or of cores where no GPU is asked for.
    """
    return has_promise(quotas, tenant, vector) and quotas.within_nominal(tenant, vector)


def has_promise(quotas: QuotaTree, tenant: str, vector: Vector) -> bool:
    """Whether a tenant was promised any room on nodes of the kind that this asks for."""
    main = "gpu" if "gpu" in vector else "cpu"
    return quotas.promises(tenant, [d for d in vector if d.startswith(main)])


def is_inside(quotas: QuotaTree, tenant: str, vector: Vector) -> bool:
    """Return whether a tenant with nominal quota in any of these dimensions stays inside it with `vector`.

    `vector` is added to the amounts that it holds.
    """
    return quotas.promises(tenant, vector) and quotas.within_nominal(tenant, vector)


def is_safe(quotas: QuotaTree, tenant: str, vector: Vector) -> bool:
    """Whether a tenant holds no more than its nominal quota in these dimensions: no other tenant has a right to it."""
    return quotas.promises(tenant, vector) and not quotas.borrows(tenant, vector)
