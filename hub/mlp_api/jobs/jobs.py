"""Jobs on the wire: the request, the outcome, the reason for a wait, and the position in the queue.

Units and conventions are those of `types`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.jobs.earlier_runs import MemoryOfEarlierRuns, RunForecast
from mlp_api.jobs.idle_jobs import JobIdle
from mlp_api.localized import Detail, Text
from mlp_api.types import NAME_PATTERN, Counted, Fact, Gpu, Name, Request, Response

MOST_RANKS = 10_000
"""Limit of jobs: ranks of one job, with its parameter servers."""
JOB_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,49}$(?!\n)"
"""Names that users write.

A leading dot would hide a directory, and a leading dash would read as an option.
"""
JOB_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,49}(@[1-9][0-9]{0,8})?$(?!\n)"
"""A name of a job, which means its latest run, or `NAME@RUN`."""
RANGE_PATTERN = r"^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$(?!\n)"
AUTO_PATTERN = r"^auto$(?!\n)"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$(?!\n)"
SOURCE_PATTERN = r"^[0-9]{1,6}\.[0-9]{1,6}\.[0-9a-z]{1,32}$(?!\n)"
JobName = Annotated[
    str,
    Meta(
        pattern=JOB_NAME_PATTERN,
        max_length=50,
        description="letters, digits, -, _ and ., not beginning with - or ., 1 to 50 characters",
    ),
]
Cpu = Annotated[float, Meta(ge=0.1, le=1_000_000)]
Ram = Annotated[int, Meta(ge=100, le=1_000_000_000)]
RamOrAuto = (
    Ram
    | Annotated[
        str, Meta(pattern=AUTO_PATTERN, description="auto: what fits by the memory that earlier runs used")
    ]
)
Progress = Annotated[int, Meta(ge=0, le=100)]
Workers = Annotated[int, Meta(ge=1, le=MOST_RANKS)] | Annotated[str, Meta(pattern=RANGE_PATTERN)]
RuntimeName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=50)]
Code = Annotated[str, Meta(max_length=1_048_576)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
EnvName = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]
Sureness = Literal["sure", "likely", "unknown"]
StageName = Literal["queued", "admitted", "created", "bound", "pulled", "started", "first-line"]
OnOff = Literal["on", "off"]
PARAM_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$(?!\n)"
ParamValue = (
    bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Annotated[str, Meta(max_length=1000)]
)
Params = Annotated[
    dict[Annotated[str, Meta(pattern=PARAM_PATTERN)], ParamValue],
    Meta(max_length=100, description="parameters of the program, which finds them in `mlp.params`"),
]
Arguments = Annotated[list[Annotated[str, Meta(max_length=65_536)]], Meta(max_length=1000)]
COMMIT_PATTERN = r"^[0-9a-f]{40}([0-9a-f]{24})?$(?!\n)"
Commit = Annotated[str, Meta(pattern=COMMIT_PATTERN, max_length=64)]
Environment = Annotated[str, Meta(max_length=262_144)]
EnvironmentName = Annotated[
    str,
    Meta(
        pattern=JOB_NAME_PATTERN,
        max_length=50,
        description="an environment of the job's tenant: packages that its Python has besides the platform's, or the image of its pods",
    ),
]
DataNames = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=500)]],
    Meta(
        max_length=32,
        description="datasets that its ranks see, read-only: NAME or USER/NAME, with :PATH behind it to see it there too; "
        "USER/NAME/PART has a part of one that is read through fetched",
    ),
]
JobState = Literal["creating", "running", "finished", "error", "deleting"]


class JobShape(Request, kw_only=True):
    """Resources of a job, without its program.

    An offer takes all of these fields, and depends on most of them. cpu, gpu and ram are per rank, and
    a parameter server is also a rank here. `ram` may be `auto`: the most memory that earlier runs of the
    same user, shape and program or name used, and a margin. It is refused where no such run is known.
    """

    runtime: RuntimeName | None = None
    workers: Workers = 1
    ps: Annotated[int, Meta(ge=0, le=1000)] = 0
    cpu: Cpu = 1.0
    gpu: Gpu = 0
    gpu_kind: Annotated[str, Meta(max_length=64)] | None = None
    ram: RamOrAuto = 1024
    amounts: Counted = field(default_factory=dict)
    tenant: Name | None = None
    priority: Name = "normal"
    time_limit: Annotated[int, Meta(ge=1, le=365 * 86400)] | None = None
    retries: Annotated[int, Meta(ge=0, le=100)] = 0
    checkpoint_every: Annotated[int, Meta(ge=1, le=365 * 86400)] | None = None
    topology: Annotated[str, Meta(max_length=100)] | None = None
    tensorboard: OnOff = "on"
    data: DataNames = field(default_factory=list)
    env_name: EnvironmentName | None = None


class OfferQuery(JobShape, kw_only=True):
    """Shape of a job, and with `name` also its name: the offer then counts earlier runs of that name."""

    name: JobName | None = None


class Provenance(Request):
    """Claims of a client about the place that it submits from, kept to be shown and compared.

    The fields are the git commit of the directory, whether files in it have changed since that commit,
    and the environment as lines NAME==VERSION.
    """

    commit: Commit | None = None
    dirty: bool | None = None
    environment: Environment | None = None


class JobCreate(JobShape, kw_only=True):
    """A job to run: `entry` is a path in the user's home, or `code` the program's text; exactly one of them.

    `workdir` is the directory in which it starts, a path below the home too; null: the home, or the directory of a notebook.

    A name that is used again, when its latest run has ended, makes its next run; with `replace` the earlier ones are deleted.
    cpu, gpu and ram are per rank, a parameter server's too.
    """

    name: JobName
    entry: Path | None = None
    code: Code | None = None
    workdir: Path | None = None
    args: Arguments = field(default_factory=list)
    env: Annotated[dict[EnvName, Annotated[str, Meta(max_length=65_536)]], Meta(max_length=500)] = field(
        default_factory=dict
    )
    params: Params = field(default_factory=dict)
    replace: bool = False
    provenance: Provenance | None = None


class Resubmit(Request):
    """Changes for a new run; fields that are left out keep their value.

    `params` are set over the earlier parameters. `args` replace all earlier arguments. With `exactly`
    nothing may change: the request is refused where the script, a dataset, or the environment of
    `provenance` differs from the earlier run.
    """

    workers: Workers | UnsetType = UNSET
    cpu: Cpu | UnsetType = UNSET
    gpu: Gpu | UnsetType = UNSET
    ram: RamOrAuto | UnsetType = UNSET
    amounts: Counted | UnsetType = UNSET
    priority: Name | UnsetType = UNSET
    time_limit: Annotated[int, Meta(ge=1, le=365 * 86400)] | UnsetType | None = UNSET
    params: Params | UnsetType = UNSET
    args: Arguments | UnsetType = UNSET
    exactly: bool | UnsetType = UNSET
    provenance: Provenance | UnsetType | None = UNSET


class JobUpdate(Request):
    """Changes of a job that has not ended; fields that are left out keep their value.

    The owner of the job may lower its priority and change its time limit while the job waits. An admin
    of its tenant may change both for any job there. The admin may also change the time limit of a
    running job, and the `place` of a job in the tenant's queue: `first`, before all others, or its
    `own` place.
    """

    priority: Name | UnsetType = UNSET
    time_limit: Annotated[int, Meta(ge=1, le=365 * 86400)] | UnsetType | None = UNSET
    place: Literal["first", "own"] | UnsetType = UNSET


class JobNote(Request):
    """Note of a job: a short text of its owner; an empty text removes it.

    It is also the note of the run, which may have 2000 characters.
    """

    note: Annotated[str, Meta(max_length=500)]


class Heartbeat(Request):
    """A job tells how it is doing."""

    state: Literal["running", "finished", "error"]
    progress: Progress


class Rank(Response):
    """One process of a job.

    `cpu` and `ram` are what it uses now, null when it does not run. Once it has ended the other four say what it used: its
    cores on average and the most over a second, its memory on average and the most, cached files not counted. In a cluster that
    measures pods, the most cores are those of a look of the cluster. `reported`: a part of it is known by the job's own report
    alone, which its program can write.
    """

    rank: int
    role: str
    node: str
    state: str
    exit_code: int | None
    signal: int | None
    cpu: float | None
    ram: int | None
    cpu_mean: float | None = None
    cpu_peak: float | None = None
    ram_mean: int | None = None
    ram_peak: int | None = None
    reported: bool = False


class Failure(Response):
    """First fault of a job.

    `hint` is its probable cause. `no-network`: the tenant's jobs have no network, and the program looked for
    another machine. `network-missing`: the same, and this machine cannot give the network that the tenant may
    have. `memory-files`: /dev/shm or /tmp, which are memory, were full. `more-memory`: the job ran out of memory.
    `same-memory`: the same, and it is not tried again with the same amount. `process-limit` and
    `descriptor-limit`: the job reached its limit of processes or descriptors. `nobody-answers`: the job asked for
    input. `starts-at-home`: the job did not find a file by a path relative to another directory.
    `command-missing`: its shell did not find a command. `module-missing`: the job imported a module that does not
    exist. `own-program`: the job used a name of the notebook. `remedy` is the hint as a sentence, with the person
    who can act on it. It is empty without a hint.
    """

    cause: str
    rank: int | None
    exit_code: int | None
    signal: int | None
    message: Text
    tail: str
    hint: str | None
    remedy: Text


class Job(Response):
    """Job with its status: `phase` is the fine life cycle, `state` the coarse one.

    A name has runs 1, 2, ...: `run` is the number of this one. In paths `NAME` means the latest run,
    and `NAME@RUN` a certain one.

    A job can run in several attempts: it is stopped and waits again, or continues in another size.
    `started_at` and `finished_at` are of the last attempt. `ran_s` is the number of seconds that all
    finished attempts ran. The attempt in progress has also run since `started_at`. `waited_s` is the
    number of seconds of all waits in the queue that are over. While the job waits, it has also waited
    since `waiting_since`. Its age in the queue counts from `queued_at`. A job that is stopped for
    others keeps its age there. The present attempt began with `progress_from` at `progress_since`, null
    before it reported anything.

    `sweep` is the name of the sweep, and `trial` the job's trial number in it. `sweep` is null where
    the job is not a trial.

    `put_first`: an admin of the tenant put the job before the others of its queue.

    `source` is the user's object in the cluster, `MPIJob NAMESPACE/NAME`, which has its own pods
    instead of a program. It is null for a job that was submitted here.

    `env_name` is the environment of the job's Python. `env_lock` is the SHA-256 of the lock that this
    environment was built from, or the digest by which its image was named.

    `expected_start` comes from time limits: it is the latest time unless more important work arrives.
    `forecast` comes from earlier runs. It is null if fewer than two are known. `memory` is the memory that
    earlier runs used, in the answer about one job; it is null in lists and streams. `idle` is about the GPUs of a running job
    that it does not use, where its team has a policy for them; null otherwise.

    `note` is a text of the job's owner, also the note of the run; empty where there is none.
    """

    name: str
    run: int
    user: str
    tenant: str
    runtime: str
    entry: str | None
    code: str | None
    workdir: str | None
    args: list[str]
    env: dict[str, str]
    workers: int | str
    ps: int
    cpu: float
    gpu: float
    gpu_kind: str | None
    ram: int
    amounts: dict[str, int]
    priority: str
    time_limit: int | None
    retries: int
    checkpoint_every: int | None
    topology: str | None
    tensorboard: OnOff
    data: list[str]
    params: dict[str, bool | int | float | str]
    sweep: str | None
    trial: int | None
    uid: str
    state: JobState
    phase: str
    reason: str | None
    message: Text
    detail: Detail
    progress: int
    restarts: int
    position: int | None
    expected_start: datetime | None
    forecast: RunForecast | None
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
    put_first: bool
    version: int
    source: str | None
    env_name: str | None
    env_lock: str | None
    memory: MemoryOfEarlierRuns | None
    idle: JobIdle | None
    note: str


class Verdict(Response):
    """A typed reason: `message` is its headline in the reader's language, `detail` the same as data, `facts` what is behind it.

    `numbers` are those of the facts, by DIMENSION_KEY or KEY.
    """

    reason: str
    message: Text
    detail: Detail
    facts: list[Fact]
    numbers: dict[str, float]


class Stopped(Response):
    """Stop of the last attempt of a job that waits, starts or runs again, and the work that is kept of it.

    `kind` is preempted (for another job), suspended or requeued (after a failure). `message` names other jobs of
    the same tenant only. `checkpoint_at` is the time of the newest file in the checkpoint directory, null without
    one. `kept` is empty and `checkpoint_at` null once the job runs again.
    """

    kind: Literal["preempted", "suspended", "requeued"]
    time: datetime
    message: Text
    detail: Detail
    kept: Text
    checkpoint_at: datetime | None


class Why(Response):
    """Why a job waits, and until when. `how_sure` is about the expected start, as long as nothing more important comes.

    `would_start_now` are the smallest changes with which it would; `cut_short` says so where not all could be tried, because
    very much waits, and is empty otherwise. `stopped` says what became of an earlier attempt, null where there was none.
    """

    job: str
    run: int
    phase: str
    reasons: list[Verdict]
    position: int | None
    queue_length: int
    expected_start: datetime | None
    expected_because: Text
    forecast: RunForecast | None
    how_sure: Sureness
    sure_because: Text
    would_start_now: list[str]
    cut_short: Text
    stopped: Stopped | None


class Event(Response):
    """One step of a job's timeline."""

    seq: int
    time: datetime
    kind: str
    message: Text
    detail: Detail
    reason: str | None


