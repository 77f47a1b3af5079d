"""Information about the two databases, the platform's and JupyterHub's.

SQLAlchemy is not imported for SQLite databases.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.settings import Settings
from mlp_language.render import say

_FILE = "sqlite:///"
KEY = "tables.works_from"
"""Contract: as `store.schema` has it, which would import SQLAlchemy."""
BINDING = "mlp_hub_binding"
"""Name of the table that we keep in JupyterHub's database: which state directory that belongs to."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The revision that the tables of one database are of, None where there are none, and the one this version needs."""

    what: str
    revision: str | None
    newest: str
    known: frozenset[str]
    works_from: str | None = None
    """The oldest revision whose program works with these tables, where they are of a later version."""

    @property
    def fits(self) -> bool:
        """Whether this version works with them as they are."""
        return self.revision == self.newest or (self.is_later and self.works_from in self.known)

    @property
    def is_later(self) -> bool:
        """Whether a later version made them."""
        return self.revision is not None and self.revision not in self.known


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
        if tables.is_later and not tables.fits:
            raise CommandFailed(
                say(
                    "{what} is of revision {revision}, newer than this version's {newest}.",
                    what=tables.what,
                    revision=tables.revision or "",
                    newest=tables.newest,
                ),
                say(
                    "Install the version that made it. To stay with this version, restore the copies that the newer version made before its changes, `platform` and `hub` in {copies}, or restore a backup.",
                    copies=str(settings.db_dir / "before-*"),
                ),
            )
    todo = [
        f"{tables.what} goes from revision {tables.revision} to {tables.newest}"
        for tables in found
        if tables.revision is not None and not tables.fits
    ]
    if found[0].revision is None:  # JupyterHub makes its own itself
        todo.insert(0, f"{found[0].what} is made")
    return todo


def newest_revision() -> str:
    """Return the newest revision of the platform's database that this version knows."""
    _, newest = _chain(_versions("mlp_hub", "store/migrations"))
    return newest


def adds_only(tables: Tables) -> bool:
    """Whether the platform's tables become those of this version by additions only, so that services of the version before work on."""
    at, folder = tables.newest, _versions("mlp_hub", "store/migrations")
    while at != tables.revision:
        (module,) = folder.glob(f"{at}_*.py")
        named = _named(module)
        if named is None or not named.adds_only or not named.before:
            return False
        (at,) = named.before
    return True


def _versions(package: str, migrations: str) -> Path:
    spec = importlib.util.find_spec(package)  # of which nothing runs
    if spec is None or spec.origin is None:
        raise CommandFailed(
            say("{package} is not installed.", package=package),
            say("The installation is damaged: `make clean up`."),
        )
    return Path(spec.origin).parent / migrations / "versions"


@functools.cache
def _chain(folder: Path) -> tuple[frozenset[str], str]:
    """Return the revisions, and the one that no other comes after.

    Alembic, which would run the migrations for it, takes a second to import; they say it in their texts.
    """
    steps = [step for path in folder.glob("*.py") if (step := _named(path)) is not None]
    known = frozenset(step.revision for step in steps)
    heads = known.difference(*(step.before for step in steps))
    if len(heads) != 1:
        raise CommandFailed(
            say("{folder} has no newest revision.", folder=str(folder)),
            say("The installation is damaged: `make clean up`."),
        )
    (newest,) = heads
    return known, newest


class _Migration(NamedTuple):
    """The revision that a migration makes, those that it comes after, and whether it only adds to them."""

    revision: str
    before: tuple[str, ...]
    adds_only: bool


def _named(module: Path) -> _Migration | None:
    """Read a migration; None for other modules."""
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
    before = before if isinstance(before, tuple) else () if before is None else (before,)
    return _Migration(revision, before, "ADDS_ONLY" in said and ast.literal_eval(said["ADDS_ONLY"]) is True)


def _look(what: str, url: str, folder: Path) -> Tables:
    known, newest = _chain(folder)
    try:
        found = _row_of(url, "alembic_version", "version_num")
    except (sqlite3.Error, _Away) as error:
        raise _unanswered(what, error) from error
    looked = Tables(what, None if found is None else str(found[0]), newest, known)
    if not looked.is_later:
        return looked
    try:
        stored = _row_of(url, "setting", "value", f"key = '{KEY}'")
    except (sqlite3.Error, _Away) as error:
        raise _unanswered(what, error) from error
    return replace(looked, works_from=None if stored is None else json.loads(stored[0]))


