"""The executor's interface: where attempts of jobs run.

Level-triggered: `observe()` is the truth, events only say that looking again is worth it. Every call is
idempotent, so that the reconciler may repeat it after a crash. An attempt id is never started twice, whatever
is killed when.

What changes anything is done under the epoch of the service that decides: a number that grows with each one that takes
over. An older one than was ever seen here is refused with `Superseded`, whatever it asks for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlp_hub.domain.job import Failure, RankStatus
from mlp_hub.domain.resources import Resources

WORKSPACE = "/workspace"
"""Where ranks see their job's directory, whatever the executor."""


class CannotStart(Exception):  # noqa: N818 - says what happened
    """The attempt can never start as asked; the message says why and what would be right."""


class AttemptPhase(StrEnum):
    """What an executor knows of an attempt."""

    ABSENT = "absent"  # never started here, or forgotten
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"  # ended because `stop` was called, whatever its exit status
    LOST = "lost"  # it ran, and vanished without an exit status


@dataclass(frozen=True, slots=True)
class Observation:
    """An attempt as the executor sees it. Times are seconds since the epoch."""

    attempt: str
    phase: AttemptPhase
    started_at: float | None = None
    finished_at: float | None = None
    ranks: tuple[RankStatus, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as found. `capacity` is what may be given out, `physical` what is really there."""

    name: str
    capacity: Resources
    physical: Resources
    gpu_kind: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    up: bool = True


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """All that an attempt needs. Paths are the hub machine's."""

    attempt: str
    job: str
    user: str
    uid: int | None  # host uid of its user where the hub is root
    tenant: str
    runtime: str
    workers: int
    ps: int
    per_worker: Resources
    placement: tuple[str, ...]  # the node of each rank; empty: all on the first node
    home: str  # the user's home directory
    workspace: str  # the job's directory: ckpt, log, metrics, code below it
    entry: str | None  # path relative to home
    code: str | None
    args: tuple[str, ...]
    env: Mapping[str, str]  # MLP_* of the contract and the user's own
    time_limit: float | None = None
    grace_s: float = 30.0
    network: str = "none"

    @property
    def ranks(self) -> int:
        """How many processes it has, parameter servers included."""
        return self.workers + self.ps


def check_placement(spec: LaunchSpec, nodes: Sequence[NodeInfo]) -> None:
    """Raise `CannotStart` unless the attempt has a rank, and for each of its ranks one of these nodes."""
    if spec.workers < 1:
        raise CannotStart(f"a job has 1 worker or more, not {spec.workers}")
    if spec.placement and len(spec.placement) != spec.ranks:
        raise CannotStart(f"{spec.ranks} ranks need a node each; {len(spec.placement)} are named")
    names = {node.name for node in nodes}
    foreign = sorted(set(spec.placement) - names)
    if foreign:
        raise CannotStart(
            f"this executor has no node {', '.join(foreign)}; it has {', '.join(sorted(names))}"
        )


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a rank's output. `time` is RFC 3339; `stream` is stdout or stderr."""

    time: str
    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Lines from a cursor on; pass `offset` back to go on from there."""

    rank: int
    lines: tuple[LogLine, ...]
    offset: int
    dropped: int = 0  # bytes that rotation had discarded before the cursor


class Executor(Protocol):
    """Runs attempts. All methods may be called again at any time with the same arguments."""

    name: str
    spools: bool  # whether its ranks may leave files in their jobs' directories

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes with their capacity."""
        ...

    def lacks(self, runtime: str, home: str) -> str | None:
        """Name the package that jobs of this runtime need and would not find here, nor in their user's home.

        None when nothing is missing.
        """
        ...

    def epoch(self) -> int:
        """Return the highest epoch that was ever seen here; 0 for none."""
        ...

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on; return once nothing is under way that was begun under one.

        Raises `Superseded` where a newer one was seen, `Unavailable` where something takes longer than `wait_s` seconds;
        older ones are refused then too.
        """
        ...

    def acting(self, epoch: int) -> AbstractContextManager[None]:
        """Do something else to a job's files under this epoch: `fence` waits for its end. Raises `Superseded`."""
        ...

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Start the attempt unless it was ever started; return once a crash of the hub cannot undo it.

        What can never start as asked (a missing file, a runtime that is not there) ends as FAILED with
        `Cause.START_FAILED`, or raises `CannotStart`. Any other error is taken to pass, and the call comes again.
        """
        ...

    async def stop(self, attempt: str, grace_s: float, epoch: int = 0) -> None:
        """Send SIGTERM to all ranks, SIGKILL after the grace; return at once."""
        ...

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Tell how these attempts stand; unknown ones are ABSENT."""
        ...

    async def known(self) -> Sequence[str]:
        """List all attempts with anything left here, so that leftovers can be swept."""
        ...

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Kill what is left of the attempt and remove all its traces but the job's own directory."""
        ...

    def read_log(self, workspace: str, rank: int, since: int = 0, limit: int = 1000) -> LogChunk:
        """Read a rank's log from a cursor on."""
        ...

    def tail_log(self, workspace: str, rank: int, count: int) -> LogChunk:
        """Read the last `count` lines of a rank's log; `offset` is the cursor behind them."""
        ...

    def follow(self, workspace: str, ranks: int) -> AsyncIterator[LogChunk]:
        """Yield new chunks of all ranks' logs as they are written."""
        ...

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id, on the event loop, whenever looking again is worth it."""
        ...

    async def close(self) -> None:
        """Stop watching; running attempts go on."""
        ...
