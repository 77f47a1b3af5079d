"""What the scheduling core sees, made of the jobs in memory and of the rest in the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.job import PRIORITIES, Job, JobSpec, Phase, Target
from mlp_hub.domain.ledger import APPLIERS, ResourceRequest
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.bookings import Bookings
from mlp_hub.scheduler.model import (
    Booking,
    Node,
    RunningJob,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    WaitingJob,
)
from mlp_hub.service.board import APPLIER, Board
from mlp_hub.service.claims import node_use, of_core, set_aside, waiting_of_claim
from mlp_hub.service.kept_free import bookings
from mlp_hub.service.quota import owner_of
from mlp_hub.service.shelf import Shelf
from mlp_hub.store.tx import Tx

STOPPING = frozenset({Phase.SUSPENDING, Phase.PREEMPTING, Phase.CANCELLING})
"""On their way out because somebody wants it. Who ended by itself is as good as gone, and not worth a word."""


@dataclass(frozen=True, slots=True)
class Holders:
    """What others than jobs hold, and the tenants, as of one moment."""

    tenants: tuple[Tenant, ...]
    used: Mapping[str, Resources]  # by tenant; what is set aside for claims too
    names: Mapping[str, tuple[str, ...]]  # by tenant, of who holds it
    nodes: Mapping[str, Resources]  # by node
    next_expiry: (
        float | None
    )  # of a try or a claim; or when a booked window opens or closes, if that is sooner
    bookings: tuple[Booking, ...] = ()
    claims: tuple[ResourceRequest, ...] = ()  # all that stand

    def same_room(self, other: Holders) -> bool:
        """Whether others hold the same here and there, of the same tenants: what was decided on one holds on the other."""
        return (self.tenants, self.used, self.nodes, self.bookings) == (
            other.tenants,
            other.used,
            other.nodes,
            other.bookings,
        )


def read_holders(tx: Tx, now: float) -> Holders:
    """Read what others than jobs hold."""
    used: dict[str, Resources] = {}
    names: dict[str, list[str]] = {}
    expiry: float | None = None
    tenants = tuple(tx.tenants.all())
    there = {t.name for t in tenants}
    claims = [c for c in tx.ledger.claims(now) if c.tenant in there]
    held = [r for a in APPLIERS if a != APPLIER for r in tx.ledger.held(now, applier=a)]
    for request in (*held, *set_aside(claims)):
        used[request.tenant] = used.get(request.tenant, ZERO) + request.amount
        names.setdefault(request.tenant, []).append(request.holder or f"{request.applier}/{request.id}")
    for request in (*held, *claims):
        if request.expires_at is not None:
            expiry = request.expires_at if expiry is None else min(expiry, request.expires_at)
    booked = bookings(tx, now)
    turn = Bookings(booked).next_change(now)
    if turn is not None:
        expiry = turn if expiry is None else min(expiry, turn)
    return Holders(
        tenants,
        used,
        {tenant: tuple(n) for tenant, n in names.items()},
        node_use(tx, now, claims, but=(APPLIER,)),
        expiry,
        booked,
        tuple(claims),
    )


def node_of(info: NodeInfo, holders: Holders | None = None) -> Node:
    """Return a node as the scheduling core sees it."""
    used = ZERO if holders is None else holders.nodes.get(info.name, ZERO)
    return Node(info.name, info.capacity, used, info.gpu_kind, info.labels, (), info.up)


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
        self._made: dict[str, tuple[Tenant, Resources, tuple[str, ...], TenantQueue]] = {}

    def of(self, holders: Holders) -> list[TenantQueue]:
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
        shelf: Shelf,
    ) -> None:
        self._board = board
        self._nodes = nodes
        self._policy = policy
        self._usage = usage
        self._shelf = shelf
        self._waiting: dict[str, WaitingJob] = {}

    async def make(self, now: float) -> tuple[Snapshot, Holders]:
        """Return the present snapshot, without claims that wait, and what it was made of."""
        holders = await self._board.db.read(lambda tx: read_holders(tx, now))
        return self.of(replace(holders, claims=()), now), holders

    async def empty(self, now: float) -> Snapshot:
        """Return the nodes and the tenants without jobs: all that says whether a job can ever run."""
        holders = await self._board.db.read(lambda tx: read_holders(tx, now))
        tenants = [queue_of(t, holders, (0.0, ())) for t in holders.tenants]
        nodes = tuple(node_of(n) for n in self._nodes())
        return Snapshot(nodes, tuple(tenants), (), (), self._policy)

    def of(self, holders: Holders, now: float) -> Snapshot:
        """Make a snapshot of what is in memory and these holders."""
        nodes = tuple(node_of(n, holders) for n in self._nodes())
        tenants = tuple(queue_of(t, holders, self._usage(t, now)) for t in holders.tenants)
        shelf = self._shelf
        waiting = {uid: self._waiting_job(j) for uid, j in self._board.waiting.items() if uid not in shelf}
        running = tuple(running_of(j, alone=uid in shelf) for uid, j in self._board.holding.items())
        self._waiting = waiting
        claims = [waiting_of_claim(c) for c in of_core(holders.claims).values()]
        return Snapshot(
            nodes, tenants, (*waiting.values(), *claims), running, self._policy, bookings=holders.bookings
        )

    def _waiting_job(self, job: Job) -> WaitingJob:
        known = self._waiting.get(job.uid)
        if known is not None and (known.queued_at, known.requeued_at) == (queued_at(job), _requeued_at(job)):
            return known
        return waiting_of(job)


def queued_at(job: Job) -> float:
    """Return since when a job counts as waiting in the order of the queue, in which it keeps its age."""
    return job.submitted_at if job.queued_at is None else job.queued_at


def _requeued_at(job: Job) -> float | None:
    return job.waiting_since if job.waited or job.restarts else None


def waiting_of(job: Job) -> WaitingJob:
    """Return a stored job that waits as the scheduling core sees it."""
    return waiting_job(job.spec, job.uid, queued_at(job), _requeued_at(job))


def is_resizing(job: Job) -> bool:
    """Whether it was decided that a job goes on with another number of workers, and it does not yet."""
    return job.target is Target.RESIZE and bool(job.resize_to)


def running_of(job: Job, *, alone: bool = False) -> RunningJob:
    """Return a stored job that holds quota as the scheduling core sees it.

    One that is resized counts as what it will be, and is not resized again meanwhile. One that is to be left `alone` is
    neither resized nor stopped for others.
    """
    started = job.started_at or job.admitted_at or job.submitted_at
    limit = job.time_left
    resized = is_resizing(job)
    placement = job.resize_to if resized else job.placement
    as_job = waiting_of(job)
    if resized or alone:
        as_job = replace(fixed(as_job, len(placement) - job.spec.ps), preemptible=not alone)
    stopping = job.phase in STOPPING or (job.target not in (Target.RUN, Target.RESIZE))
    return RunningJob(
        as_job, placement, started, None if limit is None else started + limit, stopping=stopping
    )


def fixed(job: WaitingJob, workers: int) -> WaitingJob:
    """Return the job as one that has so many workers, no more and no fewer."""
    return replace(job, workers_min=workers, workers_max=workers)


def waiting_job(spec: JobSpec, uid: str, queued_at: float, requeued_at: float | None = None) -> WaitingJob:
    """Return a job as the scheduling core sees it."""
    return WaitingJob(
        uid=uid,
        name=spec.name,
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
    )
