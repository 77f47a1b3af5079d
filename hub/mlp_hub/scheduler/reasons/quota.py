"""Reasons for a wait for quota, in numbers that add up: the limit is in use, held by others, or free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.workload.workload import APP, SERVER
from mlp_hub.scheduler.assign.feasible import beyond_quota, less_per_rank, most_workers
from mlp_hub.scheduler.assign.fit import stays_inside
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.resources import part
from mlp_hub.scheduler.model.types import CapacityWindow, Verdict
from mlp_hub.scheduler.workloads.pending import Entry, JobClass
from mlp_language.message import (
    MOST_LISTED,
    NOTHING,
    Arg,
    Message,
    Moment,
    Period,
    Span,
    TenantRef,
    msg,
    some,
)


@dataclass(frozen=True, slots=True)
class FactCache:
    """Facts of one round of reasons, as of `now`, by the data they depend on: many jobs share the same."""

    now: float
    facts: dict[tuple[object, ...], tuple[Fact, ...]] = field(default_factory=dict)
    free: dict[tuple[object, ...], Arg] = field(default_factory=dict)  # on which nodes

    def moment(self, at: float) -> Moment:
        """Return a time that comes, as spoken of now."""
        return Moment(at, self.now)

    def may_stop(self, state: ClusterState, cls: JobClass) -> tuple[Message, tuple[Fact, ...]]:
        """Say when others may be stopped for a class, where they only have to have run long enough; else nothing."""
        if cls.ripe is None:
            return NOTHING, ()
        least = Span(state.policy.min_run_s)
        known = (Fact("may_stop", msg("once they have run for {least}", least=least)),)
        if cls.ripe < self.now + 0.5:
            return msg("Others can be stopped after {least}.", least=least), known
        return msg("Other jobs can be stopped {at}.", at=self.moment(cls.ripe)), known


def waits_for_quota(state: ClusterState, entry: Entry, cache: FactCache) -> Verdict:
    """Say that the tenant's quota is used up: how much there is, who has it, what is asked for."""
    cls, quotas = entry.cls, state.quotas
    tenant, asked = cls.tenant, cls.vector
    over = quotas.excess(tenant, asked)
    if not over and cls.demand.gpu:
        # in all it would fit: it is the kinds of GPU whose quota is used up
        for kind in state.index.kinds():
            over += [(f"gpu:{kind}", asked["gpu"], quotas.available(tenant, f"gpu:{kind}") or 0)]
    holders = tuple(state.running.of_tenant.get(tenant, ()))
    if not over:
        # in the same plan in which it was tried somebody was stopped
        return Verdict(
            Reason.WAITING_FOR_QUOTA, msg("Quota became free. The next cycle decides."), (), holders
        )
    facts: list[Fact] = []
    usages = [(_Usage(state, tenant, d, available), ask) for d, ask, available in over]
    for usage, ask in usages:
        key = ("quota", tenant, usage.dimension)
        if key not in cache.facts:
            cache.facts[key] = tuple(usage.facts())
        facts += [Fact("asked", quantity(usage.dimension, ask), usage.dimension), *cache.facts[key]]
    way, more = _way_out(state, entry, usages, cache)
    dimension, ask, available = over[0]
    headline = msg(
        "Needs {asked}, {free} free. {way}",
        asked=quantity(dimension, ask),
        free=number(dimension, max(available, 0)),
        way=way,
    )
    return Verdict(Reason.WAITING_FOR_QUOTA, headline, (*facts, *more), holders)


def _way_out(
    state: ClusterState, entry: Entry, usages: list[tuple[_Usage, int]], cache: FactCache
) -> tuple[Message, tuple[Fact, ...]]:
    """Say what has to happen until it has its quota, the surest first."""
    if (held := held_for_good(state, entry)) is not None:
        return held.headline, held.facts
    may_stop, facts = cache.may_stop(state, entry.cls)
    for usage, _ in usages:
        if may_stop and (lends := usage.comes_back_from(entry.cls)):
            ripe = entry.cls.ripe
            assert ripe is not None  # noqa: S101 - or nobody may be stopped
            return msg(
                "Takes back its own quota from {tenants} {at}.",
                tenants=lends,
                at=cache.moment(max(ripe, cache.now)),
            ), facts
    if may_stop:
        return may_stop, facts
    return _until_own_end(state, entry.cls.tenant, usages), ()


