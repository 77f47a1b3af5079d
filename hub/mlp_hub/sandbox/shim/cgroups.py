"""Control groups of one sandbox, version 1 and 2, and their replacement where they are missing."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from mlp_hub.durable import read_bytes
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.logs import writer


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _read(path: str) -> str:
    return read_bytes(path).decode()


def _counter(path: str, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in _read(path).splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


RANKS, SHIM = "ranks", "shim"
"""Parts of each sandbox's group: the tenant's processes, and the platform's processes for them."""
STARTERS = "starters"
"""Group of the processes that start ranks, next to the groups of single ranks, where these exist."""
ENDING = "ending"
"""Beside the sandboxes' groups: where a shim goes to remove its own, since who is in a group cannot."""
_SHIM_MIB = 32
_STARTERS_MIB, _STARTER_MIB = 64, 16  # of what starts the ranks, and of each rank's own starter
_LOG_MIB = (writer.KEPT + 2) * writer.SEGMENT >> 20


class Groups:
    """Groups of one sandbox.

    `version` is `v1`, `v2` or `none`. `bases` are the hub's own groups by controller (for version 2 the
    one directory under the name of every controller that it has). Each sandbox gets a group below them.
    Processor time is limited for the whole group. Memory and processes have separate limits in its two
    parts. So a program that takes all that it may take leaves the shim enough to record the end. Where
    several ranks each have separate memory, each has a group for that, below their part.
    """

    def __init__(self, version: str, bases: dict[str, str], name: str) -> None:
        self.version = version
        self.ranks_apart = 0  # how many ranks have a group of their own
        self._endings = [f"{base}/{ENDING}" for base in dict.fromkeys(bases.values())]
        self.paths = {controller: f"{base}/{name}" for controller, base in bases.items()}

    @property
    def directories(self) -> list[str]:
        """The groups' directories, each once."""
        return list(dict.fromkeys(self.paths.values()))

    def _part(self, name: str) -> list[str]:
        return [f"{path}/{name}" for path in self.directories]

    def create(self, limits: dict[str, Any], ranks: int) -> list[str]:
        """Make the groups and set the limits; return what could not be set."""
        for path in self.directories:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o755)
        for path in (*self._part(RANKS), *self._part(SHIM)):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o755)
        wanted = settings(self.version, limits, ranks)
        if self.version == "v2":  # each controller must be handed down to the parts
            wanted = [(".", name, "cgroup.subtree_control", f"+{name}") for name in self.paths] + wanted
        if ranks > 1 and limits.get("rank_ram_mib") and "memory" in self.paths:
            wanted += self._apart(limits["rank_ram_mib"], ranks)
        return self._set(wanted)

    def _apart(self, ram_mib: int, ranks: int) -> list[tuple[str, str, str, str]]:
        """Make a group for the memory of each rank; return the values to set there."""
        above = f"{self.paths['memory']}/{RANKS}"
        if self.version == "v1":  # kernels before 5.11 do not count what is below unless they are told to
            with contextlib.suppress(OSError):
                _write(f"{above}/memory.use_hierarchy", "1")
        try:
            for name in (STARTERS, *map(str, range(ranks))):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(f"{above}/{name}", 0o755)
            if self.version == "v2":
                _write(f"{above}/cgroup.subtree_control", "+memory")
        except OSError:
            return []  # they share one limit then
        self.ranks_apart = ranks
        name = "memory.max" if self.version == "v2" else "memory.limit_in_bytes"
        return [(f"{RANKS}/{rank}", "memory", name, str(ram_mib << 20)) for rank in range(ranks)]

    def _set(self, wanted: list[tuple[str, str, str, str]]) -> list[str]:
        failed = []
        for part, controller, name, value in wanted:
            if controller in self.paths:
                try:
                    _write(f"{self.paths[controller]}/{part}/{name}", value)
                except OSError as error:
                    failed.append(f"{name}={value}: {error.strerror}")
        return failed

    def enter(self, part: str = RANKS) -> None:
        """Put the calling process, which must have one thread, into a part of the groups."""
        paths = self._part(part)
        if part == RANKS and self.ranks_apart:
            memory = (
                f"{self.paths['memory']}/{RANKS}"  # in version 2 all processes are at the ends of the tree
            )
            paths = [f"{path}/{STARTERS}" if path == memory else path for path in paths]
        self._move(paths)

    def take(self, rank: int, pid: int) -> None:
        """Count the memory of a process and its children as this rank's, if ranks have separate groups."""
        if rank < self.ranks_apart:
            with contextlib.suppress(OSError):  # it is gone
                _write(f"{self.memory_group(rank)}/cgroup.procs", str(pid))

    def memory_group(self, rank: int | None = None) -> str:
        """Return the directory that counts a rank's memory, or that of all; empty where there is none."""
        if "memory" not in self.paths:
            return ""
        own = f"/{rank}" if rank is not None and rank < self.ranks_apart else ""
        return f"{self.paths['memory']}/{RANKS}{own}"

    def leave(self) -> None:
        """Take the calling process, which must have one thread, out of them."""
        for path in self._endings:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o755)
        self._move(self._endings)

    def _move(self, paths: list[str]) -> None:
        """Move ourselves. Version 1: a thread that moves itself spares the kernel a wait of some 10 ms for all processors."""
        for path in paths:
            _write(f"{path}/{'cgroup.procs' if self.version == 'v2' else 'tasks'}", "0")

    @property
    def memory_events(self) -> str | None:
        """The file in which the kernel counts what it killed here for lack of memory, in a line `oom_kill N`."""
        path = self.paths.get("memory")
        name = "memory.events" if self.version == "v2" else "memory.oom_control"
        return None if path is None else f"{path}/{RANKS}/{name}"

    def memory_counter(self, ranks: int) -> list[str]:
        """Return the version, and the directory of each rank's memory counter, with `{rank}` in it.

        The result is empty without such a counter.
        """
        if ranks > 1 and not self.ranks_apart:
            return []
        group = self.memory_group()
        return [self.version, f"{group}/{{rank}}" if self.ranks_apart else group] if group else []

    def out_of_memory_kills(self, rank: int | None = None) -> int:
        """Return the number of processes that the kernel killed for lack of memory.

        They are those of a rank with a separate group, or of all.
        """
        if rank is not None and not self.ranks_apart:
            return 0
        name = "memory.events" if self.version == "v2" else "memory.oom_control"
        above = self.memory_group()
        groups = [self.memory_group(rank)]
        if (
            rank is None and self.version == "v1"
        ):  # which counts in each group what was killed in that one alone
            groups += [f"{above}/{one}" for one in (STARTERS, *range(self.ranks_apart)) if self.ranks_apart]
        return sum(_counter(f"{group}/{name}", "oom_kill") for group in groups if above)

    def refused_processes(self) -> int:
        """How often the kernel refused another process or thread for their limit."""
        path = self.paths.get("pids")
        return 0 if path is None else _counter(f"{path}/{RANKS}/pids.events", "max")

    def memory(self, rank: int | None = None) -> int | None:
        """Bytes that the ranks, or one, hold now, files in memory (/tmp, /dev/shm) among them, cached ones not."""
        group = self.memory_group(rank)
        return held(group, self.version) if group else None

    def sockets(self) -> int:
        """Return the bytes of the ranks in TCP connections, where the kernel counts them separately.

        Their limit only slows connections down, and leaves each a little: thousands of them have as much as
        they like.
        """
        path = self.paths.get("memory")
        if self.version != "v1" or path is None:
            return 0  # version 2 counts them as memory
        with contextlib.suppress(OSError):
            return int(_read(f"{path}/{RANKS}/memory.kmem.tcp.usage_in_bytes"))
        return 0

    def memory_peak(self, rank: int | None = None) -> int | None:
        """Return the most bytes that the ranks, or one, ever held, cached files not counted as far as that can be told.

        The kernel counts the most with them. As long as that is below the limit, none was given up for lack of room: those
        that are there now were there then, at most. At the limit nothing can be told.
        """
        name = "memory.peak" if self.version == "v2" else "memory.max_usage_in_bytes"
        limit = "memory.max" if self.version == "v2" else "memory.limit_in_bytes"
        group = self.memory_group(rank)
        try:
            most, bound = (_read(f"{group}/{one}").strip() for one in (name, limit))
        except OSError:
            return None
        if bound != "max" and int(most) >= int(bound):
            return None
        _, shared, files_ = _memory_stat(group, self.version)
        return max(0, int(most) - (files_ - shared))

    def shim_out_of_memory(self) -> bool:
        """Return whether the kernel killed the shim for lack of memory: its work took more than its limit."""
        if "memory" not in self.paths:
            return False
        name = "memory.events" if self.version == "v2" else "memory.oom_control"
        return _counter(f"{self.paths['memory']}/{SHIM}/{name}", "oom_kill") > 0

    def cpu_seconds(self, part: str = ".") -> float | None:
        """Processor time of all that ever ran here, or in one part."""
        try:
            if self.version == "v2" and self.paths:
                return _counter(f"{self.directories[0]}/{part}/cpu.stat", "usage_usec") / 1e6
            if "cpuacct" in self.paths:
                return int(_read(f"{self.paths['cpuacct']}/{part}/cpuacct.usage")) / 1e9
        except OSError:
            pass
        return None

    def _kill(self) -> None:
        """Kill all that is in here, but ourselves."""
        for path in (*self._below(), *self._part(RANKS), *self._part(SHIM), *self.directories):
            if self.version == "v2" and path.endswith(f"/{RANKS}"):
                with contextlib.suppress(OSError):
                    _write(f"{path}/cgroup.kill", "1")
            pids: list[int] = []
            with contextlib.suppress(OSError):
                pids = [int(pid) for pid in _read(f"{path}/cgroup.procs").split()]
            for pid in pids:
                with contextlib.suppress(OSError):
                    if pid != os.getpid():
                        os.kill(pid, signal.SIGKILL)

    def _below(self) -> list[str]:
        """Return the existing groups of single ranks; a sweep after a killed shim did not make them."""
        above = self.memory_group()
        if not above:
            return []
        with contextlib.suppress(OSError):  # there are none any more
            return [entry.path for entry in os.scandir(above) if entry.is_dir(follow_symlinks=False)]
        return []

    def remove(self, patience: float = 1.0) -> list[str]:
        """Kill what is left and remove the groups; return the directories that could not be removed."""
        left = [*self._below(), *self._part(RANKS), *self._part(SHIM), *self.directories]
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
            self._kill()
            time.sleep(0.005)
        return left


