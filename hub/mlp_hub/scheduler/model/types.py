"""Types that the scheduling core takes and gives: frozen, free of clocks and of I/O.

`plan_cycle(snapshot, now)` in `core` turns a `Snapshot` into a list of `Decision`s; a hub keeps a `Core` and tells it what
changes instead. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact, numbers_of
from mlp_hub.domain.resources import ZERO, Quota, Resources
from mlp_hub.domain.workload.workload import APP, JOB
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_language.message import NOTHING, JobRef, Message


@dataclass(frozen=True, slots=True)
class Node:
    """A place for ranks. `used` is what holders other than jobs take of it (notebook servers, apps).

    `others` is the part of that which belongs to nobody whom the hub knows: it counts as if it were not there, but may come
    free. `wrong` says why it is not up.
    """

    name: str
    capacity: Resources
    used: Resources = ZERO
    gpu_kind: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    up: bool = True
    others: Resources = ZERO
    wrong: tuple[str, ...] = ()

    @property
    def counts(self) -> Resources:
        """Amounts that it adds to the available total, its gpus under their kind."""
        capacity = self.capacity if self.others.is_zero else self.capacity - self.others
        return capacity.of_kind(self.gpu_kind)


@dataclass(frozen=True, slots=True)
class TenantQueue:
    """Tenant as an owner of quota and of one queue.

    `used` is the amount that it holds in addition to the jobs of this snapshot. `decayed_usage` is its
    weighted dominant share over time (share-seconds, exponentially decayed), the history that fair
    share looks at.
    """

    name: str
    quota: Quota = field(default_factory=Quota)
    weight: float = 1.0
    used: Resources = ZERO
    decayed_usage: float = 0.0
    parent: str | None = None
    cohort: str | None = None
    borrowing_limit: Quota | None = None
    lending_limit: Quota | None = None
    reserved: Quota | None = None
    queue_order: str = "priority"  # one of `policy.ORDERS`
    member_usage: tuple[
        tuple[str, float], ...
    ] = ()  # the same history of its users, where its queue goes by them
    others: tuple[JobRef | str, ...] = ()  # who holds `used`, for messages: servers


Devices = tuple[tuple[int, ...], ...]
"""GPU numbers of each rank, on the rank's node: the whole ones first, then the one that is shared."""


@dataclass(frozen=True, slots=True)
class CapacityWindow:
    """Window that a tenant booked: from `start` to before `end`.

    `amount` is kept free for the tenant, in addition to its reserved amount.
    """

    tenant: str
    start: float
    end: float
    amount: Quota
    name: str = ""


@dataclass(frozen=True, slots=True)
class PendingWorkload:
    """A gang that wants to start: `workers_min` to `workers_max` workers and `ps` parameter servers."""

    uid: str
    name: str
    user: str
    tenant: str
    per_worker: Resources
    workers_min: int
    workers_max: int
    queued_at: float
    ps: int = 0
    priority: int = 100
    gpu_kind: str | None = None
    topology: str | None = None
    time_limit: float | None = None
    estimate: float | None = None  # what its user or its history says of its run time
    preemptible: bool = True
    gives_way: bool = True  # to a job ahead of it for which room is kept; see `backfill`
    goes_first: bool = False  # before all jobs of its tenant, where each tenant has a line of its own
    place: int | None = (
        None  # before the other jobs of its tenant, the smallest first, where each tenant has a line of its own
    )
    checkpoint_every: float | None = None  # seconds of running between checkpoints; None: it keeps nothing
    requeued_at: float | None = (
        None  # where it ran before: its present wait began then, its age counts from `queued_at`
    )

    kind: str = JOB  # or another of `domain.workload.workload`
    replica: tuple[str, int] | None = None  # the app that it is a replica of, and which: how people know it

    @property
    def ref(self) -> JobRef:
        """Return how messages refer to it."""
        if self.replica is not None:
            app, slot = self.replica
            return JobRef(self.uid, app, self.user, self.tenant, APP, slot)
        return JobRef(self.uid, self.name, self.user, self.tenant, self.kind)

    @property
    def waits_since(self) -> float:
        """Time at which its present wait began: for reports, never for the order of the queue."""
        return self.queued_at if self.requeued_at is None else self.requeued_at


