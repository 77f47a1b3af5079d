"""Control groups of one sandbox, version 1 and 2, and what stands in for them where there are none."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from mlp_hub.executors.shim import files


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _counter(path: str, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in _read(path).splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


class Groups:
    """The groups of one sandbox.

    `version` is `v1`, `v2` or `none`; `bases` are the hub's own groups by controller (for version 2 the one
    directory under the name of every controller that it gives), below which each sandbox gets one.
    """

    def __init__(self, version: str, bases: dict[str, str], name: str) -> None:
        self.version = version
        self.paths = {controller: f"{base}/{name}" for controller, base in bases.items()}

    @property
    def directories(self) -> list[str]:
        """The groups' directories, each once."""
        return list(dict.fromkeys(self.paths.values()))

    def create(self, limits: dict[str, Any]) -> list[str]:
        """Make the groups and set the limits; return what could not be set."""
        for path in self.directories:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o755)
        failed = []
        for controller, name, value in settings(self.version, limits):
            if controller in self.paths:
                try:
                    _write(f"{self.paths[controller]}/{name}", value)
                except OSError as error:
                    failed.append(f"{name}={value}: {error.strerror}")
        return failed

    def enter(self) -> None:
        """Put the calling process, which must have one thread, into the groups.

        Version 1: a thread that moves itself spares the kernel a wait of some 10 ms for all processors.
        """
        file = "cgroup.procs" if self.version == "v2" else "tasks"
        for path in self.directories:
            _write(f"{path}/{file}", "0")

    def out_of_memory_kills(self) -> int:
        """How many processes the kernel killed here for lack of memory."""
        path = self.paths.get("memory")
        if path is None:
            return 0
        return _counter(
            f"{path}/{'memory.events' if self.version == 'v2' else 'memory.oom_control'}", "oom_kill"
        )

    def cpu_seconds(self) -> float | None:
        """Processor time of all that ever ran here."""
        try:
            if self.version == "v2" and self.paths:
                return _counter(f"{self.directories[0]}/cpu.stat", "usage_usec") / 1e6
            if "cpuacct" in self.paths:
                return int(_read(f"{self.paths['cpuacct']}/cpuacct.usage")) / 1e9
        except OSError:
            pass
        return None

    def processes(self) -> list[int]:
        """List who is in here."""
        for path in self.directories:
            with contextlib.suppress(OSError):
                return [int(pid) for pid in _read(f"{path}/cgroup.procs").split()]
        return []

    def kill(self) -> None:
        """Kill all that is in here."""
        if self.version == "v2" and self.paths:
            with contextlib.suppress(OSError):
                _write(f"{self.directories[0]}/cgroup.kill", "1")
                return
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def remove(self, patience: float = 1.0) -> list[str]:
        """Kill what is left and remove the groups; return the directories that could not be removed."""
        left = self.directories
        end = time.monotonic() + patience
        while left:
            still = []
            for path in left:
                try:
                    os.rmdir(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    still.append(path)
            left = still
            if not left or time.monotonic() > end:
                break
            self.kill()
            time.sleep(0.005)
        return left


def settings(version: str, limits: dict[str, Any]) -> list[tuple[str, str, str]]:
    """List (controller, file, value) for the limits of a sandbox; see `Limits` for what they mean."""
    cpu, ram, pids = limits["cpu"], limits["ram_mib"], limits["pids"]
    ceiling = limits.get("cpu_max")
    if ceiling is None:
        ceiling = -(-cpu // 1000) * 1000
    out: list[tuple[str, str, str]] = []
    if version == "v2":
        out.append(("cpu", "cpu.weight", str(min(10000, max(1, cpu // 10)))))
        if ceiling:
            out.append(("cpu", "cpu.max", f"{ceiling * 100} 100000"))
        if ram:
            out += [("memory", "memory.max", str(ram << 20)), ("memory", "memory.swap.max", "0")]
        if pids:
            out.append(("pids", "pids.max", str(pids)))
    elif version == "v1":
        out.append(("cpu", "cpu.shares", str(max(2, cpu * 1024 // 1000))))
        if ceiling:
            out.append(("cpu", "cpu.cfs_quota_us", str(max(1000, ceiling * 100))))
        if ram:
            out.append(("memory", "memory.limit_in_bytes", str(ram << 20)))
        if pids:
            out.append(("pids", "pids.max", str(pids)))
    return out


class Watchdog:
    """Looks at memory and processes now and then, where no control group does; who goes over is killed."""

    PERIOD = 0.25

    def __init__(self, limits: dict[str, Any], *, memory: bool, pids: bool) -> None:
        self._ram = limits["ram_mib"] << 20 if memory else 0
        self._pids = limits["pids"] if pids else 0
        self.needed = bool(self._ram or self._pids)

    def verdict(self, child: int) -> str | None:
        """Return `memory` or `pids` when the sandbox below this process is over its limit."""
        below = files.descendants(child)
        if self._pids and len(below) > self._pids:
            return "pids"
        if self._ram:
            used = sum(seen[1] for pid in below if (seen := files.usage(pid)))
            if used > self._ram:
                return "memory"
        return None
