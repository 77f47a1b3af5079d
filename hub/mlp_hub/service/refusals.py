"""The sentences that say why a quota has no room: the numbers, who holds them, and the way out.

Two refusals are told apart: what could never fit (`ExceedsMaxQuota`), and what only does not fit now
(`WaitingForQuota`). Holders are named within the tenant that asks; of others only the tenant is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.ledger import APPLIERS, ResourceRequest
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenant import Tenant
from mlp_hub.scheduler import words as plain
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.vectors import part
from mlp_hub.scheduler.words import listing
from mlp_hub.service.kept_free import by_quota_alone

GIB = 2**30


def number(dimension: str, value: int) -> str:
    """Write an amount without its unit; nobody reads storage in bytes."""
    return f"{value / GIB:.4g}" if dimension == "rom" else plain.number(dimension, value)


def unit(dimension: str) -> str:
    """Name the unit of a dimension."""
    return "GiB storage (rom)" if dimension == "rom" else plain.unit(dimension)


def limit_in(quota: Quota, dimension: str) -> int | None:
    """Return a quota's limit of one dimension, `gpu:KIND` too."""
    base, _, kind = dimension.partition(":")
    if kind:
        return quota.kinds.get(kind)
    limit: int | None = getattr(quota, base)
    return limit


def holder_of(request: ResourceRequest) -> str:
    """Name who holds a request, for people."""
    if request.holder:
        return request.holder
    if request.applier == "sp" and request.user:
        return f"{request.user}'s notebook"
    return f"{APPLIERS.get(request.applier, request.applier)} request {request.id}"


def tenants_named(names: Sequence[str]) -> str:
    """Name tenants: "tenant blue", "tenants blue and green"."""
    return f"tenant {names[0]}" if len(names) == 1 else f"tenants {listing(names)}"


