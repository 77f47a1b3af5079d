"""What is known of the two databases, the platform's and JupyterHub's, without importing SQLAlchemy where they are SQLite."""

from __future__ import annotations

import ast
import importlib.util
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.settings import Settings
from mlp_language.render import say

_FILE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Tables:
    """The revision that the tables of one database are of, None where there are none, and the one this version needs."""

    what: str
    revision: str | None
    newest: str
    known: frozenset[str]


def urls(settings: Settings) -> dict[str, str]:
    """Return the URLs of the databases by the names that their copies have."""
    return {"platform": settings.service_db_url, "hub": settings.hub_db_url}


def platform(settings: Settings) -> Tables:
    """Look at the platform's database; raise Failure where it does not answer."""
    return _look("The platform's database", settings.service_db_url, _versions("mlp_hub", "store/migrations"))


def hub(settings: Settings) -> Tables:
    """Look at JupyterHub's database; raise Failure where it does not answer."""
    return _look("JupyterHub's database", settings.hub_db_url, _versions("jupyterhub", "alembic"))


def changes(settings: Settings) -> list[str]:
    """Say what it takes to bring both to this version; raise Failure where one is of a later version."""
    found = (platform(settings), hub(settings))
    for tables in found:
        if tables.revision is not None and tables.revision not in tables.known:
            raise CommandFailed(
                say(
                    "{what} is of revision {revision}, newer than this version's {newest}.",
                    what=tables.what,
                    revision=tables.revision,
                    newest=tables.newest,
                ),
                say("Install the version that made it, or restore a backup."),
            )
    todo = [
        f"{tables.what} goes from revision {tables.revision} to {tables.newest}"
        for tables in found
        if tables.revision not in (None, tables.newest)
    ]
    if found[0].revision is None:  # JupyterHub makes its own itself
        todo.insert(0, f"{found[0].what} is made")
    return todo


def newest_revision() -> str:
    """Return the newest revision of the platform's database that this version knows."""
    _, newest = _chain(_versions("mlp_hub", "store/migrations"))
    return newest


def _versions(package: str, migrations: str) -> Path:
    spec = importlib.util.find_spec(package)  # of which nothing runs
    if spec is None or spec.origin is None:
        raise CommandFailed(
            say("{package} is not installed.", package=package),
            say("The installation is damaged: `make clean up`."),
        )
    return Path(spec.origin).parent / migrations / "versions"


def _chain(folder: Path) -> tuple[frozenset[str], str]:
    """Return the revisions, and the one that no other comes after.

    Alembic, which would run the migrations for it, takes a second to import; they say it in their texts.
    """
    steps = [step for path in folder.glob("*.py") if (step := _named(path)) is not None]
    known = frozenset(revision for revision, _ in steps)
    heads = known.difference(*(before for _, before in steps))
    if len(heads) != 1:
        raise CommandFailed(
            say("{folder} has no newest revision.", folder=str(folder)),
            say("The installation is damaged: `make clean up`."),
        )
    (newest,) = heads
    return known, newest


def _named(module: Path) -> tuple[str, tuple[str, ...]] | None:
    """Return the revision that a migration makes, and those that it comes after; None for what is no migration."""
    said: dict[str, ast.expr] = {}
    for node in ast.parse(module.read_bytes()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            said |= {target.id: node.value for target in targets if isinstance(target, ast.Name)}
    if "revision" not in said:
        return None
    try:
        revision, before = (ast.literal_eval(said[name]) for name in ("revision", "down_revision"))
    except (KeyError, ValueError) as error:
        raise CommandFailed(
            say("{folder} has no newest revision.", folder=str(module)),
            say("The installation is damaged: `make clean up`."),
        ) from error
    return revision, before if isinstance(before, tuple) else () if before is None else (before,)


def _look(what: str, url: str, folder: Path) -> Tables:
    known, newest = _chain(folder)
    try:
        found = _row_of(url, "alembic_version", "version_num")
    except (sqlite3.Error, _Away) as error:
        raise CommandFailed(
            say("{what} does not answer: {error}.", what=what, error=str(error)),
            say(
                "Nothing was stopped or changed. See that its server runs or its file is whole, and the setting of "
                "its URL."
            ),
        ) from error
    return Tables(what, None if found is None else str(found[0]), newest, known)


class _Away(Exception):  # noqa: N818 - a state, for `_look` alone
    """A database elsewhere that does not answer."""


def _row_of(url: str, table: str, columns: str) -> tuple[Any, ...] | None:
    """Return the one row of a table; None where there is no row, no table or no database yet."""
    return _row_in(url, table, columns) if url.startswith(_FILE) else _row_at(url, table, columns)


def _row_in(url: str, table: str, columns: str) -> tuple[Any, ...] | None:
    path = Path(url.removeprefix(_FILE))
    if not path.exists():
        return None
    # not read only: what a killed process left half written is rolled back by who opens it next
    with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return None
        found: tuple[Any, ...] | None = connection.execute(f"SELECT {columns} FROM {table}").fetchone()  # noqa: S608 - ours
        return found


def _row_at(url: str, table: str, columns: str) -> tuple[Any, ...] | None:
    from sqlalchemy import inspect, text  # noqa: PLC0415 - only where it is not SQLite
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from mlp_hub.store import engine as engines  # noqa: PLC0415

    try:
        engine = engines.plain_engine(engines.parse(url))
        with engine.connect() as connection:
            if not inspect(connection).has_table(table):
                return None
            found = connection.execute(text(f"SELECT {columns} FROM {table}")).first()  # noqa: S608 - ours
    except (SQLAlchemyError, ValueError) as error:
        raise _Away(str(getattr(error, "orig", None) or error).strip()) from error
    return None if found is None else tuple(found)


class Decider(NamedTuple):
    """Who decides about the platform's database, and until when unless it is renewed."""

    holder: str
    expires_at: float


def lease(settings: Settings) -> Decider | None:
    """Return the lease of the service that decides about this database; None where none is known."""
    try:
        found = _row_of(settings.service_db_url, "lease", "holder, expires_at")
    except (sqlite3.Error, _Away):
        return None  # no database that answers
    return Decider(*found) if found is not None and found[1] else None


def decider(settings: Settings) -> str | None:
    """Say which service decides about this database, by its lease; None where none is known."""
    found = lease(settings)
    if found is None:
        return None
    left = found.expires_at - time.time()
    if left > 0:
        return say("{holder}, for {seconds} s more unless renewed", holder=found.holder, seconds=round(left))
    return say("{holder}, until {seconds} s ago", holder=found.holder, seconds=round(-left))
