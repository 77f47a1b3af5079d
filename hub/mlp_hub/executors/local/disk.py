"""Use of the disk by process trees through files that have no name any more, as /proc shows it."""

# ruff: noqa: PTH116, PTH123, PTH208 - no objects of paths where there may be thousands
from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator

from mlp_hub import sandbox
from mlp_hub.executors.base import DiskUse
from mlp_hub.executors.turns import Steps
from mlp_hub.sandbox.shim import files

STEP = 256
"""Tuning: open files that are looked at without a break: size of a lot, for how long others wait behind it."""


def run_dirs(servers_root: str | os.PathLike[str] | None, user: str) -> Iterator[str]:
    """List what may be run directories of a user's notebook servers."""
    with contextlib.suppress(OSError):
        for name in [] if servers_root is None else os.listdir(f"{servers_root}/{user}"):
            yield f"{servers_root}/{user}/{name}"


def use_of(run_dirs: Iterable[str], devices: Collection[int]) -> Steps[DiskUse]:
    """Find what the processes of these sandboxes have written, and hold of files without a name on these file systems."""
    written = stored = held = 0
    seen: set[tuple[int, int]] = set()
    for pid in (pid for run_dir in run_dirs for pid in _processes(run_dir)):
        of_one = _written(pid)
        written += max(of_one)
        stored += of_one[1]
        for n, path in enumerate(_held(pid)):
            # a magic link: it leads to what the process has open, and to no path
            with contextlib.suppress(OSError):
                found = os.stat(path)
                one = (found.st_dev, found.st_ino)
                gone = found.st_nlink == 0 and stat.S_ISREG(found.st_mode)
                if gone and found.st_dev in devices and one not in seen:
                    seen.add(one)
                    held += found.st_blocks * 512
            if n % STEP == STEP - 1:
                yield held
        yield held
    return DiskUse(written, stored, held)


def _processes(run_dir: str) -> list[int]:
    """List the processes of a sandbox; empty if the directory is not a sandbox's, or it has ended."""
    with contextlib.suppress(NotADirectoryError):
        child = sandbox.inspect(run_dir).child_pid
        return [] if child is None else files.descendants(child)
    return []


def _written(pid: int) -> tuple[int, int]:
    """Return what a process wrote, with its children that have ended: to anything, and of it, by pages, to a disk."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/io", "rb") as file:
        counts = dict(line.split(b": ") for line in file)
        return int(counts[b"wchar"]), int(counts[b"write_bytes"])
    return 0, 0


def _held(pid: int) -> Iterator[str]:
    """List what a process has open, and what it has mapped and may have closed."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as found:
        yield from (f"/proc/{pid}/fd/{entry.name}" for entry in found)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
        for line in file:
            if line.rstrip().endswith(b" (deleted)"):
                yield f"/proc/{pid}/map_files/{line.split(maxsplit=1)[0].decode()}"
