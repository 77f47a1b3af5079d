"""How a sandbox stands, as read from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class SandboxPhase(StrEnum):
    """Where a sandbox stands."""

    ABSENT = "absent"  # never launched in this run directory
    STARTING = "starting"  # its shim lives, no process of the program yet
    RUNNING = "running"
    EXITED = "exited"  # ended, and it is known how
    LOST = "lost"  # it was started and vanished without an exit status


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank of a sandbox; `pid` is the host's. `state`: pending, running, finished or failed."""

    rank: int
    role: str = "worker"
    state: str = "pending"
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxExit:
    """How a sandbox ended, and why.

    `cause` is `ok`, `stopped` (because `stop` or `kill` was called), `program-error`, `signal`, `out-of-memory`,
    `time-limit`, `start-failed`. `rank`, `code`, `signal` and `tail` (the last lines of its error output) are
    the first failed rank's.
    """

    cause: str
    finished_at: float
    code: int | None = None
    signal: int | None = None
    rank: int | None = None
    message: str = ""
    tail: str = ""
    oom: bool = False
    stopped: bool = False
    cpu_s: float | None = None  # processor seconds of all its processes


@dataclass(frozen=True, slots=True)
class SandboxState:
    """A sandbox as last seen. `child_pid` is the host's number of the process that is 1 inside."""

    phase: SandboxPhase
    shim_pid: int | None = None
    child_pid: int | None = None
    started_at: float | None = None  # seconds since the epoch, when the program started
    ranks: tuple[RankState, ...] = ()
    exit: SandboxExit | None = None
    notes: tuple[str, ...] = ()  # what could not be enforced here


ABSENT = SandboxState(SandboxPhase.ABSENT)


def rank_state(data: dict[str, Any]) -> RankState:
    """Read a rank from a run directory's JSON."""
    return RankState(
        data["rank"], data["role"], data["state"], data.get("pid"), data.get("code"), data.get("signal")
    )