@dataclass(frozen=True, slots=True)
class AdmittedWorkload:
    """A gang that holds quota and nodes; `placement` names each rank's node, workers first, then PS."""

    job: PendingWorkload
    placement: tuple[str, ...]
    started_at: float
    expected_end: float | None = None
    stopping: bool = False  # on its way out; what it holds comes free soon
    devices: Devices = ()
    checkpointed_at: float | None = None  # its last checkpoint; None: none since it started

    @property
    def workers(self) -> int:
        """Return how many workers it has now."""
        return len(self.placement) - self.job.ps


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """Policy of a hub's scheduling."""

    name: str = "fair"  # one of `policy.POLICIES`
    half_life_s: float = 3600.0  # of the usage that fair share remembers
    backfill: bool = True
    preemption: bool = True
    placement: str = "fgd"  # one of `node_states.RULES`
    min_run_s: float = 0.0  # nobody is preempted before having run so long
    restart_cost_s: float = 0.0  # what a preempted job loses besides its work since the last checkpoint
    aging_s: float = 600.0  # each such span of waiting is worth one point of priority
    seed: int = 0  # of the random placement
    patience: float = 2.5  # under `finish`: a job is late when it took so many times its length


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one cycle may know."""

    nodes: tuple[Node, ...]
    tenants: tuple[TenantQueue, ...]
    waiting: tuple[PendingWorkload, ...]
    running: tuple[AdmittedWorkload, ...] = ()
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    typical: tuple[
        tuple[Demand, float], ...
    ] = ()  # what is asked for here, with its share; see `fragmentation`
    promised: str | None = None  # uid of the job for which nodes were kept first in the last cycle
    bookings: tuple[CapacityWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a job waits or is refused: a typed reason, a headline of a dozen words, and the facts behind it."""

    reason: Reason
    headline: Message
    facts: tuple[Fact, ...] = ()
    blocked_by: tuple[str, ...] = ()  # uids of jobs that hold what is missing

    @property
    def numbers(self) -> Mapping[str, float]:
        """The numbers of its facts, by name."""
        return numbers_of(self.facts)


@dataclass(frozen=True, slots=True)
class Admit:
    """Start this job now, on these nodes, all ranks at once."""

    uid: str
    placement: tuple[str, ...]
    workers: int
    amount: Resources
    devices: Devices = ()
    after: tuple[str, ...] = ()  # uids of the victims that must have ended first


@dataclass(frozen=True, slots=True)
class Resize:
    """Give this running elastic job another number of workers; `placement` is the whole new one."""

    uid: str
    placement: tuple[str, ...]
    workers: int
    amount: Resources
    devices: Devices = ()
    verdict: Verdict | None = None
    for_uid: str | None = None  # who gets what it gives up; None when it grows


@dataclass(frozen=True, slots=True)
class Wait:
    """This job waits; `position` counts from 1 within its tenant's queue."""

    uid: str
    verdict: Verdict
    position: int


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop this running job for another one."""

    uid: str
    preemptor: str
    verdict: Verdict


Decision = Admit | Wait | Preempt | Resize


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer to "why does it wait and when does it start"."""

    reasons: tuple[Verdict, ...]
    position: int | None
    queue_length: int
    expected_start: float | None
    expected_because: Message  # which job's end is waited for, or why no time can be told
    would_start_now: tuple[str, ...] = ()  # smallest changes: "--workers 3", "--cpu 0.5"
    how_sure: str = "unknown"  # of the expected start: sure, likely, unknown
    sure_because: Message = NOTHING
    cut_short: Message = NOTHING  # where not all was looked at, what was left out
    gives_way: tuple[Message, ...] = ()  # of one that starts now, who is stopped or gives up workers for it
    outlook: Outlook | None = None  # by earlier runs; None: too little is known
