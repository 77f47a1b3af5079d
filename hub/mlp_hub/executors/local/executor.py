"""Runs attempts in sandboxes on this machine.

Each attempt has a run directory, which is all its state: a hub that starts again finds its attempts there,
running or ended, and none is started a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mlp_hub import durable, sandbox
from mlp_hub.domain.jobs.idle_gpus import WORKS_CORES, WORKS_GPU
from mlp_hub.domain.jobs.job import Failure
from mlp_hub.domain.jobs.names import reference
from mlp_hub.domain.runtime.runtime import roles_of
from mlp_hub.executors import rank_commands
from mlp_hub.executors.base import (
    AttemptKey,
    AttemptWork,
    CannotStart,
    DiskUse,
    LaunchSpec,
    Observation,
    TenantPlace,
    check_placement,
    most_of,
)
from mlp_hub.executors.local import disk
from mlp_hub.executors.local.environments import LocalEnvironments
from mlp_hub.executors.local.gpu_jobs import GpuJobFiles
from mlp_hub.executors.local.gpu_meter import GpuMeter
from mlp_hub.executors.local.gpus import assign
from mlp_hub.executors.local.machine_use import read_node_use
from mlp_hub.executors.local.node import gpus, local_node
from mlp_hub.executors.local.observing import AttemptLooks, read_about, why_of
from mlp_hub.executors.local.package_index import PackageIndex
from mlp_hub.executors.local.prepare import HostContext, sandbox_spec
from mlp_hub.executors.local.watch import Watch, Watched
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence, Fenced
from mlp_hub.executors.shared_volume.log_reader import SharedVolumeLogs
from mlp_hub.executors.shared_volume.prepare import make_directories, show_model
from mlp_hub.executors.shared_volume.tenant_files import SharedVolumeTenantFiles
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.executors.turns import TimeSlices
from mlp_hub.executors.workspace import LOOK_EVERY_S, Home
from mlp_hub.sandbox import Bind, SandboxPhase, SandboxState, SandboxUnavailable
from mlp_hub.sandbox.control import record_failure, remove_leftovers
from mlp_hub.sandbox.fork_server import ForkServer
from mlp_hub.sandbox.shim import files
from mlp_language.message import Message, to_data

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
LOOKERS = 2
"""Tuning: threads that look at files and do nothing else: threads, for how long one waits for a slow disk."""
IDLE_S = 120.0
"""Tuning: seconds without a start, after which the fork server is closed: its memory, for a slower first start."""
SOCKET = "app.sock"
"""Given: name of the socket of the listening program, in its run directory."""
_PASSES = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE}
)
"""Error numbers that describe this machine at this moment, and not the attempt."""


class LocalExecutor(Fenced, SharedVolumeLogs):
    """Executor of one machine; see `Executor` for the promises of its methods.

    `run_root` holds a run directory per attempt, `directories` homes and jobs. `python` is the
    interpreter of the jobs' environment. `binds` are visible in every sandbox, such as the directory of
    the platform's sockets. `index` is the source of packages of environments, of which
    `environments_at_once` are made at a time. One step of that may take `environment_step_s` seconds. `servers_root` holds the
    run directories of notebook servers, by user. `platform` are paths that a tenant's files may not be
    in. `gpu_jobs` is a directory in which files name the jobs on each GPU, for the DCGM exporter.
    """

    name = "local"
    keeps_tenants = False
    external_jobs = None
    images = False
    serves = True
    drains = True
    limits = True
    measures = True

    def __init__(
        self,
        run_root: str | Path,
        directories: Directories,
        *,
        nodes: Sequence[NodeInfo] | None = None,
        python: str | None = None,
        binds: Sequence[Bind] = (),
        servers_root: str | Path | None = None,
        platform: Sequence[Path] = (),
        index: PackageIndex = PackageIndex({}),  # noqa: B008 - it is frozen
        environments_at_once: int = 3,
        environment_step_s: float = 1800.0,
        gpu_jobs: Path | None = None,
    ) -> None:
        self._root = str(run_root)
        os.makedirs(self._root, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._nodes = tuple(nodes) if nodes is not None else (local_node(disk=self._root),)
        self._python = python or sys.executable
        self._binds = tuple(binds)
        self._servers_root = servers_root
        self._fence = Fence(self._root)
        SharedVolumeLogs.__init__(self, directories)
        self.workspace = SharedVolumeWorkspace(
            directories, self._fence, tenants=SharedVolumeTenantFiles(directories, self._fence, platform)
        )
        builds = Path(self._root).with_name("environments")
        self.environments = LocalEnvironments(
            builds,
            directories,
            self._fence,
            self._python,
            index,
            at_once=environments_at_once,
            step_s=environment_step_s,
        )
        self._fork_server = ForkServer()
        self._gpu_jobs = None if gpu_jobs is None else GpuJobFiles(gpu_jobs, _numbers)
        self._gpu_meter = GpuMeter()
        self._callbacks: list[Callable[[str], None]] = []
        self._watch = Watch(self._changed)
        self._final: dict[str, Observation] = {}
        self._attempts = AttemptLooks(self._nodes[0].name)
        self._locks: dict[str, asyncio.Lock] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        # each their own: those that all share may be waiting for processes to end
        self._lookers = ThreadPoolExecutor(LOOKERS, "attempts")
        self._disk_looker = ThreadPoolExecutor(1, "processes")
        self._gpu_looker = ThreadPoolExecutor(1, "gpus")  # a driver may hang
        self._gpus_looked_at: Future[dict[str, AttemptWork]] | None = None
        self._uses: TimeSlices[str | Home, DiskUse] = TimeSlices()

    # -- the interface

    async def open(self) -> None:
        """Attach to the work that an earlier hub started; every other call does so where it was not done."""
        await self._open()

    def nodes(self) -> Sequence[NodeInfo]:
        """List this machine as found, or as configured."""
        return self._nodes

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Never call back: this machine stays what it is."""

    @property
    def cluster_calls(self) -> Mapping[str, int]:
        """Return nothing, without a cluster."""
        return {}

    def namespace_of(self, tenant: str) -> str:
        """Return nothing, without a cluster."""
        del tenant
        return ""

    async def node_use(self, *, known: bool = False) -> Sequence[NodeUse]:
        """Read what this machine uses."""
        del known
        loop = asyncio.get_running_loop()
        return [await loop.run_in_executor(self._disk_looker, read_node_use, self._nodes[0].name, self._root)]

    def trouble(self) -> Message | None:
        """Say nothing: it is this machine."""
        return None

    async def lacks(self, package: str, user: str) -> bool:
        """Look for the package in the shared environment of this machine's jobs, and in the user's home."""
        home = self._directories.home(user)
        return await asyncio.to_thread(rank_commands.lacks, package, self._python, home, home_mount(user))

    async def keep_tenants(self, tenants: Sequence[TenantPlace], epoch: int = 0) -> None:
        """Do nothing: tenants need no separate place here."""

    async def keep_images(self, used: Sequence[str], epoch: int = 0) -> None:
        """Do nothing: nothing here has an image."""

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on, and write what runs on GPUs: another service may have started it since."""
        await super().fence(epoch, wait_s)
        if self._gpu_jobs is not None:
            await self._look(self._find_gpu_jobs)

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Start the attempt unless it was ever started; an attempt that cannot be started has failed at once."""
        run_dir = self._dir(spec.attempt)
        await self._open()
        self._postpone_idle()
        lock = self._locks.setdefault("gpu" if spec.per_worker.gpu else spec.attempt, asyncio.Lock())
        async with lock:
            watched = await asyncio.to_thread(self._start, spec, run_dir, epoch)
        self._locks.pop(spec.attempt, None)
        self._watch.add(spec.attempt, watched)
        self._changed(spec.attempt)  # at once, so that a caller who looks after this need not look twice

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        """Send SIGTERM to all ranks, SIGKILL after the grace; returns at once."""
        await self._open()
        await self._act(epoch, sandbox.stop, self._dir(attempt), grace_s, why_of(failure))

    async def kill(self, attempt: str, epoch: int = 0, failure: Failure | None = None) -> None:
        """End the sandbox, with its shim if that does not answer; the run directory stays."""
        await self._open()
        await self._act(epoch, sandbox.kill, self._dir(attempt), why_of(failure))
        self._changed(attempt)

    async def limit(self, attempt: str, time_limit: float | None, epoch: int = 0) -> None:
        """Tell the shim, which keeps the time."""
        await self._open()
        await self._act(epoch, sandbox.limit, self._dir(attempt), time_limit)

    def address(self, attempt: str) -> str:
        """Return the socket in the run directory, which is the platform's."""
        return f"{self._dir(attempt)}/{SOCKET}"

    async def collect(self, attempt: AttemptKey, epoch: int = 0) -> None:
        """Do nothing: ranks write their logs and spools where they are read from."""

    async def disk_use(self, whose: Collection[str | Home]) -> Mapping[str | Home, DiskUse]:
        """Ask the kernel about the processes in these attempts' sandboxes, and in those of these users' servers."""
        return await asyncio.get_running_loop().run_in_executor(self._disk_looker, self._disk_use, whose)

    async def work_of(self, attempts: Collection[str]) -> Mapping[str, AttemptWork]:
        """Ask the driver about the devices of these attempts, and the kernel about their processes."""
        await self._open()
        if self._gpus_looked_at is not None and not self._gpus_looked_at.done():
            raise TimeoutError("the driver of the GPUs has not answered yet")
        self._gpus_looked_at = self._gpu_looker.submit(self._work_of, list(attempts))
        return await asyncio.wrap_future(self._gpus_looked_at)

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts."""
        await self._open()
        unknown = [attempt for attempt in attempts if attempt not in self._final]
        if not unknown:
            return {attempt: self._final[attempt] for attempt in attempts}
        seen = await self._look(lambda: {attempt: self._observe(attempt) for attempt in unknown})
        for attempt, (observation, over) in seen.items():
            if over:
                self._final[attempt] = observation
                self._watch.drop(attempt)
        return {a: seen[a][0] if a in seen else self._final[a] for a in attempts}

    async def known(self) -> Sequence[str]:
        """List all attempts that have a run directory."""
        await self._open()
        return sorted(entry.name for entry in await self._look(self._run_dirs))

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Kill what is left of the attempt and remove its run directory."""
        await self._open()
        await self._act(epoch, self._remove, self._dir(attempt))
        self._watch.drop(attempt)
        self._final.pop(attempt, None)
        self._attempts.forget(attempt)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id, on the event loop, whenever looking again is worth it."""
        self._callbacks.append(callback)

    async def close(self) -> None:
        """Stop watching; running attempts continue."""
        if self._idle is not None:
            self._idle.cancel()
        self._watch.close()
        self._fork_server.close()

    # -- starting

    def _start(self, spec: LaunchSpec, run_dir: str, epoch: int) -> Watched:
        with self._fence.acting(epoch):
            if not os.path.lexists(f"{run_dir}/claim"):
                self._launch(spec, run_dir)
        return self._watch.watch_directory(run_dir, sandbox.inspect(run_dir).shim_pid)

    async def _act(self, epoch: int, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do something to a run directory under an epoch, in a thread."""

        def act() -> None:
            with self._fence.acting(epoch):
                work(*args, **kwargs)

        await asyncio.to_thread(act)

    def _remove(self, run_dir: str) -> None:
        sandbox.remove(run_dir)
        self._off_gpus(os.path.basename(run_dir))  # noqa: PTH119

    def _launch(self, spec: LaunchSpec, run_dir: str) -> None:
        try:
            check_placement(spec, [node.name for node in self._nodes])
            root = os.geteuid() == 0
            make_directories(spec, self._directories, root=root)
            shares = self._gpu_shares(spec)
            devices = sorted({device for share in shares for device in share})
            caps = sandbox.capabilities()
            around = HostContext(self._python, self._directories, self._binds, caps.outbound)
            described = sandbox_spec(spec, around, devices, [sorted(share) for share in shares])
            if spec.listens:
                described = replace(described, listen=f"{run_dir}/{SOCKET}")
            if spec.model is not None:
                show_model(spec, self._directories, root=root)
        except (CannotStart, OSError, ValueError, subprocess.SubprocessError) as error:
            if isinstance(error, OSError) and error.errno in _PASSES:
                raise
            self._write_about(spec, run_dir, [])
            record_failure(
                run_dir, str(error), to_data(error.message) if isinstance(error, CannotStart) else None
            )
            return
        self._write_about(spec, run_dir, shares)
        if self._gpu_jobs is not None:
            self._gpu_jobs.add(spec.attempt, _job_line(spec), devices)
        try:
            sandbox.launch(described, run_dir, self._fork_server)
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
        about = {"placement": list(nodes), "roles": list(roles), "gpus": used, "network": spec.network}
        about["job"] = _job_line(spec)
        # on disk with what the sandbox's own description, or its end, brings there: the directory's entries
        files.write_json(run_dir, "attempt.json", about, durable=True, entry=False)
        self._attempts.learn(spec.attempt, about)

    def _gpu_shares(self, spec: LaunchSpec) -> list[dict[int, int]]:
        if not spec.per_worker.gpu:
            return []
        used: dict[int, int] = {}
        for attempt, about in self._alive():
            if attempt != spec.attempt:
                for device, amount in about["gpus"].items():
                    used[int(device)] = used.get(int(device), 0) + amount
        devices = [gpu.index for gpu in gpus()]
        return assign(spec.per_worker.gpu, spec.ranks, devices, used)

    def _alive(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the attempts that start or run, with the notes of their starts."""
        for entry in self._run_dirs():
            about = read_about(entry.path)
            alive = sandbox.inspect(entry.path).phase in (SandboxPhase.STARTING, SandboxPhase.RUNNING)
            if alive and about:
                yield entry.name, about

    def _off_gpus(self, attempt: str) -> None:
        if self._gpu_jobs is not None:
            self._gpu_jobs.remove(attempt)

    def _find_gpu_jobs(self) -> None:
        """Write the jobs on each GPU as the run directories have them."""
        if self._gpu_jobs is None:
            return
        found = {
            attempt: (str(about.get("job", attempt)), [int(device) for device in about["gpus"]])
            for attempt, about in self._alive()
        }
        self._gpu_jobs.begin(found)

    # -- looking

    async def _look(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Look at files in a thread of those that do nothing else: the others may be waiting for processes to end."""
        return await asyncio.get_running_loop().run_in_executor(self._lookers, partial(work, *args, **kwargs))

    def _disk_use(self, whose: Collection[str | Home]) -> dict[str | Home, DiskUse]:
        devices = self.workspace.devices()
        asked = {one: partial(disk.use_of, self._sandboxes_of(one), devices) for one in whose}
        return dict(self._uses.measure_due(asked, lambda _: LOOK_EVERY_S, hurry=True))

    def _work_of(self, attempts: Collection[str]) -> dict[str, AttemptWork]:
        running = {}
        for attempt in attempts:
            run_dir = self._dir(attempt)
            state, about = sandbox.inspect(run_dir), self._attempts.about_of(attempt, run_dir)
            if state.phase is SandboxPhase.RUNNING and about is not None:
                running[attempt] = state, [int(device) for device in about["gpus"]]
        done = self._gpu_meter.look({device for _, devices in running.values() for device in devices})
        found = {}
        for attempt, (state, devices) in running.items():
            every = self._attempts.ranks(attempt, self._dir(attempt), state)
            ranks = [rank for rank in every if rank.state == "running"]
            gpu = most_of((done[device] for device in devices), WORKS_GPU)
            found[attempt] = AttemptWork(gpu, most_of((rank.cpu for rank in ranks), WORKS_CORES))
        return found

    def _sandboxes_of(self, whose: str | Home) -> Iterable[str]:
        if isinstance(whose, Home):
            return disk.run_dirs(self._servers_root, whose.user)
        return [self._dir(whose)]

    def _observe(self, attempt: str) -> tuple[Observation, bool]:
        """Return the state of an attempt, and whether it is final."""
        run_dir = self._dir(attempt)
        state = sandbox.inspect(run_dir)
        seen = self._attempts.observation(attempt, run_dir, state)
        if state.phase is SandboxPhase.LOST:
            if state.unreadable:
                self._set_aside(state)
            remove_leftovers(run_dir)
        if state.phase in (SandboxPhase.EXITED, SandboxPhase.LOST):
            self._off_gpus(attempt)
        return seen, state.phase in (SandboxPhase.EXITED, SandboxPhase.LOST)

    def _set_aside(self, state: SandboxState) -> None:
        """Keep an unreadable file for inspection: the run directory is removed once the attempt is forgotten."""
        log.error("%s cannot be read, it holds %s: its attempt counts as lost", state.unreadable, state.holds)
        with contextlib.suppress(OSError):
            durable.set_aside(Path(self._root).parent, state.unreadable)

    # -- watching

    async def _open(self) -> None:
        """Attach, at the first call, to the work that an earlier hub started."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._attach_all())
        try:
            await asyncio.shield(self._opening)
        except OSError:
            self._opening = None  # the next one tries again
            raise

    async def _attach_all(self) -> None:
        # what the first start would have to wait for: what this machine allows, where its Python lives
        asyncio.get_running_loop().run_in_executor(None, self._warm)
        for attempt, watched in await self._look(self._watch_all):
            self._watch.add(attempt, watched)  # it may have been over before, so it is looked at
            asyncio.get_running_loop().call_soon(self._changed, attempt)

    def _watch_all(self) -> list[tuple[str, Watched]]:
        self._find_gpu_jobs()
        shims = [(entry, sandbox.inspect(entry.path).shim_pid) for entry in self._run_dirs()]
        return [(entry.name, self._watch.watch_directory(entry.path, pid)) for entry, pid in shims]

    def _warm(self) -> None:
        sandbox.capabilities()
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # a start will say it
            sandbox.environment_binds(self._python)

    def _changed(self, attempt: str) -> None:
        for callback in self._callbacks:
            callback(attempt)

    def _postpone_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._fork_server.close)

    def _run_dirs(self) -> list[os.DirEntry[str]]:
        return [entry for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False)]

    def _dir(self, attempt: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", attempt):
            raise ValueError(
                f"{attempt!r} is no id of an attempt: letters, digits, dots and hyphens, 121 at most"
            )
        return f"{self._root}/{attempt}"


def _job_line(spec: LaunchSpec) -> str:
    return f"{spec.user}/{reference(spec.job, spec.run)}"


def _numbers() -> dict[int, int]:
    """Return the numbers of NVML, which DCGM has too, by the numbers of the device files."""
    return {gpu.index: number for number, gpu in enumerate(gpus())}
