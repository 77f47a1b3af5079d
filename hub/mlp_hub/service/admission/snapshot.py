"""Snapshots for the scheduling core, made of the jobs in memory and of the rest in the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import PRIORITIES, Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.caps import CapOfMember
from mlp_hub.domain.workload.ledger import APPLIERS, ResourceRequest
from mlp_hub.domain.workload.workload import KINDS
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    CapacityWindow,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
)
from mlp_hub.scheduler.quota.booked_windows import BookedWindows
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.quota.accounting import owner_of
from mlp_hub.service.quota.refusals import holder
from mlp_hub.service.quota.reserved import bookings
from mlp_hub.service.state.board import APPLIER, Board
from mlp_hub.store.tx import Tx
from mlp_language.message import JobRef

STOPPING = frozenset({Phase.SUSPENDING, Phase.PREEMPTING, Phase.CANCELLING})
"""Phases of jobs that somebody stops. One that ended by itself is as good as gone, and not among them."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Tenants, what others than jobs hold of them, and which requests wait to be admitted, as of one moment."""

    tenants: tuple[Tenant, ...]
    used: Mapping[str, Resources]  # by tenant
    names: Mapping[str, tuple[JobRef | str, ...]]  # by tenant, of who holds it
    nodes: Mapping[str, Resources]  # by node
    next_expiry: float | None  # of a request; or when a booked window opens or closes, if that is sooner
    bookings: tuple[CapacityWindow, ...] = ()
    pending: Mapping[str, ResourceRequest] = field(default_factory=dict)  # by uid, without their expiry
    caps: tuple[CapOfMember, ...] = ()
    servers: tuple[ResourceRequest, ...] = ()  # of members, that hold


def read_holders(tx: Tx, now: float) -> Holders:
    """Read what others than jobs hold."""
    used: dict[str, Resources] = {}
    names: dict[str, list[JobRef | str]] = {}
    expiry: float | None = None
    tenants = tuple(tx.tenants.all())
    there = {t.name for t in tenants}
    pending = [r for r in tx.ledger.pending(now) if r.tenant in there]
    held = [r for a in APPLIERS if a != APPLIER for r in tx.ledger.held(now, applier=a)]
    for request in held:
        used[request.tenant] = used.get(request.tenant, ZERO) + request.amount
        if not (request.amount.cpu or request.amount.gpu or request.amount.ram):
            continue  # storage, as homes hold it, is nothing that a job waits for
        who = holder(request)
        names.setdefault(request.tenant, []).append(who if isinstance(who, JobRef) else str(who))
    for request in (*held, *pending):
        if request.expires_at is not None:
            expiry = request.expires_at if expiry is None else min(expiry, request.expires_at)
    booked = bookings(tx, now)
    turn = BookedWindows(booked).next_change(now)
    if turn is not None:
        expiry = turn if expiry is None else min(expiry, turn)
    return Holders(
        tenants,
        used,
        {tenant: tuple(n) for tenant, n in names.items()},
        tx.ledger.node_use(now, but=(APPLIER,)),
        expiry,
        booked,
        {r.uid: replace(r, expires_at=None) for r in pending},
        tuple(tx.caps.all()),
        tuple([r for r in held if r.applier in KINDS]),
    )


def node_of(info: NodeInfo, holders: Holders | None = None) -> Node:
    """Return a node as the scheduling core sees it; without holders, as it would be with nothing in its way.

    Then taints do not count: they may be taken away, as a node that is down may come back.
    """
    if holders is None:
        return Node(info.name, info.at_most, gpu_kind=info.gpu_kind, labels=info.labels, up=info.schedulable)
    return _seen(info, holders.nodes.get(info.name, ZERO))


def _seen(info: NodeInfo, held: Resources) -> Node:
    """Return a node of which the hub's servers hold `held`."""
    return Node(
        info.name,
        info.at_most,
        held if info.others.is_zero else held + info.others,
        info.gpu_kind,
        info.labels,
        tuple(str(taint) for taint in info.taints if taint.closes) if info.taints else (),
        info.schedulable,
        info.others,
        tuple(c.kind.value for c in info.conditions) if info.conditions else (),
    )


