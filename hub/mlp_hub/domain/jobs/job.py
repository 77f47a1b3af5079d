"""The life of a job: one table of transitions, one function that derives the state of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.idle_gpus import GpuIdle
from mlp_hub.domain.jobs.stages import NO_TIMES, StageTimes
from mlp_hub.domain.machine import Machine
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.environment import EnvironmentUse
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime
from mlp_hub.domain.stored.data import DataUse
from mlp_hub.domain.workload.workload import APP
from mlp_language.message import NOTHING, JobRef, Message, from_data, msg, verbatim


class Phase(StrEnum):
    """State of a job, in fine steps."""

    QUEUED = "queued"  # waits for its quota and its nodes
    ADMITTED = "admitted"  # holds quota and a placement, durable; nothing started yet
    STARTING = "starting"  # the executor was told; no rank runs yet
    RUNNING = "running"  # at least one rank runs
    SUSPENDING = "suspending"  # asked to stop for its user; ranks may still save
    SUSPENDED = "suspended"  # holds nothing; waits for resume
    PREEMPTING = "preempting"  # asked to stop for another job; goes back into the queue
    RESIZING = "resizing"  # asked to stop; goes on at once with another number of workers
    FINISHING = "finishing"  # ranks are gone; last metrics and logs are taken in, quota is still held
    FINISHED = "finished"  # all that counts ended well
    FAILED = "failed"  # ended otherwise; its failure says how
    CANCELLING = "cancelling"  # asked to stop for good
    CANCELLED = "cancelled"  # stopped for good
    DELETING = "deleting"  # its files go, then its record


class State(StrEnum):
    """The coarse state of the contract, derived from the phase."""

    CREATING = "creating"
    RUNNING = "running"
    FINISHED = "finished"
    ERROR = "error"
    DELETING = "deleting"


class Target(StrEnum):
    """Target of a job, stored next to its phase; the reconciler brings them together."""

    RUN = "run"
    SUSPEND = "suspend"
    PREEMPT = "preempt"
    RESIZE = "resize"
    CANCEL = "cancel"
    DELETE = "delete"


P = Phase
FINAL = frozenset({P.FINISHED, P.FAILED, P.CANCELLED})
HOLDING = frozenset(
    {
        P.ADMITTED,
        P.STARTING,
        P.RUNNING,
        P.SUSPENDING,
        P.PREEMPTING,
        P.RESIZING,
        P.FINISHING,
        P.CANCELLING,
    }
)
"""Phases in which a job holds quota and nodes: exactly those in which its ledger row is confirmed."""
ALIVE = HOLDING - {P.ADMITTED, P.FINISHING}
"""Phases in which ranks of the present attempt may be alive."""
WAITING = frozenset({P.QUEUED, P.SUSPENDED})
GOES_ON = frozenset({Target.RUN, Target.RESIZE})
"""Targets of jobs that nobody has asked to end or to give way."""

_STATE: Mapping[Phase, State] = {
    **dict.fromkeys(HOLDING, State.RUNNING),
    **dict.fromkeys((P.QUEUED, P.ADMITTED, P.STARTING, P.SUSPENDED), State.CREATING),
    P.FINISHED: State.FINISHED,
    P.FAILED: State.ERROR,
    P.CANCELLED: State.ERROR,
    P.DELETING: State.DELETING,
}


PHASES: Mapping[Phase, Message] = {
    P.QUEUED: msg("queued"),
    P.ADMITTED: msg("admitted"),
    P.STARTING: msg("starting"),
    P.RUNNING: msg("running"),
    P.SUSPENDING: msg("suspending"),
    P.SUSPENDED: msg("suspended"),
    P.PREEMPTING: msg("preempting"),
    P.RESIZING: msg("resizing"),
    P.FINISHING: msg("finishing"),
    P.FINISHED: msg("finished"),
    P.FAILED: msg("failed"),
    P.CANCELLING: msg("cancelling"),
    P.CANCELLED: msg("cancelled"),
    P.DELETING: msg("deleting"),
}
"""Description of a job in each phase, for sentences."""
JOB_MACHINE = Machine(
    {
        P.QUEUED: frozenset({P.ADMITTED, P.SUSPENDED, P.CANCELLED}),
        # admitted work that never reached the executor goes back, or ends, without a trace to clean up
        P.ADMITTED: frozenset({P.STARTING, P.QUEUED, P.SUSPENDED, P.CANCELLED, P.FAILED}),
        P.STARTING: frozenset({P.RUNNING, P.FINISHING, P.SUSPENDING, P.PREEMPTING, P.RESIZING, P.CANCELLING}),
        P.RUNNING: frozenset({P.FINISHING, P.SUSPENDING, P.PREEMPTING, P.RESIZING, P.CANCELLING}),
        P.SUSPENDING: frozenset({P.SUSPENDED, P.FINISHING, P.CANCELLING}),
        P.SUSPENDED: frozenset({P.QUEUED, P.CANCELLED}),
        P.PREEMPTING: frozenset({P.QUEUED, P.FINISHING, P.CANCELLING, P.SUSPENDING}),
        # its next attempt holds what it goes on with in the very transaction that gives back what the last one held
        P.RESIZING: frozenset({P.ADMITTED, P.FINISHING, P.CANCELLING, P.SUSPENDING, P.PREEMPTING}),
        # a failed attempt with retries left is requeued from finishing
        P.FINISHING: frozenset({P.FINISHED, P.FAILED, P.QUEUED, P.CANCELLED}),
        P.CANCELLING: frozenset({P.CANCELLED, P.FINISHING}),
        P.FINISHED: frozenset({P.DELETING}),
        P.FAILED: frozenset({P.DELETING}),
        P.CANCELLED: frozenset({P.DELETING}),
        P.DELETING: frozenset(),
    },
    msg("job {name} is {old} and cannot become {new}"),
    PHASES,
)
"""Transitions of a job."""


def uid_of_attempt(attempt: str) -> str:
    """Return the uid of the job that an attempt, as `Job.attempt` names it, belongs to."""
    return attempt.rpartition(".")[0]


def state_of(phase: Phase) -> State:
    """Derive the contract's state from the phase; it is stored nowhere."""
    return _STATE[phase]