def _until_own_end(state: ClusterState, tenant: str, usages: list[tuple[_Usage, int]]) -> Message:
    """Return the message about the tenant's own work that has to end, where it holds exhausted amounts."""
    own, dimensions = state.queues[tenant].tenant, [u.dimension for u, _ in usages]
    running = state.running.of_tenant.get(tenant, {}).values()
    kinds = {h.run.job.ref.kind for h in running if any(h.vector.get(d) for d in dimensions)}
    apps = msg("Apps of {tenant} hold it: scale one down.", tenant=TenantRef(tenant))
    if APP in kinds and any(_apps_keep(state, usage, ask) for usage, ask in usages):
        return apps
    jobs = kinds - {SERVER.name, APP}
    servers = SERVER.name in kinds or any(part(own.used, d) for d in dimensions)
    if jobs and servers:
        return msg("Starts when jobs or notebook servers of {tenant} end.", tenant=TenantRef(tenant))
    if servers:
        return msg("Starts when notebook servers of {tenant} end.", tenant=TenantRef(tenant))
    if jobs:
        return msg("Starts when jobs of {tenant} end.", tenant=TenantRef(tenant))
    if APP in kinds:
        return apps
    return msg("Others hold it; the job waits until they end.")


def _apps_keep(state: ClusterState, usage: _Usage, ask: int) -> bool:
    """Tell whether the tenant's apps hold so much that the end of all its other work would not be enough."""
    running = state.running.of_tenant.get(usage.tenant, {}).values()
    apps = sum(h.vector.get(usage.dimension, 0) for h in running if h.run.job.ref.kind == APP)
    return apps > 0 and not usage.others and usage.used - apps < ask - usage.available


class _Usage:
    """Standing of a tenant in one dimension: the sum of its use, the others' holdings and the free rest."""

    def __init__(self, state: ClusterState, tenant: str, dimension: str, available: int) -> None:
        quotas = state.quotas
        self._state, self.tenant, self.dimension = state, tenant, dimension
        self.available = available
        self.used = quotas.used(tenant).get(dimension, 0)
        self.limit = quotas.limit(tenant, dimension) or 0
        self.nominal = quotas.nominal(tenant, dimension)
        # of what it could hold with all others idle, what others hold now
        self.others = max(0, self.limit - self.used - available)
        own = self.limit if self.nominal is None else min(self.nominal, self.limit)
        self.borrowers = [t for t in state.borrowers(quotas.root(tenant), dimension) if t != tenant]
        lent = min(self.others, max(0, own - self.used - available))
        self.lent = lent if self.borrowers and self.nominal is not None else 0
        self.borrowed = 0 if self.nominal is None else max(0, min(self.used, self.limit) - self.nominal)
        self.beyond = max(0, self.used - self.limit)  # a quota was lowered below what is in use

    def facts(self) -> Iterator[Fact]:
        """Yield the facts that add up: the limit, in use, held by others, free."""
        yield self._fact("limit", self.limit)
        if self.nominal is not None and self.nominal < self.limit:
            yield self._fact("nominal", self.nominal)
        yield self._fact("inuse", self.used, users_of(self._state, self.dimension, self.tenant))
        if self.borrowed:
            yield self._fact("borrowed", self.borrowed)
        if self.beyond:
            yield self._fact("beyond", self.beyond)
        if self.others:
            yield self._fact("others", self.others, self._held())
        if self.lent:
            yield self._fact("lent", self.lent, some([TenantRef(t) for t in self.borrowers]))
        yield self._fact("free", self.available)
        for tenant, kept in self._state.quotas.kept_free(self.dimension, self.tenant):
            yield self._fact("kept", kept, (TenantRef(tenant), *self._windows(tenant)))

    def comes_back_from(self, cls: JobClass) -> tuple[Arg, ...]:
        """Return from whom its own comes back as soon as they have run long enough."""
        quotas = self._state.quotas
        if not self.lent or not stays_inside(quotas, cls):
            return ()
        ask = {self.dimension: cls.vector[self.dimension]}
        return some([TenantRef(t) for t in self.borrowers if quotas.may_reclaim(self.tenant, t, ask, ask)])

    def _fact(self, key: str, value: int, who: tuple[Arg, ...] = ()) -> Fact:
        return Fact(key, quantity(self.dimension, value), self.dimension, who)

    def _held(self) -> tuple[Arg, ...]:
        """Return the holders of amounts that the tenant lacks; they can also hold more, which it could not have."""
        quotas, d = self._state.quotas, self.dimension
        holders = self._holders()
        named = [
            msg("{who} ({amount})", who=TenantRef(t), amount=number(d, quotas.used(t)[d]))
            for t in holders[:MOST_LISTED]
        ]
        return some(named, len(holders))

    def _holders(self) -> list[str]:
        quotas = self._state.quotas
        # while something is kept free for somebody, what all tenants hold of the nodes counts
        roots = [quotas.root(self.tenant)]
        if quotas.reserves:
            roots = list(dict.fromkeys(quotas.root(t) for t in quotas))
        found = [t for root in roots for t in self._state.holders(root, self.dimension)]
        return [t for t in found if t != self.tenant]

    def _windows(self, tenant: str) -> tuple[Arg, ...]:
        """Return the open windows by which something is kept free for a tenant."""
        open_ = self._state.bookings.open_at(self._state.now, tenant, self.dimension)
        return some([window(b) for b in open_])


