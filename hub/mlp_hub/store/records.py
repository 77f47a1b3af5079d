"""Records that the repositories take and return in addition to the domain's own types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from mlp_hub.domain.jobs.job import JobSpec, Phase, RankStatus
from mlp_hub.domain.jobs.run import MetricSummary, ParamValue
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_language.message import Message


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step of a job's timeline; `seq` counts from 1 within the job."""

    seq: int
    time: float
    kind: str
    message: Message
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Holder of the lease, and its end without a renewal; `epoch` is higher than that of all earlier holders."""

    holder: str
    expires_at: float
    epoch: int = 0


class Sample(Protocol):
    """A reported point as the wire brings it (`mlp_api.jobs.metrics.MetricPoint` is one).

    `n` is its number within its source from 1 on, `t` seconds since the epoch, `v` the named values.
    """

    @property
    def n(self) -> int: ...

    @property
    def t(self) -> float: ...

    @property
    def v(self) -> Mapping[str, float | int]: ...


class StoredPoint(NamedTuple):
    """A stored point. `seq` counts from 1 within the job, over all its sources and attempts."""

    seq: int
    rank: int
    time: float
    values: dict[str, float | int]


@dataclass(frozen=True, slots=True)
class Appended:
    """Result of a batch of points.

    `last` is the highest number of the source that is stored now; the sender continues from `last + 1`.
    `accepted` are the points stored by this call; the first of them got the number `seq_first` in the
    job. `size` is the number of bytes of all points of the job. `left_out`: values of these are not
    stored, because the job has too many names.
    """

    last: int
    seq_first: int
    rank: int
    accepted: Sequence[Sample] = ()
    size: int = 0
    left_out: bool = False

    def points(self) -> list[StoredPoint]:
        """Return what was stored by this call, as a reader of the store would see it."""
        return [
            StoredPoint(seq, self.rank, p.t, dict(p.v)) for seq, p in enumerate(self.accepted, self.seq_first)
        ]


@dataclass(frozen=True, slots=True)
class ExportCursor:
    """Place up to which a job's points were handed on to a program outside of the hub.

    `exporter` stands for that program at its address, `seq` is the last such point, and `target` names the job there.
    `done`: the job has ended, and all its points were handed on.
    """

    job: str
    exporter: str
    seq: int = 0
    target: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class ParentMove:
    """Change of a tenant's parent: `entry` is the last entry of the audit log up to it, `before` the parent before."""

    entry: int
    tenant: str
    before: str | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """Answer to a request with an idempotency key."""

    fingerprint: str  # of the request's body: another body under the same key is a conflict
    answer: str  # for a job: its uid


@dataclass(frozen=True, slots=True)
class DecayedUsage:
    """The dominant share of a tenant, or of one of its members, over time (share-seconds), decayed up to `as_of`."""

    value: float
    as_of: float


@dataclass(frozen=True, slots=True)
class UsageSample:
    """Holdings of a tenant at a moment."""

    time: float
    amount: Resources
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Use by jobs in a time span: core-seconds, device-seconds, and the most cores and devices at once."""

    cpu_s: float
    gpu_s: float
    most_cpu: float
    most_gpu: float


@dataclass(frozen=True, slots=True)
class EndedJob:
    """Data of an ended job, without its program; times are seconds since the epoch.

    `started_at` and `finished_at` are of its last attempt. If that was in the queue when the job was
    cancelled, it has no start. `waited` are the seconds in the queue, all times together, and
    `ran_before` those that earlier attempts ran.
    """

    uid: str
    name: str
    user: str
    tenant: str
    phase: str
    restarts: int
    submitted_at: float
    queued_at: float | None
    started_at: float | None
    finished_at: float | None
    waited: float
    ran_before: float
    shape: SchedulingShape
    run: int = 1

    @property
    def ran(self) -> float:
        """How long all its attempts ran, in seconds."""
        if self.started_at is None or self.finished_at is None:
            return self.ran_before
        return self.ran_before + max(self.finished_at - self.started_at, 0.0)

    @property
    def has_run(self) -> bool:
        """Whether any attempt of it ran."""
        return self.started_at is not None or self.ran_before > 0


@dataclass(frozen=True, slots=True)
class SchedulingShape:
    """The part of a job's specification that scheduling depends on."""

    per_worker: Resources
    runtime: str = "plain"
    workers_min: int = 1
    workers_max: int = 1
    ps: int = 0
    gpu_kind: str | None = None
    priority: str = "normal"
    time_limit: int | None = None
    checkpoint_every: int | None = None
    topology: str | None = None


@dataclass(frozen=True, slots=True)
class StoredRuntime:
    """Runtime of a tenant, with the author and the time of its last change."""

    runtime: Runtime
    changed_by: str
    changed_at: float


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """Why the scheduler did something with a job: `text` is JSON, made and read by `reasons.rows` only."""

    job: str  # its uid
    time: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class OfJob:
    """A decision with the job that it is about."""

    user: str
    name: str
    run: int
    tenant: str
    decision: StoredDecision


@dataclass(frozen=True, slots=True)
class EndedSize:
    """A job that ended, since when, and about how many bytes are stored of it."""

    job: str  # its uid
    user: str
    ended_at: float
    bytes: int


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """Record of a change: its actor, object, time and details."""

    id: int
    time: float
    actor: str
    action: str  # tenant.create, member.set, ...
    name: str  # of the object
    tenant: str | None
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShippedLink:
    """Link of the audit log's chain with its entry as it is now. `checkpoint`: its time, of a checkpoint, which has no entry.

    `time` is None where the entry is missing.
    """

    seq: int
    entry: int
    again: bool
    checkpoint: float | None
    hash: bytes
    time: float | None = None
    actor: str = ""
    action: str = ""
    name: str = ""
    tenant: str | None = None
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A browser's session: its user, the hub token masked with a key made from the cookie, and when it is over."""

    user: str
    masked: bytes
    expires_at: float


@dataclass(frozen=True, slots=True)
class RunEnd:
    """State of a run from its job's row: `ran` is the seconds of all ended attempts, `before` of earlier ones."""

    phase: Phase
    ran: float
    ranks: Sequence[RankStatus]
    before: float = 0.0


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """Run that finished, or ran out of memory: `ran` is the seconds of all attempts, `ram_peak` the most MiB of one rank."""

    spec: JobSpec
    phase: Phase
    ran: float
    ram_peak: int | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """Run as tables show it; computed values are None until then.

    `duration` are the seconds that all its attempts ran so far, `core_s` its core-seconds; both None
    before it ran.
    """

    uid: str
    user: str
    name: str
    run: int
    tenant: str
    phase: Phase
    reason: str | None
    progress: int
    submitted_at: float
    started_at: float | None
    finished_at: float | None
    duration: float | None
    core_s: float | None
    cpu_peak: float | None
    ram_peak: int | None
    commit: str | None
    dirty: bool | None
    environment: str | None
    note: str
    tags: tuple[str, ...]
    params: Mapping[str, ParamValue]
    metrics: Mapping[str, MetricSummary]
    trial: tuple[str, int] | None  # its sweep's name, and which of its trials


@dataclass(frozen=True, slots=True)
class IdleTold:
    """Time of the last notice to the admins of a tenant about idle work, in seconds since the epoch."""

    tenant: str
    at: float
