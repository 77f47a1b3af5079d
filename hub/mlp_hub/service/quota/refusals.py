"""Messages that explain why a quota has no room: the numbers, the holders, and the remedy.

There are two refusals: a request that could never fit (`ExceedsMaxQuota`), and one that only does
not fit now (`WaitingForQuota`). Holders are named within the tenant that asks; of others only the
tenant is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.stored.storage import StoredKind, title
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import APPLIERS, OF_JOBS, OF_STORAGE, ResourceRequest, replica_in
from mlp_hub.domain.workload.workload import KINDS, SERVER
from mlp_hub.scheduler.model.resources import part
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.service.quota.reserved import by_quota_alone
from mlp_language.message import NOTHING, Arg, JobRef, Message, TenantRef, msg, some, verbatim


def holder_of(request: ResourceRequest) -> Message:
    """Name who holds a request, for people; of a job it is stored as its name, which has no blank."""
    held, user = request.holder, request.user
    if (replica := replica_in(request)) is not None:
        app, slot = replica
        return msg("app {name} of {user}, replica {n}", name=app, user=user, n=slot)
    if request.applier == OF_JOBS and user and held and " " not in held:
        return msg("job {name} of {user}", name=held, user=user)
    if request.applier == SERVER.applier and user and held in ("", f"{user}'s notebook"):
        return msg("{user}'s notebook", user=user)
    if request.applier == OF_STORAGE:
        kind, _, name = held.partition(" ")
        return title(StoredKind(kind), name, user)
    return verbatim(held or f"{APPLIERS.get(request.applier, request.applier)} request {request.id}")


def holder(request: ResourceRequest) -> JobRef | Message:
    """Return the form in which messages refer to the holder of a request."""
    kind = KINDS.get(request.applier)
    if kind is not None and request.user:
        return JobRef(request.uid, kind.title, request.user, request.tenant, kind.name)
    return holder_of(request)


def pool_of(tenant: Tenant) -> Message:
    """Name whom the tenant shares with: its parent, its cohort or its children."""
    if tenant.parent is not None:
        return msg("its parent {tenant}", tenant=TenantRef(tenant.parent))
    if tenant.cohort is not None:
        return msg("cohort {cohort}", cohort=tenant.cohort)
    return msg("the quota that its children leave")


@dataclass(frozen=True, slots=True)
class DimensionStanding:
    """Standing of a tenant in one requested dimension.

    `own`: its nominal quota, None without one; `limit`: the most it could ever hold; `free`: the amount
    that it may take now; `kept`: the amount kept free for other tenants, where that leaves it less than
    its quota would.
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
        """Amount that it may hold beyond its own."""
        return 0 if self.own is None else max(0, self.limit - self.own)

    @property
    def taken(self) -> int:
        """Amount that it might hold and others have now."""
        return max(0, self.limit - self.used - self.free)


def standing_in(
    tenant: Tenant,
    tree: QuotaTree,
    have: Quota,
    dimension: str,
    *,
    asked: int = 0,
    whole: QuotaTree | None = None,
) -> DimensionStanding | None:
    """Return the tenant's standing in a dimension, None without a limit; `have` is from `accounting.limits`.

    `whole`: the tree as it is with all nodes up and no window open.
    """
    name, whole = tenant.name, whole or tree
    used = tree.used(name).get(dimension, 0)
    limit, free = whole.limit(name, dimension), tree.available(name, dimension)
    kept, never_kept = _kept(tree, whole, name, dimension)
    of_nodes = False
    if tenant.quota.part(dimension) is None:
        most = have.part(dimension)
        if most is not None and (limit is None or most < limit):
            limit, of_nodes = most, True
        if most is not None:
            free = max(0, most - used) if free is None else max(0, min(free, most - used))
    if limit is None or free is None:
        return None
    own = None if of_nodes else tree.nominal(name, dimension)
    return DimensionStanding(dimension, asked, used, own, limit, free, of_nodes, kept, never_kept)


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
    kinds = some(sorted(k for k, v in have.kinds.items() if v)) or msg("none at all")
    return Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        msg("no node has a {kind} GPU; the kinds of GPU are: {kinds}", kind=kind, kinds=kinds),
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


