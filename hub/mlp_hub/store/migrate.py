"""Make and update the tables; the only module that needs Alembic (the service itself does not).

A new database gets its tables from `tables` in one step. The revisions in `migrations/versions` are the bridge for databases that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from mlp_hub.store import engine as engines
from mlp_hub.store.bounds import MIGRATION
from mlp_hub.store.database import create_tables

MIGRATIONS = Path(__file__).parent / "migrations"


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
        return before


def downgrade(url: str, revision: str) -> None:
    """Take the database back to a revision; `base` removes all tables and all that is in them."""
    with _migrating(url) as (config, _):
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
def _migrating(url: str) -> Iterator[tuple[Config, Connection]]:
    """Open the one transaction of a migration, exclusive of other migrations and of the service's writes."""
    parsed = engines.parse(url)
    sqlite = engines.is_sqlite(parsed)
    if sqlite:
        Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = engines.make_engine(parsed, write=True)
    else:
        engine = engines.plain_engine(parsed, MIGRATION)
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
