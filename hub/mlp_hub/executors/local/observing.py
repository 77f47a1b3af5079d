"""Observations of attempts on this machine: from the state of their sandboxes and their run directories."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from mlp_hub import sandbox
from mlp_hub.domain.jobs.job import Cause, Failure, Hint, RankStatus
from mlp_hub.domain.jobs.stages import StageTimes
from mlp_hub.executors.base import AskedToEnd, AttemptPhase, Observation
from mlp_hub.executors.local.usage import ProcessMeter
from mlp_hub.sandbox import SandboxExit, SandboxPhase, SandboxState
from mlp_hub.sandbox.shim import files
from mlp_language.message import Message, from_data, msg, to_data

VANISHED = msg("its sandbox vanished with all its ranks, without an exit status")
RAN_OUT = msg(
    "the process that writes its log was killed: the job's output took too much memory; write less, or use fewer ranks"
)
_ABOUT = ("placement", "roles", "gpus")
_BY_PLATFORM = frozenset({Cause.TIME_LIMIT.value, Cause.DISK.value})
_PHASES = {
    SandboxPhase.ABSENT: AttemptPhase.ABSENT,
    SandboxPhase.STARTING: AttemptPhase.STARTING,
    SandboxPhase.RUNNING: AttemptPhase.RUNNING,
    SandboxPhase.LOST: AttemptPhase.LOST,
}


def read_about(run_dir: str) -> dict[str, Any] | None:
    """Return what a run directory has of its attempt's start; None without a whole file."""
    return files.read_json_if_whole(run_dir, "attempt.json", *_ABOUT)