def window(booking: CapacityWindow) -> Message:
    """Name a booked window and say from when until when."""
    period = Period(booking.start, booking.end)
    if not booking.name:
        return msg("the window ({period})", period=period)
    return msg("window {name} ({period})", name=booking.name, period=period)


def can_never_start(state: ClusterState, entry: Entry) -> Verdict:
    """Return the verdict that the quota is too small even with all others idle, and a size that could start."""
    cls, quotas = entry.cls, state.quotas
    over: dict[str, int] = {}
    for dimension, asked in cls.vector.items():
        limit = quotas.limit_of_quota(cls.tenant, dimension)
        if limit is not None and asked > limit:
            over[dimension] = limit
    return beyond_quota(entry.job, over, cls.vector, state.queues[cls.tenant].tenant)


@dataclass(frozen=True, slots=True)
class HeldForGood:
    """Amounts that a tenant's non-jobs hold and must give back first, whichever jobs end.

    `because` is the same text as a clause.
    """

    headline: Message
    because: Message
    facts: tuple[Fact, ...]


def held_for_good(state: ClusterState, entry: Entry) -> HeldForGood | None:
    """Return the amounts a job needs that its tenant's servers hold, where no end of a job is enough for it."""
    cls, tenant = entry.cls, state.queues[entry.cls.tenant].tenant
    left: dict[str, int] = {}
    for dimension, asked in cls.vector.items():
        limit, others = state.quotas.limit_of_quota(cls.tenant, dimension), part(tenant.used, dimension)
        if limit is not None and others and asked > limit - others:
            left[dimension] = max(0, limit - others)
    if not left:
        return None
    who = some(tenant.others)
    facts = tuple([Fact("held", quantity(d, part(tenant.used, d)), d, who) for d in left])
    fewer = most_workers(entry.job, cls.vector, left)
    less = less_per_rank(entry.job, left)
    if fewer and less:
        return HeldForGood(
            msg("Servers hold the rest. Use --workers {n} or {less}.", n=fewer, less=less),
            msg("servers hold the rest; use --workers {n} or {less}", n=fewer, less=less),
            facts,
        )
    if fewer:
        return HeldForGood(
            msg("Servers hold the rest. Use --workers {n}.", n=fewer),
            msg("servers hold the rest; use --workers {n}", n=fewer),
            facts,
        )
    if less:
        return HeldForGood(
            msg("Servers hold the rest. Use {less}.", less=less),
            msg("servers hold the rest; use {less}", less=less),
            facts,
        )
    return HeldForGood(
        msg("Servers hold the rest; one must stop."),
        msg("servers hold the rest; one has to stop"),
        facts,
    )


def users_of(state: ClusterState, dimension: str, tenant: str) -> tuple[Arg, ...]:
    """Return who uses a dimension of a tenant, with how much: the notebook server of bob (0.2), job digits of bob (2)."""
    queue = state.queues[tenant].tenant
    found: list[Arg] = []
    if others := part(queue.used, dimension):
        who = some(queue.others) or msg("holders other than jobs")
        found.append(msg("{who} ({amount})", who=who, amount=number(dimension, others)))
    users = [h for h in state.running.of_tenant.get(tenant, {}).values() if h.vector.get(dimension)]
    found += [
        msg("{who} ({amount})", who=h.run.job.ref, amount=number(dimension, h.vector[dimension]))
        for h in users[:4]
    ]
    return some(found, len(found) + max(0, len(users) - 4))
