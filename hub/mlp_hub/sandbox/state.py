"""State of a sandbox, as read from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mlp_hub.sandbox.shim.cgroups import held


class SandboxPhase(StrEnum):
    """Phase of a sandbox."""

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
    cpu_mean: float | None = None  # of all that it used, once that is known: cores and MiB
    cpu_peak: float | None = None
    ram_mean: int | None = None
    ram_peak: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxExit:
    """How a sandbox ended, and why.

    `cause` is `ok`, `stopped` (because `stop` or `kill` was called), `program-error`, `signal`, `out-of-memory`,
    `time-limit`, `start-failed`, `node-lost` (it was not started, for lack of room on the disk). `rank`, `code`, `signal` and `tail` (the last lines of its error output) are
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
    cpu_s: float | None = None  # processor seconds of all its processes and of what the platform did for it
    lost_lines: int = 0  # of its output, which could not be written
    ram_mib: int | None = None  # the memory that it might have; None where that was not limited
    said: dict[str, Any] | None = None  # the message as data, where it is a sentence of ours
    asked_at: float | None = None  # when all were asked to end, where they were
    killed: bool = False  # because they had not ended within the grace
    hint: str | None = None  # as `Hint`: what probably stands behind it
    hint_limit: int = 0  # the number that this is about
    # ranks of which a process was killed for memory, and which went on all the same
    memory_kills: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxState:
    """A sandbox as last seen. `child_pid` is the host's number of the process that is 1 inside."""

    phase: SandboxPhase
    shim_pid: int | None = None
    child_pid: int | None = None
    started_at: float | None = None  # seconds since the epoch, when the program started
    ranks: tuple[RankState, ...] = ()
    exit: SandboxExit | None = None
    first_line_at: float | None = None  # when ranks began to write, where that is told by now
    notes: tuple[str, ...] = ()  # what could not be enforced here
    unreadable: str = ""  # the file because of which it counts as lost, and what that holds
    holds: str = ""
    remark: dict[str, Any] | None = None  # a sentence as data, `said`, of how it runs, which holds since `at`
    lost_lines: int = 0  # of the output of one that vanished, which could not be written
    memory: tuple[str, ...] = ()  # version and directory of the group that counts the memory of each `{rank}`

    def held(self, rank: int) -> int | None:
        """Return the bytes that a rank holds now, as its peak is counted; None where no group does."""
        if not self.memory:
            return None
        version, group = self.memory
        return held(group.replace("{rank}", str(rank)), version)


ABSENT = SandboxState(SandboxPhase.ABSENT)


def rank_state(data: dict[str, Any]) -> RankState:
    """Read a rank from a run directory's JSON."""
    return RankState(
        data["rank"],
        data["role"],
        data["state"],
        data.get("pid"),
        data.get("code"),
        data.get("signal"),
        *(data.get(name) for name in ("cpu_mean", "cpu_peak", "ram_mean", "ram_peak")),
    )