class Cause(StrEnum):
    """Why an attempt ended badly; told apart because the remedy differs."""

    PROGRAM_ERROR = "program-error"  # a rank ended with a status other than 0
    SIGNAL = "signal"  # a rank was killed by a signal that the platform did not send
    OUT_OF_MEMORY = "out-of-memory"
    TIME_LIMIT = "time-limit"
    DISK = "disk"  # it wrote more than it may, or the disk was nearly full and it wrote fastest
    NODE_LOST = "node-lost"  # the node, or the sandbox with all its ranks, vanished
    START_FAILED = "start-failed"  # the platform could not start the ranks


class Hint(StrEnum):
    """Probable reason of a failure, where its cause alone does not help."""

    NO_NETWORK = "no-network"  # it looked for another machine, and its tenant's jobs have no network
    NETWORK_MISSING = "network-missing"  # the same, and they would have one if this machine could give it
    MEMORY_FILES = "memory-files"  # /dev/shm or /tmp was full, which are memory: MiB of each
    PROCESS_LIMIT = "process-limit"  # it may have no more processes and threads: how many
    SAME_MEMORY = (
        "same-memory"  # it was not tried again, with the memory that was too little: MiB that are more
    )
    MORE_MEMORY = "more-memory"  # it ran out of memory: MiB that are more
    DESCRIPTOR_LIMIT = "descriptor-limit"  # one of its processes may have no more files open: how many
    NOBODY_ANSWERS = "nobody-answers"  # it asked for input, and a job has nobody who gives it
    STARTS_AT_HOME = "starts-at-home"  # it missed a file by a relative path: it does not start beside itself
    COMMAND_MISSING = (
        "command-missing"  # its shell missed a command, as one that settings of a terminal bring
    )
    MODULE_MISSING = "module-missing"  # it imported a module that is neither installed nor beside it
    OWN_PROGRAM = "own-program"  # it used a name of the notebook, which a program does not see


@dataclass(frozen=True, slots=True)
class Failure:
    """The first thing that went wrong: which rank, how, and the last lines of its error output.

    `message` is what a program wrote, or the English of `said`, a sentence of ours as data.
    """

    cause: Cause
    rank: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    tail: str = ""
    hint: Hint | None = None
    said: dict[str, Any] | None = None
    hint_limit: int = 0  # the number that the hint is about

    @property
    def localized_message(self) -> Message:
        """Message of the failure, in each reader's language."""
        return verbatim(self.message) if self.said is None else from_data(self.said)


