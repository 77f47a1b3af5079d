"""The executor's interface: where attempts of jobs run.

All that may wait for a disk or a network is async. Only the nodes are a view that is kept up to date behind it: each cycle
of the scheduler, and checks in the middle of a transaction, look at all of them.

Level-triggered: `observe()` is the truth, events only say that looking again is worth it. Every call is
idempotent, so that the reconciler may repeat it after a crash. An attempt id is never started twice, whatever
is killed when.

What changes anything is done under the epoch of the service that decides: a number that grows with each one that takes
over. An older one than was ever seen here is refused with `Superseded`, whatever it asks for.

If the system behind an executor does not answer, any async method raises `OutOfReach`, and the caller repeats the call. An
executor never guesses then: an attempt that is reported ABSENT or LOST is started again elsewhere, or fails. Other errors count:
after some failed starts the job fails.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlp_hub.domain.errors import MessageError, Unavailable
from mlp_hub.domain.jobs.job import ExternalJob, Failure, RankStatus
from mlp_hub.domain.jobs.stages import NO_TIMES, StageTimes
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.executors.environments import EnvironmentMaker
from mlp_hub.executors.external import ExternalJobs
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.workspace import Home, JobRun, StoredPlace, Workspace
from mlp_language.message import Message, msg


class CannotStart(MessageError):  # noqa: N818 - says what happened
    """The attempt can never start as asked; the message says why and what would be right."""


class Superseded(Unavailable):
    """A newer service acts on these attempts; this one must not any more."""

    def __init__(self) -> None:
        super().__init__(msg("another part of the hub runs jobs now"))


class AttemptPhase(StrEnum):
    """Phase of an attempt, as an executor knows it."""

    ABSENT = "absent"  # never started here, or forgotten
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"  # ended because `stop` was called, whatever its exit status
    LOST = "lost"  # it ran, and vanished without an exit status


@dataclass(frozen=True, slots=True)
class AskedToEnd:
    """Result of the request to end.

    `killed`: some process had not ended within the grace. Times are seconds since the epoch.
    """

    asked_at: float
    killed: bool = False
    checkpoint_at: float | None = None  # of the newest checkpoint


@dataclass(frozen=True, slots=True)
class Observation:
    """An attempt as the executor sees it. Times are seconds since the epoch."""

    attempt: str
    phase: AttemptPhase
    started_at: float | None = None
    finished_at: float | None = None
    ranks: tuple[RankStatus, ...] = ()
    failure: Failure | None = None
    lost_lines: int = 0  # of its output, where the disk was full; known once it is over
    memory_kills: tuple[
        int, ...
    ] = ()  # ranks of which a process was killed for memory while the rank went on
    leaves: bool = True  # whether it may leave a spool of metrics, or anything else to be collected
    waits: Message | None = None  # what a start waits for, where that is known
    ending: AskedToEnd | None = None  # once it is over, where the platform asked it to end
    remark: Message | None = None  # what is worth knowing of how it runs, and since when
    remark_at: float | None = None
    stages: StageTimes = NO_TIMES  # all of its ranks that were there when the first of them ran


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Key of an attempt's log: the attempt's id, and its run."""

    id: str
    of: JobRun


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A program by its path below its user's home."""

    path: str


@dataclass(frozen=True, slots=True)
class Code:
    """A program by its text."""

    text: str


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume, by its name, that ranks see at a path."""

    name: str
    path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class DataMount:
    """Something that is stored and that ranks see at a path; they can never write to it."""

    of: StoredPlace
    path: str


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """All that an attempt needs. No path in it is the hub machine's: home and directory are the workspace's to find."""

    attempt: str
    job: str
    run: int
    user: str
    uid: int | None  # system uid of its user's processes; None: that of who starts them
    tenant: str
    runtime: Runtime
    workers: int
    ps: int
    per_worker: Resources
    placement: tuple[str, ...]  # node of each rank; advice where a cluster places by itself; may be empty
    program: EntryPoint | Code
    args: tuple[str, ...]
    env: Mapping[str, str]  # MLP_* of the contract and the user's own
    workdir: str | None = None  # directory below its user's home in which the program starts; None: the home
    time_limit: float | None = None
    grace_s: float = 30.0
    network: str = "none"
    file_max: int = 0  # bytes that one file may have; 0: any number
    image: str | None = None  # None: that of its runtime, or the environment that the executor has for jobs
    mounts: tuple[Mount, ...] = ()
    data: tuple[DataMount, ...] = ()
    brought: ExternalJob | None = None  # runs instead of the program
    listens: bool = False  # whether it answers requests, at `Executor.address`
    model: str | None = None  # NAME@VERSION of its user's model, whose files ranks see at `MODEL`
    environment: StoredPlace | None = None  # whose Python the ranks use; None: the default one of jobs

    @property
    def ranks(self) -> int:
        """Number of its processes, parameter servers included."""
        return self.workers + self.ps

    @property
    def of_run(self) -> JobRun:
        """Run that it is an attempt of."""
        return JobRun(self.user, self.job, self.run, self.tenant)

    @property
    def key(self) -> AttemptKey:
        """Key of its log."""
        return AttemptKey(self.attempt, self.of_run)


def check_placement(spec: LaunchSpec, nodes: Iterable[str]) -> None:
    """Raise `CannotStart` unless the attempt has a rank, and for each of its ranks one of these nodes."""
    if spec.workers < 1:
        raise CannotStart(msg("a job has 1 worker or more, not {n}", n=spec.workers))
    if spec.placement and len(spec.placement) != spec.ranks:
        raise CannotStart(
            msg(
                "{n} ranks need a node each, but only {named} are named",
                n=spec.ranks,
                named=len(spec.placement),
            )
        )
    names = set(nodes)
    foreign = sorted(set(spec.placement) - names)
    if foreign:
        raise CannotStart(
            msg(
                "this executor has no node {foreign}; it has {names}",
                foreign=", ".join(foreign),
                names=", ".join(sorted(names)),
            )
        )


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Effect of some processes on the disk, in bytes.

    `written` is all that they have written to anything so far. `stored` is the part of it that went to
    a disk, where the kernel counts that. `unlinked` is the size of their open files that have no name.
    """

    written: int = 0
    stored: int = 0
    unlinked: int = 0


