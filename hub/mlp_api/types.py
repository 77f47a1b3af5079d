"""Objects of the REST contract, as `msgspec` structs: the schemas that validate are the ones documented.

Units on the wire: cpu in cores, gpu in devices, ram in MiB, rom and sizes in bytes, progress 0-100,
times RFC 3339 UTC. Requests refuse unknown fields; responses hold all fields of the object.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

MOST_RANKS = 10_000
"""Of one job, its parameter servers included."""
# Python's `$` also matches before a final newline; `(?!\n)` shuts that out and means the same in ECMA 262
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$(?!\n)"
RANGE_PATTERN = r"^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$(?!\n)"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$(?!\n)"
LINE_PATTERN = r"^[^\x00-\x1f\x7f]*$(?!\n)"
CURSOR_PATTERN = r"^[0-9]{1,18}$(?!\n)"
SOURCE_PATTERN = r"^[0-9]{1,6}\.[0-9]{1,6}\.[0-9a-z]{1,32}$(?!\n)"
Name = Annotated[
    str, Meta(pattern=NAME_PATTERN, max_length=50, description="a-z, 0-9 and -, 1 to 50 characters")
]
Cpu = Annotated[float, Meta(ge=0.1, le=1_000_000)]
Gpu = Annotated[float, Meta(ge=0, le=100_000)]
Ram = Annotated[int, Meta(ge=100, le=1_000_000_000)]
Rom = Annotated[int, Meta(ge=0, le=2**60)]
Progress = Annotated[int, Meta(ge=0, le=100)]
QuotaCpu = Annotated[float, Meta(ge=0, le=1_000_000)]
QuotaRam = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Workers = Annotated[int, Meta(ge=1, le=MOST_RANKS)] | Annotated[str, Meta(pattern=RANGE_PATTERN)]
Amounts = dict[str, float]
"""By dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`), in the units of quotas; what is left out is not limited."""
Runtime = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=50)]
Code = Annotated[str, Meta(max_length=1_048_576)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
EnvName = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]
Sureness = Literal["sure", "likely", "unknown"]
JobState = Literal["creating", "running", "finished", "error", "deleting"]


class Request(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of all request bodies."""


class Response(Struct, kw_only=True):
    """Base of all response bodies."""


class Refusal(Response):
    """Body of every refused request (403)."""

    msg: str
    reason: str


class Fault(Response):
    """Body of every server fault (503)."""

    msg: str


# -------------------------------------------------------------- tenants

QueueOrder = Literal["priority", "fifo"]


class TenantCreate(Request):
    """A new tenant. A quota left out (null) means: what the nodes have."""

    name: Name
    cpu: QuotaCpu | None = None
    gpu: Gpu | None = None
    ram: QuotaRam | None = None
    rom: Rom | None = None
    gpu_kinds: dict[str, Gpu] = field(default_factory=dict)
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    cohort: Annotated[
        Name | None, Meta(description="tenants of one cohort lend each other what they leave idle")
    ] = None
    parent: Annotated[
        Name | None,
        Meta(description="the tenant out of whose quota this one's is carved; it shares with its siblings"),
    ] = None
    borrowing_limit: Annotated[
        Amounts | None,
        Meta(description="the most it may hold beyond its quota; left out: all that the others leave"),
    ] = None
    lending_limit: Annotated[
        Amounts | None, Meta(description="the most of its quota that others may hold; left out: all of it")
    ] = None
    reserved: Annotated[
        Amounts | None,
        Meta(
            description="kept free for it on the nodes, used or not, whatever others may borrow; not above the quota"
        ),
    ] = None
    queue_order: Annotated[
        QueueOrder,
        Meta(
            description="what its own jobs go by: `priority`, then age; or `fifo`, age alone, and no job of it stops another "
            "for its priority. Where the hub orders the jobs of all tenants in one line, that order holds instead"
        ),
    ] = "priority"
    isolation: Annotated[
        Literal["shared", "encrypted", "dedicated"],
        Meta(
            description="how the tenant's files are kept: in the tree of all with directories of their own, encrypted with "
            "a key of its own, or in a storage root of its own; a hub on one machine has `shared` and refuses the others"
        ),
    ] = "shared"
    description: Annotated[str, Meta(max_length=500)] = ""


class TenantUpdate(TenantCreate):
    """All that a tenant is from now on; `name` may be left out and must match the path otherwise."""

    name: Name | None = None  # type: ignore[assignment]


class LoweredGuarantee(Response):
    """What a tenant that is idle for long keeps back and reserves, until one of its jobs waits or a server of it asks."""

    since: datetime
    share: float
    lending_limit: dict[str, float] | None
    reserved: dict[str, float] | None
    message: str


class Tenant(Response):
    """A tenant, its quota (null: what the nodes have) and what is in use of it.

    `borrowed`, `lent`, `lendable` and `free` are by dimension (`cpu`, `gpu`, `gpu:KIND`, `ram`, `rom`), zeroes of the
    first three left out. borrowed: held beyond its quota. lent: of its idle quota, what others hold now (where several
    could have lent it, each counts in proportion to what it leaves idle). lendable: what it would still lend. free:
    what it may take now, borrowing included; where it has no limit nothing is said. over: held beyond all that it may hold
    with others as they are, as after its quota was lowered; nothing is stopped for that alone. lowered: what of its guarantee holds
    while it is lowered because the tenant is idle for long; `lending_limit` and `reserved` are as configured. notes: in
    the answer to a change, the booked windows, of this tenant or others, that no longer fit by it, or fit again.
    """

    name: str
    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    gpu_kinds: dict[str, float]
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    rom_inuse: int
    weight: float
    cohort: str | None
    parent: str | None
    borrowing_limit: dict[str, float] | None
    lending_limit: dict[str, float] | None
    reserved: dict[str, float] | None
    borrowed: dict[str, float]
    lent: dict[str, float]
    lendable: dict[str, float]
    free: dict[str, float]
    over: dict[str, float]
    lowered: LoweredGuarantee | None
    queue_order: str
    isolation: str
    description: str
    members: int
    running: int
    waiting: int
    notes: list[str]


class MemberUpdate(Request):
    """A member's role."""

    role: Literal["member", "admin"] = "member"


class Member(Response):
    """A user's place in a tenant."""

    tenant: str
    user: str
    role: str
    source: str


class Holding(Response):
    """Somebody who holds part of a quota."""

    holder: str
    user: str
    applier: str
    cpu: float
    gpu: float
    ram: int
    rom: int
    since: datetime


class Usage(Response):
    """One tenant's quota and who uses it, as its members may see it."""

    tenant: Tenant
    holdings: list[Holding]
    history: list[dict[str, Any]] = field(default_factory=list)


# ------------------------------------------------------ resource requests


class ResourceRequestTry(Request):
    """Try to hold (request) or to give back (release) an amount."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    applier: Literal["dm", "jm", "am", "mm", "sp"]
    request_type: Literal["request", "release"]
    tenant: Name = "default"
    gpu: Gpu = 0
    cpu: Annotated[float, Meta(ge=0, le=1_000_000)] = 0
    ram: QuotaRam = 0
    rom: Rom = 0
    gpu_kind: str | None = None
    user: str = ""
    holder: Annotated[str, Meta(max_length=255)] = ""
    node: str | None = None


class ResourceRequestKey(Request):
    """Which resource request to confirm or cancel."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    applier: Literal["dm", "jm", "am", "mm", "sp"]


# ----------------------------------------------------------------- jobs


class JobShape(Request, kw_only=True):
    """What a job asks for, without its program: all that an offer depends on.

    cpu, gpu and ram are per rank, a parameter server's too.
    """

    runtime: Runtime | None = None
    workers: Workers = 1
    ps: Annotated[int, Meta(ge=0, le=1000)] = 0
    cpu: Cpu = 1.0
    gpu: Gpu = 0
    gpu_kind: Annotated[str, Meta(max_length=64)] | None = None
    ram: Ram = 1024
    tenant: Name | None = None
    priority: Name = "normal"
    time_limit: Annotated[int, Meta(ge=1, le=365 * 86400)] | None = None
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    checkpoint_every: Annotated[int, Meta(ge=1, le=365 * 86400)] | None = None
    topology: Annotated[str, Meta(max_length=100)] | None = None


class JobCreate(JobShape, kw_only=True):
    """A job to run: `entry` is a path in the user's home, or `code` the program's text; exactly one of them.

    cpu, gpu and ram are per rank, a parameter server's too.
    """

    name: Name
    entry: Path | None = None
    code: Code | None = None
    args: Annotated[list[Annotated[str, Meta(max_length=65_536)]], Meta(max_length=1000)] = field(
        default_factory=list
    )
    env: Annotated[dict[EnvName, Annotated[str, Meta(max_length=65_536)]], Meta(max_length=500)] = field(
        default_factory=dict
    )


class Resubmit(Request):
    """What is to be other than it was; what is left out stays."""

    workers: Workers | UnsetType = UNSET
    cpu: Cpu | UnsetType = UNSET
    gpu: Gpu | UnsetType = UNSET
    ram: Ram | UnsetType = UNSET
    time_limit: Annotated[int, Meta(ge=1, le=365 * 86400)] | UnsetType | None = UNSET


class Heartbeat(Request):
    """A job tells how it is doing."""

    state: Literal["running", "finished", "error"]
    progress: Progress


class Rank(Response):
    """One process of a job."""

    rank: int
    role: str
    node: str
    state: str
    exit_code: int | None
    signal: int | None
    cpu: float | None
    ram: int | None


class Failure(Response):
    """What went wrong first."""

    cause: str
    rank: int | None
    exit_code: int | None
    signal: int | None
    message: str
    tail: str


class Job(Response):
    """A job with its status. `phase` is the fine life cycle, `state` the coarse one."""

    name: str
    user: str
    tenant: str
    runtime: str
    entry: str | None
    code: str | None
    args: list[str]
    env: dict[str, str]
    workers: int | str
    ps: int
    cpu: float
    gpu: float
    gpu_kind: str | None
    ram: int
    priority: str
    time_limit: int | None
    retries: int
    checkpoint_every: int | None
    topology: str | None
    uid: str
    state: JobState
    phase: str
    reason: str | None
    message: str
    progress: int
    restarts: int
    position: int | None
    expected_start: datetime | None
    ranks: list[Rank]
    failure: Failure | None
    submitted_at: datetime
    queued_at: datetime | None
    admitted_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    version: int


class Verdict(Response):
    """A typed reason with its sentence and its numbers."""

    reason: str
    message: str
    numbers: dict[str, float]


class Stopped(Response):
    """That a job which waits ran before: how and when its last attempt was stopped, and what of its work is kept.

    `kind` is preempted (for another job), suspended or requeued (after a failure). `message` names other jobs of its own
    tenant only. `checkpoint_at` is when the newest file in its checkpoint directory was written, null where there is none.
    """

    kind: Literal["preempted", "suspended", "requeued"]
    time: datetime
    message: str
    kept: str
    checkpoint_at: datetime | None


class Why(Response):
    """Why a job waits, and until when. `how_sure` is about the expected start, as long as nothing more important comes.

    `would_start_now` are the smallest changes with which it would; `cut_short` says so where not all could be tried, because
    very much waits, and is empty otherwise. `stopped` says what became of an earlier attempt, null where there was none.
    """

    job: str
    phase: str
    reasons: list[Verdict]
    position: int | None
    queue_length: int
    expected_start: datetime | None
    expected_because: str
    how_sure: Sureness
    sure_because: str
    would_start_now: list[str]
    cut_short: str
    stopped: Stopped | None


class Event(Response):
    """One step of a job's timeline."""

    seq: int
    time: datetime
    kind: str
    message: str
    reason: str | None = None


class LogLine(Response):
    """One line of a rank's output."""

    rank: int
    time: str
    stream: str
    text: str


class Scheduling(Response):
    """The policy in force, as the settings that begin with `scheduling_` have it; `meaning` says what it goes by."""

    policy: str
    meaning: str
    placement: str
    backfill: bool
    preemption: bool
    half_life_s: float
    min_run_s: float
    restart_cost_s: float
    aging_s: float


class QueueEntry(Response):
    """A waiting or running job in the cluster's queue.

    `expected_because` says what makes its expected start possible, or why none can be told; empty where nobody has looked yet.
    """

    user: str
    name: str
    tenant: str
    phase: str
    priority: str
    position: int | None
    reason: str | None
    message: str
    cpu: float
    gpu: float
    ram: int
    submitted_at: datetime
    started_at: datetime | None
    expected_start: datetime | None
    expected_because: str


class Node(Response):
    """A node: what is there, what may be given out and what is in use."""

    name: str
    up: bool
    cpu: float
    gpu: float
    gpu_kind: str | None
    ram: int
    cpu_allocatable: float
    ram_allocatable: int
    cpu_inuse: float
    gpu_inuse: float
    ram_inuse: int
    labels: dict[str, str]
    holders: list[Holding]


class Offer(Response):
    """What a job of this shape would get."""

    fits_now: bool
    expected_start: datetime | None
    placement: dict[str, int]
    cpu: float
    gpu: float
    ram: int
    reasons: list[Verdict]
    would_start_now: list[str]
