"""Capacity of this machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.domain.resources import MILLI, Resources
from mlp_hub.executors.nodes import NodeInfo, kind_name

CPU_OVERCOMMIT = 3.0
"""Tuning: requested processors per real one: how full the node gets, for how slow a busy one is."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device: its index, as in /dev/nvidia0, and its kind, as in `nvidia-h100-80gb-hbm3`."""

    index: int
    kind: str


def local_node(
    name: str | None = None,
    *,
    cpu_overcommit: float = CPU_OVERCOMMIT,
    reserve_mib: int | None = None,
    disk: str = "/",
    labels: Mapping[str, str] | None = None,
) -> NodeInfo:
    """Describe this machine as a node.

    A core is a share, not a pinned one: `cpu_overcommit` times the cores found are given out. Memory is given
    out once, but `reserve_mib`, which is kept for the hub itself (default: a tenth, at most 2 GiB).
    """
    found = gpus()
    kinds: dict[str, int] = {}
    for gpu in found:
        kinds[gpu.kind] = kinds.get(gpu.kind, 0) + MILLI
    cores = len(os.sched_getaffinity(0)) * MILLI
    ram = memory_mib()
    stat = os.statvfs(disk)
    capacity = Resources(
        cores, len(found) * MILLI, ram, stat.f_blocks * stat.f_frsize, tuple(sorted(kinds.items()))
    )
    kept = min(2048, ram // 10) if reserve_mib is None else reserve_mib
    allocatable = capacity.but(cpu=int(cores * cpu_overcommit), ram=max(0, ram - kept))
    return NodeInfo(
        name or hostname(), allocatable, capacity, found[0].kind if found else None, dict(labels or {})
    )


def hostname() -> str:
    """Return this machine's name, reduced to the characters that names may have."""
    name = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-")
    return name or "local"


def memory_mib() -> int:
    """Return the memory that programs here can have: the machine's, or less where the hub's own group is limited."""
    text = Path("/proc/meminfo").read_text()
    total = int(re.search(r"^MemTotal:\s+(\d+)", text, re.MULTILINE)[1]) // 1024  # type: ignore[index]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(path).read_text().strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit) >> 20)
    return total


def gpus() -> tuple[Gpu, ...]:
    """List the NVIDIA devices; empty without a driver or a binding for it."""
    try:
        import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        out = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            name = pynvml.nvmlDeviceGetName(handle)
            text = name.decode() if isinstance(name, bytes) else str(name)
            minor = int(pynvml.nvmlDeviceGetMinorNumber(handle))
            out.append(Gpu(minor, kind_name(text)))
        return tuple(out)
    finally:
        pynvml.nvmlShutdown()
