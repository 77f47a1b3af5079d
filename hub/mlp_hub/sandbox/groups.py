"""Find the control groups in which this hub may make groups for sandboxes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.sandbox.shim.cgroups import ENDING, RANKS, SHIM

WANTED = ("cpu", "cpuacct", "memory", "pids")
LIMITING: tuple[str, ...] = ("cpu", "memory", "pids")
NAME = "mlp-hub"
SELF = "mlp-hub-self"  # where the hub moves itself when its group must have no processes of its own
FORGOTTEN_S = 600.0
Note = tuple[str, str, str]
_REMEDY = (
    "run the hub as root, or under a systemd unit with Delegate=yes (KillMode=process keeps jobs running when the "
    "hub restarts)"
)


@dataclass(frozen=True, slots=True)
class _Mount:
    point: str
    root: str
    kind: str
    options: tuple[str, ...]


def find(proc: Path = Path("/proc/self")) -> tuple[str, dict[str, str], list[Note]]:
    """Return the version in use, the hub's own group per controller (made if need be), and what is missing."""
    mounts = list(_mounts(proc / "mountinfo"))
    own = _own(proc / "cgroup")
    bases = _version2(mounts, own.get("", "/"))
    version = "v2"
    if not bases.keys() & set(LIMITING):
        bases = _version1(mounts, own)
        version = "v1" if bases else "none"
    lacking = [name for name in LIMITING if name not in bases]
    effects = {
        "cpu": "a sandbox may take every core while others wait",
        "memory": "memory is watched four times a second, not limited",
        "pids": "processes are watched four times a second, not limited",
    }
    return version, bases, [(f"cgroup {name}", effects[name], _REMEDY) for name in lacking]


def remove_forgotten(bases: Iterable[str], older_s: float = FORGOTTEN_S) -> int:
    """Remove sandboxes' groups without processes; return the number of removed directories.

    Each end of a sandbox removes its own groups. The others are those of a killed shim without a run
    directory, so that nobody knows of them. A young group can be that of a sandbox which is about to
    start, perhaps another hub's.
    """
    removed = 0
    for base in sorted(set(bases)):
        with contextlib.suppress(OSError):
            for group in [entry for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)]:
                with contextlib.suppress(OSError):  # somebody is in there, or it is gone
                    if group.name != ENDING and time.time() - group.stat().st_mtime > older_s:
                        with contextlib.suppress(FileNotFoundError):
                            for rank in [one for one in os.scandir(f"{group.path}/{RANKS}") if one.is_dir()]:
                                os.rmdir(rank.path)  # noqa: PTH106
                        for part in (RANKS, SHIM):
                            with contextlib.suppress(FileNotFoundError):
                                os.rmdir(f"{group.path}/{part}")  # noqa: PTH106
                        os.rmdir(group.path)  # noqa: PTH106
                        removed += 1
    return removed


def _mounts(path: Path) -> Iterator[_Mount]:
    for line in path.read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if kind[0].startswith("cgroup"):
            yield _Mount(fields[4], fields[3], kind[0], tuple(kind[2].split(",")))


def _own(path: Path) -> dict[str, str]:
    """Map each controller (`""` for version 2) to this process's group."""
    own: dict[str, str] = {}
    for line in path.read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        for name in controllers.split(","):
            own[name] = group
    return own


def _directory(mount: _Mount, group: str) -> str:
    """Return where a group is found below a mount that may show only a part of the tree."""
    relative = group.removeprefix(mount.root) if mount.root != "/" else group
    return os.path.normpath(f"{mount.point}/{relative}")


def _version1(mounts: list[_Mount], own: dict[str, str]) -> dict[str, str]:
    bases: dict[str, str] = {}
    for mount in mounts:
        if mount.kind != "cgroup":
            continue
        for name in WANTED:
            if name not in mount.options:
                continue
            base = f"{_directory(mount, own.get(name, '/'))}/{NAME}"
            with contextlib.suppress(OSError):
                Path(base).mkdir(exist_ok=True)
                if os.access(base, os.W_OK):
                    bases[name] = base
                if name == "cpu":  # all sandboxes together weigh as much as the machine has cores
                    Path(base, "cpu.shares").write_text(str(1024 * (os.cpu_count() or 1)))
    return bases


def _version2(mounts: list[_Mount], own: str) -> dict[str, str]:
    for mount in mounts:
        if mount.kind != "cgroup2":
            continue
        top, here = Path(mount.point), Path(_directory(mount, own))
        if here.name == SELF:
            here = here.parent
        # the machine's own root, as root: it may hold processes beside groups, so nobody has to be moved
        machine = os.geteuid() == 0 and not (top / "cgroup.type").exists()
        return (_delegate(top) if machine else {}) or _delegate(here)
    return {}


def _delegate(parent: Path) -> dict[str, str]:
    """Make `parent/mlp-hub` with controllers for its children; `{}` when that is not allowed there."""
    try:
        has = (parent / "cgroup.controllers").read_text().split()
    except OSError:
        return {}
    wanted = [name for name in LIMITING if name in has]
    base = parent / NAME
    if not wanted:
        return {}
    try:
        base.mkdir(exist_ok=True)
        if not _enable(parent, wanted) and not (_vacate(parent) and _enable(parent, wanted)):
            return {}
        if not _enable(base, wanted):
            return {}
    except OSError:
        return {}
    return dict.fromkeys(wanted, str(base))


def _enable(group: Path, names: list[str]) -> bool:
    file = group / "cgroup.subtree_control"
    lacking = [name for name in names if name not in file.read_text().split()]
    try:
        if lacking:
            file.write_text(" ".join(f"+{name}" for name in lacking))
    except OSError:  # EBUSY: it has processes of its own, which version 2 does not allow beside children
        return False
    return True


def _vacate(parent: Path) -> bool:
    """Move our own processes out of the way, when the group holds no others' (a delegated unit, a container)."""
    pids = (parent / "cgroup.procs").read_text().split()
    if any(Path(f"/proc/{pid}").stat().st_uid != os.geteuid() for pid in pids):
        return False
    leaf = parent / SELF
    leaf.mkdir(exist_ok=True)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(pid)
    return True