@dataclass(frozen=True, slots=True)
class AttemptWork:
    """Work of an attempt since the last look, or a minute before.

    `gpu` is the most that any engine of its GPUs did, from 0 to 1, `cores` the most that any of its ranks uses now. None: it is
    not known of all its GPUs, or ranks. Of a GPU that attempts share, the work of each counts for all. `gpu_reported` and
    `cores_reported`: it is known by the job's own report alone, which its program can write.
    """

    gpu: float | None = None
    cores: float | None = None
    gpu_reported: bool = False
    cores_reported: bool = False


def most_of(values: Iterable[float | None], enough: float) -> float | None:
    """Return the most of several measures; None if one is not known, unless another has `enough` of it."""
    found = list(values)
    known = [value for value in found if value is not None]
    most = max(known, default=None)
    return most if len(known) == len(found) or (most is not None and most >= enough) else None


STATE = "\r\x1b[J"
"""Contract: before a text that takes the place of all that its line had until then; `sandbox/shim/logs/screen.py` makes it."""
BREAK = "\x1b[E"
"""Contract: separator between the rows of a line that continues."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """Line of a rank's output; `time` is RFC 3339; `stream` is stdout or stderr.

    A `partial` line has no end yet. The next line of its rank and stream continues it, as progress bars
    do.
    """

    time: str
    stream: str
    text: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Lines from a cursor on; pass `offset` back to continue from there."""

    rank: int
    lines: tuple[LogLine, ...]
    offset: int
    dropped: int = 0  # bytes that rotation had discarded before the cursor
    dropped_lines: int | None = 0  # and lines; None where they were not counted


