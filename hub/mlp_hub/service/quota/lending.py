"""Shares of tenants that lend to each other: amounts borrowed, lent, lendable and free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mlp_hub.domain.dimensions import DIMENSIONS
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.scheduler.model.resources import Vector
from mlp_hub.scheduler.quota.tree import QuotaTree

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Share:
    """Standing of one tenant, by dimension, in `domain.resources` units; zeroes are left out except in `free`.

    `borrowed`: the amount that it holds beyond its nominal quota. `lent`: the amount of its idle quota
    that others hold now; if several could have lent it, each counts in proportion to its idle amount.
    `lendable`: the amount of its quota that it would still lend. `free`: the amount that it may take
    now, borrowing included; only where it has a limit. `over`: the amount that it holds beyond its
    limit with all others as they are, for example after a quota was lowered.
    """

    borrowed: Amounts = field(default_factory=dict)
    lent: Amounts = field(default_factory=dict)
    lendable: Amounts = field(default_factory=dict)
    free: Amounts = field(default_factory=dict)
    over: Amounts = field(default_factory=dict)


def kinds_in(tenants: Iterable[Tenant], booked: Iterable[Vector] = ()) -> set[str]:
    """Return the kinds of gpu, as dimensions, that any of these tenants limits or keeps free, or that is booked."""
    named = {k for t in tenants for q in (t.quota, t.in_force.reserved) if q is not None for k in q.kinds}
    return {f"gpu:{kind}" for kind in named} | {d for v in booked for d in v if d.startswith("gpu:")}


def shares_in(tree: QuotaTree, tenants: Iterable[Tenant], kinds: Iterable[str]) -> dict[str, Share]:
    """Return the shares of these tenants; the tree must hold all that they share with, charged."""
    known = list(tenants)
    dimensions = (*DIMENSIONS, *sorted(kinds))
    shares = {t.name: Share() for t in known}
    groups: dict[str, list[str]] = {}
    for tenant in known:
        groups.setdefault(tree.root(tenant.name), []).append(tenant.name)
        shares[tenant.name].over.update((d, held - most) for d, held, most in beyond(tree, tenant.name))
        for dimension in dimensions:
            free = tree.available(tenant.name, dimension)
            if free is not None:
                shares[tenant.name].free[dimension] = free
    for names in groups.values():
        if len(names) > 1:
            for dimension in dimensions:
                _lend(tree, sorted(names), dimension, shares)  # who gets what cannot be divided
    return shares


@dataclass(frozen=True, slots=True)
class LentOut:
    """Amount of a tenant's own nominal quota that it may take back in one dimension, and the borrowers."""

    amount: int
    borrowers: tuple[str, ...]


def lent_out(tree: QuotaTree, name: str, dimension: str) -> LentOut:
    """Return what of the tenant's own it could not take now, because others borrowed it."""
    own, free = tree.nominal(name, dimension), tree.available(name, dimension)
    known = tree.tenants(tree.root(name))
    borrowers = tuple(sorted(t for t in known if t != name and tree.borrows(t, (dimension,))))
    if own is None or free is None or not borrowers:
        return LentOut(0, ())
    borrowed = sum(tree.used(t)[dimension] - (tree.nominal(t, dimension) or 0) for t in borrowers)
    amount = min(max(0, own - tree.used(name).get(dimension, 0) - free), borrowed)
    return LentOut(amount, borrowers) if amount else LentOut(0, ())


def beyond(tree: QuotaTree, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield (dimension, held, what it may hold) where the tenant holds more than it may, with all others as they are."""
    for dimension, held in tree.used(name).items():
        own, limit = tree.nominal(name, dimension), tree.limit(name, dimension)
        if limit is None and own is None:
            continue
        if own is not None and held <= own and (limit is None or held <= limit):
            continue  # inside its own: it is others who hold too much
        alone = tree.fork()
        alone.release(name, {dimension: held})
        most = alone.available(name, dimension)
        if most is not None and held > most:
            yield dimension, held, most


def _lend(tree: QuotaTree, names: list[str], dimension: str, shares: dict[str, Share]) -> None:
    """Fill in the borrowers, and spread the amounts over the tenants with idle quota."""
    idle: Amounts = {}
    borrowed = 0
    for name in names:
        own = tree.nominal(name, dimension)
        if own is None:
            continue
        used = tree.used(name).get(dimension, 0)
        if used > own:
            shares[name].borrowed[dimension] = used - own
            borrowed += used - own
        elif left := own - max(used, tree.guaranteed(name, dimension)):
            idle[name] = left
    pool = sum(idle.values())
    taken = min(borrowed, pool)  # an overfull cohort has borrowed from nobody
    for name, part in _spread(taken, idle).items():
        if part:
            shares[name].lent[dimension] = part
        if idle[name] > part:
            shares[name].lendable[dimension] = idle[name] - part


def _spread(amount: int, over: Amounts) -> Amounts:
    """Divide an amount in proportion, in whole numbers that add up to it."""
    pool, given = sum(over.values()), 0
    parts: Amounts = {}
    below = 0
    for name, size in over.items():
        below += size
        upto = amount * below // pool
        parts[name] = upto - given
        given = upto
    return parts