class SeenNodes:
    """Nodes as the core sees them; one that did not change keeps the object made for it before."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[NodeInfo, Resources, Node]] = {}
        self._of: tuple[Iterable[NodeInfo], Mapping[str, Resources]] | None = None
        self._seen: Sequence[Node] = ()

    def seen_nodes(self, nodes: Sequence[NodeInfo], holders: Holders) -> Sequence[Node]:
        """Return these nodes; the very same as before where none is another one."""
        if self._of is not None and self._of[0] is nodes and self._of[1] == holders.nodes:
            return self._seen
        before, made, held = self._made, {}, holders.nodes
        for info in nodes:
            used = held.get(info.name, ZERO)
            known = before.get(info.name)
            if known is None or known[0] is not info or known[1] != used:
                known = (info, used, _seen(info, used))
            made[info.name] = known
        self._made, self._of = made, (nodes, held)
        self._seen = tuple([known[2] for known in made.values()])
        return self._seen


Remembered = tuple[float, tuple[tuple[str, float], ...]]
"""Decayed usage of a tenant, and of its members where they take turns, in share-seconds."""


def queue_of(tenant: Tenant, holders: Holders, remembered: Remembered) -> TenantQueue:
    """Return a tenant as the scheduling core sees it."""
    decayed_usage, member_usage = remembered
    return replace(
        owner_of(tenant),
        used=holders.used.get(tenant.name, ZERO),
        decayed_usage=decayed_usage,
        member_usage=member_usage,
        others=holders.names.get(tenant.name, ()),
    )


class Queues:
    """Tenants as the core sees them, without their history; one that did not change keeps the object made for it before."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Tenant, Resources, tuple[JobRef | str, ...], TenantQueue]] = {}

    def tenant_queues(self, holders: Holders) -> list[TenantQueue]:
        """Return all tenants."""
        before, self._made = self._made, {}
        queues: list[TenantQueue] = []
        for tenant in holders.tenants:
            used, names = holders.used.get(tenant.name, ZERO), holders.names.get(tenant.name, ())
            known = before.get(tenant.name)
            if known is None or known[:3] != (tenant, used, names):
                known = (tenant, used, names, queue_of(tenant, holders, (0.0, ())))
            self._made[tenant.name] = known
            queues.append(known[3])
        return queues


class SnapshotMaker:
    """Makes snapshots; a job that did not change keeps the object made for it before."""

    def __init__(
        self,
        board: Board,
        nodes: Callable[[], Sequence[NodeInfo]],
        policy: SchedulingPolicy,
        usage: Callable[[Tenant, float], Remembered],
        backoff: JobBackoff,
    ) -> None:
        self._board = board
        self._nodes = nodes
        self._policy = policy
        self._usage = usage
        self._backoff = backoff
        self._waiting: dict[str, PendingWorkload] = {}

    async def make(self, now: float) -> tuple[Snapshot, Holders]:
        """Return the present snapshot, and what it was made of."""
        holders = await self._board.db.read(lambda tx: read_holders(tx, now))
        return self.snapshot_of(holders, now), holders

    async def empty(self, now: float) -> Snapshot:
        """Return the nodes and the tenants without jobs: all that says whether a job can ever run."""
        holders = await self._board.db.read(lambda tx: read_holders(tx, now))
        tenants = [queue_of(t, holders, (0.0, ())) for t in holders.tenants]
        nodes = tuple(node_of(n) for n in self._nodes())
        return Snapshot(nodes, tuple(tenants), (), (), self._policy)

    def snapshot_of(self, holders: Holders, now: float) -> Snapshot:
        """Return a snapshot of the state in memory and of these holders."""
        nodes = tuple(node_of(n, holders) for n in self._nodes())
        tenants = tuple(queue_of(t, holders, self._usage(t, now)) for t in holders.tenants)
        backoff = self._backoff
        waiting = {uid: self._waiting_job(j) for uid, j in self._board.waiting.items() if uid not in backoff}
        running = tuple(running_of(j, alone=uid in backoff) for uid, j in self._board.holding.items())
        self._waiting = waiting
        asked = [workload_of(r) for uid, r in holders.pending.items() if uid not in backoff]
        return Snapshot(
            nodes, tenants, (*waiting.values(), *asked), running, self._policy, bookings=holders.bookings
        )

    def _waiting_job(self, job: Job) -> PendingWorkload:
        known, spec = self._waiting.get(job.uid), job.spec
        if known is not None and (known.queued_at, known.requeued_at) == (queued_at(job), _requeued_at(job)):
            limit = None if spec.time_limit is None else float(spec.time_limit)
            if (known.priority, known.time_limit, known.place) == (
                PRIORITIES[spec.priority],
                limit,
                job.steered.place,
            ):
                return known
        return waiting_of(job)