class AttemptLooks:
    """Looks at attempts whose run directories this machine has. Its methods read files: call them in a thread.

    `node` is this machine's name. Notes of the attempts' starts stay in memory.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._meter = ProcessMeter()
        self._about: dict[str, dict[str, Any]] = {}

    def learn(self, attempt: str, about: dict[str, Any]) -> None:
        """Keep the notes of an attempt's start, which were just written."""
        self._about[attempt] = about

    def forget(self, attempt: str) -> None:
        """Forget an attempt."""
        self._about.pop(attempt, None)

    def observation(self, attempt: str, run_dir: str, state: SandboxState) -> Observation:
        """Return the state of an attempt by the state of its sandbox."""
        end = state.exit
        failure = None
        phase = _PHASES.get(state.phase, AttemptPhase.FAILED)
        if state.phase is SandboxPhase.LOST and not state.unreadable and sandbox.ran_out(run_dir):
            # by what the job wrote, and it would again: no retry is spared
            phase = AttemptPhase.FAILED
            failure = Failure(Cause.OUT_OF_MEMORY, message=str(RAN_OUT), said=to_data(RAN_OUT))
        elif state.phase is SandboxPhase.LOST and not state.unreadable and (end_for := _asked_for(run_dir)):
            phase, failure = AttemptPhase.FAILED, end_for  # its shim was killed before it could say so
        elif state.phase is SandboxPhase.LOST:
            why = _torn(state) if state.unreadable else VANISHED
            failure = Failure(Cause.NODE_LOST, message=str(why), said=to_data(why))
        elif end is not None and end.cause == "ok":
            phase = AttemptPhase.SUCCEEDED
        elif end is not None and end.stopped:
            phase = AttemptPhase.STOPPED
        elif end is not None:
            hint = self._hint(attempt, run_dir, end)
            failure = Failure(
                Cause(end.cause),
                end.rank,
                end.code,
                end.signal,
                end.message,
                end.tail,
                hint,
                end.said,
                end.hint_limit,
            )
        return Observation(
            attempt,
            phase,
            state.started_at,
            end.finished_at if end else None,
            self.ranks(attempt, run_dir, state),
            failure,
            end.lost_lines if end else state.lost_lines,
            memory_kills=end.memory_kills if end else (),
            ending=_ending(end),
            remark=None if state.remark is None else from_data(state.remark["said"]),
            remark_at=None if state.remark is None else state.remark["at"],
            stages=StageTimes(first_line=state.first_line_at),
        )

    def about_of(self, attempt: str, run_dir: str) -> dict[str, Any] | None:
        """Return what was written down of the attempt at its start."""
        if attempt not in self._about:
            about = read_about(run_dir)
            if about is not None:
                self._about[attempt] = about
        return self._about.get(attempt)

    def _hint(self, attempt: str, run_dir: str, end: SandboxExit) -> Hint | None:
        if end.hint is None:
            return None
        hint = Hint(end.hint)
        about = self.about_of(attempt, run_dir) or {}
        missing = hint is Hint.NO_NETWORK and about.get("network") == "outbound"
        return Hint.NETWORK_MISSING if missing else hint

    def ranks(self, attempt: str, run_dir: str, state: SandboxState) -> tuple[RankStatus, ...]:
        """Return the ranks of an attempt, also those that have not begun, with the present use of the running ones."""
        about = self.about_of(attempt, run_dir)
        if about is None:
            return ()
        placement: list[str] = about["placement"]
        found = {rank.rank: rank for rank in state.ranks}
        lost = state.phase is SandboxPhase.LOST
        ours = self._own_cpu(state)
        out = []
        for number, role in enumerate(about["roles"]):
            rank = found.get(number)
            node = placement[number] if number < len(placement) else self._node
            if rank is None or (lost and rank.state == "pending"):
                never = "stopped" if state.phase is SandboxPhase.EXITED else "pending"
                out.append(RankStatus(number, role, node, "failed" if lost else never))
                continue
            running = rank.state == "running"
            pid = (rank.pid or state.child_pid) if running and not lost else None
            usage = self._meter.usage_of(pid, held=partial(state.held, number)) if pid else None
            out.append(
                RankStatus(
                    number,
                    role,
                    node,
                    "failed" if running and lost else rank.state,
                    rank.exit_code,
                    rank.signal,
                    round(usage.cpu + ours, 2) if usage and usage.cpu is not None else None,
                    usage.ram if usage else None,
                    rank.cpu_mean,
                    rank.cpu_peak,
                    rank.ram_mean,
                    rank.ram_peak,
                )
            )
        return tuple(out)

    def _own_cpu(self, state: SandboxState) -> float:
        """Return the cores that the platform uses for the attempt now, for each rank that runs."""
        running = sum(rank.state == "running" for rank in state.ranks)
        if state.phase is not SandboxPhase.RUNNING or not state.shim_pid or not running:
            return 0.0
        usage = self._meter.usage_of(state.shim_pid, below=False)
        return usage.cpu / running if usage and usage.cpu else 0.0


def _ending(end: SandboxExit | None) -> AskedToEnd | None:
    """Return the result of the platform's request.

    The request to the other ranks of a rank that failed is not news.
    """
    if end is None or end.asked_at is None or not (end.stopped or end.cause in _BY_PLATFORM):
        return None
    return AskedToEnd(end.asked_at, end.killed)


def why_of(failure: Failure | None) -> sandbox.Why | None:
    """Return a failure as a sandbox keeps it, for which its attempt is asked to end."""
    return None if failure is None else (failure.cause.value, failure.message, failure.said)


def _asked_for(run_dir: str) -> Failure | None:
    """Return the failure for which an attempt was asked to end."""
    why = sandbox.why_stopped(run_dir)
    return None if why is None else Failure(Cause(why[0]), message=why[1], said=why[2])


def _torn(state: SandboxState) -> Message:
    """Return the reason why the state of an attempt is unknown."""
    return msg(
        "the file {name} of its run directory cannot be read, perhaps after a power cut: it holds {what}",
        name=os.path.basename(state.unreadable),  # noqa: PTH119 - a run directory's paths are strings
        what=state.holds,
    )
