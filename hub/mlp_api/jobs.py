"""Jobs on the wire: what is asked for, what became of it, why it waits, and where it stands in the queue.

Units and conventions are those of `types`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.types import NAME_PATTERN, Gpu, Name, Request, Response

MOST_RANKS = 10_000
"""Of one job, its parameter servers included."""
RANGE_PATTERN = r"^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$(?!\n)"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$(?!\n)"
SOURCE_PATTERN = r"^[0-9]{1,6}\.[0-9]{1,6}\.[0-9a-z]{1,32}$(?!\n)"
Cpu = Annotated[float, Meta(ge=0.1, le=1_000_000)]
Ram = Annotated[int, Meta(ge=100, le=1_000_000_000)]
Progress = Annotated[int, Meta(ge=0, le=100)]
Workers = Annotated[int, Meta(ge=1, le=MOST_RANKS)] | Annotated[str, Meta(pattern=RANGE_PATTERN)]
Runtime = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=50)]
Code = Annotated[str, Meta(max_length=1_048_576)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
EnvName = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]
Sureness = Literal["sure", "likely", "unknown"]
JobState = Literal["creating", "running", "finished", "error", "deleting"]


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
    priority: Name | UnsetType = UNSET
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
    """A job with its status. `phase` is the fine life cycle, `state` the coarse one.

    A job may run in several attempts: it is stopped and waits again, or goes on in another size. `started_at` and
    `finished_at` are of the last one. `ran_s` are the seconds that all attempts which are over ran; the one that runs has run
    since `started_at` besides. `waited_s` are the seconds in the queue in all waits that are over; while it waits, it has
    waited since `waiting_since` besides. What it is in the queue for counts from `queued_at`: who is stopped for others keeps
    its age there. The present attempt began with `progress_from` at `progress_since`, null before it reported anything.
    """

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
    waiting_since: datetime | None
    waited_s: float
    ran_s: float
    progress_from: int
    progress_since: datetime | None
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


class QueueEntry(Response):
    """A waiting or running job in the cluster's queue.

    `expected_because` says what makes its expected start possible, or why none can be told; empty where nobody has looked yet.
    `waiting_since`, `waited_s` and `ran_s` are as in a job.
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
    waiting_since: datetime | None
    waited_s: float
    ran_s: float
    started_at: datetime | None
    expected_start: datetime | None
    expected_because: str


class Offer(Response):
    """What a job of this shape would get.

    `fits_now`: it would start as soon as those of `gives_way` have made room, at once where there are none. `gives_way` says
    of each job that would be stopped or give up workers for it, in a sentence that names other jobs of its own tenant only;
    `grace` are the seconds that they have to end, 0 where nobody gives way. `expected_because` says where `expected_start` comes
    from, or why no time can be told.
    """

    fits_now: bool
    expected_start: datetime | None
    placement: dict[str, int]
    cpu: float
    gpu: float
    ram: int
    reasons: list[Verdict]
    would_start_now: list[str]
    gives_way: list[str]
    grace: float
    expected_because: str = ""
