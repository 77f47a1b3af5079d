"""All that the core knows between two cycles, kept current by events in proportion to what each changes.

The same state results from any order of events that lead to the same facts: `State.of(snapshot)` builds it from
nothing, and tests hold the two against each other.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.fitting import is_entitled, vector_on
from mlp_hub.scheduler.model import (
    Devices,
    Node,
    RunningJob,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    WaitingJob,
)
from mlp_hub.scheduler.node_states import are_kept_for_tenants
from mlp_hub.scheduler.nodes import NodeIndex
from mlp_hub.scheduler.ordering import JobKey, dominant_share, is_one_queue, job_key, long_key, span_of
from mlp_hub.scheduler.queues import (
    Asleep,
    JobClass,
    Queue,
)
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.usage import UsageMeter
from mlp_hub.scheduler.vectors import Vector, resources_of, vector_of

EndKey = tuple[float, float, str]  # expected end (infinite when unknown), start, uid
NodeAsk = tuple[Demand, str | None]  # a demand and its topology

MOST_WOKEN = 64
"""Classes of one group that are woken at once, those first in line; in a small cluster that is all of them."""
MANY_PASSING = 128
"""Beyond so many classes that wait for those with a reservation, only some of them look in one cycle whether they may pass."""
FIRST_TENANTS = 16
"""Tenants that are looked at for a job to be reserved for, whether or not anything of theirs could start."""
MOST_RETRIED = 24
"""Classes that get another look for victims in one cycle because something changed; the others have it in a later one."""
LOOKED_AT = 1000
"""Classes of one group that are looked at for a right to stop others, in one cycle."""


@dataclass(eq=False, slots=True)
class Entry:
    """A waiting job in its class."""

    job: WaitingJob
    cls: JobClass
    key: JobKey


@dataclass(eq=False, slots=True)
class Held:
    """A job that holds quota and nodes."""

    run: RunningJob
    demand: Demand
    vector: Vector
    end: EndKey
    serial: int  # of its hold: later holds have larger ones


@dataclass(slots=True)
class Sleepers:
    """Classes that could not start, by what has to come free before looking again is worth it."""

    by_root: dict[str, dict[int, JobClass]] = field(default_factory=dict)
    by_ask: dict[NodeAsk, dict[int, JobClass]] = field(default_factory=dict)
    anything: dict[NodeAsk, dict[int, JobClass]] = field(default_factory=dict)


class State:
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
        self.meter = UsageMeter(policy.half_life_s)
        self.queues: dict[str, Queue] = {}
        self.waiting: dict[str, Entry] = {}
        self.gated: dict[str, WaitingJob] = {}
        self.homeless: dict[str, WaitingJob] = {}  # their tenant is gone
        self.running: dict[str, Held] = {}
        self.stopping: dict[str, None] = {}  # running, and on their way out
        self.held_by: dict[str, dict[str, Held]] = {}  # by tenant
        self.ends: list[EndKey] = []
        self.ends_of_root: dict[str, list[EndKey]] = {}
        self.elastic: dict[str, Held] = {}  # running, and able to grow or shrink
        self.stoppable: dict[int, int] = {}  # how many running jobs are preemptible, by priority
        self.open_to: dict[str, dict[int, dict[str, Held]]] = {}  # these jobs, by tenant and priority
        self.awake: dict[str, dict[int, JobClass]] = {}  # by tenant
        self.sleepers = Sleepers()
        self.owed: dict[int, JobClass] = {}  # had no look for victims yet, for want of time
        self.freed: set[str] = set()  # roots of quota trees in which something was given back
        self.all_changed = True  # wake everything at the next cycle
        self.alarms: list[tuple[float, int, JobClass]] = []
        self.promised: str | None = None  # uid of the job for which nodes were kept first in the last cycle
        self.unanswered: dict[str, None] = {}  # submitted since the last cycle
        self.requeue: list[WaitingJob] = []  # admitted and taken back within one cycle
        self.by_length: list[tuple[float, str]] = []  # under `finish`: waiting work of known length
        self.work = 0.0  # of all that, in seconds of the whole cluster
        self.now = -math.inf
        self._exposed: dict[str, bool] = {}
        self._keys: dict[str, tuple[float, float, str]] = {}  # of tenants, in this cycle
        self._first: list[str] | None = None
        self._retries = 0
        self.holds = 0
        self._serial = 0
        self._held_then = 0  # `holds` when sleepers were last looked at
        self._seen = -1  # the index' version when sleepers were last looked at
        self._taints = are_kept_for_tenants(nodes)
        for tenant in tenants:
            self._open_queue(tenant)

    # --- tenants and nodes -------------------------------------------------------------------------

    def set_tenants(self, tenants: Iterable[TenantQueue]) -> None:
        """Add tenants or change their quotas, weights or places in the tree; what they hold stays held."""
        tenants = tuple(tenants)
        self.quotas.set_tenants(tenants)
        self._exposed.clear()
        for tenant in tenants:
            queue = self.queues.get(tenant.name)
            if queue is None:
                self._open_queue(tenant)
                for uid in [u for u, j in self.homeless.items() if j.tenant == tenant.name]:
                    self.submit(self.homeless.pop(uid))
                continue
            before, queue.tenant = queue.tenant.used, tenant
            if before != tenant.used:
                self.quotas.release(tenant.name, vector_of(before))
                self.quotas.charge(tenant.name, vector_of(tenant.used))
                self._share_changed(tenant.name)
        self._sort_ends_by_root()
        self.all_changed = True

    def remove_tenant(self, name: str) -> None:
        """Drop a tenant without running jobs; its waiting jobs lose their home."""
        if self.held_by.get(name):
            raise ValueError(f"tenant {name} still has running jobs")
        for uid in [u for u, e in self.waiting.items() if e.job.tenant == name]:
            self.homeless[uid] = self.withdraw(uid)
        used = self.queues.pop(name).tenant.used
        self.quotas.release(name, vector_of(used))
        self.quotas.remove_tenant(name)
        self.awake.pop(name, None)
        self.meter.forget(name)
        self._sort_ends_by_root()
        self.all_changed = True

    def add_node(self, node: Node) -> None:
        """Add a node."""
        self.index.add(node)
        self._capacity_changed()

    def set_node(self, name: str, *, up: bool) -> None:
        """Take a node out of service or back into it; its jobs are the caller's to end."""
        self.index.set_up(name, up)
        self._capacity_changed()

    def remove_node(self, name: str) -> None:
        """Forget a node on which nothing runs."""
        self.index.remove(name)
        self._capacity_changed()

    def set_policy(self, policy: SchedulingPolicy) -> None:
        """Go on under another policy."""
        jobs = [e.job for e in self.waiting.values()]
        for job in jobs:
            self.withdraw(job.uid)
        self.policy = policy
        self.meter.half_life = max(policy.half_life_s, 1.0)
        for job in jobs:
            self.submit(job)
        self.all_changed = True

    # --- jobs --------------------------------------------------------------------------------------

    def demand_of(self, job: WaitingJob) -> Demand:
        """Return what one rank of the job needs."""
        return Demand.of(job.per_worker, job.gpu_kind, job.tenant if self._taints else None)

    def submit(self, job: WaitingJob) -> None:
        """Let a job wait."""
        if job.uid in self.waiting or job.uid in self.running:
            raise ValueError(f"job {job.uid} is known already")
        self.unanswered[job.uid] = None
        if job.gated is not None:
            self.gated[job.uid] = job
            return
        queue = self.queues.get(job.tenant)
        if queue is None:
            self.homeless[job.uid] = job
            return
        self._serial += 1
        cls = queue.class_for(job, self.demand_of(job), self._serial)
        entry = Entry(job, cls, job_key(job, self.policy))
        cls.add(entry.key, job.uid)
        cls.shortest = min(cls.shortest, span_of(job) or math.inf)
        queue.added(entry.key)
        self.waiting[job.uid] = entry
        self._count_work(entry, 1)
        if cls.asleep is Asleep.NO or cls.reason is Reason.RESERVED:
            self._wake(cls)  # else what was found out for its equals holds for it

    def withdraw(self, uid: str, *, served: bool = False) -> WaitingJob:
        """Take a waiting job out of its queue, as it is `served` or gives up. Raises `KeyError` when it does not wait."""
        self.unanswered.pop(uid, None)
        for plain in (self.gated, self.homeless):
            if uid in plain:
                return plain.pop(uid)
        entry = self.waiting.pop(uid)
        cls = entry.cls
        was_first = cls.jobs[0][1] == uid
        cls.remove(entry.key, uid)
        self._count_work(entry, -1)
        queue = self.queues[cls.tenant]
        queue.removed(entry.key)
        if not cls.jobs:
            queue.drop(cls)
            self._forget(cls)
        if was_first and not served:
            # what was kept for it is free for those behind it
            self.freed.add(self.quotas.root(cls.tenant))
            self._wake_reserved()
        return entry.job

    def hold(
        self, run: RunningJob, demand: Demand | None = None, *, force: bool = False
    ) -> tuple[Devices, Vector]:
        """Let a job run: charge its quota, take its nodes; returns its GPUs and what it was charged."""
        job = run.job
        demand = demand or self.demand_of(job)
        devices = self._take(demand, run, force=force)
        vector = vector_on(self.index, demand, run.placement)
        if job.tenant in self.queues:
            self.quotas.charge(job.tenant, vector)
        ends_at = math.inf if run.expected_end is None else run.expected_end
        if run.stopping:
            ends_at = min(ends_at, max(self.now, run.started_at))
            self.stopping[job.uid] = None
        end = (ends_at, run.started_at, job.uid)
        self.holds += 1
        run = replace(run, devices=devices) if devices != run.devices else run
        held = Held(run, demand, vector, end, self.holds)
        self.running[job.uid] = held
        self.held_by.setdefault(job.tenant, {})[job.uid] = held
        if job.workers_max > job.workers_min and not run.stopping:
            self.elastic[job.uid] = held
        if job.preemptible and not run.stopping:
            self.stoppable[job.priority] = self.stoppable.get(job.priority, 0) + 1
            self.open_to.setdefault(job.tenant, {}).setdefault(job.priority, {})[job.uid] = held
        insort(self.ends, end)
        if job.tenant in self.queues:
            insort(self.ends_of_root.setdefault(self.quotas.root(job.tenant), []), end)
            self._share_changed(job.tenant)
        return devices, vector

    def _take(self, demand: Demand, run: RunningJob, *, force: bool) -> Devices:
        there = [rank for rank, name in enumerate(run.placement) if name in self.index]
        if len(there) == len(run.placement):
            return self.index.take(demand, run.placement, run.devices or None, force=force)
        # ranks on nodes that are gone hold nothing there any more; their quota counts all the same
        given = self.index.take(
            demand,
            [run.placement[r] for r in there],
            tuple(run.devices[r] for r in there) if run.devices else None,
            force=force,
        )
        devices: list[tuple[int, ...]] = [()] * len(run.placement)
        for rank, numbers in zip(there, given, strict=True):
            devices[rank] = numbers
        return tuple(devices)

    def give_back(self, uid: str) -> Held:
        """Let a running job's quota and nodes come free. Raises `KeyError` when it does not run."""
        held = self.running.pop(uid)
        self.stopping.pop(uid, None)
        job = held.run.job
        self.held_by[job.tenant].pop(uid)
        self.elastic.pop(uid, None)
        self.index.give(held.demand, held.run.placement, held.run.devices)
        if job.preemptible and not held.run.stopping:
            self.stoppable[job.priority] -= 1
            del self.open_to[job.tenant][job.priority][uid]
        _remove(self.ends, held.end)
        if job.tenant in self.queues:
            root = self.quotas.root(job.tenant)
            self.quotas.release(job.tenant, held.vector)
            _remove(self.ends_of_root[root], held.end)
            self.freed.add(root)
            self._share_changed(job.tenant)
        return held

    # --- order -------------------------------------------------------------------------------------

    def tenant_key(self, name: str, head: JobKey) -> tuple[float, float, str]:
        """Sort key of a tenant whose next job has the key `head`; smallest first.

        Under `fifo` and `priority` it is that of the job; else the weighted share of what the tenant holds now,
        under `fair` with what it held lately on average.
        """
        if is_one_queue(self.policy):
            return head
        share = self.meter.share(name)
        if self.policy.name == "fair":
            share += self.meter.average(name, self.now)
        share /= max(self.queues[name].tenant.weight, 1e-9)
        if head[2] == self.promised:
            # room was kept for it: when the last who was in its way ends, an older job of equal share shall not take it
            return (share, -math.inf, name)
        # of equal shares the job that waits longest goes first, lest one tenant's stream holds up another for ever
        return (share, head[1], name)

    def send_long_ahead(self) -> None:
        """Under `finish`, put work first that would outlast all the rest, running or waiting."""
        if not self.by_length:
            return
        running = sum(
            max(held.run.expected_end - self.now, 0.0) * self._part(held.run.job, len(held.run.placement))
            for held in self.running.values()
            if held.run.expected_end is not None
        )
        while self.by_length and -self.by_length[0][0] >= self.work + running:
            _, uid = self.by_length.pop(0)
            entry = self.waiting[uid]
            queue = self.queues[entry.cls.tenant]
            entry.cls.remove(entry.key, uid)
            queue.removed(entry.key)
            entry.key = long_key(entry.job)
            entry.cls.add(entry.key, uid)
            queue.added(entry.key)
            self._wake(entry.cls)

    def _part(self, job: WaitingJob, ranks: int) -> float:
        """Return what part of the cluster so many ranks take."""
        return dominant_share(job.per_worker * ranks, self.index.total)

    def _count_work(self, entry: Entry, sign: int) -> None:
        if self.policy.name != "finish":
            return
        span = span_of(entry.job)
        if span is None:
            return
        self.work += sign * span * self._part(entry.job, entry.job.workers_max + entry.job.ps)
        known = (-span, entry.job.uid)
        if sign > 0:
            if entry.key[0] == 0.0:  # not sent ahead yet
                insort(self.by_length, known)
        else:
            at = bisect_left(self.by_length, known)
            if at < len(self.by_length) and self.by_length[at] == known:
                del self.by_length[at]

    def weighted_share(self, tenant: str) -> float:
        """Return the dominant share that a tenant holds now, divided by its weight."""
        return self.meter.share(tenant) / max(self.queues[tenant].tenant.weight, 1e-9)

    def is_exposed(self, tenant: str) -> bool:
        """Whether others could have a claim on something of what a tenant holds: it is not all inside its nominal quota."""
        known = self._exposed.get(tenant)
        if known is None:
            used = self.quotas.used(tenant) if tenant in self.queues else {}
            known = self._exposed[tenant] = bool(used) and (
                any(self.quotas.nominal(tenant, d) is None for d in used) or self.quotas.borrows(tenant, used)
            )
        return known

    # --- sleeping and waking -----------------------------------------------------------------------

    def sleep_on_quota(self, cls: JobClass) -> None:
        """Try again when something is given back in its quota tree."""
        self._to_sleep(cls, self.sleepers.by_root.setdefault(self.quotas.root(cls.tenant), {}), Asleep.QUOTA)

    def sleep_on_nodes(self, cls: JobClass) -> None:
        """Try again when the nodes have room for it."""
        self._to_sleep(cls, self.sleepers.by_ask.setdefault((cls.demand, cls.topology), {}), Asleep.NODES)

    def sleep(self, cls: JobClass) -> None:
        """Try again when anything is given back."""
        group = self.sleepers.anything.setdefault((cls.demand, cls.topology), {})
        self._to_sleep(cls, group, Asleep.ANYTHING)

    def wake_up(self, now: float) -> None:
        """Wake what may have room since the last cycle."""
        self.now = now
        self._keys.clear()
        self._first = None
        s = self.sleepers
        freed_nodes = self.index.version != self._seen
        if self.all_changed:
            for group in (*s.by_root.values(), *s.by_ask.values(), *s.anything.values()):
                self._wake_all(group)
        else:
            self._wake_some(freed_nodes=freed_nodes)
        self._held_then = self.holds
        self._wake_due()
        self._seen = self.index.version
        self.freed.clear()
        self.all_changed = False

    def _wake_some(self, *, freed_nodes: bool) -> None:
        """Wake in each group those that what changed may serve, and some that may stop others."""
        s = self.sleepers
        self._retries = MOST_RETRIED
        if self.freed or freed_nodes:
            self._wake_passing()
        for root in sorted(self.freed):
            self._wake_within_quota(s.by_root.get(root, {}))
        if freed_nodes:
            self._wake_fitting()
        if self.policy.preemption and self.holds != self._held_then:
            self._wake_outranking()

    def _wake_passing(self) -> None:
        """Wake those that may pass: the first by policy, and others in turn, since any may be short enough."""
        groups = {a: g for a, g in self.sleepers.anything.items() if g and self.index.total_slots(*a)}
        many = sum(map(len, groups.values())) > MANY_PASSING
        for name in self.first_tenants() if many else ():
            for cls in list(self.queues[name].classes.values()):
                if cls.asleep is Asleep.ANYTHING and (cls.demand, cls.topology) in groups:
                    self._wake(cls)
        for group in groups.values():
            self._wake_first(group, list(islice(group.values(), 4 if many else MANY_PASSING)), MANY_PASSING)
        for group in self.sleepers.anything.values():
            self._retry(group)

    def first_tenants(self) -> list[str]:
        """Return the tenants with waiting jobs that are next by policy, as the cycle began; all if they are few."""
        if self._first is None:
            waiting = [name for name, queue in self.queues.items() if queue.length]
            if len(waiting) > FIRST_TENANTS:
                waiting = nsmallest(FIRST_TENANTS, waiting, key=self.key_of)
            self._first = waiting
        return self._first

    def _wake_due(self) -> None:
        """Wake whose time has come, and some of those that are owed a look."""
        for serial in list(islice(self.owed, MOST_RETRIED)):
            cls = self.owed.pop(serial)
            if cls.jobs:
                self._wake(cls)
        while self.alarms and self.alarms[0][0] <= self.now:
            _, _, cls = self.alarms.pop(0)
            if cls.jobs:
                self._wake(cls)

    def key_of(self, name: str) -> tuple[float, float, str]:
        """Return a tenant's sort key as the cycle began."""
        known = self._keys.get(name)
        if known is None:
            known = self._keys[name] = self.tenant_key(name, self.queues[name].first)
        return known

    def _wake_within_quota(self, group: dict[int, JobClass]) -> None:
        """Wake those whose quota has room now."""
        fitting = [c for c in group.values() if not self.quotas.excess(c.tenant, c.vector)]
        self._wake_first(group, fitting, MOST_WOKEN)
        self._retry(group)

    def _wake_fitting(self) -> None:
        """Wake what the nodes have room for now: one look for each different demand."""
        wanted: dict[
            NodeAsk, tuple[int, int]
        ] = {}  # of a large group: ranks that fit, and how many classes to wake
        for ask, group in self.sleepers.by_ask.items():
            room = self.index.total_slots(*ask) if group else 0
            if room and len(group) > MOST_WOKEN:
                wanted[ask] = (room, min(room + 4, MOST_WOKEN))
            elif room:
                fitting = [cls for cls in group.values() if cls.ranks_min <= room]
                self._wake_first(group, fitting, MOST_WOKEN)
            self._retry(group)
        if not wanted:
            return
        waiting = [name for name, queue in self.queues.items() if queue.length]
        for name in nsmallest(MOST_WOKEN, waiting, key=self.key_of):
            for cls in list(self.queues[name].classes.values()):
                ask = (cls.demand, cls.topology)
                room, most = wanted.get(ask, (0, 0))
                if most and cls.asleep is Asleep.NODES and cls.ranks_min <= room:
                    self._wake(cls)
                    wanted[ask] = (room, most - 1)

    def _wake_outranking(self) -> None:
        """Wake whom a start may have helped: it took the last room, or gave its tenant the larger share."""
        s, by_turn = self.sleepers, bool(self.elastic) or not is_one_queue(self.policy)
        for group in (*s.anything.values(), *s.by_root.values(), *s.by_ask.values()):
            self._retry(group, reserved_only=not by_turn)

    def _retry(self, group: dict[int, JobClass], *, reserved_only: bool = False) -> None:
        """Wake some that may stop others: they sleep at the end of their group again, so all have their turn."""
        if self._retries <= 0 or not group or not self.policy.preemption:
            return
        chosen = []
        for cls in islice(group.values(), LOOKED_AT):
            if (not reserved_only or cls.reason is Reason.RESERVED) and self.may_stop(cls):
                chosen.append(cls)
                if len(chosen) == self._retries:
                    break
        self._retries -= len(chosen)
        for cls in chosen:
            self._wake(cls)

    def _wake_first(self, group: dict[int, JobClass], classes: Collection[JobClass], most: int) -> None:
        """Wake so many classes of a group, those first that are next by policy."""
        if len(classes) > most:
            chosen = nsmallest(most, classes, key=lambda c: (self.key_of(c.tenant), c.jobs[0]))
        else:
            chosen = list(classes)
        for cls in chosen:
            del group[cls.serial]
            cls.asleep = Asleep.NO
            self.awake.setdefault(cls.tenant, {})[cls.serial] = cls

    def may_stop(self, cls: JobClass) -> bool:
        """Whether there could be work that jobs of this class may stop or shrink: a quick look, no is certain."""
        if not self.policy.preemption:
            return False
        if self.elastic or any(n for p, n in self.stoppable.items() if p < cls.priority):
            return True
        return is_entitled(self.quotas, cls.tenant, cls.vector)

    def alarm(self, at: float, cls: JobClass) -> None:
        """Wake a class at a time, whatever happens."""
        if not any(a == at and c is cls for a, _, c in self.alarms):
            insort(self.alarms, (at, cls.serial, cls), key=_alarm_key)

    def snapshot(self, now: float) -> Snapshot:
        """Return all of this as one value."""
        return Snapshot(
            tuple(self.index.node(name) for name in self.index.names),
            tuple(replace(q.tenant, decayed_usage=self.meter.value(n, now)) for n, q in self.queues.items()),
            (*(e.job for e in self.waiting.values()), *self.gated.values(), *self.homeless.values()),
            tuple(held.run for held in self.running.values()),
            self.policy,
            self.typical,
            self.promised,
        )

    def fork(self) -> State:
        """Return an independent copy; what never changes is shared."""
        other = State.__new__(State)
        other.__dict__.update(self.__dict__, _keys={}, _first=None, _exposed=dict(self._exposed))
        other.index, other.quotas, other.meter = self.index.fork(), self.quotas.fork(), self.meter.fork()
        copies: dict[int, JobClass] = {}
        other.queues = {}
        for name, queue in self.queues.items():
            twin = Queue(queue.tenant, {}, queue.length)
            for key, cls in queue.classes.items():
                twin.classes[key] = copies[cls.serial] = replace(cls, jobs=cls.jobs[:])
            other.queues[name] = twin
        other.waiting = {u: Entry(e.job, copies[e.cls.serial], e.key) for u, e in self.waiting.items()}
        other.gated, other.homeless = dict(self.gated), dict(self.homeless)
        other.unanswered, other.requeue = dict(self.unanswered), list(self.requeue)
        other.running, other.elastic = dict(self.running), dict(self.elastic)
        other.stoppable, other.stopping = dict(self.stoppable), dict(self.stopping)
        other.open_to = {
            t: {p: dict(held) for p, held in theirs.items()} for t, theirs in self.open_to.items()
        }
        other.held_by = {t: dict(held) for t, held in self.held_by.items()}
        other.ends = self.ends[:]
        other.ends_of_root = {root: ends[:] for root, ends in self.ends_of_root.items()}
        other.awake = {t: _copied(group, copies) for t, group in self.awake.items()}
        s = self.sleepers
        other.sleepers = Sleepers(
            {root: _copied(group, copies) for root, group in s.by_root.items()},
            {ask: _copied(group, copies) for ask, group in s.by_ask.items()},
            {ask: _copied(group, copies) for ask, group in s.anything.items()},
        )
        other.freed = set(self.freed)
        other.by_length = self.by_length[:]
        other.owed = _copied({i: c for i, c in self.owed.items() if i in copies}, copies)
        other.alarms = [(at, i, copies[i]) for at, i, _ in self.alarms if i in copies]
        return other

    def _to_sleep(self, cls: JobClass, group: dict[int, JobClass], how: Asleep) -> None:
        self._rouse(cls)
        group[cls.serial] = cls
        cls.asleep = how
        self._not_awake(cls)

    def _wake(self, cls: JobClass) -> None:
        self._rouse(cls)
        cls.asleep = Asleep.NO
        self.awake.setdefault(cls.tenant, {})[cls.serial] = cls

    def _wake_reserved(self) -> None:
        for group in self.sleepers.anything.values():
            self._wake_first(group, group.values(), MOST_WOKEN)

    def _wake_all(self, group: dict[int, JobClass]) -> None:
        for cls in list(group.values()):
            cls.asleep = Asleep.NO
            self.awake.setdefault(cls.tenant, {})[cls.serial] = cls
        group.clear()

    def _rouse(self, cls: JobClass) -> None:
        """Take a class out of the group it sleeps in."""
        if cls.asleep is Asleep.ANYTHING:
            self.sleepers.anything.get((cls.demand, cls.topology), {}).pop(cls.serial, None)
        elif cls.asleep is Asleep.QUOTA:
            self.sleepers.by_root.get(self.quotas.root(cls.tenant), {}).pop(cls.serial, None)
        elif cls.asleep is Asleep.NODES:
            self.sleepers.by_ask.get((cls.demand, cls.topology), {}).pop(cls.serial, None)

    def _not_awake(self, cls: JobClass) -> None:
        mine = self.awake.get(cls.tenant)
        if mine is not None:
            mine.pop(cls.serial, None)
            if not mine:
                del self.awake[cls.tenant]

    def _forget(self, cls: JobClass) -> None:
        self._rouse(cls)
        self._not_awake(cls)
        self.owed.pop(cls.serial, None)
        cls.asleep = Asleep.NO

    # --- the rest ----------------------------------------------------------------------------------

    def _open_queue(self, tenant: TenantQueue) -> None:
        self.queues[tenant.name] = Queue(tenant)
        self.quotas.charge(tenant.name, vector_of(tenant.used))
        self.meter.load(tenant.name, tenant.decayed_usage, self.now if self.now > -math.inf else 0.0)
        self._share_changed(tenant.name)

    def _share_changed(self, tenant: str) -> None:
        self._exposed.pop(tenant, None)
        used = resources_of(self.quotas.used(tenant))
        now = self.now if self.now > -math.inf else 0.0
        self.meter.set_share(tenant, dominant_share(used, self.index.total), now)

    def _capacity_changed(self) -> None:
        for name in self.queues:
            self._share_changed(name)
        self.work, self.by_length = 0.0, []
        for entry in self.waiting.values():
            self._count_work(entry, 1)
        self.all_changed = True

    def _sort_ends_by_root(self) -> None:
        self.ends_of_root = {}
        for end in self.ends:
            tenant = self.running[end[2]].run.job.tenant
            if tenant in self.queues:
                self.ends_of_root.setdefault(self.quotas.root(tenant), []).append(end)


def _copied(group: dict[int, JobClass], copies: dict[int, JobClass]) -> dict[int, JobClass]:
    return {serial: copies[serial] for serial in group}


def _alarm_key(alarm: tuple[float, int, JobClass]) -> tuple[float, int]:
    return alarm[:2]


def _remove(ends: list[EndKey], end: EndKey) -> None:
    del ends[bisect_left(ends, end)]
