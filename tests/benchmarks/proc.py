"""Memory of processes as the kernel counts it."""

from __future__ import annotations

from pathlib import Path

import psutil


def pss_of_tree(pid: int, *, own_only: bool = False) -> float:
    """Return the proportional set size in MB of a process and, unless `own_only`, all its descendants."""
    processes = [psutil.Process(pid)]
    if not own_only:
        processes += processes[0].children(recursive=True)
    return sum(_pss(p.pid) for p in processes) / 1024


def _pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
