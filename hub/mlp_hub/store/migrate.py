"""Make and update the tables; the only module that needs Alembic (the service itself does not).

A revision whose module has ADDS_ONLY = True leaves programs of the revision before it all that they read and write: it adds tables, indexes,
and columns that may be left out. `upgrade` stores for which programs the tables still are.

A new database gets its tables from `tables` in one step. The revisions in `migrations/versions` are the bridge for databases that are there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from mlp_hub.store import engine as engines
from mlp_hub.store.bounds import BESIDE, MIGRATION, Bounds
from mlp_hub.store.database import create_tables
from mlp_hub.store.errors import StoreUnavailable
from mlp_hub.store.schema import KEY, note_works_from
from mlp_hub.store.tables import setting
from mlp_language.message import msg

MIGRATIONS = Path(__file__).parent / "migrations"
BESIDE_AGAIN_S = 1.0
"""Tuning: seconds between two tries to change tables that services work on."""


def upgrade(url: str, revision: str = "head") -> str | None:
    """Bring the database to a revision (the newest by default), making it if needed; return the one before.

    A new database that is to be of the newest revision goes through no other. All steps happen in one transaction: a failure leaves the database as it was. Running it again, or twice
    at once, does nothing more.
    """
    with _migrating(url) as (config, connection):
        before = _current(connection)
        if before is None and revision == "head":
            create_tables(connection)
        else:
            command.upgrade(config, revision)
            _note(connection)
        return before


def upgrade_beside(url: str, tries: int = 60) -> None:
    """Bring the database to the newest revision while services of the version before work on it: all steps only add (`adds_only`).

    A step waits for its tables less long than the services wait for theirs, so that none of them fails. Raises `StoreUnavailable`
    if the tables were in use at each try.
    """
    for left in reversed(range(tries)):
        try:
            with _migrating(url, BESIDE) as (config, connection):
                if not engines.is_sqlite(engines.parse(url)):  # no writer is in the middle of anything
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({engines.WRITE_LOCK})"))
                command.upgrade(config, "head")
                _note(connection)
        except OperationalError as error:
            if not left:
                raise StoreUnavailable(
                    msg("the tables were in use at each try to change them: {why}", why=str(error.orig))
                ) from error
            time.sleep(BESIDE_AGAIN_S)
        else:
            return


def adds_only(before: str) -> bool:
    """Whether all revisions after this one only add, so that programs of it work with the newest tables."""
    return works_from(str(head())) <= before


def works_from(revision: str) -> str:
    """Return the oldest revision whose program works with the tables of this one."""
    scripts = ScriptDirectory.from_config(_config())
    script = scripts.get_revision(revision)
    while getattr(script.module, "ADDS_ONLY", False):
        script = scripts.get_revision(str(script.down_revision))
    return script.revision


def _note(connection: Connection) -> None:
    """Store for which programs the tables are, where they are the newest."""
    if _current(connection) == head():
        note_works_from(connection, works_from(str(head())))


def downgrade(url: str, revision: str) -> None:
    """Take the database back to a revision; `base` removes all tables and all that is in them."""
    with _migrating(url) as (config, connection):
        if _current(connection) is not None and inspect(connection).has_table(setting.name):
            connection.execute(setting.delete().where(setting.c.key == KEY))
        command.downgrade(config, revision)


def current(url: str) -> str | None:
    """Return the revision of the database; None when it has no tables of ours."""
    with _migrating(url) as (_, connection):
        return _current(connection)


def head() -> str | None:
    """Return the newest revision that this version of the program knows."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@contextmanager
def _migrating(url: str, bounds: Bounds = MIGRATION) -> Iterator[tuple[Config, Connection]]:
    """Open the one transaction of a migration, exclusive of other migrations and of the service's writes."""
    parsed = engines.parse(url)
    sqlite = engines.is_sqlite(parsed)
    if sqlite:
        Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = engines.make_engine(parsed, write=True)
    else:
        engine = engines.plain_engine(parsed, bounds)
    try:
        with engine.connect() as connection:
            if sqlite:
                # copying a table must not cascade into its children; this is fixed before the transaction opens
                connection.connection.execute("PRAGMA foreign_keys=OFF")
            with connection.begin():
                if not sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({engines.SCHEMA_LOCK})"))
                config = _config()
                config.attributes["connection"] = connection
                yield config, connection
    finally:
        engine.dispose()
