"""All that the core knows between two cycles, kept current by events in proportion to their changes.

The same state results from any order of events that lead to the same facts. `Core.from_snapshot(snapshot)`
builds it from nothing, and tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.assign.fit import has_claim, vector_on
from mlp_hub.scheduler.cache.inadmissible import MOST_REQUEUED, Inadmissible, Turn
from mlp_hub.scheduler.cache.news import News
from mlp_hub.scheduler.fairness.members import ALL_ALIKE, MemberKey, MemberTurns, Places
from mlp_hub.scheduler.fairness.overshare import Overshare
from mlp_hub.scheduler.fairness.tenants import TenantKey, TenantTurns
from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector, resources_of, vector_of
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    CapacityWindow,
    Devices,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
)
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.states import are_kept_for_tenants
from mlp_hub.scheduler.policy import JobKey, dominant_share, goes_by_members, job_key, long_key, span_of
from mlp_hub.scheduler.quota.booked_windows import BookedWindows
from mlp_hub.scheduler.quota.borrowers import Borrowers
from mlp_hub.scheduler.quota.layout import shape
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.admitted import AdmittedWorkloads, take_seats
from mlp_hub.scheduler.workloads.backlog import Backlog
from mlp_hub.scheduler.workloads.pending import Awaits, Entry, JobClass, Queue


class ClusterState:
    """Nodes, quotas, queues and what runs."""

    def __init__(
        self,
        policy: SchedulingPolicy,
        nodes: Iterable[Node] = (),
        tenants: Iterable[TenantQueue] = (),
        typical: tuple[tuple[Demand, float], ...] = (),
    ) -> None:
        nodes, tenants = tuple(nodes), tuple(tenants)
        self.policy = policy
        self.typical = typical
        self.index = NodeIndex(nodes, typical, policy.placement, policy.seed)
        self.quotas = QuotaTree(tenants)
        self.quotas.set_capacity(vector_of(self.index.total))
        self.bookings = BookedWindows()
        self.meter = UsageMeter(policy.half_life_s)
        self.members = MemberTurns(self.meter)
        self.queues: dict[str, Queue] = {}
        self.waiting: dict[str, Entry] = {}
        self.orphaned: dict[str, PendingWorkload] = {}  # their tenant is gone
        self.running = AdmittedWorkloads()
        self.inadmissible = Inadmissible()
        self.backlog = Backlog()  # under `finish`
        self.promised: str | None = None  # uid of the job for which nodes were kept first in the last cycle
        self.unanswered: dict[str, None] = {}  # submitted since the last cycle
        self.retracted: list[PendingWorkload] = []  # admitted and taken back within one cycle
        self.news = News(complete=False)  # since the last cycle
        self.now = -math.inf
        self.windows_at = -math.inf  # the time of which the quotas have the windows that are open
        self.effort = (
            0  # what planning looked at so far: classes, and running jobs as victims; the same on any machine
        )
        self.overshare = Overshare(self.quotas, self.meter, self.queues)
        self._borrowers = Borrowers()
        self._turns = TenantTurns(policy, self.members, self.queues)
        self._serial = 0
        self._kept_for_tenants = are_kept_for_tenants(nodes)
        for tenant in tenants:
            self._open_queue(tenant)

    # --- tenants and nodes -------------------------------------------------------------------------

    def set_tenants(self, tenants: Iterable[TenantQueue]) -> None:
        """Add tenants or change their quotas, weights or places in the tree; the amounts that they hold stay held."""
        tenants = tuple(tenants)
        known = {
            name: shape(queue.tenant)
            for name in (t.name for t in tenants)
            if (queue := self.queues.get(name))
        }
        self.quotas.set_tenants(tenants)
        if any(known.get(t.name) != shape(t) for t in tenants):
            self._quotas_changed()
        for tenant in tenants:
            queue = self.queues.get(tenant.name)
            if queue is None:
                self._open_queue(tenant)
                for uid in [u for u, j in self.orphaned.items() if j.tenant == tenant.name]:
                    self.submit(self.orphaned.pop(uid))
                continue
            self._turns.changes(tenant.name)
            self.overshare.changed(tenant.name)
            before, queue.tenant = queue.tenant, tenant
            self.news.note_tenant(before, tenant)
            if before.queue_order != tenant.queue_order:
                self._put_in_order(queue)
            if before.used != tenant.used:
                self.quotas.release(tenant.name, vector_of(before.used))
                self.quotas.charge(tenant.name, vector_of(tenant.used))
                self._share_changed(tenant.name)
        self.running.group_ends(self._root_of)
        self.inadmissible.all_changed = True

    def remove_tenant(self, name: str) -> None:
        """Drop a tenant without running jobs; its waiting jobs stay, and wait for a tenant of that name."""
        if self.running.of_tenant.get(name):
            raise ValueError(f"tenant {name} still has running jobs")
        for uid in [u for u, e in self.waiting.items() if e.job.tenant == name]:
            self.orphaned[uid] = self.withdraw(uid)
        used = self.queues.pop(name).tenant.used
        self.quotas.release(name, vector_of(used))
        self.quotas.remove_tenant(name)
        self._quotas_changed()  # what its parent has of its own may be more now
        self.inadmissible.active.pop(name, None)
        self.meter.forget(name)
        self.members.close(name)
        self.running.group_ends(self._root_of)
        self.inadmissible.all_changed = True

    def set_nodes(self, nodes: Iterable[Node], gone: Iterable[str] = ()) -> None:
        """Add nodes, change those of the same names, and forget those of `gone`; common changes are counted once."""
        nodes, other, total = tuple(nodes), False, self.index.total
        for name in gone:
            self.index.remove(name)
            other = True
        for node in nodes:
            before = self.index.node(node.name) if node.name in self.index else None
            self.news.note_node(before, node)
            self.index.add(node)
            other = other or before is None or replace(before, used=node.used, others=node.others) != node
        if other or self.index.total != total:
            self._capacity_changed()
        if not self._kept_for_tenants and are_kept_for_tenants(nodes):
            self._kept_for_tenants = True
            self._look_up_demands_again()

    def set_node(self, name: str, *, up: bool) -> None:
        """Take a node out of service or back into it; its jobs are the caller's to end."""
        before = self.index.node(name)
        self.index.set_up(name, up)
        self.news.note_node(before, self.index.node(name))
        self._capacity_changed()

    def set_bookings(self, bookings: Iterable[CapacityWindow]) -> None:
        """Say which windows are booked; the old ones are forgotten."""
        self.bookings = BookedWindows(bookings)
        self.windows_at = self.now
        self.quotas.set_booked(self.bookings.at(self.now))
        self.inadmissible.all_changed = True

    def _look_up_demands_again(self) -> None:
        """Let all demands tell whose they are; those of jobs that came before do not."""
        unanswered = dict(self.unanswered)
        for uid in list(self.running):
            self.hold(self.give_back(uid), force=True)
        for uid in list(self.waiting):
            self.submit(self.withdraw(uid))
        self.unanswered = unanswered

    # --- jobs --------------------------------------------------------------------------------------

    def demand_of(self, job: PendingWorkload) -> Demand:
        """Return what one rank of the job needs, the same object for equal needs: it is looked up by in all that follows."""
        demand = Demand.from_resources(
            job.per_worker, job.gpu_kind, job.tenant if self._kept_for_tenants else None
        )
        return self.index.catalog.ask(demand).demand

    def submit(self, job: PendingWorkload) -> None:
        """Let a job wait."""
        if job.uid in self.waiting or job.uid in self.running:
            raise ValueError(f"job {job.uid} is known already")
        self.unanswered[job.uid] = None
        queue = self.queues.get(job.tenant)
        if queue is None:
            self.orphaned[job.uid] = job
            return
        self._serial += 1
        cls = queue.class_for(job, self.demand_of(job), self._serial)
        entry = Entry(job, cls, job_key(job, self.policy, queue.tenant.queue_order))
        cls.shortest = min(cls.shortest, span_of(job) or math.inf)
        self._turns.changes(job.tenant)
        queue.add(entry)
        self.waiting[job.uid] = entry
        self._count_in_backlog(entry, waits=True)
        if cls.awaits is Awaits.NOTHING or cls.reason is Reason.RESERVED:
            self.inadmissible.requeue(cls)  # else what was found out for its equals holds for it

    def withdraw(self, uid: str, *, served: bool = False) -> PendingWorkload:
        """Take a waiting job out of its queue, as it is `served` or gives up. Raises `KeyError` when it does not wait."""
        self.unanswered.pop(uid, None)
        if uid in self.orphaned:
            return self.orphaned.pop(uid)
        entry = self.waiting.pop(uid)
        cls = entry.cls
        was_first = cls.jobs[0][1] == uid
        queue = self.queues[cls.tenant]
        self._turns.changes(cls.tenant)
        queue.remove(entry)
        self._count_in_backlog(entry, waits=False)
        if not cls.jobs:
            queue.drop(cls)
            self.inadmissible.forget(cls)
        if was_first and not served:
            # what was kept for it is free for those behind it
            self.inadmissible.freed.add(self.quotas.root(cls.tenant))
            for group in self.inadmissible.anything.values():
                self.inadmissible.requeue_first(group.values(), MOST_REQUEUED, self.turn_of)
        return entry.job

    def hold(
        self, run: AdmittedWorkload, demand: Demand | None = None, *, force: bool = False
    ) -> tuple[Devices, Vector]:
        """Let a job run: charge its quota, take its nodes; returns its GPUs and what it was charged."""
        job = run.job
        demand = demand or self.demand_of(job)
        devices = take_seats(self.index, demand, run, force=force)
        vector = vector_on(self.index, demand, run.placement)
        root = self._root_of(job.tenant)
        run = changed(run, devices=devices) if devices != run.devices else run
        self.running.add(run, demand, vector, self.now, root)
        if root is not None:
            self.quotas.charge(job.tenant, vector)
            self._share_changed(job.tenant)
            if job.tenant in self.members:
                self.members.charge(self.running[job.uid], 1, self.index.total, self._since)
        return devices, vector

    def give_back(self, uid: str) -> AdmittedWorkload:
        """Let a running job's quota and nodes come free. Raises `KeyError` when it does not run."""
        held = self.running[uid]
        tenant = held.run.job.tenant
        root = self._root_of(tenant)
        self.running.remove(uid, root)
        self.index.release_ranks(held.demand, held.run.placement, held.run.devices)
        if root is not None:
            self.quotas.release(tenant, held.vector)
            self.inadmissible.freed.add(root)
            self._share_changed(tenant)
            if tenant in self.members:
                self.members.charge(held, -1, self.index.total, self._since)
        return held.run

    # --- order -------------------------------------------------------------------------------------

    def tenant_key(self, name: str, head: JobKey) -> TenantKey:
        """Sort key of a tenant whose next job has the key `head`; smallest first.

        Under `fifo` and `priority` it is that of the job. Otherwise it is the weighted share of the amount
        that the tenant holds now, under `fair` with its recent average.
        """
        return self._turns.key(name, head, self.now, self.promised)

    def send_long_ahead(self) -> None:
        """Under `finish`, put work first that would outlast all the rest, running or waiting."""
        if not self.backlog:
            return
        running = sum(
            max(held.run.expected_end - self.now, 0.0) * self._part(held.run.job, len(held.run.placement))
            for held in self.running.values()
            if held.run.expected_end is not None
        )
        while (uid := self.backlog.pop_outlasting(running)) is not None:
            entry = self.waiting[uid]
            self._turns.changes(entry.cls.tenant)
            self.queues[entry.cls.tenant].move(entry, long_key(entry.job))
            self.inadmissible.requeue(entry.cls)

    def _part(self, job: PendingWorkload, ranks: int) -> float:
        """Return the part of the cluster that `ranks` ranks take."""
        return dominant_share(job.per_worker * ranks, self.index.total)

    def _count_in_backlog(self, entry: Entry, *, waits: bool) -> None:
        job, span = entry.job, span_of(entry.job)
        if self.policy.name != "finish" or span is None:
            return
        share = self._part(job, job.workers_max + job.ps)
        if waits:
            self.backlog.add(job.uid, span, share, ahead=entry.key[0] != 0.0)
        else:
            self.backlog.remove(job.uid, span, share)

    def weighted_share(self, tenant: str) -> float:
        """Return the dominant share that a tenant holds now, divided by its weight."""
        return self.meter.share(tenant) / self.weight(tenant)

    def weight(self, tenant: str) -> float:
        """Return the weight that a tenant's share is divided by; never 0."""
        return max(self.queues[tenant].tenant.weight, 1e-9)

    def borrowers(self, root: str, dimension: str) -> list[str]:
        """Return by name the tenants of a quota tree that hold more of a dimension than their nominal quota."""
        return self._borrowers.borrowers_of(self.quotas, root, dimension)

    def holders(self, root: str, dimension: str) -> list[str]:
        """Return by name the tenants of a quota tree that hold something of a dimension."""
        return self._borrowers.holders(self.quotas, root, dimension)

    def first_tenants(self) -> list[str]:
        """Return the tenants with waiting jobs that are next by policy, as the cycle began; all if they are few."""
        return self._turns.first(self.now, self.promised)

    def next_tenants(self, most: int) -> list[str]:
        """Return at most `most` tenants with waiting jobs, those that are next by policy as the cycle began."""
        return self._turns.next_of(most, self.now, self.promised)

    def key_of(self, name: str) -> TenantKey:
        """Return a tenant's sort key as the cycle began."""
        return self._turns.key_of(name, self.now, self.promised)

    def turn_of(self, cls: JobClass) -> Turn:
        """Return the sort key of a class among those of all tenants, as the cycle began; smallest first."""
        first = cls.jobs[0]
        member = self.member_key(cls.tenant, cls.user, first[0]) if cls.user else ALL_ALIKE
        return (self.key_of(cls.tenant), member, first)

    def member_key(self, tenant: str, user: str, head: JobKey) -> MemberKey:
        """Sort key of a member of a tenant whose next job has the key `head`; the same for all where they take no turns."""
        if tenant not in self.members:
            return ALL_ALIKE
        return self.members.turn(self.queues[tenant].tenant, user, head, self.now, self.promised)

    def places(self, tenant: str) -> Places:
        """Return the places in a tenant's queue as it is now."""
        return Places(self.queues[tenant], self.members, self.now, self.promised)

    def may_stop(self, cls: JobClass) -> bool:
        """Whether there could be work that jobs of this class may stop or shrink: a quick look, no is certain."""
        if not self.policy.preemption:
            return False
        if self.running.elastic or self.running.any_preemptible_below(cls.priority):
            return True
        return has_claim(self.quotas, cls)

    # --- the whole

    def begin_cycle(self, now: float) -> None:
        """Begin a cycle: look up the order of the tenants again, open and close windows."""
        # not since `now`: that went on when a job ended
        turn = self.bookings.next_change(self.windows_at)
        self.now = self.windows_at = now
        if turn is not None and turn <= now:
            self.quotas.set_booked(self.bookings.at(now))
            self.inadmissible.all_changed = True
        self._turns.begin_cycle()

    def take_news(self) -> News:
        """Return what happened since this was last asked."""
        news, self.news = self.news, News()
        return news

    def snapshot(self, now: float) -> Snapshot:
        """Return all of this as one value."""
        return Snapshot(
            tuple(self.index.node(name) for name in self.index.names),
            tuple(
                replace(
                    q.tenant, decayed_usage=self.meter.value(n, now), member_usage=self.members.usage(n, now)
                )
                for n, q in self.queues.items()
            ),
            (*(e.job for e in self.waiting.values()), *self.orphaned.values()),
            tuple(held.run for held in self.running.values()),
            self.policy,
            self.typical,
            self.promised,
            self.bookings.all,
        )

    def fork(self) -> ClusterState:
        """Return an independent copy; data that never changes is shared."""
        other = ClusterState.__new__(ClusterState)
        other.__dict__.update(self.__dict__, _borrowers=self._borrowers.fork())
        other.index, other.quotas, other.meter = self.index.fork(), self.quotas.fork(), self.meter.fork()
        other.members = self.members.fork(other.meter)
        other.queues = {name: queue.fork() for name, queue in self.queues.items()}
        copies = {cls.serial: cls for queue in other.queues.values() for cls in queue.classes.values()}
        other.waiting = {u: Entry(e.job, copies[e.cls.serial], e.key) for u, e in self.waiting.items()}
        other.orphaned = dict(self.orphaned)
        other.unanswered, other.retracted = dict(self.unanswered), list(self.retracted)
        other.news = News(complete=False)
        other.running, other.backlog = self.running.fork(), self.backlog.fork()
        other.inadmissible = self.inadmissible.fork(copies)
        other._turns = TenantTurns(other.policy, other.members, other.queues)  # noqa: SLF001
        other.overshare = self.overshare.fork(other.quotas, other.meter, other.queues)
        return other

    def _open_queue(self, tenant: TenantQueue) -> None:
        by_members = goes_by_members(self.policy, tenant.queue_order)
        self.queues[tenant.name] = Queue(tenant, by_members=by_members)
        self.quotas.charge(tenant.name, vector_of(tenant.used))
        self.meter.load(tenant.name, tenant.decayed_usage, self._since)
        self._share_changed(tenant.name)
        if by_members:
            running = self.running.of_tenant.get(tenant.name, {}).values()
            self.members.open(tenant, running, self.index.total, self._since)

    @property
    def _since(self) -> float:
        """Time from which present changes hold."""
        return self.now if self.now > -math.inf else 0.0

    def _put_in_order(self, queue: Queue) -> None:
        """Give all who wait in a queue their places by the order that it has now."""
        tenant = queue.tenant
        by_members = goes_by_members(self.policy, tenant.queue_order)
        if by_members != queue.by_members:
            # classes are others then
            waiting = [self.withdraw(uid) for cls in list(queue.classes.values()) for _, uid in cls.jobs[:]]
            queue.by_members = by_members
            if by_members:
                running = self.running.of_tenant.get(tenant.name, {}).values()
                self.members.open(tenant, running, self.index.total, self._since)
            else:
                self.members.close(tenant.name)
            for job in waiting:
                self.submit(job)
            return
        for cls in queue.classes.values():
            for _, uid in list(cls.jobs):
                entry = self.waiting[uid]
                queue.move(entry, job_key(entry.job, self.policy, queue.tenant.queue_order))

    def _share_changed(self, tenant: str) -> None:
        self._turns.changes(tenant)
        self.overshare.changed(tenant)
        self._borrowers.changed(tenant)
        used = resources_of(self.quotas.used(tenant))
        self.meter.set_share(tenant, dominant_share(used, self.index.total), self._since)

    def _capacity_changed(self) -> None:
        if self.quotas.reserves:
            self.inadmissible.all_changed = True  # what is kept free is another part of what there is
        self.quotas.set_capacity(vector_of(self.index.total))
        for name in self.queues:
            self._share_changed(name)
        self.members.capacity_changed(self.index.total, self._since)
        if self.backlog:
            self.backlog.clear()
            for entry in self.waiting.values():
                self._count_in_backlog(entry, waits=True)

    def _quotas_changed(self) -> None:
        self.overshare.all_changed()
        self._borrowers.all_changed(self.quotas)

    def _root_of(self, tenant: str) -> str | None:
        """Name the root of a tenant's quota tree, None for a tenant that is gone."""
        return self.quotas.root(tenant) if tenant in self.queues else None
