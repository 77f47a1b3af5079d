"""Eligibility of victims: the running jobs that a waiting one can stop.

There are two rights (Kueue's). One is to reclaim amounts that a tenant lent from the borrowers,
whatever their priority. The other is to stop work of lower priority that is not before the job by
its age either. One job can use both: once enough lower work of the same tenant is stopped that the
tenant stays inside nominal quota, it also reclaims.

Jobs cannot stop each other in turns. By these two rights no job stops work inside another tenant's
nominal quota, and a job that reclaims stays inside its own. A tenant loses nothing more once it is
back inside. Between others, and within a tenant, priority and place in line decide, and both stay
as they are. Work inside nominal quota is not bound to its nodes, though: `preemption.defragment`
can stop it for larger work where it fits elsewhere at the same time, and starts it there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from operator import attrgetter, itemgetter

from mlp_hub.scheduler.assign.fit import has_claim, has_promise, has_quota, is_safe, stays_inside, vector_on
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.resources import Vector, resources_of
from mlp_hub.scheduler.policy import dominant_share, is_one_queue, order_in, own_key, shared_key
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.admitted import Held
from mlp_hub.scheduler.workloads.pending import Entry

MANY_TENANTS = 32
"""Tuning: tenants above what they were promised, beyond which those with the largest shares are examined first: time of a
cycle, for how much is tried in it."""
MOST_FOUND = 200
"""Tuning: candidates that are enough: no others are looked for; time of a cycle, for how much is tried in it."""

_SERIAL = attrgetter("serial")
_NUMBER = itemgetter(1)


class Spared(StrEnum):
    """Reason why a running job was not a candidate."""

    STOPPING = "stopping"
    NOT_PREEMPTIBLE = "not-preemptible"
    INSIDE_QUOTA = "inside-quota"
    PRIORITY = "priority"
    ORDER = "order"
    NOT_EXAMINED = "not-examined"  # there were enough


class PreemptionRights:
    """Rights of one waiting job to stop or shrink others."""

    def __init__(self, state: ClusterState, entry: Entry) -> None:
        self.state, self.entry = state, entry
        self.tenant = entry.cls.tenant
        self.vector = entry.cls.vector
        quotas = state.quotas
        self.root = quotas.root(self.tenant)
        fits = has_quota(quotas, entry.cls)
        self.over = [] if fits else quotas.excess(self.tenant, self.vector)
        """Shortages of its quota: dimension, asked for, available."""
        self.inside, self.entitled = stays_inside(quotas, entry.cls), has_claim(quotas, entry.cls)
        self.short = [d for d, _, _ in self.over]
        self._by_turn = not is_one_queue(state.policy)
        self._order = state.queues[self.tenant].tenant.queue_order
        self._without_priority = not order_in(state.policy, self._order).stops_by_priority
        self._fairer: dict[str, bool] = {}
        self._fairer_member: dict[str, bool] = {}
        self._listed: list[Held] | None = None
        self._listing = 0  # what that cost
        self.spared: Counter[Spared] = Counter()  # running jobs that it came upon and may not stop
        self.cut_short = False  # whether there were candidates enough before all were gone through
        self.examined = 0  # tenants and running jobs, as a measure of what it cost

    def candidates(self) -> Iterable[Held]:
        """Return the running jobs that may be stopped whole, as far as can be told before others are."""
        if self._listed is None:
            before = self.examined
            self._listed = list(self._candidates())
            self._listing = self.examined - before
        else:
            self.examined += self._listing  # they are gone through once more
        return self._listed

    def _candidates(self) -> Iterator[Held]:
        state = self.state
        others = state.overshare.line(state.running.preemptible)
        if sum(name != self.tenant for _, _, name in others[: MANY_TENANTS + 2]) <= MANY_TENANTS:
            others = sorted(others, key=_NUMBER)  # else who holds most beyond its due gives first
        found = 0
        for held in self._own:
            found += 1
            yield held
        for _, _, tenant in others:
            if found >= MOST_FOUND:
                self.cut_short = True
                return
            if tenant == self.tenant:
                continue
            for held in self._of_other(tenant):
                found += 1
                yield held

    def _of_other(self, tenant: str) -> Iterator[Held]:
        self.examined += 1
        inside, quotas = self.inside or self.gets_inside, self.state.quotas
        if not (inside or self._outranks(tenant)):
            lower = self._count_open(tenant)
            self.examined += lower
            self.spared[Spared.ORDER] += lower
            self._spare_above(tenant)
            return
        before = inside_quota = 0
        safe: dict[tuple[str, ...], bool] = {}
        for held in self._open(tenant, below=not inside):
            if not (inside or self.is_above(held)):
                before += 1
                continue
            known = safe.get(held.dimensions)
            if known is None:
                known = safe[held.dimensions] = is_safe(quotas, tenant, held.vector)
            if known:
                inside_quota += 1
            else:
                yield held
        if not inside:
            self._spare_above(tenant)
        self.spared[Spared.ORDER] += before
        self.spared[Spared.INSIDE_QUOTA] += inside_quota

    @cached_property
    def _own(self) -> list[Held]:
        """Its own tenant's jobs that it may stop."""
        lower = self._open(self.tenant, below=True)
        own = [held for held in lower if self.is_above(held) and self._outranks_member(held.run.job.user)]
        self.spared[Spared.ORDER] += len(lower) - len(own)
        self._spare_above(self.tenant)
        return own

    def _spare_above(self, tenant: str) -> None:
        """Count the preemptible jobs of a tenant that have no lower priority as spared."""
        mine = self.entry.job.priority
        groups = self.state.running.preemptible.get(tenant, {})
        self.spared[Spared.PRIORITY] += sum([len(held) for p, held in groups.items() if p >= mine])

    @cached_property
    def gets_inside(self) -> bool:
        """Whether it is beyond its nominal quota now, but could be inside without what its own tenant can give up for it.

        Then it has the right to reclaim on trial only, as soon as enough of that is gone.
        """
        quotas = self.state.quotas
        if self.inside or not quotas.promises(self.tenant, self.vector):
            return False
        left, own = quotas.used(self.tenant), self._own
        given = [held.vector for held in own] + self._own_extra({held.run.job.uid for held in own})
        for vector in given:
            for d, v in vector.items():
                left[d] = left.get(d, 0) - v
        if not given:
            return False
        for d, asked in self.vector.items():
            nominal = quotas.nominal(self.tenant, d)
            if nominal is not None and asked > 0 and left.get(d, 0) + asked > nominal:
                return False
        return True

    def _own_extra(self, without: Collection[str]) -> list[Vector]:
        """List what the extra workers of its tenant's elastic jobs take, of those that cannot be stopped whole."""
        extra = []
        for uid, held in self.state.running.elastic.items():
            run, least = held.run, held.run.job.workers_min
            if run.job.tenant == self.tenant and run.workers > least and uid not in without:
                extra.append(vector_on(self.state.index, held.demand, run.placement[least : run.workers]))
        return extra

    def is_inside(self, quotas: QuotaTree) -> bool:
        """Return whether its tenant stays inside nominal quota with it, with `quotas` as on trial."""
        return self.inside or (self.gets_inside and quotas.within_nominal(self.tenant, self.vector))

    def _count_open(self, tenant: str) -> int:
        """Count the preemptible jobs of a tenant that have a lower priority."""
        mine = self.entry.job.priority
        groups = self.state.running.preemptible[tenant]
        return sum([len(held) for p, held in groups.items() if p < mine])

    def _open(self, tenant: str, *, below: bool) -> list[Held]:
        """List the preemptible jobs of a tenant in the order in which they started, with `below` those of lower priority."""
        mine = self.entry.job.priority
        groups = self.state.running.preemptible.get(tenant, {})
        open_to = [held for p, held in groups.items() if held and (p < mine or not below)]
        found = [held for group in open_to for held in group.values()]
        if len(open_to) > 1:
            found.sort(key=_SERIAL)  # a group is in that order
        self.examined += len(found)
        return found

    def for_quota(self, held: Held, quotas: QuotaTree) -> bool:
        """Return whether this job can be stopped for the quota that it holds, with `quotas` as on trial."""
        theirs = held.run.job.tenant
        if theirs == self.tenant:
            return True
        if quotas.root(theirs) != self.root or is_safe(quotas, theirs, held.vector):
            return False
        if self.is_inside(quotas) and quotas.may_reclaim(self.tenant, theirs, self.short, self.vector):
            return True
        return self._outranks(theirs) and self.is_above(held)

    def for_nodes(self, held: Held, quotas: QuotaTree) -> bool:
        """Return whether this job can be stopped for its place on nodes, with `quotas` as on trial."""
        theirs = held.run.job.tenant
        if theirs == self.tenant:
            return True
        if is_safe(quotas, theirs, held.vector):
            return False
        if self.entitled or (self._outranks(theirs) and self.is_above(held)):
            return True
        return not self.inside and self.is_inside(quotas) and has_promise(quotas, self.tenant, self.vector)

    def reclaims(self, held: Held) -> bool:
        """Whether this job can be stopped only to take back what its tenant borrowed: priority gives no right to it."""
        theirs = held.run.job.tenant
        return theirs != self.tenant and not (self._outranks(theirs) and self.is_above(held))

    def shrinkable(self) -> list[Held]:
        """List elastic jobs with workers above their least that this job may have."""
        state, job = self.state, self.entry.job
        out = []
        for held in state.running.elastic.values():
            run = held.run
            theirs = run.job.tenant
            if run.stopping or run.workers <= run.job.workers_min or theirs not in state.queues:
                continue
            if self.short and state.quotas.root(theirs) != self.root:
                continue
            if theirs == self.tenant:
                # where members take turns, what a colleague has beyond the least goes to who holds less, whatever the priority
                takes_turns = run.job.user != job.user and self.tenant in state.members
                if self._outranks_member(run.job.user) if takes_turns else run.job.priority <= job.priority:
                    out.append(held)
            elif run.job.priority < job.priority or self.inside or self._is_fairer(theirs):
                out.append(held)
        out.sort(key=lambda h: (h.run.job.priority, -h.serial))
        return out

    def may_shrink(self, held: Held, quotas: QuotaTree) -> bool:
        """Return whether an elastic job can lose one more worker, with `quotas` as on trial."""
        theirs = held.run.job.tenant
        return theirs == self.tenant or not is_safe(quotas, theirs, held.vector)

    def is_above(self, held: Held) -> bool:
        """Whether this job has a higher priority than a running one, which did not overtake it by age either."""
        if self._without_priority or held.run.job.priority >= self.entry.job.priority:
            return False
        # against another tenant's job too by this queue's order: keys of two orders cannot be compared
        waiting = self.entry.job
        mine = self.entry.key if waiting.place is None else own_key(waiting, self.state.policy, self._order)
        if not self._by_turn and held.run.job.tenant != self.tenant:
            mine = shared_key(mine)
        return mine < own_key(held.run.job, self.state.policy, self._order)

    def has_its_turn(self, held: Held) -> bool:
        """Whether a job of another tenant starts in this very moment because its tenant was next."""
        return (
            self._by_turn
            and not self.inside
            and held.run.job.tenant != self.tenant
            and held.run.started_at >= self.state.now
        )

    def _outranks(self, tenant: str) -> bool:
        """Whether priority counts against this tenant: always in one queue, else if it holds the larger share."""
        return tenant in self.state.queues and (not self._by_turn or self._is_fairer(tenant))

    def _is_fairer(self, tenant: str) -> bool:
        """Whether this job's tenant would still hold a smaller weighted share than the other one."""
        known = self._fairer.get(tenant)
        if known is None:
            known = self._fairer[tenant] = self._share_after <= self.state.weighted_share(tenant)
        return known

    def _outranks_member(self, user: str) -> bool:
        """Whether priority counts against a member of the same tenant: if they take turns, one with the larger share."""
        mine = self.entry.job.user
        if user == mine or self.tenant not in self.state.members:
            return True
        known = self._fairer_member.get(user)
        if known is None:
            state = self.state
            after = state.members.share_with(self.tenant, mine, self.vector, state.index.total)
            known = self._fairer_member[user] = after <= state.members.share(self.tenant, user)
        return known

    @cached_property
    def _share_after(self) -> float:
        """The weighted share of its tenant once it runs."""
        state = self.state
        used = state.quotas.used(self.tenant)
        for d, v in self.vector.items():
            used[d] = used.get(d, 0) + v
        return dominant_share(resources_of(used), state.index.total) / state.weight(self.tenant)
