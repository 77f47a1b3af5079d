"""Connections: how SQLite and PostgreSQL are set up so that both behave alike."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool, QueuePool

from mlp_hub.store.errors import StoreInUse

BUSY_MS = 15_000
GUARD_WAIT_S = 2.0
GUARD_LOCK = 0x4D4C5048_0001  # PostgreSQL advisory lock: held by the one service process
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
            url,
            poolclass=NullPool if write else QueuePool,
            isolation_level="READ COMMITTED" if write else "REPEATABLE READ",
            **({} if write else {"pool_size": pool, "max_overflow": 0, "pool_pre_ping": True}),
        )
        begin = f"SELECT pg_advisory_xact_lock({WRITE_LOCK})" if write else "SET TRANSACTION READ ONLY"

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


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

    def take(self) -> None:
        """Take the lock or raise `StoreInUse`."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            other = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            raise StoreInUse(
                f"the database {self._path.with_suffix('')} is in use by another service (process {other}); "
                "stop it first, or use another MLP_HOME"
            ) from e
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        self._fd = fd

    def free(self) -> None:
        """Give the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def take_advisory_guard(connection: Connection) -> None:
    """Take PostgreSQL's lock for the one service on this connection, or raise `StoreInUse`.

    The lock lives as long as the connection, and all writes of the service go through this very one: a
    service that lost it can write nothing. The server may need a moment to see that the last one is dead.
    """
    until = time.monotonic() + GUARD_WAIT_S
    while True:
        got = connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": GUARD_LOCK}).scalar()
        connection.commit()
        if got:
            return
        if time.monotonic() > until:
            raise StoreInUse(
                f"the database {connection.engine.url.database} is in use by another service; stop it first"
            )
        time.sleep(0.05)