@dataclass(frozen=True, slots=True)
class TenantPlace:
    """Place for a tenant in an executor that needs one.

    `quota` is the most that the tenant may ever hold, borrowed amounts included. `members` are the
    users who may look at the place.
    """

    name: str
    quota: Quota = field(default_factory=Quota)
    members: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs attempts. All methods may be called again at any time with the same arguments.

    `keeps_tenants` says whether `keep_tenants` does anything.
    """

    name: str
    """Its value of the setting `executor`; metrics show it."""
    keeps_tenants: bool
    images: bool
    """Whether ranks run in containers, so that a runtime may name their image."""
    serves: bool
    """Whether programs that run here can be reached, as apps must be."""
    drains: bool
    """Whether the hub takes nodes out of service.

    Otherwise the cluster's administrator does, and the nodes' conditions show it.
    """
    limits: bool
    """Whether a running attempt can get another time limit."""
    measures: bool
    """Whether it measures the use of all ranks itself. Otherwise a rank's own report may be all that is known."""

    @property
    def external_jobs(self) -> ExternalJobs | None:
        """Jobs that people made without the hub; None where that is impossible."""
        ...

    @property
    def environments(self) -> EnvironmentMaker | None:
        """Maker of environments of packages; None without one, as where jobs have images instead."""
        ...

    @property
    def workspace(self) -> Workspace:
        """Files of users and jobs, where this executor's ranks see them."""
        ...

    async def open(self) -> None:
        """Find the nodes, and the work that an earlier process left; before that the list of nodes may be empty.

        The service calls it once, before it leads; if it raises, the service does not start. Other methods also work without it.
        """
        ...

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes as last heard of: a view that costs nothing, because every decision looks at it.

        Nodes may come, go and change at any time; `on_nodes` says when. Order is kept as long as they are there.
        """
        ...

    @property
    def cluster_calls(self) -> Mapping[str, int]:
        """Numbers of requests to a cluster's API by verb and kind; empty without a cluster."""
        ...

    def namespace_of(self, tenant: str) -> str:
        """Return the namespace of the cluster that has a tenant's pods; empty without a cluster."""
        ...

    async def node_use(self, *, known: bool = False) -> Sequence[NodeUse]:
        """Read what nodes really use now, as far as it can be read; nodes that cannot be read are left out.

        With `known`, nothing is requested of a cluster: what others have asked for lately is all. Raises `OSError` where it is
        not known now.
        """
        ...

    def trouble(self) -> Message | None:
        """Return what is broken in the machinery that runs ranks, None if nothing is; names no host and no path."""
        ...

    async def lacks(self, package: str, user: str) -> bool:
        """Whether a user's jobs would find this Python package neither here nor in the user's home."""
        ...

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Call back, on the event loop, whenever the result of `nodes` changes."""
        ...

    async def epoch(self) -> int:
        """Return the highest epoch that was ever seen here; 0 for none."""
        ...

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on; return once all work that was begun under one is over.

        Raises `Superseded` where a newer one was seen, `Unavailable` where something takes longer than
        `wait_s` seconds. Older ones are refused then too.
        """
        ...

    async def keep_tenants(self, tenants: Sequence[TenantPlace], epoch: int = 0) -> None:
        """Keep a place for each of these tenants, as given, and none for others in which nothing is left.

        The list is complete. Changes that somebody makes meanwhile are reverted without another call.
        """
        ...

    async def keep_images(self, used: Sequence[str], epoch: int = 0) -> None:
        """Pull the most used images to the nodes, as far as there is room; `used` begins with the most used."""
        ...

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Start the attempt unless it was ever started; return once a crash of the hub cannot undo it.

        An attempt that can never start as requested (a missing file, a missing runtime) ends as FAILED with
        `Cause.START_FAILED`, or raises `CannotStart`. An attempt for a node that has gone meanwhile is
        LOST. After any other error the call is repeated. While the system behind the executor does not answer, it
        raises `OutOfReach`, and the job waits. Other errors count as tries, and after the last one the job fails.

        A repeated call returns at once, and it checks nothing: the nodes and files may have changed since.
        """
        ...

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        """Send SIGTERM to all ranks, SIGKILL after the grace; return at once.

        With a `failure` the attempt ends as FAILED for that reason, unless it is ending already.
        """
        ...

    async def kill(self, attempt: str, epoch: int = 0, failure: Failure | None = None) -> None:
        """End all ranks at once, also where what watches over them does not answer; can be repeated.

        It comes some time after a `stop` that was without effect. The attempt is observed as ended, soon,
        and its traces stay until it is forgotten. `failure` as in `stop`.
        """
        ...

    async def limit(self, attempt: str, time_limit: float | None, epoch: int = 0) -> None:
        """Limit a started attempt to `time_limit` seconds from its start, None for no limit; can be repeated.

        Where `limits` is false nobody calls it.
        """
        ...

    def address(self, attempt: str) -> str:
        """Return the address of an attempt that listens; empty while it is unknown.

        It is the path of a UNIX socket, or `KEY@HOST:PORT`. The program cannot replace any part of the path. With a key, each
        side proves to the other that it knows the key.
        """
        ...

    async def collect(self, attempt: AttemptKey, epoch: int = 0) -> None:
        """Move an attempt's remains to the place where they are read: the rest of its log, its spool.

        It comes before `forget`, which removes all else. Remains that were lost with the node are not an
        error. `Observation.leaves` shows whether an attempt can have remains.
        """
        ...

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Kill what is left of the attempt and remove all its traces but the run's directory and log."""
        ...

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts; unknown ones are ABSENT.

        If the state cannot be found out now, it raises: ABSENT means that nothing runs, and that nothing will.
        """
        ...

    async def known(self) -> Sequence[str]:
        """List all attempts with anything left here, those that have ended too, so that leftovers can be swept."""
        ...

    async def work_of(self, attempts: Collection[str]) -> Mapping[str, AttemptWork]:
        """Return what these attempts, which hold GPUs, were seen to do; one that does not run is left out."""
        ...

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id, on the event loop, whenever looking again is worth it."""
        ...

    async def read_log(
        self, attempt: AttemptKey, rank: int, since: int = 0, limit: int = 1000, until: int | None = None
    ) -> LogChunk:
        """Return a rank's log from a cursor on, up to another one.

        An attempt's log continues where that of the attempt before it ended, and so do cursors, which mean
        the same for ever. The log outlives the attempt.
        """
        ...

    async def tail_log(
        self, attempt: AttemptKey, rank: int, count: int, until: int | None = None
    ) -> LogChunk:
        """Read the last `count` lines of a rank's log, up to a cursor; `offset` is the one behind them."""
        ...

    async def read_new(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> Sequence[LogChunk]:
        """Read on from the cursors of these ranks; a chunk of each that has written, in one look at all of them."""
        ...

    def follow_log(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> AsyncGenerator[Sequence[LogChunk], None]:
        """Yield the results of `read_new` as ranks write, until the caller stops the iteration."""
        ...

    async def disk_use(self, whose: Collection[str | Home]) -> Mapping[str | Home, DiskUse]:
        """Return the use of the workspace's disks by these attempts' processes and these users' servers.

        The servers are notebook servers. The call takes a moment only: use that could not be measured in
        time is returned by a later call.
        """
        ...

    async def close(self) -> None:
        """Stop watching; running attempts continue."""
        ...