def queued_at(job: Job) -> float:
    """Return since when a job counts as waiting in the order of the queue, in which it keeps its age."""
    return job.submitted_at if job.queued_at is None else job.queued_at


def _requeued_at(job: Job) -> float | None:
    return job.waiting_since if job.waited or job.restarts else None


def waiting_of(job: Job) -> PendingWorkload:
    """Return a stored job that waits as the scheduling core sees it."""
    made = waiting_job(job.spec, job.uid, queued_at(job), _requeued_at(job), job.run)
    return made if job.steered.place is None else replace(made, place=job.steered.place)


def workload_of(stored: Job | ResourceRequest) -> PendingWorkload:
    """Return a job or a pending request that waits as the scheduling core sees it."""
    return waiting_of(stored) if isinstance(stored, Job) else _of_request(stored)


def _of_request(request: ResourceRequest) -> PendingWorkload:
    """Return a pending request as a workload of one rank, by the rules of its kind."""
    kind, a = KINDS[request.applier], request.amount
    return PendingWorkload(
        uid=request.uid,
        name=kind.title,
        user=request.user,
        tenant=request.tenant,
        per_worker=Resources(a.cpu, a.gpu, a.ram, amounts=a.amounts),
        workers_min=1,
        workers_max=1,
        queued_at=request.created_at,
        priority=PRIORITIES[kind.priority],
        gpu_kind=a.kinds[0][0] if a.kinds else None,
        preemptible=kind.preemptible,
        gives_way=kind.gives_way,
        goes_first=kind.goes_first,
        kind=kind.name,
    )


def is_resizing(job: Job) -> bool:
    """Return whether a job will continue with another number of workers, and does not yet."""
    return job.target is Target.RESIZE and bool(job.resize_to)


def running_of(job: Job, *, alone: bool = False) -> AdmittedWorkload:
    """Return a stored job that holds quota, as the scheduling core sees it.

    A resized job counts with its future size, and is not resized again in the meantime. A job to leave
    `alone` is neither resized nor stopped for others.
    """
    started = job.started_at or job.admitted_at or job.submitted_at
    limit = job.time_left
    resized = is_resizing(job)
    placement = job.resize_to if resized else job.placement
    as_job = waiting_of(job)
    if resized or alone:
        as_job = replace(fixed(as_job, len(placement) - job.spec.ps), preemptible=not alone)
    stopping = job.phase in STOPPING or (job.target not in (Target.RUN, Target.RESIZE))
    return AdmittedWorkload(
        as_job, placement, started, None if limit is None else started + limit, stopping=stopping
    )


def fixed(job: PendingWorkload, workers: int) -> PendingWorkload:
    """Return the job with exactly `workers` workers."""
    return replace(job, workers_min=workers, workers_max=workers)


def waiting_job(
    spec: JobSpec, uid: str, queued_at: float, requeued_at: float | None = None, run: int = 1
) -> PendingWorkload:
    """Return a job as the scheduling core sees it."""
    return PendingWorkload(
        uid=uid,
        name=names.title(spec.name, run),
        user=spec.user,
        tenant=spec.tenant,
        per_worker=spec.per_worker,
        workers_min=spec.workers_min,
        workers_max=spec.workers_max,
        queued_at=queued_at,
        requeued_at=requeued_at,
        ps=spec.ps,
        priority=PRIORITIES[spec.priority],
        gpu_kind=spec.gpu_kind,
        topology=spec.topology,
        time_limit=None if spec.time_limit is None else float(spec.time_limit),
        checkpoint_every=None if spec.checkpoint_every is None else float(spec.checkpoint_every),
        replica=None if spec.replica is None or spec.slot is None else (spec.replica.name, spec.slot),
    )