def pool_of(tenant: Tenant) -> str:
    """Name whom the tenant shares with: its parent, its cohort or its children."""
    if tenant.parent is not None:
        return f"its parent {tenant.parent}"
    return f"cohort {tenant.cohort}" if tenant.cohort is not None else "what its children leave"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant stands in one dimension of what it asks for.

    `own`: its nominal quota, None without one; `limit`: the most it could ever hold; `free`: what it may take now;
    `kept`: what is kept free for other tenants, where that leaves it less than its quota would.
    """

    dimension: str
    asked: int
    used: int
    own: int | None
    limit: int
    free: int
    of_nodes: bool  # the limit is what the nodes have
    kept: tuple[tuple[str, int], ...] = ()  # by tenant
    never_kept: bool = False  # even the limit is what others leave of the nodes

    @property
    def may_borrow(self) -> int:
        """What it may hold beyond its own."""
        return 0 if self.own is None else max(0, self.limit - self.own)

    @property
    def taken(self) -> int:
        """What it might hold and others have now."""
        return max(0, self.limit - self.used - self.free)


def standing_in(
    tenant: Tenant,
    tree: QuotaTree,
    have: Quota,
    dimension: str,
    *,
    asked: int = 0,
    whole: QuotaTree | None = None,
) -> Standing | None:
    """Return how the tenant stands in a dimension; None where it has no limit. `have` is what `quota.limits` says.

    `whole`: the tree as it is with all nodes up and no window open.
    """
    name, whole = tenant.name, whole or tree
    used = tree.used(name).get(dimension, 0)
    limit, free = whole.limit(name, dimension), tree.available(name, dimension)
    kept, never_kept = _kept(tree, whole, name, dimension)
    of_nodes = False
    if limit_in(tenant.quota, dimension) is None:
        most = limit_in(have, dimension)
        if most is not None and (limit is None or most < limit):
            limit, of_nodes = most, True
        if most is not None:
            free = max(0, most - used) if free is None else max(0, min(free, most - used))
    if limit is None or free is None:
        return None
    own = None if of_nodes else tree.nominal(name, dimension)
    return Standing(dimension, asked, used, own, limit, free, of_nodes, kept, never_kept)


def _kept(
    tree: QuotaTree, whole: QuotaTree, name: str, dimension: str
) -> tuple[tuple[tuple[str, int], ...], bool]:
    """Return what is kept free for whom, if that is what limits the tenant; and whether it always would."""
    if not tree.reserves:
        return (), False
    free, limit = tree.available(name, dimension), whole.limit(name, dimension)
    alone = by_quota_alone(tree, dimension)
    by_quota, quota_limit = alone.available(name, dimension), alone.limit(name, dimension)
    bound = free is not None and (by_quota is None or free < by_quota)
    never = limit is not None and (quota_limit is None or limit < quota_limit)
    return tuple(tree.kept_free(dimension, name)) if bound else (), never


def no_such_kind(kind: str, have: Quota) -> Refused:
    """Refuse a kind of gpu that is not here."""
    kinds = listing(sorted(k for k, v in have.kinds.items() if v)) or "none at all"
    return Refused(
        Reason.EXCEEDS_MAX_QUOTA, f"there is no {unit(f'gpu:{kind}')} here; the kinds of gpu are: {kinds}"
    )


def over_quota(
    tenant: Tenant,
    tree: QuotaTree,
    vector: Mapping[str, int],
    have: Quota,
    holders: Sequence[ResourceRequest],
    *,
    whole: QuotaTree | None = None,
) -> Refused:
    """Return the refusal of an amount that does not fit beside what is in use."""
    found = [standing_in(tenant, tree, have, d, asked=asked, whole=whole) for d, asked in vector.items()]
    all_ = [s for s in found if s is not None]
    never = [s for s in all_ if s.asked > s.limit]
    if never:
        return _never(tenant, never)
    return _not_now(tenant, tree, [s for s in all_ if s.asked > s.free], holders)


def _never(tenant: Tenant, over: Sequence[Standing]) -> Refused:
    who = tenant.name
    may = listing(f"{_amount(s, s.limit)}{_in_all(tenant, s)}" for s in over)
    wants = listing(_amount(s, s.asked) for s in over)
    source = ", which is what the nodes have" if over[0].of_nodes else ""
    most = listing(_amount(s, s.limit) for s in over)
    raised = f"the quota of {who}"
    if any(s.never_kept for s in over):
        source = ", the rest of what the nodes have is reserved for others"
        return Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            f"{who} may use {most}{source}; this asks for {wants}, which can never start. "
            f"Ask for {most} at most, or have less reserved",
        )
    if any(
        s.may_borrow or limit_in(tenant.borrowing_limit or Quota(), s.dimension) is not None for s in over
    ):
        raised = f"the quota or the borrowing limit of {who}"
    elif any(s.own is None and not s.of_nodes for s in over):
        raised = f"the quota of {tenant.parent}"
    return Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        f"{who} may use {may}{source}; this asks for {wants}, which can never start. "
        f"Ask for {most} at most, or have {raised} raised",
    )


def _not_now(
    tenant: Tenant, tree: QuotaTree, over: Sequence[Standing], holders: Sequence[ResourceRequest]
) -> Refused:
    clauses = [
        f"{_may(tenant, s)}; {number(s.dimension, s.used)} in use{_by(s.dimension, holders)}"
        f"{_of_others(tenant, tree, s)}{_kept_back(s)}; this asks for {number(s.dimension, s.asked)}"
        for s in over
    ]
    smaller = ""
    if all(s.free > 0 for s in over):
        smaller = f"Ask for {listing(_amount(s, s.free) for s in over)} at most, wait"
    return Refused(
        Reason.WAITING_FOR_QUOTA,
        f"{'. '.join(clauses)}. {smaller or 'Wait'} until what is in use is given back, "
        f"or have the quota of {tenant.name} raised",
    )


def _amount(s: Standing, value: int) -> str:
    return f"{number(s.dimension, value)} {unit(s.dimension)}"


def _in_all(tenant: Tenant, s: Standing) -> str:
    """Say where the most that it could hold comes from, when not all of it is its own."""
    if s.own is None:
        return "" if s.of_nodes else f" of {pool_of(tenant)}"
    if not s.may_borrow:
        return ""
    own, more = number(s.dimension, s.own), number(s.dimension, s.may_borrow)
    return f" in all ({own} of its own, {more} borrowed of {pool_of(tenant)})"


def _may(tenant: Tenant, s: Standing) -> str:
    if s.own is None or not s.may_borrow:
        return f"{tenant.name} may use {_amount(s, s.limit)}{_in_all(tenant, s)}"
    more = number(s.dimension, s.may_borrow)
    return f"{tenant.name} may use {_amount(s, s.own)} of its own and borrow {more} of {pool_of(tenant)}"


def _of_others(tenant: Tenant, tree: QuotaTree, s: Standing) -> str:
    """Say which tenants have what this one might use."""
    if not s.taken:
        return ""
    who, dimension = tenant.name, s.dimension
    # while something is kept free the tree holds all tenants, and what others use of the nodes matters too
    known = tree if s.kept else tree.tenants(tree.root(who))
    others = [t for t in known if t != who and tree.used(t).get(dimension)]
    if not others:
        return ""
    borrowers = [t for t in others if tree.borrows(t, (dimension,))]
    missing = 0 if s.own is None else s.own - s.used - s.free
    if borrowers and missing > 0:
        verb = "has" if len(borrowers) == 1 else "have"
        return f"; {tenants_named(borrowers)} {verb} borrowed {number(dimension, missing)} of it"
    if borrowers or s.own is None:
        return f"; {number(dimension, s.taken)} in use by {tenants_named(others)}"
    verb = "has" if len(others) == 1 else "have"
    return f"; {tenants_named(others)} {verb} taken back {number(dimension, s.taken)}"


def _kept_back(s: Standing) -> str:
    """Say for whom something is kept free that this tenant might use."""
    if not s.kept:
        return ""
    whose = listing(
        f"{number(s.dimension, n)}{f' {unit(s.dimension)} is kept free' if not i else ''} for tenant {tenant}"
        for i, (tenant, n) in enumerate(s.kept)
    )
    return f"; of what the nodes have, {whose}"


def _by(dimension: str, holders: Sequence[ResourceRequest]) -> str:
    names = [holder_of(h) for h in holders if part(h.amount, dimension)]
    return f" by {listing(names)}" if names else ""