def held(group: str, version: str) -> int:
    """Return the bytes that the processes of a memory group hold now, files in memory among them, cached ones not."""
    anonymous, shared, _ = _memory_stat(group, version)
    return anonymous + shared


def _memory_stat(group: str, version: str) -> tuple[int, int, int]:
    """Return the bytes of a group that are in no file, in files in memory, and in these and cached files."""
    names = ("anon", "shmem", "file") if version == "v2" else ("total_rss", "total_shmem", "total_cache")
    found = dict.fromkeys(names, 0)
    with contextlib.suppress(OSError):
        for line in _read(f"{group}/memory.stat").splitlines():
            key, _, value = line.partition(" ")
            if key in found:
                found[key] = int(value)
    anonymous, shared, files_ = found.values()
    return anonymous, shared, files_


def settings(version: str, limits: dict[str, Any], ranks: int = 1) -> list[tuple[str, str, str, str]]:
    """List (part, controller, file, value) for the limits of a sandbox; see `Limits` for their meaning.

    The shim's share is additional: some memory for itself, and the logs, which are memory where the
    disk is.
    """
    cpu, ram, pids = limits["cpu"], limits["ram_mib"], limits["pids"]
    ceiling = limits.get("cpu_max")
    if ceiling is None:
        ceiling = -(-cpu // 1000) * 1000
    shim = _SHIM_MIB + _LOG_MIB * ranks
    ram += _starters(limits, ranks)
    out: list[tuple[str, str, str, str]] = []
    if version == "v2":
        out.append((".", "cpu", "cpu.weight", str(min(10000, max(1, cpu // 10)))))
        if ceiling:
            out.append((".", "cpu", "cpu.max", f"{ceiling * 100} 100000"))
        if ram:
            out.append((RANKS, "memory", "memory.max", str(ram << 20)))
            out.append((RANKS, "memory", "memory.swap.max", "0"))
            out.append((SHIM, "memory", "memory.max", str(shim << 20)))
        if pids:
            out.append((RANKS, "pids", "pids.max", str(pids)))
    elif version == "v1":
        out.append((".", "cpu", "cpu.shares", str(max(2, cpu * 1024 // 1000))))
        if ceiling:
            out.append((".", "cpu", "cpu.cfs_quota_us", str(max(1000, ceiling * 100))))
        if ram:
            out.append((RANKS, "memory", "memory.limit_in_bytes", str(ram << 20)))
            out.append((RANKS, "memory", "memory.kmem.tcp.limit_in_bytes", str(ram << 19)))
            out.append((SHIM, "memory", "memory.limit_in_bytes", str(shim << 20)))
        if pids:
            out.append((RANKS, "pids", "pids.max", str(pids)))
    return out


def _starters(limits: dict[str, Any], ranks: int) -> int:
    """Return the additional MiB of the processes that start ranks, where each rank has its memory alone."""
    apart = ranks > 1 and limits["ram_mib"] and limits.get("rank_ram_mib")
    return _STARTERS_MIB + _STARTER_MIB * ranks if apart else 0


class Watchdog:
    """Watchdog of memory and processes without a control group; a process over the limit is killed."""

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
