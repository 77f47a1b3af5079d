"""What this machine can do: run pods, or an API server only, or neither; with the reason, for who would otherwise be surprised."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlp_cluster import machine, programs
from mlp_cluster.place import base
from mlp_cluster.running import ClusterError, output

GIB = 1 << 30
BUILT_GIB = 7
"""Safety: what programs and Go's caches take on the disk when they are built."""
RUNS_GIB = 1
"""Safety: what a cluster takes on the disk while it runs, whatever was built before."""
IMAGES_GIB = 5
"""Safety: what images take on the disk, with the folder that they are unpacked into."""
MEMORY_GIB = 2
"""Safety: memory that is to be available: control plane and operators have about 1, pods the rest."""

_ABLE = {
    "namespaces": "unshare --pid --fork --mount --net true",
    "a network of their own": "unshare --net sh -c 'ip link add veth0 type veth peer name veth1 && echo 1 >/proc/sys/net/ipv4/ip_forward'",
    "mounts": "unshare --mount sh -c 'mount --make-rshared / && mount -t tmpfs tmpfs /run'",
}
"""What clusters are made of, and how to see whether it is to be had."""

_ABLE_WITH_PODS = {
    "control groups": "test -w /sys/fs/cgroup || test -w /sys/fs/cgroup/memory",
    "rules for packets": "unshare --net iptables -t nat -L",
}


@dataclass(frozen=True)
class Able:
    """What a machine can run; `lacks` says why no more."""

    tier: str | None  # "pods", "api" or None
    lacks: str = ""

    def __str__(self) -> str:
        return f"{self.tier or 'none'} {self.lacks}".strip()


def able(folder: Path | None = None) -> Able:
    """Find out what this machine can do; what is missing and can be installed is."""
    folder = folder or base()
    folder.mkdir(parents=True, exist_ok=True)
    tier: str | None = None
    try:
        _for_all(folder)
        tier = "api"
        _for_pods(folder)
    except ClusterError as error:
        return Able(tier, _short(error))
    return Able("pods")


def _for_all(folder: Path) -> None:
    machine.check(pods=False)
    machine.check_watches(pods=False)
    _try(_ABLE)
    _room(folder, RUNS_GIB)
    if free := _available():
        _enough("memory", free, MEMORY_GIB)
    if programs.folder().exists():
        return
    _room(folder, BUILT_GIB)
    try:  # one small module of those that are needed: it is there, or can be fetched
        output([machine.go(), "mod", "download", "k8s.io/klog/v2"], cwd=programs.SOURCES)
    except ClusterError as error:
        raise ClusterError(f"Kubernetes is built from Go modules, which are not to be had: {error}") from None


def _for_pods(folder: Path) -> None:
    machine.check(pods=True)
    machine.check_watches(pods=True)
    _try(_ABLE_WITH_PODS)
    if not any((folder / "images").glob("*")):
        _room(folder, IMAGES_GIB + (0 if programs.folder().exists() else BUILT_GIB))


def _try(tried: Mapping[str, str]) -> None:
    for what, command in tried.items():
        try:
            output(["sh", "-c", command])
        except ClusterError as error:
            raise ClusterError(f"{what} are not to be had here: {error}") from None


def _room(folder: Path, gib: int) -> None:
    _enough(f"disk at {folder}", shutil.disk_usage(folder).free, gib)


def _enough(what: str, free: int, gib: int) -> None:
    if free < gib * GIB:
        raise ClusterError(f"{free / GIB:.1f} GiB of {what} are free, and it takes {gib}")


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def _short(error: ClusterError) -> str:
    """Return what went wrong in one line."""
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())[:500]
