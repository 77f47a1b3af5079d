"""What must be gone when nothing runs: of processes, control groups, mounts, directories, sockets and the ledger."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from mlp_hub.sandbox import capabilities
from torture.findings import Violation
from torture.site import COMPONENTS, READER, TENANTS, Site

UIDS = 1000  # so many users this hub may have
PATIENCE_S = 30.0


class Baseline:
    """The sockets and mounts that a hub has when nothing runs on it yet."""

    def __init__(self, site: Site) -> None:
        self.sockets = _sockets(site)
        self.mounts = _mounts(site)


def look(site: Site, baseline: Baseline, uids: Iterable[str]) -> list[Violation]:
    """Return what is left over of the jobs of these uids, and of anything else."""
    return [Violation(kind, text) for kind, text in _look(site, baseline, set(uids))]


def _look(site: Site, baseline: Baseline, uids: set[str]) -> Iterator[tuple[str, str]]:
    if left := site.attempts():
        yield "left-run-directories", ", ".join(left)
    if alive := strays(site):
        yield "left-processes", "; ".join(_shown(process) for process in alive)
    groups = [path for path in _groups() if path.name.partition(".")[0] in uids]
    if groups:
        yield "left-cgroups", ", ".join(map(str, groups))
    if more := _mounts(site) - baseline.mounts:
        yield "left-mounts", ", ".join(sorted(more))
    if more := _sockets(site) - baseline.sockets:
        yield "left-sockets", ", ".join(sorted(more))
    held = site.held()
    if held is None:
        yield "database-unreadable", "the ledger cannot be read"
    elif rows := [tuple(row) for row in held if row[1] != "sp"]:
        yield "left-in-ledger", str(rows)
    yield from _told(site)
    yield from _database(site)


def _told(site: Site) -> Iterator[tuple[str, str]]:
    """What is in use, as the API tells it."""
    for tenant in TENANTS:
        answer = site.ask("GET", f"/tenants/{tenant}", "admin", PATIENCE_S)
        told = answer.json() if answer is not None and answer.is_success else {}
        used = (
            {k: v for k, v in told.items() if k.endswith("_inuse") and k != "rom_inuse" and v}
            if told
            else {"no answer": 1}
        )
        if used:
            yield "tenant-in-use", f"{tenant}: {used}"
    answer = site.ask("GET", "/nodes", "admin", PATIENCE_S)
    for node in answer.json() if answer is not None and answer.is_success else []:
        mine = [holding for holding in node["holders"] if READER not in str(holding)]
        if mine:
            yield "node-in-use", f"{node['name']}: {mine}"


def _database(site: Site) -> Iterator[tuple[str, str]]:
    if site.postgres is not None:
        return
    for query in ("PRAGMA integrity_check", "PRAGMA foreign_key_check"):
        rows = site.rows(query)
        if rows is None or [tuple(row) for row in rows] not in ([], [("ok",)]):
            yield "database-broken", f"{query}: {rows}"


def strays(site: Site) -> list[psutil.Process]:
    """List each process that is a tenant's, or has something of the hub's disk open, and is none of its own."""
    own = {p.pid for name in COMPONENTS if (p := site.component(name))}
    if fork_server := site.fork_server():
        own.add(fork_server.pid)
    for shim in site.servers():
        own |= {shim.pid, *(p.pid for p in shim.children(recursive=True))}
    return [process for process in of_the_hub(site) if process.pid not in own]


def of_the_hub(site: Site) -> list[psutil.Process]:
    """List all processes of the hub and of its tenants, whether it knows of them or not."""
    tenants = range(site.first_uid, site.first_uid + UIDS)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.uids().real in tenants or _has_open(process.pid, str(site.disk.home)):
                found.append(process)
    return found


def end_all(site: Site) -> str:
    """Kill what there still is, and tell what that was."""
    found = of_the_hub(site)
    shown = "; ".join(_shown(process) for process in found)
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(found, 10)
    return shown


def _shown(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {process.name()} {' '.join(process.cmdline())[:120]}"
    return str(process.pid)


def _has_open(pid: int, home: str) -> bool:
    for place in (Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(OSError):
            if str(place.readlink()).startswith(home):
                return True
    return False


def _groups() -> Iterator[Path]:
    for base in set(capabilities().bases.values()):
        with contextlib.suppress(OSError):
            yield from (path for path in Path(base).iterdir() if path.is_dir())


def _mounts(site: Site) -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line.split()[4] for line in lines if str(site.disk.root) in line}


def _sockets(site: Site) -> set[str]:
    run = site.settings.run_dir
    return {str(path.relative_to(run)) for path in run.rglob("*") if path.is_socket()}
