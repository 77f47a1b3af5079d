"""Connections: how SQLite and PostgreSQL are set up so that both behave alike."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool, QueuePool

from mlp_hub.store.bounds import PATIENT_LOCK_S, READER, WRITER, Bounds, bind, bounded
from mlp_hub.store.errors import StoreInUse
from mlp_language.message import msg

BUSY_MS = 15_000  # that a transaction of SQLite waits for another process' to end, before it is refused
PATIENT = "mlp_patient"
"""Execution option of a writing connection of PostgreSQL that waits longer than the service does, about as long as SQLite's."""
LIFE_LOCKS = 0x4D4C5048  # PostgreSQL advisory locks of this class: one a lease, shared by all connections of its holder that wrote
WRITE_LOCK = 0x4D4C5048_0002  # PostgreSQL advisory lock: held by each writing transaction
SCHEMA_LOCK = 0x4D4C5048_0003  # PostgreSQL advisory lock: held by a migration


def parse(url: str) -> URL:
    """Return the URL with the driver that we use; a bare path is an SQLite file."""
    if "://" not in url:
        url = f"sqlite:///{os.path.abspath(url)}"  # noqa: PTH100 - a file that may not exist yet
    parsed = make_url(url)
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(f"the database must be sqlite or postgresql, not {parsed.get_backend_name()}")
    if not parsed.database or parsed.database == ":memory:":
        raise ValueError("the SQLite database must be a file: other threads see no database in memory")
    return parsed


def is_sqlite(url: URL) -> bool:
    """Whether the URL is one of an SQLite file."""
    return url.get_backend_name() == "sqlite"


def plain_engine(url: URL, bounds: Bounds = READER) -> Engine:
    """Return an engine of single connections, with transactions as the database has them; on PostgreSQL within bounds."""
    if is_sqlite(url):
        return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_MS / 1000})
    return bind(create_engine(bounded(url), poolclass=NullPool), bounds)


def make_engine(url: URL, *, write: bool, pool: int = 4) -> Engine:
    """Return an engine for transactions that write, or for ones that only read.

    A writing transaction excludes all others from its first statement on (also those of other processes), so
    that what it reads cannot change before it commits. A reading one sees one state of the database throughout.
    """
    if is_sqlite(url):
        engine = create_engine(
            url,
            poolclass=NullPool if write else QueuePool,
            connect_args={"check_same_thread": False, "timeout": BUSY_MS / 1000},
            **({} if write else {"pool_size": pool, "max_overflow": 0}),
        )
        event.listen(engine, "connect", _sqlite_writer if write else _sqlite_reader)
        begin = "BEGIN IMMEDIATE" if write else "BEGIN"
    else:
        engine = create_engine(
            bounded(url),
            poolclass=NullPool if write else QueuePool,
            isolation_level="READ COMMITTED" if write else "REPEATABLE READ",
            **({} if write else {"pool_size": pool, "max_overflow": 0, "pool_pre_ping": True}),
        )
        bind(engine, WRITER if write else READER)
        begin = f"SELECT pg_advisory_xact_lock({WRITE_LOCK})" if write else "SET TRANSACTION READ ONLY"

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get(PATIENT) and not is_sqlite(url):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENT_LOCK_S}s'")
        run_briefly(connection, begin)

    return engine


def run_briefly(connection: Connection, statement: str) -> None:
    """Run a statement without parameters and rows, such as one about a transaction; raises `DBAPIError`.

    SQLite's own driver runs it: making SQLAlchemy's cursor takes five times as long as the statement itself.
    """
    driver: Any = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        connection.exec_driver_sql(statement)
        return
    try:
        driver.execute(statement)
    except sqlite3.Error as error:
        raise DBAPIError.instance(
            statement, None, error, sqlite3.Error, dialect=connection.dialect
        ) from error


def _sqlite_writer(connection: Any, _record: Any) -> None:
    # the driver must not open transactions by itself: the begin event does
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # a commit that was answered survives a power cut
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA journal_size_limit={64 << 20}")
    # what a savepoint would have to bring back is kept in memory: in a file each changed page would be written once more
    connection.execute("PRAGMA temp_store=MEMORY")
    # a page that changes in each commit is moved from the log into the database every 16 MiB, not every 4, and stays at hand
    connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // 4096}")
    connection.execute(f"PRAGMA cache_size={-8 << 10}")


def _sqlite_reader(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")


class FileGuard:
    """A lock file beside the SQLite database, held while the service lives; the kernel frees it at its death."""

    def __init__(self, database: str) -> None:
        self._path = Path(f"{database}.lock")
        self._fd = -1

    def acquire_lock(self) -> None:
        """Take the lock or raise `StoreInUse`."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            other = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            raise StoreInUse(
                msg(
                    "the database {path} is in use by another service (process {other}); stop it first, or use "
                    "another MLP_HOME",
                    path=str(self._path.with_suffix("")),
                    other=other,
                )
            ) from e
        with contextlib.suppress(OSError):  # for people only: on a full disk the lock holds without it
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        self._fd = fd

    def free(self) -> None:
        """Give the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