class AttemptStage(Response):
    """Stage of an attempt: its time, and the seconds since the stage before, null for the first stage.

    The stages: the attempt was queued, it was admitted, its pods were created, the pods were bound to
    nodes, their images were pulled, their containers began, the first program started, and the first
    line of output was written. Jobs on one machine have no pods.
    """

    stage: StageName
    time: datetime
    seconds: float | None


class JobAttempt(Response):
    """Attempt of a job, counted from 1, with its stages in order.

    `ended` is the kind of event that ended the attempt, as in the job's timeline. It is null while the
    attempt is in progress.
    """

    attempt: int
    stages: list[AttemptStage]
    ended: str | None
    ended_at: datetime | None


class LogLine(Response):
    r"""Line of a rank's output.

    A `partial` line has no end yet. The next line of its rank and stream continues it, as progress bars
    do. Text that begins with `\r\x1b[J` replaces the line so far. `\x1b[E` separates the rows of that
    text. The stream `mlp` marks the position of missing log lines.
    """

    rank: int
    time: str
    stream: str
    text: str
    partial: bool = False


class QueueEntry(Response):
    """A waiting or running job in the cluster's queue, or a notebook server (`kind` server) that waits for its room.

    Of a replica of an app (`kind` app) `name` is the app's, and `replica` which one it is.
    A server's `name` is that of a named one, empty of its user's own; it has no runs, and `facts` are behind its reason: those of
    a job are told by `why`.
    `expected_because` says what makes its expected start possible, or why none can be told; empty where nobody has looked yet.
    `waiting_since`, `waited_s` and `ran_s` are as in a job.
    """

    kind: str
    user: str
    name: str
    run: int
    tenant: str
    phase: str
    priority: str
    position: int | None
    reason: str | None
    message: Text
    detail: Detail
    cpu: float
    gpu: float
    ram: int
    amounts: dict[str, int]
    submitted_at: datetime
    waiting_since: datetime | None
    waited_s: float
    ran_s: float
    started_at: datetime | None
    expected_start: datetime | None
    expected_because: Text
    forecast: RunForecast | None
    put_first: bool
    facts: list[Fact]
    replica: int | None = None


