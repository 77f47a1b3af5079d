"""Runs attempts in sandboxes on this machine.

Each attempt has a run directory, which is all its state: a hub that starts again finds its attempts there,
running or ended, and none is started a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlp_hub.domain.job import Cause, Failure, RankStatus
from mlp_hub.executors import logs, runtimes, sandbox
from mlp_hub.executors.base import (
    AttemptPhase,
    CannotStart,
    LaunchSpec,
    LogChunk,
    NodeInfo,
    Observation,
    check_placement,
)
from mlp_hub.executors.fence import Fence, Fenced
from mlp_hub.executors.local_gpus import assign
from mlp_hub.executors.local_prepare import Surroundings, make_directories, sandbox_spec
from mlp_hub.executors.local_usage import UsageMeter
from mlp_hub.executors.local_watch import Watch
from mlp_hub.executors.nodes import gpus, local_node
from mlp_hub.executors.roles import roles_of
from mlp_hub.executors.sandbox import Bind, SandboxPhase, SandboxState, SandboxUnavailable
from mlp_hub.executors.sandbox.control import record_failure, sweep
from mlp_hub.executors.sandbox.nursery import Nursery
from mlp_hub.executors.shim import files

IDLE_S = 120.0  # after so long without a start the process that forks shims ends, to give its memory back
_PHASES = {
    SandboxPhase.ABSENT: AttemptPhase.ABSENT,
    SandboxPhase.STARTING: AttemptPhase.STARTING,
    SandboxPhase.RUNNING: AttemptPhase.RUNNING,
    SandboxPhase.LOST: AttemptPhase.LOST,
}


class LocalExecutor(Fenced):
    """The executor of one machine; see `Executor` for what its methods promise.

    `run_root` holds a run directory per attempt. `python` is the interpreter of the jobs' environment. `binds`
    are seen in every sandbox, as the directory of the platform's sockets.
    """

    name = "local"
    spools = True

    def __init__(
        self,
        run_root: str | Path,
        *,
        nodes: Sequence[NodeInfo] | None = None,
        python: str | None = None,
        binds: Sequence[Bind] = (),
    ) -> None:
        self._root = str(run_root)
        os.makedirs(self._root, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._nodes = tuple(nodes) if nodes is not None else (local_node(disk=self._root),)
        self._python = python or sys.executable
        self._binds = tuple(binds)
        self._fence = Fence(self._root)
        self._nursery = Nursery()
        self._meter = UsageMeter()
        self._callbacks: list[Callable[[str], None]] = []
        self._watch = Watch(self._changed)
        self._watching: set[str] = set()
        self._final: dict[str, Observation] = {}
        self._about: dict[str, dict[str, Any]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._opened = False

    # -- the interface

    def nodes(self) -> Sequence[NodeInfo]:
        """List this machine as found, or as configured."""
        return self._nodes

    def lacks(self, runtime: str, home: str) -> str | None:
        """Look into the environment that all jobs of this machine share, and for what the user installed at home."""
        return runtimes.missing(runtime, self._python, home)

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Start the attempt unless it was ever started; what cannot be started has failed at once."""
        self._open()
        run_dir = self._dir(spec.attempt)
        self._postpone_idle()
        lock = self._locks.setdefault("gpu" if spec.per_worker.gpu else spec.attempt, asyncio.Lock())
        async with lock:
            await asyncio.to_thread(self._start, spec, run_dir, epoch)
        self._locks.pop(spec.attempt, None)
        self._attach(spec.attempt)

    async def stop(self, attempt: str, grace_s: float, epoch: int = 0) -> None:
        """Send SIGTERM to all ranks, SIGKILL after the grace; returns at once."""
        self._open()
        with self._fence.acting(epoch):
            sandbox.stop(self._dir(attempt), grace_s)

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Tell how these attempts stand."""
        self._open()
        return {attempt: self._observe(attempt) for attempt in attempts}

    async def known(self) -> Sequence[str]:
        """List all attempts that have a run directory."""
        self._open()
        return sorted(entry.name for entry in self._run_dirs())

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Kill what is left of the attempt and remove its run directory."""
        self._open()
        await asyncio.to_thread(self._remove, self._dir(attempt), epoch)
        self._detach(attempt)
        self._final.pop(attempt, None)
        self._about.pop(attempt, None)

    def read_log(self, workspace: str, rank: int, since: int = 0, limit: int = 1000) -> LogChunk:
        """Read a rank's log from a cursor on."""
        return logs.read_log(workspace, rank, since, limit)

    def tail_log(self, workspace: str, rank: int, count: int) -> LogChunk:
        """Read the last `count` lines of a rank's log; `offset` is the cursor behind them."""
        return logs.tail_log(workspace, rank, count)

    def follow(self, workspace: str, ranks: int) -> AsyncIterator[LogChunk]:
        """Yield new chunks of all ranks' logs as they are written."""
        return logs.follow(workspace, ranks)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id, on the event loop, whenever looking again is worth it."""
        self._callbacks.append(callback)

    async def close(self) -> None:
        """Stop watching; running attempts go on."""
        if self._idle is not None:
            self._idle.cancel()
        self._watch.close()
        self._nursery.close()

    # -- starting

    def _start(self, spec: LaunchSpec, run_dir: str, epoch: int) -> None:
        with self._fence.acting(epoch):
            if not os.path.lexists(f"{run_dir}/claim"):
                self._launch(spec, run_dir)

    def _remove(self, run_dir: str, epoch: int) -> None:
        with self._fence.acting(epoch):
            sandbox.remove(run_dir)

    def _launch(self, spec: LaunchSpec, run_dir: str) -> None:
        try:
            check_placement(spec, self._nodes)
            root = os.geteuid() == 0
            make_directories(spec, root=root)
            shares = self._gpu_shares(spec)
            devices = sorted({device for share in shares for device in share})
            caps = sandbox.capabilities()
            around = Surroundings(self._python, self._binds, caps.outbound)
            described = sandbox_spec(spec, around, devices, [sorted(share) for share in shares])
        except (CannotStart, OSError, ValueError, subprocess.SubprocessError) as error:
            self._write_about(spec, run_dir, [])
            record_failure(run_dir, str(error))
            return
        self._write_about(spec, run_dir, shares)
        try:
            sandbox.launch(described, run_dir, self._nursery)
        except (SandboxUnavailable, ValueError) as error:
            record_failure(run_dir, str(error))

    def _write_about(self, spec: LaunchSpec, run_dir: str, shares: Sequence[Mapping[int, int]]) -> None:
        """Write down what `observe` needs and the sandbox does not know."""
        os.makedirs(run_dir, mode=0o700, exist_ok=True)  # noqa: PTH103
        nodes = spec.placement or (self._nodes[0].name,) * spec.ranks
        used: dict[str, int] = {}
        for share in shares:
            for device, amount in share.items():
                used[str(device)] = used.get(str(device), 0) + amount
        roles = roles_of(spec.runtime, spec.workers, spec.ps)
        about = {"placement": list(nodes), "roles": list(roles), "gpus": used}
        files.write_json(run_dir, "attempt.json", about)
        self._about[spec.attempt] = about

    def _gpu_shares(self, spec: LaunchSpec) -> list[dict[int, int]]:
        if not spec.per_worker.gpu:
            return []
        used: dict[int, int] = {}
        for entry in self._run_dirs():
            about = files.read_json(entry.path, "attempt.json")
            alive = sandbox.inspect(entry.path).phase in (SandboxPhase.STARTING, SandboxPhase.RUNNING)
            if alive and about and entry.name != spec.attempt:
                for device, amount in about["gpus"].items():
                    used[int(device)] = used.get(int(device), 0) + amount
        devices = [gpu.index for gpu in gpus()]
        return assign(spec.per_worker.gpu, spec.ranks, devices, used)

    # -- looking

    def _observe(self, attempt: str) -> Observation:
        if (known := self._final.get(attempt)) is not None:
            return known
        run_dir = self._dir(attempt)
        state = sandbox.inspect(run_dir)
        seen = self._observation(attempt, run_dir, state)
        if state.phase in (SandboxPhase.EXITED, SandboxPhase.LOST):
            if state.phase is SandboxPhase.LOST:
                sweep(run_dir)
            self._final[attempt] = seen
            self._detach(attempt)
        return seen

    def _observation(self, attempt: str, run_dir: str, state: SandboxState) -> Observation:
        end = state.exit
        failure = None
        phase = _PHASES.get(state.phase, AttemptPhase.FAILED)
        if state.phase is SandboxPhase.LOST:
            failure = Failure(
                Cause.NODE_LOST, message="its sandbox vanished with all its ranks, without an exit status"
            )
        elif end is not None and end.cause == "ok":
            phase = AttemptPhase.SUCCEEDED
        elif end is not None and end.stopped:
            phase = AttemptPhase.STOPPED
        elif end is not None:
            failure = Failure(Cause(end.cause), end.rank, end.code, end.signal, end.message, end.tail)
        return Observation(
            attempt,
            phase,
            state.started_at,
            end.finished_at if end else None,
            self._ranks(attempt, run_dir, state),
            failure,
        )

    def _ranks(self, attempt: str, run_dir: str, state: SandboxState) -> tuple[RankStatus, ...]:
        about = self._about.get(attempt)
        if about is None:
            about = files.read_json(run_dir, "attempt.json")
            if about is None:
                return ()
            self._about[attempt] = about
        placement: list[str] = about["placement"]
        found = {rank.rank: rank for rank in state.ranks}
        lost = state.phase is SandboxPhase.LOST
        out = []
        for number, role in enumerate(about["roles"]):
            rank = found.get(number)
            node = placement[number] if number < len(placement) else self._nodes[0].name
            if rank is None or (lost and rank.state == "pending"):
                never = "stopped" if state.phase is SandboxPhase.EXITED else "pending"
                out.append(RankStatus(number, role, node, "failed" if lost else never))
                continue
            running = rank.state == "running"
            pid = (rank.pid or state.child_pid) if running and not lost else None
            usage = self._meter.of(pid) if pid else None
            out.append(
                RankStatus(
                    number,
                    role,
                    node,
                    "failed" if running and lost else rank.state,
                    rank.exit_code,
                    rank.signal,
                    usage.cpu if usage else None,
                    usage.ram if usage else None,
                )
            )
        return tuple(out)

    # -- watching

    def _open(self) -> None:
        """Attach, at the first call on the event loop, to what an earlier hub started."""
        if self._opened:
            return
        self._opened = True
        # what the first start would have to wait for: what this machine allows, where its Python lives
        asyncio.get_running_loop().run_in_executor(None, self._warm)
        for entry in self._run_dirs():
            self._attach(entry.name)

    def _warm(self) -> None:
        sandbox.capabilities()
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # a start will say it
            sandbox.environment_binds(self._python)

    def _attach(self, attempt: str) -> None:
        if attempt in self._watching or attempt in self._final:
            return
        state = sandbox.inspect(self._dir(attempt))
        self._watching.add(attempt)
        self._watch.add(attempt, self._dir(attempt), state.shim_pid)
        asyncio.get_running_loop().call_soon(self._changed, attempt)  # it may be over before we watched

    def _detach(self, attempt: str) -> None:
        if attempt in self._watching:
            self._watching.discard(attempt)
            self._watch.drop(attempt)

    def _changed(self, attempt: str) -> None:
        for callback in self._callbacks:
            callback(attempt)

    def _postpone_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._nursery.close)

    def _run_dirs(self) -> list[os.DirEntry[str]]:
        return [entry for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False)]

    def _dir(self, attempt: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", attempt):
            raise ValueError(
                f"{attempt!r} is no id of an attempt: letters, digits, dots and hyphens, 121 at most"
            )
        return f"{self._root}/{attempt}"
