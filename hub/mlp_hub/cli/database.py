"""Brings the platform's database to this version's schema, importing Alembic only when there is work."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import mlp_hub
from mlp_hub.cli.errors import Failure
from mlp_hub.settings import Settings


def newest_revision() -> str:
    """Return the newest revision, read from the names and texts of the migrations without running them."""
    folder = Path(mlp_hub.__file__).parent / "store" / "migrations" / "versions"
    newest = max(folder.glob("[0-9]*.py"))
    found = re.search(r"""^revision(?:: str)? = ["'](\w+)["']""", newest.read_text(), re.MULTILINE)
    if found is None:
        raise Failure(f"{newest} names no revision", "The installation is damaged: `make clean up`.")
    return found[1]


def is_current(settings: Settings) -> bool:
    """Whether the schema is this version's; True only where that is known for sure."""
    if settings.database_url:
        return False
    path = settings.service_db_file
    if not path.exists():
        return False
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        try:
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return False
    return rows == [(newest_revision(),)]


def decider(settings: Settings) -> str | None:
    """Say which service decides about this database, by its lease; None where none is known."""
    path = settings.db_dir / "mlp.sqlite"
    if not settings.database_url and not path.exists():
        return None
    from mlp_hub.service import lease  # noqa: PLC0415 - the store's imports, only where it is asked for
    from mlp_hub.store import Database, StoreUnavailable  # noqa: PLC0415

    db = Database(settings.service_db_url)
    try:
        found = db.read_now(lease.read)
    except (StoreUnavailable, OSError):
        return None  # no such table yet, or no database that answers
    finally:
        db.close()
    if found is None or not found.expires_at:
        return None
    left = found.expires_at - time.time()
    return (
        f"{found.holder}, for {left:.0f} s more unless renewed"
        if left > 0
        else f"{found.holder}, until {-left:.0f} s ago"
    )


def upgrade(settings: Settings) -> str | None:
    """Make or update the tables; return the revision there was before."""
    from mlp_hub.store import migrate  # noqa: PLC0415 - half a second of imports, needed once a version

    try:
        return migrate.upgrade(settings.service_db_url)
    except Exception as error:
        raise Failure(
            f"The database cannot be brought to this version: {type(error).__name__}: {error}",
            "Nothing was changed. `mlp-hub doctor` looks at the database; its URL is MLP_DATABASE_URL where set.",
        ) from error
