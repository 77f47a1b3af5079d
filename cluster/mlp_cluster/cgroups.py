"""The control groups below which a cluster's pods are."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_MOUNTED = Path("/sys/fs/cgroup")


def _roots() -> list[Path]:
    """List the hierarchies: one, or on older machines one for each controller."""
    if (_MOUNTED / "cgroup.controllers").exists():
        return [_MOUNTED]
    return [path for path in _MOUNTED.iterdir() if path.is_dir() and not path.is_symlink()]


def make(name: str) -> None:
    """Make the group in all hierarchies, able to hold groups itself."""
    for root in _roots():
        group = root / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (root / file).exists() and not (group / file).read_text().strip():
                (group / file).write_text((root / file).read_text())
        if (root / "cgroup.subtree_control").exists():
            for controller in (root / "cgroup.controllers").read_text().split():
                for place in (root, group):
                    with contextlib.suppress(OSError):  # not all can be handed on
                        (place / "cgroup.subtree_control").write_text(f"+{controller}")


def left(name: str) -> list[Path]:
    """List the groups that are there, innermost first."""
    found: list[Path] = []
    for root in _roots():
        found += [Path(place) for place, _, _ in os.walk(root / name, topdown=False)]
    return found


def remove(name: str) -> None:
    """Remove the group; its processes are dead or dying."""
    end = time.monotonic() + 10
    while (groups := left(name)) and time.monotonic() < end:
        for group in groups:
            with contextlib.suppress(OSError):
                group.rmdir()
        time.sleep(0.05)