@dataclass(frozen=True, slots=True)
class ExternalJob:
    """Object that a user made where jobs run, without the hub.

    The object is the job, and the hub only lets it run.
    """

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def title(self) -> str:
        """How sentences name it: `MPIJob mlp-red/train`."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica of an app, which is what the job is: it listens, and sees the files of a model, NAME@VERSION."""

    app: str  # the uid
    name: str
    generation: int = 1
    model: str = ""
    slot: int | None = (
        None  # which of its replicas; None: stored before that was kept, its job's name ends with it
    )


Param = bool | int | float | str
"""Type of a program's parameter."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The trial of a sweep that a job is: that sweep's uid and name, which of its trials, from 0 on, and its index in an array."""

    sweep: str
    name: str
    number: int
    index: int | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Specification that a user submitted, without later changes (`Steered`).

    `per_worker` is each rank's share, also that of a parameter server.
    """

    name: str
    user: str
    tenant: str
    runtime: str
    per_worker: Resources
    workers_min: int = 1
    workers_max: int = 1
    ps: int = 0
    entry: str | None = None  # a path in the user's home
    code: str | None = None  # or the program's text
    workdir: str | None = None  # a path in the user's home too, in which it starts; None: the home
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    gpu_kind: str | None = None
    priority: str = "normal"
    time_limit: int | None = None  # seconds from one admission on; a resize gives no more
    retries: int = 0
    checkpoint_every: int | None = None  # seconds
    topology: str | None = None
    tensorboard: Literal["on", "off"] = "on"  # whether event files that its program writes are drawn
    data: tuple[DataUse, ...] = ()  # datasets that its ranks see
    own_runtime: Runtime | None = (
        None  # its tenant's runtime as it was at submission; None: one of the platform's
    )
    brought: ExternalJob | None = None  # then there is no program: it has its own pods
    replica: Replica | None = None  # then an app's worker made it, and people see the app
    params: Mapping[str, Param] = field(default_factory=dict)  # the program finds them in `mlp.params`
    trial: Trial | None = None  # then a sweep's worker made it
    environment: EnvironmentUse | None = (
        None  # its tenant's, whose packages it has; None: the platform's alone
    )
    language: str = ""  # what `mlp` says within its ranks is said in; empty: English
    request_id: str = ""  # of the request that submitted it; empty: a worker of the platform did

    @property
    def slot(self) -> int | None:
        """Which replica of its app it is; None where it is none."""
        if self.replica is None:
            return None
        return self.replica.slot if self.replica.slot is not None else int(self.name.rpartition("~")[2])

    @property
    def started_by(self) -> Runtime:
        """How its ranks are started."""
        return self.own_runtime or BUILT_IN[self.runtime]

    @property
    def ranks_min(self) -> int:
        """How many processes the smallest gang has, parameter servers included."""
        return self.workers_min + self.ps

    @property
    def ranks_max(self) -> int:
        """How many processes the largest gang has, parameter servers included."""
        return self.workers_max + self.ps


PRIORITIES: Mapping[str, int] = {"low": 50, "normal": 100, "high": 200}


@dataclass(frozen=True, slots=True)
class Steered:
    """Changes of a job after it was submitted; None: as submitted.

    A `place` of its queue counts from the front. `limited`: the time limit was changed, possibly to no
    limit.
    """

    priority: str | None = None
    limited: bool = False
    time_limit: int | None = None
    place: int | None = None

    def effective_spec(self, spec: JobSpec) -> JobSpec:
        """Return the specification as it holds now."""
        limit = self.time_limit if self.limited else spec.time_limit
        return replace(spec, priority=self.priority or spec.priority, time_limit=limit)


AS_SUBMITTED = Steered()


@dataclass(frozen=True, slots=True)
class RankStatus:
    """One process of a job as last seen."""

    rank: int
    role: str  # worker, ps, chief
    node: str
    state: str  # pending, running, finished, failed, stopped (ended, or never started, because of another)
    exit_code: int | None = None
    signal: int | None = None
    cpu: float | None = None  # cores in use over the last seconds
    ram: int | None = None  # MiB resident
    cpu_mean: float | None = None  # cores, from its start to its end; all four known once it has ended
    cpu_peak: float | None = None  # the most cores over a second
    ram_mean: int | None = None  # MiB
    ram_peak: int | None = None
    reported: bool = False  # a part of its use is known by the job's own report alone
    cores_reported: bool = False  # `cpu_mean` is, once it has ended
    memory_reported: bool = False  # `ram_mean` is


@dataclass(frozen=True, slots=True)
class Job:
    """A job as stored. Times are seconds since the epoch, UTC."""

    uid: str  # 26 characters, sortable by time of submission, never used twice
    spec: JobSpec
    phase: Phase
    target: Target
    submitted_at: float
    run: int = 1  # of its name, from 1 on
    restarts: int = 0  # attempts that ended and were followed by another
    failures: int = 0  # of these, those that count against `retries`
    progress: int = 0
    reason: str | None = None  # typed reason of waiting, or cause of the end
    message: Message = NOTHING
    placement: tuple[str, ...] = ()  # node of each rank
    queued_at: float | None = None
    admitted_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    failure: Failure | None = None
    ranks: tuple[RankStatus, ...] = ()
    resize_to: tuple[str, ...] = ()  # node of each rank it goes on with, while it is resized
    ran_before: float = 0.0  # seconds that it ran before it was resized, all times since it was admitted
    waiting_since: float | None = None  # it is in the queue, this time, since then
    waited: float = 0.0  # seconds in the queue, in all waits that are over
    ran: float = 0.0  # seconds that its earlier attempts ran, all together
    progress_from: int | None = None  # what an attempt after the first reported first, and when
    progress_since: float | None = None
    stages: StageTimes = (
        NO_TIMES  # of the present attempt, as far as its timeline has them; none once it has ended
    )
    steered: Steered = AS_SUBMITTED  # `spec` says what holds
    idle: GpuIdle | None = (
        None  # while it runs: the GPUs that it holds and does not use, where its team has a policy
    )
    note: str = ""  # what its owner wrote about it; also the note of the run
    version: int = 0  # grows with each stored change

    @property
    def time_left(self) -> float | None:
        """How long the present attempt may run, in seconds, 1 at least; None without a time limit. A resize renews none."""
        limit = self.spec.time_limit
        return None if limit is None else max(limit - self.ran_before, 1.0)

    @property
    def ran_in_all(self) -> float:
        """How long all its attempts that are over ran, in seconds."""
        if self.started_at is None or self.finished_at is None:
            return self.ran
        return self.ran + max(self.finished_at - self.started_at, 0.0)

    @property
    def failure_message(self) -> Message:
        """Message of its failure, such as an exception, which says more than an exit status; without one, its own message."""
        return (
            self.failure.localized_message
            if self.failure is not None and self.failure.message
            else self.message
        )

    @property
    def reference(self) -> str:
        """Reference to exactly this run: `digits@2`."""
        return names.reference(self.spec.name, self.run)

    @property
    def title(self) -> str:
        """How sentences name it: `digits`, of a later run `digits@2`."""
        return names.title(self.spec.name, self.run)

    @property
    def ref(self) -> JobRef:
        """How messages refer to it."""
        spec = self.spec
        if spec.replica is not None:
            return JobRef(self.uid, spec.replica.name, spec.user, spec.tenant, APP, spec.slot)
        return JobRef(self.uid, self.title, spec.user, spec.tenant)

    @property
    def leaves_its_name(self) -> bool:
        """Whether its name may be run again: it has ended, or was told to end for good, which nothing takes back."""
        return self.phase in FINAL or self.phase is Phase.DELETING or self.target is Target.CANCEL

    @property
    def attempt(self) -> str:
        """The executor's and the ledger's name for the present attempt; an attempt runs at most once."""
        return f"{self.uid}.{self.restarts}"

    @property
    def state(self) -> State:
        """The contract's state."""
        return state_of(self.phase)


def wait_ends(job: Job, now: float) -> dict[str, object]:
    """Return the changes of a job that leaves the queue: its wait so far is added to the waited time."""
    if job.waiting_since is None:
        return {}
    return {"waiting_since": None, "waited": job.waited + max(now - job.waiting_since, 0.0)}


def with_progress(job: Job, progress: int, now: float) -> Job:
    """Return the job with its present attempt's progress.

    The first report of a later attempt is the progress that it continues from.
    """
    if not job.restarts or job.progress_since is not None:
        return job if progress == job.progress else replace(job, progress=progress)
    return replace(job, progress=progress, progress_from=progress, progress_since=now)