def _never(tenant: Tenant, over: Sequence[DimensionStanding]) -> Refused:
    most = tuple([quantity(s.dimension, s.limit) for s in over])
    said: dict[str, Arg] = {
        "tenant": TenantRef(tenant.name),
        "may": tuple(
            [msg("{amount}{of}", amount=m, of=_in_all(tenant, s)) for m, s in zip(most, over, strict=True)]
        ),
        "asked": tuple([quantity(s.dimension, s.asked) for s in over]),
        "most": most,
    }
    if any(s.never_kept for s in over):
        return Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            msg(
                "{tenant} may use {most}; the rest of the nodes is reserved for others. This request asks for {asked} and can never start. Ask for at most {most}, or have less reserved",
                **said,
            ),
        )
    if over[0].of_nodes:
        return Refused(
            Reason.EXCEEDS_MAX_QUOTA,
            msg(
                "{tenant} may use {may}, which is all that the nodes have. This request asks for {asked} and can never start. Ask for at most {most}: no quota makes the nodes larger",
                **said,
            ),
        )
    raised = msg("the quota of {tenant}", tenant=TenantRef(tenant.name))
    if any(s.may_borrow or (tenant.borrowing_limit or Quota()).part(s.dimension) is not None for s in over):
        raised = msg("the quota or the borrowing limit of {tenant}", tenant=TenantRef(tenant.name))
    elif any(s.own is None for s in over):
        raised = msg("the quota of {tenant}", tenant=TenantRef(tenant.parent))
    return Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        msg(
            "{tenant} may use {may}. This request asks for {asked} and can never start. Ask for at most {most}, or have {raised} raised",
            **said,
            raised=raised,
        ),
    )


def _not_now(
    tenant: Tenant, tree: QuotaTree, over: Sequence[DimensionStanding], holders: Sequence[ResourceRequest]
) -> Refused:
    clauses = [
        msg(
            "{may}; {used} in use{by}{of_others}{kept}; this request asks for {asked}",
            may=_may(tenant, s),
            used=number(s.dimension, s.used),
            by=_by(s.dimension, holders),
            of_others=_of_others(tenant, tree, s),
            kept=_kept_back(s),
            asked=number(s.dimension, s.asked),
        )
        for s in over
    ]
    way = msg(
        "Wait until used quota is given back, or have the quota of {tenant} raised",
        tenant=TenantRef(tenant.name),
    )
    if all(s.free > 0 for s in over):
        way = msg(
            "Ask for at most {amounts}, wait until used quota is given back, or have the quota of {tenant} raised",
            amounts=tuple([quantity(s.dimension, s.free) for s in over]),
            tenant=TenantRef(tenant.name),
        )
    return Refused(Reason.WAITING_FOR_QUOTA, reduce(lambda a, b: msg("{a}. {b}", a=a, b=b), [*clauses, way]))


def _in_all(tenant: Tenant, s: DimensionStanding) -> Message:
    """Say where the most that it could hold comes from, when not all of it is its own."""
    if s.own is None:
        return NOTHING if s.of_nodes else msg(" from {pool}", pool=pool_of(tenant))
    if not s.may_borrow:
        return NOTHING
    return msg(
        " in total ({own} own quota, {more} borrowed from {pool})",
        own=number(s.dimension, s.own),
        more=number(s.dimension, s.may_borrow),
        pool=pool_of(tenant),
    )


def _may(tenant: Tenant, s: DimensionStanding) -> Message:
    who = TenantRef(tenant.name)
    if s.own is None or not s.may_borrow:
        return msg(
            "{tenant} may use {limit}{of}",
            tenant=who,
            limit=quantity(s.dimension, s.limit),
            of=_in_all(tenant, s),
        )
    return msg(
        "{tenant} may use its own {own} and borrow {more} from {pool}",
        tenant=who,
        own=quantity(s.dimension, s.own),
        more=number(s.dimension, s.may_borrow),
        pool=pool_of(tenant),
    )


def _of_others(tenant: Tenant, tree: QuotaTree, s: DimensionStanding) -> Message:
    """Say which tenants have what this one might use."""
    if not s.taken:
        return NOTHING
    who, dimension = tenant.name, s.dimension
    # while something is kept free the tree holds all tenants, and what others use of the nodes matters too
    known = tree if s.kept else tree.tenants(tree.root(who))
    others = [t for t in known if t != who and tree.used(t).get(dimension)]
    if not others:
        return NOTHING
    borrowers = [t for t in others if tree.borrows(t, (dimension,))]
    missing = 0 if s.own is None else s.own - s.used - s.free
    taken = number(dimension, s.taken)
    if borrowers and missing > 0:
        return msg(
            "; {tenants} borrowed {amount} of it",
            tenants=_tenants(borrowers),
            amount=number(dimension, missing),
        )
    if borrowers or s.own is None:
        return msg("; {amount} in use by {tenants}", amount=taken, tenants=_tenants(others))
    return msg("; {tenants} took back {amount}", tenants=_tenants(others), amount=taken)


def _tenants(names: Sequence[str]) -> tuple[Arg, ...]:
    return some([TenantRef(name) for name in names])


def _kept_back(s: DimensionStanding) -> Message:
    """Say for whom something is kept free that this tenant might use."""
    if not s.kept:
        return NOTHING
    kept = [
        msg("{amount} for {tenant}", amount=quantity(s.dimension, n), tenant=TenantRef(tenant))
        for tenant, n in s.kept
    ]
    return msg("; of the nodes' resources, {kept} is kept free", kept=some(kept))


def _by(dimension: str, holders: Sequence[ResourceRequest]) -> Message:
    names = [holder(h) for h in holders if part(h.amount, dimension)]
    return msg(" by {holders}", holders=some(names)) if names else NOTHING
