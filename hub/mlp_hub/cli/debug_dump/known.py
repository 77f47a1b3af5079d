"""Names and secrets that this hub knows, so that a dump can be made without them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sqlalchemy as sa

from mlp_hub.settings import Settings
from mlp_hub.store import engine as engines

NAMED: tuple[tuple[str, str, str], ...] = (
    ("user", "user", "name"),
    ("team", "tenant", "name"),
    ("team", "tenant", "cohort"),
    ("job", "job", "name"),
    ("sweep", "sweep", "name"),
    ("stored", "stored", "name"),
    ("model", "model", "name"),
    ("app", "app", "name"),
    ("key", "app_key", "name"),
    ("environment", "environment", "name"),
    ("runtime", "runtime", "name"),
    ("booking", "booking", "name"),
    ("secret", "secret", "name"),
    ("channel", "notice_channel", "name"),
    ("metric", "run_value", "name"),
    ("tag", "run_tag", "tag"),
)
"""What its names become, table and column."""
_LOGGED: Mapping[str, str] = {
    **dict.fromkeys(("user", "member", "join", "server", "notifications"), "user"),
    **dict.fromkeys(("tenant", "quota", "budget"), "team"),
    **dict.fromkeys(("dataset", "data"), "stored"),
    **{
        kind: kind for kind in ("job", "sweep", "model", "app", "environment", "runtime", "booking", "secret")
    },
}
"""Replacements of names in the audit log by the beginning of an action: logs also have names of deleted objects."""
_LOGINS = (("user", "users", "name"), ("user", "users_info", "username"))
"""Replacements of names in the hub's own database, which also has people without approval."""
_PARTS = re.compile(r"[^\s/@:]+")
COMMON = frozenset(
    [
        "default",
        "admin",
        "hub",
        "service",
        "data",
        "proxy",
        "supervisor",
        "job",
        "jobs",
        "user",
        "users",
        "team",
        "tenant",
        "plain",
        "mpi",
        "tf",
        "torch",
        "none",
        "true",
        "false",
        "loss",
        "accuracy",
        "epoch",
        "step",
        "root",
        "api",
        "info",
        "error",
        "warning",
        "debug",
        "the",
        "and",
        "not",
        "is",
        "was",
        "are",
        "for",
        "with",
        "from",
    ]
)
"""Words of the platform and of the language: as a name they tell nothing, and logs would not be readable without them."""
_SECRET_VARIABLE = re.compile(r"(?i)(password|passwd|secret|token|key|credential)")
_LARGEST = 64 << 10  # bytes of a file of secrets that are read


@contextlib.contextmanager
def reading(url: str) -> Iterator[sa.Connection]:
    """Connect to a database that is there; raises `OSError` or `sqlalchemy.exc.SQLAlchemyError`."""
    parsed = engines.parse(url)
    if engines.is_sqlite(parsed) and not Path(parsed.database or "").is_file():
        raise FileNotFoundError("the database does not exist")
    engine = engines.plain_engine(parsed)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


_OF_SECRETS = ("_secrets", "_secret_file", "_key", "_cert", "_certificate")
"""Ends of the names of settings whose files have secrets, so that a new one needs no line here. A certificate's file may have its key."""


def names(url: str, logins: str = "") -> dict[str, str]:
    """Return each name in the platform's database with its replacement, such as `user-3`; raises as `reading` does.

    `logins` is the hub's own database, whose names are left out if it cannot be read.
    """
    found: dict[str, str] = {}
    with reading(url) as connection:
        for kind, values in _named(connection, NAMED):
            _add(found, kind, values)
        for kind, values in _logged(connection).items():
            _add(found, f"former-{kind}", values)
    if logins:
        with contextlib.suppress(sa.exc.SQLAlchemyError, OSError), reading(logins) as connection:
            for kind, values in _named(connection, _LOGINS):
                _add(found, f"other-{kind}", values)
    return found


def _named(
    connection: sa.Connection, places: Iterable[tuple[str, str, str]]
) -> Iterator[tuple[str, set[str]]]:
    there = set(sa.inspect(connection).get_table_names())
    for kind, table, column in places:
        if table in there:
            query = sa.select(sa.column(column, sa.String)).select_from(sa.table(table)).distinct()
            yield kind, {str(value) for value in connection.scalars(query) if value}


def _logged(connection: sa.Connection) -> dict[str, set[str]]:
    """Return the names in the audit log by their kinds."""
    found: dict[str, set[str]] = {"user": set(), "team": set()}
    if "audit" not in sa.inspect(connection).get_table_names():
        return found
    columns = [sa.column(name, sa.String) for name in ("action", "object", "actor", "tenant")]
    query = sa.select(*columns).select_from(sa.table("audit")).distinct()
    for row in connection.execute(query):
        kind = _LOGGED.get(str(row.action).partition(".")[0])
        if kind is not None:
            found.setdefault(kind, set()).update(_PARTS.findall(str(row.object)))
        found["user"].add(str(row.actor))
        if row.tenant:
            found["team"].add(str(row.tenant))
    return found


def _add(found: dict[str, str], kind: str, values: Iterable[str]) -> None:
    for number, name in enumerate(sorted(values), 1):
        if len(name) > 1 and not name.isdigit() and name.lower() not in COMMON:
            found.setdefault(name, f"{kind}-{number}")


def secrets(settings: Settings) -> Iterator[str]:
    """Give each secret that the hub's files, settings and this shell have; a file that cannot be read has none."""
    for spec in dataclasses.fields(settings):
        if spec.metadata.get("secret"):
            yield str(getattr(settings, spec.name) or "")
    for url in (settings.service_db_url, settings.hub_db_url, settings.package_index):
        with contextlib.suppress(ValueError):
            password = urlsplit(url).password or ""
            yield from (password, unquote(password))
    files = [
        getattr(settings, spec.name)
        for spec in dataclasses.fields(settings)
        if spec.metadata.get("kind") == "path" and spec.name.endswith(_OF_SECRETS)
    ]
    with contextlib.suppress(OSError):
        files += sorted(settings.secrets_dir.iterdir())
    for file in files:
        if file is not None:
            yield from _words_of(Path(file))
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.search(name):
            yield value


def _words_of(file: Path) -> Iterator[str]:
    try:
        with file.open("rb") as opened:
            read = opened.read(_LARGEST)
    except OSError:
        return
    text = read.decode(errors="replace").strip()
    yield text
    yield read.hex()
    for line in text.splitlines():
        yield line.strip()
        yield line.partition("=")[2].strip().strip("\"'")
