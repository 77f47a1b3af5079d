"""Helpers for tests that run attempts in real sandboxes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import AttemptPhase, Code, EntryPoint, LaunchSpec, Observation
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.isolation import tenant_roots
from mlp_hub.sandbox import capabilities, control
from mlp_hub.sandbox.shim import files
from support import waiting
from support.no_files import no_files
from support.waiting import PATIENCE_S

ROOT = os.geteuid() == 0
ENDED = (AttemptPhase.SUCCEEDED, AttemptPhase.FAILED, AttemptPhase.STOPPED, AttemptPhase.LOST)
ROOM = Resources(64_000, 0, 64_000, 0)
PROGRAMS = {
    "succeeds": "print('one'); print('two')",
    "fails": "import sys; sys.exit(3)",
    "dies": "import os; os.kill(os.getpid(), 9)",
    "lasts": "import time; time.sleep(600)",
    "stays": "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(600)",
}
"""The kinds of attempts that the contract asks for."""


class Lab:
    """A directory with homes, jobs and run directories, and the shapes of attempts in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.run_root = base / "jobs-run"
        self.roots = tenant_roots(base, base / "isolation", base / "secrets" / "isolation_key")
        self.directories = Directories(base / "homes", base / "jobs", own_roots=self.roots)
        self.count = 0

    def executor(self, **more: Any) -> LocalExecutor:
        """Return an executor whose one node has room enough."""
        more.setdefault("nodes", (NodeInfo("here", ROOM, ROOM),))
        return LocalExecutor(self.run_root, self.directories, **more)

    def uid(self, user: str) -> int | None:
        """Return the user's host uid, where there is one."""
        return 300_000 + sum(user.encode()) if ROOT else None

    def home(self, user: str) -> Path:
        """Return the user's home directory, made if need be."""
        home = self.base / "homes" / user
        if not home.exists():
            home.mkdir(parents=True, mode=0o700)
            if (uid := self.uid(user)) is not None:
                os.chown(home, uid, uid)
        return home

    def spec(
        self, code: str | None = None, *, user: str = "ann", attempt: str | None = None, **more: Any
    ) -> LaunchSpec:
        """Return an attempt that runs this code on one rank, or as said."""
        self.count += 1
        name = attempt or f"job{self.count:04d}.0"
        self.home(user)
        program = Code(code or "") if (entry := more.pop("entry", None)) is None else EntryPoint(entry)
        workers = more.setdefault("workers", 1)
        ps = more.setdefault("ps", 0)
        runtime = more.pop("runtime", "plain")  # one of the platform's by its name
        fields: dict[str, Any] = {
            "attempt": name,
            "job": name.partition(".")[0],
            "run": 1,
            "user": user,
            "uid": self.uid(user),
            "tenant": "default",
            "runtime": BUILT_IN[runtime] if isinstance(runtime, str) else runtime,
            "per_worker": Resources(cpu=1000, ram=512),
            "placement": ("here",) * (workers + ps),
            "program": program,
            "args": (),
            "env": {},
            "grace_s": 5.0,
        }
        return LaunchSpec(**{**fields, **more})

    def run(self, spec: LaunchSpec) -> Observation:
        """Run an attempt to its end."""

        async def go() -> Observation:
            executor = self.executor()
            try:
                with no_files():
                    await executor.start(spec)
                    return await until(executor, spec.attempt, ENDED)
            finally:
                await executor.close()

        return asyncio.run(go())

    def output(self, spec: LaunchSpec, rank: int = 0) -> list[str]:
        """Return the lines that a rank wrote."""
        from mlp_hub.executors.shared_volume.logs import read_log

        lines: list[str] = []
        at = 0
        while (chunk := read_log(self.workspace(spec), rank, at)).offset != at:
            lines += [line.text for line in chunk.lines]
            at = chunk.offset
        return lines

    def workspace(self, spec: LaunchSpec) -> str:
        """Return the directory of an attempt's run."""
        return self.directories.workspace(spec.of_run)

    def run_dir(self, spec: LaunchSpec) -> str:
        """Return the run directory of an attempt."""
        return str(self.run_root / spec.attempt)

    def leftovers(self) -> list[str]:
        """List processes and control groups that anything started here left behind."""
        left = []
        for pid in processes(str(self.base)):
            left.append(f"process {pid}: {command_line(pid)}")
        for base in set(capabilities().bases.values()):
            left += [str(path) for path in Path(base).iterdir() if path.is_dir() and self._is_ours(path.name)]
        return left

    def _is_ours(self, group: str) -> bool:
        """Tell groups of our sandboxes from those of others who test on this machine at the same time."""
        attempt, _, _ = group.rpartition("-")
        return group == control._group_name(attempt, str(self.run_root / attempt))

    def close(self) -> None:
        """End whatever still runs."""
        from mlp_hub import sandbox

        for entry in self.run_root.glob("*/"):
            sandbox.remove(str(entry))


async def until(executor: LocalExecutor, attempt: str, phases: Iterable[AttemptPhase]) -> Observation:
    """Wait until the attempt is in one of these phases."""
    wanted = tuple(phases)
    began = time.monotonic()
    while True:
        seen = (await executor.observe([attempt]))[attempt]
        if seen.phase in wanted:
            return seen
        waited = time.monotonic() - began
        if seen.phase in ENDED or waited > PATIENCE_S:
            raise AssertionError(f"waited for {[p.value for p in wanted]}, got {seen}")
        await asyncio.sleep(waiting.pause(0.005, waited, waiting.TASKS_S))


async def eventually(check: Callable[[], object]) -> None:
    """Wait until the check gives something true."""

    async def look() -> object:
        return check()

    await waiting.until(look)


def processes(word: str) -> list[int]:
    """List processes, but ourselves, with this word in their command line or working directory."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and word in command_line(int(entry)):
            found.append(int(entry))
    return found


def command_line(pid: int) -> str:
    """Return a process's command line; empty when it is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def tree(run_dir: str) -> dict[str, list[int]]:
    """Return the processes of a sandbox: shim, bwrap, child (1 inside) and all below."""
    claim = files.read_json(run_dir, "claim")
    state = files.read_json(run_dir, "state.json")
    assert claim is not None
    assert state is not None
    below = files.descendants(state["child"])
    return {"shim": [claim["pid"]], "bwrap": [state["bwrap"]], "child": below[:1], "all": below}


def alive(pids: Iterable[int]) -> list[int]:
    """Return those that still live."""
    return [pid for pid in pids if files.start_time(pid) is not None]


PYTHON = sys.executable
