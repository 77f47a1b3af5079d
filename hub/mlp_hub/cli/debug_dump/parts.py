"""What a dump consists of. Each part reads one thing; one that cannot be read says why, and stops no other."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mlp_hub import bindings
from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.debug_dump.known import reading
from mlp_hub.cli.doctor import doctor
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.http import request
from mlp_hub.cli.lifecycle import status
from mlp_hub.cli.state import database
from mlp_hub.cli.supervisor import processes, procs
from mlp_hub.settings import Settings, variable_of

QUEUE_MOST = 500
_LOG_BYTES = 4 << 20
_SPOKEN = ("description", "reason", "note", "message", "text", "word")
"""Fields that people fill with words of their own."""


def versions(_: Settings) -> Any:
    """Return versions of the platform, of Python, of the kernel and of each installed package, and the size of the machine."""
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    packages = sorted({(d.name, d.version) for d in metadata.distributions() if d.name})
    return {
        "python": sys.version,
        "system": platform.platform(),
        "release": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "cores": os.cpu_count(),
        "memory": {
            name: memory.get(name, "").strip() for name in ("MemTotal", "MemAvailable", "SwapTotal", "Shmem")
        },
        "load": os.getloadavg(),
        "uptime_s": time.clock_gettime(time.CLOCK_BOOTTIME),
        "time_s": time.time(),
        "packages": dict(packages),
    }


def settings_given(settings: Settings) -> Any:
    """Return each setting that differs from its default; of a secret one only that it is set."""
    found = {}
    for spec in dataclasses.fields(settings):
        value = getattr(settings, spec.name)
        if value == spec.default:
            continue
        if spec.metadata.get("secret"):
            found[variable_of(spec.name)] = "set, left out"
        else:
            found[variable_of(spec.name)] = bindings.shown(value) if isinstance(value, str) else str(value)
    return found


def checks(settings: Settings) -> Any:
    """Return what `mlp-hub doctor` finds."""
    return [dataclasses.asdict(check) for check in doctor.examine(settings)]


def state(settings: Settings) -> Any:
    """Return what `mlp-hub status` tells, and the threads, descriptors and memory of each process."""
    found = status.collect(settings)
    for name, component in found["components"].items():
        process = processes.find(settings, name)
        if process is not None:
            with contextlib.suppress(OSError):
                proc = Path("/proc", str(process.pid))
                component["threads"] = len(list((proc / "task").iterdir()))
                component["descriptors"] = len(list((proc / "fd").iterdir()))
                component["cpu_s"] = procs.cpu_s(process.pid)
    return found


def health(settings: Settings) -> Any:
    """Return the service's own report."""
    answer = request(settings.service_at, "GET", "/services/mlp/api/v1/health", timeout=5)
    return answer.json() if answer.status else {"no answer": answer.error}


def queue(settings: Settings) -> Any:
    """Return the work that waits and runs, without people's own words."""
    return _without_words(ask_service(settings, "GET", f"/queue?limit={QUEUE_MOST}").json())


def nodes(settings: Settings) -> Any:
    """Return the nodes with what is in use on each."""
    return _without_words(ask_service(settings, "GET", "/nodes").json())


def overview(settings: Settings) -> Any:
    """Return the numbers of the overview page."""
    return _without_words(ask_service(settings, "GET", "/overview").json())


def databases(settings: Settings) -> Any:
    """Return revision, size and rows of each table of both databases; an estimate where counting would take long."""
    return {name: _of_database(url) for name, url in database.urls(settings).items()}


def _of_database(url: str) -> dict[str, Any]:
    try:
        with reading(url) as connection:
            sqlite = connection.dialect.name == "sqlite"
            found = dict(_facts(connection, _SQLITE if sqlite else _POSTGRESQL))
            found["rows"] = dict(_rows(connection, sqlite=sqlite))
            return found
    except (sa.exc.SQLAlchemyError, OSError) as error:
        return {"error": str(getattr(error, "orig", None) or error)}


_SQLITE = {
    name: f"PRAGMA {name}"
    for name in ("page_count", "page_size", "freelist_count", "journal_mode", "synchronous", "user_version")
}
_POSTGRESQL = {
    "version": "SELECT version()",
    "bytes": "SELECT pg_database_size(current_database())",
    "connections": "SELECT count(*) FROM pg_stat_activity",
    "max_connections": "SHOW max_connections",
    "synchronous_commit": "SHOW synchronous_commit",
    "in_recovery": "SELECT pg_is_in_recovery()",
}


def _facts(connection: sa.Connection, queries: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name, query in queries.items():
        yield name, connection.execute(sa.text(query)).scalar()
    if "alembic_version" in sa.inspect(connection).get_table_names():
        yield "revision", connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def _rows(connection: sa.Connection, *, sqlite: bool) -> Iterator[tuple[str, int | None]]:
    """Give the highest row number of each table (SQLite), or what the planner believes."""
    if not sqlite:
        query = "SELECT relname, reltuples::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        yield from ((str(name), int(rows)) for name, rows in connection.execute(sa.text(query)))
        return
    for table in sa.inspect(connection).get_table_names():
        try:
            yield table, connection.execute(sa.text(f'SELECT max(rowid) FROM "{table}"')).scalar() or 0  # noqa: S608 - of the database
        except sa.exc.SQLAlchemyError:  # a table without row numbers
            yield table, None


def logs(settings: Settings, lines: int) -> Iterator[tuple[str, str]]:
    """Give the last lines of each component's log."""
    for file in sorted(settings.log_dir.glob("*.log*")):
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - _LOG_BYTES))
            text = opened.read(_LOG_BYTES).decode(errors="replace")
        yield file.name, "\n".join(text.splitlines()[-lines:]) + "\n"


def _without_words(value: Any) -> Any:
    """Leave out texts of people. A reason of the scheduler is an object, and stays."""
    if isinstance(value, Mapping):
        return {
            k: f"{len(v)} characters" if k in _SPOKEN and isinstance(v, str) and v else _without_words(v)
            for k, v in value.items()
        }
    return [_without_words(item) for item in value] if isinstance(value, list) else value


PARTS: tuple[tuple[str, Callable[[Settings], Any]], ...] = (
    ("versions", versions),
    ("settings", settings_given),
    ("doctor", checks),
    ("status", state),
    ("health", health),
    ("overview", overview),
    ("queue", queue),
    ("nodes", nodes),
    ("databases", databases),
)
"""In the order in which a maintainer reads them."""


def read(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Give each part by its name."""
    for name, part in PARTS:
        try:
            yield name, part(settings)
        except CommandFailed as failure:
            yield name, {"error": failure.text()}
        except Exception as error:  # noqa: BLE001 - the others are wanted most when one part is broken
            yield name, {"error": f"{type(error).__name__}: {error}"}
