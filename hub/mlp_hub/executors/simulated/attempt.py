"""An attempt of the simulated executor, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, overload

from mlp_hub.domain.jobs.job import Cause, Failure
from mlp_hub.executors.base import AttemptPhase, LogLine
from mlp_hub.executors.workspace import JobRun

DONE = (AttemptPhase.SUCCEEDED, AttemptPhase.FAILED, AttemptPhase.STOPPED, AttemptPhase.LOST)


@dataclass(frozen=True, slots=True)
class Script:
    """Script of a simulated attempt: read from the job's environment, times in seconds.

    SIM_DURATION (default 1), SIM_START (time until the ranks run, default 0), SIM_EXIT (exit code of SIM_RANK,
    default 0), SIM_SIGNAL, SIM_STOP (how long it takes to end when asked to, default 0), SIM_RAM (MiB that each rank
    used at most, default: not known), SIM_OOM (whether SIM_RANK runs out of memory, default 0), SIM_LOST (lines of its
    output that could not be written, default 0), SIM_DEAF (whether it ignores the request to end, default 0). SIM_GPU
    (what an engine of its GPUs does, from 0 to 1) and SIM_CPU (cores that a rank uses) are not known by default. With SIM_GPU_REPORTED=1 the first is the job's own report.
    """

    duration: float = 1.0
    start: float = 0.0
    exit_code: int = 0
    signal: int | None = None
    rank: int = 0
    stop: float = 0.0
    ram: int | None = None
    out_of_memory: bool = False
    lost_lines: int = 0
    deaf: bool = False
    gpu: float | None = None
    cpu: float | None = None
    gpu_reported: bool = False

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Script:
        """Return the script of an environment; a value that cannot be read has its default."""
        return cls(
            duration=_number(env, "SIM_DURATION", 1.0),
            start=_number(env, "SIM_START", 0.0),
            exit_code=int(_number(env, "SIM_EXIT", 0)),
            signal=int(_number(env, "SIM_SIGNAL", 0)) or None,
            rank=int(_number(env, "SIM_RANK", 0)),
            stop=_number(env, "SIM_STOP", 0.0),
            ram=int(_number(env, "SIM_RAM", 0)) or None,
            out_of_memory=bool(_number(env, "SIM_OOM", 0)),
            lost_lines=int(_number(env, "SIM_LOST", 0)),
            deaf=bool(_number(env, "SIM_DEAF", 0)),
            gpu=_number(env, "SIM_GPU", None),
            cpu=_number(env, "SIM_CPU", None),
            gpu_reported=bool(_number(env, "SIM_GPU_REPORTED", 0)),
        )


@dataclass(frozen=True, slots=True)
class SimulatedAttempt:
    """One attempt; `stopped_at` and `lost_at` are when these take effect."""

    id: str
    of: JobRun
    placement: tuple[str, ...]
    roles: tuple[str, ...]
    accepted_at: float
    script: Script
    time_limit: float | None = None
    stopped_at: float | None = None
    lost_at: float | None = None

    @property
    def runs_at(self) -> float:
        """Time at which its ranks run."""
        return self.accepted_at + self.script.start

    @property
    def ends_at(self) -> float:
        """Time at which it ends by itself."""
        length = (
            self.script.duration if self.time_limit is None else min(self.script.duration, self.time_limit)
        )
        return self.runs_at + length

    @property
    def over_at(self) -> float:
        """Time at which it is over, whatever ends it."""
        return min(x for x in (self.ends_at, self.stopped_at, self.lost_at) if x is not None)

    def phase(self, now: float) -> AttemptPhase:
        """Return its state."""
        if now < self.over_at:
            return AttemptPhase.STARTING if now < self.runs_at else AttemptPhase.RUNNING
        if self.lost_at is not None and self.lost_at <= self.over_at:
            return AttemptPhase.LOST
        if self.stopped_at is not None and self.stopped_at <= self.over_at:
            return AttemptPhase.STOPPED
        return AttemptPhase.SUCCEEDED if self.failure() is None else AttemptPhase.FAILED

    def failure(self) -> Failure | None:
        """Return what it fails of, if it is not ended before; None where it succeeds."""
        s = self.script
        if self.time_limit is not None and self.time_limit < s.duration:
            message = f"ran longer than its time limit of {self.time_limit:g} s"
            return Failure(Cause.TIME_LIMIT, message=message)
        if s.out_of_memory:
            return Failure(Cause.OUT_OF_MEMORY, rank=s.rank)
        if s.signal is not None:
            return Failure(Cause.SIGNAL, rank=s.rank, signal=s.signal)
        return Failure(Cause.PROGRAM_ERROR, rank=s.rank, exit_code=s.exit_code) if s.exit_code else None

    def log(self, now: float) -> list[tuple[int, LogLine]]:
        """List (rank, line) of all that was written up to `now`."""
        lines: list[tuple[int, LogLine]] = []
        for rank, node in enumerate(self.placement):
            if now >= self.runs_at:
                lines.append((rank, _line(self.runs_at, f"simulated rank {rank} runs on {node}")))
                if now >= self.over_at:
                    lines.append((rank, _line(self.over_at, f"simulated rank {rank} ended")))
        return lines


def to_json(attempt: SimulatedAttempt) -> dict[str, Any]:
    """Return an attempt as the journal has it."""
    plain = {name: getattr(attempt, name) for name in SimulatedAttempt.__slots__}
    plain["script"] = {name: getattr(attempt.script, name) for name in Script.__slots__}
    plain["of"] = [attempt.of.user, attempt.of.job, attempt.of.run, attempt.of.tenant]
    return plain


def from_json(plain: dict[str, Any]) -> SimulatedAttempt:
    """Read an attempt from the journal."""
    lists = {name: tuple(plain[name]) for name in ("placement", "roles")}
    # in a journal of an earlier version the directory stands in its place; only the log goes by it
    directory = plain.pop("workspace", "")
    of = JobRun(*plain.pop("of", ("", directory, 1)))
    return SimulatedAttempt(**{**plain, **lists, "of": of, "script": Script(**plain["script"])})


@overload
def _number(env: Mapping[str, str], name: str, default: float) -> float: ...
@overload
def _number(env: Mapping[str, str], name: str, default: None) -> float | None: ...
def _number(env: Mapping[str, str], name: str, default: float | None) -> float | None:
    given = env.get(name)
    if given is None:
        return default
    try:
        return float(given)
    except ValueError:
        return default


def _line(at: float, text: str) -> LogLine:
    return LogLine(datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"), "stdout", text)
