"""What two services and their database do while nobody takes a write, kept for who asks why."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

KEPT = Path(__file__).resolve().parents[3] / "build" / "failover-evidence"
TAIL_BYTES = 256 << 10
CONNECT_S = 5
QUERIES = {
    "lease": "SELECT *, extract(epoch FROM clock_timestamp()) AS now FROM lease",
    "sessions": (
        "SELECT pid, backend_type, client_port, state, wait_event_type, wait_event, backend_start, xact_start, query_start, "
        "state_change, clock_timestamp() AS now, pg_blocking_pids(pid) AS blocked_by, left(query, 300) AS query "
        "FROM pg_stat_activity WHERE datname = current_database() ORDER BY xact_start"
    ),
    "locks": (
        "SELECT pid, locktype, classid, objid, objsubid, mode, granted, waitstart FROM pg_locks "
        "WHERE locktype = 'advisory' OR NOT granted ORDER BY pid"
    ),
}


class FailoverEvidence:
    """A directory with one directory for each time that something was worth keeping.

    `database` is a way past all that may be frozen; `processes` returns the pid of each component by its name, `ready` what
    a service says of itself, by its number.
    """

    def __init__(
        self,
        name: str,
        *,
        database: str,
        logs: Path,
        processes: Callable[[], dict[str, int | None]],
        ready: Callable[[int], Any],
    ) -> None:
        self.place = KEPT / name
        self._database, self._logs, self._processes, self._ready = database, logs, processes, ready

    def keep(self, title: str, **known: object) -> Path:
        """Keep all that can be seen now, and `known`; return where. What cannot be seen is kept as the error that it is."""
        place = self.place / f"{time.strftime('%H%M%S')}-{title.replace(' ', '-')}"
        place.mkdir(parents=True, exist_ok=True)
        looks: dict[str, Callable[[], str]] = {
            "known.json": lambda: _text(known),
            "machine.txt": _machine,
            "processes.txt": self._all_processes,
            "database.json": self._in_database,
            "ready-1.json": lambda: _text(self._ready(1)),
            "ready-2.json": lambda: _text(self._ready(2)),
            **{f"{name}.log": partial(self._tail, name) for name in ("service", "service-2")},
        }
        for name, look in looks.items():
            try:
                seen = look()
            except Exception as error:  # noqa: BLE001 - that is evidence too
                seen = repr(error)
            (place / name).write_text(seen)
        return place

    def _in_database(self) -> str:
        found = {}
        with psycopg.connect(self._database, connect_timeout=CONNECT_S, autocommit=True) as connection:
            connection.execute("SET statement_timeout = '10s'")
            for name, query in QUERIES.items():
                rows = connection.execute(query)
                assert rows.description is not None
                names = [column.name for column in rows.description]
                found[name] = [dict(zip(names, row, strict=True)) for row in rows]
        return _text(found)

    def _all_processes(self) -> str:
        return "\n".join(
            f"==== {name} {pid}\n{'' if pid is None else process_state(pid)}"
            for name, pid in self._processes().items()
        )

    def _tail(self, name: str) -> str:
        with (self._logs / f"{name}.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            return log.read().decode(errors="replace")


def process_state(pid: int) -> str:
    """Return what the kernel says of a process, and where each of its threads waits."""
    place = Path(f"/proc/{pid}")
    told = [_read(place / "status"), _read(place / "schedstat")]
    with contextlib.suppress(OSError):
        for task in sorted(place.glob("task/*")):
            told += [
                f"-- thread {task.name} {_read(task / 'comm').strip()} {_read(task / 'wchan')}",
                _read(task / "stack"),
            ]
    return "\n".join(told)


def _machine() -> str:
    return "\n".join(
        _read(Path("/proc", name)) for name in ("loadavg", "pressure/cpu", "pressure/io", "meminfo")
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return f"{path}: {error}\n"


def _text(found: object) -> str:
    return json.dumps(found, indent=1, default=str)