class _Away(Exception):  # noqa: N818 - a state, for `_look` alone
    """A database elsewhere that does not answer."""


def row(settings: Settings, name: str, table: str, columns: str, where: str = "") -> tuple[Any, ...] | None:
    """Return a row of a table of a database; None without a row, a table or a database.

    Raises `CommandFailed`.
    """
    try:
        return _row_of(urls(settings)[name], table, columns, where)
    except (sqlite3.Error, _Away) as error:
        raise _unanswered(name_of(name), error) from error


def put(settings: Settings, name: str, key: str, value: object) -> None:
    """Store a value of ours in one of the databases. Raises `CommandFailed`."""
    table, url, text = ("setting" if name == "platform" else BINDING), urls(settings)[name], json.dumps(value)
    steps = [
        (f"CREATE TABLE IF NOT EXISTS {BINDING} (key VARCHAR(64) PRIMARY KEY, value TEXT NOT NULL)", {}),
        (f"DELETE FROM {table} WHERE key = :key", {"key": key}),  # noqa: S608 - ours
        (f"INSERT INTO {table} (key, value) VALUES (:key, :value)", {"key": key, "value": text}),  # noqa: S608 - ours
    ]
    steps = steps if table == BINDING else steps[1:]
    try:
        if url.startswith(_FILE):
            with closing(sqlite3.connect(url.removeprefix(_FILE), timeout=15)) as connection, connection:
                for step, values in steps:
                    connection.execute(step, values)
            return
        from sqlalchemy import text as sql  # noqa: PLC0415 - only where it is not SQLite
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        try:
            with _engine_of(url).begin() as connection:
                for step, values in steps:
                    connection.execute(sql(step), values)
        except SQLAlchemyError as error:
            raise _Away(str(getattr(error, "orig", None) or error).strip()) from error
    except (sqlite3.Error, _Away) as error:
        raise _unanswered(name_of(name), error) from error


def name_of(name: str) -> str:
    """Return what a database is called in sentences."""
    return "The platform's database" if name == "platform" else "JupyterHub's database"


class DatabaseSilent(CommandFailed):
    """A database that does not answer, or whose file is damaged."""


_OTHER_PASSWORD = "password authentication failed"  # noqa: S105 - the server's words


def _unanswered(what: str, error: Exception) -> DatabaseSilent:
    if _OTHER_PASSWORD in str(error):
        return DatabaseSilent(
            say("{what} does not answer: {error}.", what=what, error=str(error)),
            say(
                "The server knows another password. In a cluster put the new one into the Secret of database.existingSecret, and start the pods again; on a machine set it in the URL of the database."
            ),
        )
    return DatabaseSilent(
        say("{what} does not answer: {error}.", what=what, error=str(error)),
        say(
            "Nothing was stopped or changed. Check that its server runs or its file is complete, and check the setting of its URL."
        ),
    )


def _row_of(url: str, table: str, columns: str, where: str = "") -> tuple[Any, ...] | None:
    """Return the one row of a table; None without a row, a table or a database."""
    query = f'SELECT {columns} FROM "{table}"{f" WHERE {where}" if where else ""}'  # noqa: S608 - ours
    return _row_in(url, table, query) if url.startswith(_FILE) else _row_at(url, table, query)


def _row_in(url: str, table: str, query: str) -> tuple[Any, ...] | None:
    path = Path(url.removeprefix(_FILE))
    if not path.exists():
        return None
    # not read only: what a killed process left half written is rolled back by who opens it next
    with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return None
        found: tuple[Any, ...] | None = connection.execute(query).fetchone()
        return found


def _engine_of(url: str) -> Any:
    from mlp_hub.store import engine as engines  # noqa: PLC0415 - only where it is not SQLite

    return engines.plain_engine(engines.parse(url))


def _row_at(url: str, table: str, query: str) -> tuple[Any, ...] | None:
    from sqlalchemy import inspect, text  # noqa: PLC0415 - only where it is not SQLite
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    try:
        with _engine_of(url).connect() as connection:
            if not inspect(connection).has_table(table):
                return None
            found = connection.execute(text(query)).first()
    except (SQLAlchemyError, ValueError) as error:
        raise _Away(str(getattr(error, "orig", None) or error).strip()) from error
    return None if found is None else tuple(found)


class Decider(NamedTuple):
    """Holder of the lead on the platform's database, and the time when it expires unless it is renewed."""

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