class OfferedCost(Response):
    """Cost of a job by the price list of today, in `currency`.

    `per_hour` is for its fewest ranks on the cheapest kind of GPU that it may get, `per_hour_most` for its most ranks on the
    dearest one. `at_most` is the cost of an attempt that reaches the time limit; it is null without a time limit.
    """

    currency: str
    per_hour: str
    per_hour_most: str
    at_most: str | None


class JobCost(Response):
    """Cost of a run until now, of all that the quota was charged for it; `final`: the run has ended and holds nothing.

    `per_hour` is the cost of an hour at its present size, null while it holds nothing. Without a price list, or for a run that is
    older than the kept sums, `currency` and `cost` are null.
    """

    currency: str | None
    cost: str | None
    per_hour: str | None
    final: bool


class Offer(Response):
    """Offer for a job of this shape.

    `fits_now`: the job would start as soon as the jobs of `gives_way` have made room, at once if
    `gives_way` is empty. `gives_way` has one sentence for each job that would be stopped or give up
    workers. It names other jobs of the same tenant only. `grace` is the number of seconds that these
    jobs have to end, and is 0 where no job gives way. `cost` is null without a price list. `expected_because` is the source of
    `expected_start`, or the reason why no time is known. `network` is the network of the jobs of
    `tenant`: `none` or `outbound`. `memory` is the memory that earlier runs of its name used, null if none
    is known. `ram_because` says why this amount of memory was chosen where `auto` was requested; else it is empty.
    """

    fits_now: bool
    expected_start: datetime | None
    placement: dict[str, int]
    cpu: float
    gpu: float
    ram: int
    amounts: dict[str, int]
    reasons: list[Verdict]
    would_start_now: list[str]
    gives_way: list[Text]
    grace: float
    expected_because: Text
    forecast: RunForecast | None
    tenant: str
    network: str
    memory: MemoryOfEarlierRuns | None
    ram_because: Text
    cost: OfferedCost | None


class Preview(Response):
    """Preview of a job, as if it were created now.

    The job would be run `run` of its name. It would have `ranks_min` to `ranks_max` ranks, parameter
    servers included. `offer` has its total resources, and whether it would start now. A job that could
    never start is refused, as its creation is.
    """

    name: str
    run: int
    runtime: str
    ranks_min: int
    ranks_max: int
    offer: Offer
