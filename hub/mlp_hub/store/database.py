"""The database: asynchronous `write` and `read` for the service, synchronous ones for commands and tests."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DataError, DBAPIError

from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Tenant
from mlp_hub.store import engine as engines
from mlp_hub.store.errors import DatabaseFileGone, SharedSessions, StoreUnavailable, ValueRefused, WrongSchema
from mlp_hub.store.schema import Standing, note_works_from, standing_of
from mlp_hub.store.tables import REVISION, metadata, schema_version
from mlp_hub.store.tx import Tx
from mlp_hub.store.writer import NO_PLACE, Fence, Writer
from mlp_language.message import msg

T = TypeVar("T")
SESSION_LOOKS = 5
"""Tuning: connections that look whether they share a session: a pooler that is busy may give them different ones now and then."""
SLOW_S = 10.0  # a write that takes so long is trouble


class Database:
    """SQLite (WAL) or PostgreSQL behind one writer and a few readers.

    `url` is `sqlite:////path`, a bare path, or `postgresql://...`. With `guard` this process is a service on this
    database, on SQLite the only one (`StoreInUse` otherwise); commands leave it out, their single transactions are
    serialised with the service's by the database itself.

    Nothing is connected before the first use. `close` finishes the writes that are queued.
    """

    def __init__(self, url: str, *, guard: bool = False, readers: int = 3) -> None:
        self.url = engines.parse(url)
        self._sqlite = engines.is_sqlite(self.url)
        if self._sqlite:
            Path(str(self.url.database)).parent.mkdir(parents=True, exist_ok=True)
        self._write_engine = engines.make_engine(self.url, write=True)
        self._patient_engine = self._write_engine.execution_options(**{engines.PATIENT: True})
        self._read_engine = engines.make_engine(self.url, write=False, pool=readers)
        self._guard = guard
        self._file_guard = engines.FileGuard(str(self.url.database)) if guard and self._sqlite else None
        self.clock: Callable[[], float] = time.time
        """Gives the moments at which amounts begin and end to be held."""
        self._writer: Writer | None = None
        self._file: tuple[int, int] | None = None
        self._fence: Fence | None = None
        self._cut: Callable[[], None] | None = None
        self._on_commit: Callable[[float, bool], None] | None = None
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="mlp-store-reader")

    def open(self) -> None:
        """Take the guard, if asked for, check the schema and start the writer; done by the first write else."""
        if self._writer is not None:
            return
        if self._file_guard is not None:
            self._file_guard.acquire_lock()
        try:
            if self._guard:
                self.check_schema()
                self._check_sessions()
            writer = Writer(self._write_engine, self._greet, self._expect_file, self._now)
            writer.fence, writer.cut, writer.on_commit = self._fence, self._cut, self._on_commit
            writer.start()
        except BaseException as e:
            if self._file_guard is not None:
                self._file_guard.free()
            if isinstance(e, DBAPIError):
                raise StoreUnavailable(
                    msg("the database {name} cannot be opened: {why}", name=self._name, why=str(e.orig))
                ) from e
            raise
        self._writer = writer

    def _now(self) -> float:
        return self.clock()

    @property
    def alone(self) -> bool:
        """Whether no other service can be on this database while this one is."""
        return self._file_guard is not None

    @property
    def in_a_file(self) -> bool:
        """Whether it is a file of this machine."""
        return self._sqlite

    def let_pass(self, fence: Fence | None, cut: Callable[[], None] | None = None) -> None:
        """Have each later transaction of `write` begin with `fence(tx)`; an exception of it undoes the whole transaction.

        Its result is called after the commit, and only then, by the writing thread. That thread calls `cut` as
        soon as PostgreSQL has ended its connection: nothing that this process knew from it is sure.
        """
        self._fence, self._cut = fence, cut
        if self._writer is not None:
            self._writer.fence, self._writer.cut = fence, cut

    def on_commit(self, listener: Callable[[float, bool], None]) -> None:
        """Have the writing thread call `listener` after each transaction: its seconds, and whether it was committed."""
        self._on_commit = listener
        if self._writer is not None:
            self._writer.on_commit = listener

    async def write(self, fn: Callable[[Tx], T], *, durable: bool = True, fenced: bool = True) -> T:
        """Run `fn(tx)` in a transaction and return its result once that is durable.

        Writes happen one after the other, in the order of the calls, and share commits. Errors of `fn` are
        raised here, and nothing of it is kept. Raises `StoreUnavailable` when the database fails.

        Not `durable`: it returns after the commit without waiting for the disk, for data that is also
        written elsewhere. A power cut can then take it back, the death of a process does not; each durable
        write makes all before it durable. Not `fenced`: the fence is not called.
        """
        if self._writer is None:
            self.open()
        assert self._writer is not None  # noqa: S101 - open() either sets it or raises
        result: T = await self._writer.submit(fn, durable=durable, fenced=fenced)
        return result

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn(tx)` on one unchanging state of the database, beside writes, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read_now, fn)

    def read_now(self, fn: Callable[[Tx], T]) -> T:
        """Do what `read` does, in this thread."""
        with self.reading() as tx:
            return fn(tx)

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """Open a reading transaction in this thread."""
        try:
            with self._read_engine.connect() as connection, connection.begin():
                yield Tx(connection, self.clock)
        except DataError as e:
            raise ValueRefused(NO_PLACE) from e
        except DBAPIError as e:
            raise StoreUnavailable(
                msg("the database {name} cannot be read: {why}", name=self._name, why=str(e.orig))
            ) from e

    @contextmanager
    def begin(self) -> Iterator[Tx]:
        """Open a writing transaction in this thread; it commits at the end, and not at all after an error.

        It excludes all other writers, the service's included: keep it short, and never call it on the event loop
        of a service.
        """
        try:
            with self._patient_engine.connect() as connection, connection.begin():
                yield Tx(connection, self.clock)
        except DBAPIError as e:
            raise StoreUnavailable(
                msg("the database {name} cannot be written: {why}", name=self._name, why=str(e.orig))
            ) from e

    def check_schema(self, *, or_older: bool = False) -> None:
        """Raise `WrongSchema` unless this version works with the tables; `or_older`: or with ones before its own.

        Raises `StoreUnavailable` where the database does not answer.
        """
        try:
            with self._read_engine.connect() as connection:
                standing: Standing = standing_of(connection)
        except DBAPIError as e:
            raise StoreUnavailable(
                msg("the database {name} cannot be read: {why}", name=self._name, why=str(e.orig))
            ) from e
        found = standing.revision
        if standing.fits or (or_older and found is not None and found < REVISION):
            return
        remedy = msg("run: mlp-hub up, which makes its tables")
        if found is not None and found < REVISION:
            remedy = msg("run: mlp-hub up, which updates its tables")
        elif found is not None:
            remedy = msg(
                "a newer version of MLP Hub made it: use that version, because tables cannot be downgraded"
            )
        raise WrongSchema(
            msg(
                "the database {name} has schema {found}, this version needs {revision}; {remedy}",
                name=self._name,
                found=found or msg("none"),
                revision=REVISION,
                remedy=remedy,
            )
        )

    def _check_sessions(self) -> None:
        """Raise `SharedSessions` behind a pooler in transaction mode: there one connection finds another's session, though that is open."""
        if self._sqlite:
            return
        ask = text("SELECT pg_backend_pid()")
        with self._read_engine.connect() as kept:
            own = kept.scalar(ask)
            kept.commit()
            for _ in range(SESSION_LOOKS):
                with self._read_engine.connect() as other:
                    if other.scalar(ask) != own:
                        continue
                raise SharedSessions(
                    msg(
                        "the database {name} is behind a pooler that shares sessions, as PgBouncer does in transaction mode: locks and time limits "
                        "are lost there; set pool_mode = session, or connect to PostgreSQL directly",
                        name=self._name,
                    )
                )

    def create_schema(self) -> None:
        """Make all tables in an empty database, without migrations: for tests and tools."""
        with self._write_engine.connect() as connection, connection.begin():
            create_tables(connection)

    @property
    def trouble(self) -> str | None:
        """Why writes fail now, or for how long one has not come back; None where they go through. Asks nobody."""
        if self._writer is None:
            return None
        since = self._writer.busy_since
        if since is not None and (waits := time.monotonic() - since) > SLOW_S:
            return f"a write has not been answered for {waits:.0f} s"
        return self._writer.trouble

    @property
    def group_commit(self) -> tuple[int, int]:
        """How many commits were made, and for how many writes."""
        return (0, 0) if self._writer is None else (self._writer.commits, self._writer.works)

    def close(self) -> None:
        """Finish queued writes and disconnect."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._readers.shutdown(wait=True)
        self._read_engine.dispose()
        self._write_engine.dispose()
        if self._file_guard is not None:
            self._file_guard.free()

    @property
    def _name(self) -> str:
        return self.url.render_as_string(hide_password=True)

    def _greet(self, connection: Connection) -> None:
        del connection
        if self._sqlite:
            _private(str(self.url.database))
            self._file = self._file or _which_file(str(self.url.database))

    def _expect_file(self) -> None:
        """Raise `DatabaseFileGone` if the path leads to another file, or to none: writes would be lost."""
        if self._file is not None and _which_file(str(self.url.database)) != self._file:
            raise DatabaseFileGone(
                msg(
                    "the file {path} of the database is missing or was replaced; put it back", path=self._name
                )
            )


def create_tables(connection: Connection) -> None:
    """Make all tables of this version in an empty database, with the tenant of those who are in no other; nothing where there are some."""
    schema_version.create(connection, checkfirst=True)
    if connection.scalar(select(schema_version.c.version_num)) is None:
        tables = [table for table in metadata.sorted_tables if table is not schema_version]
        metadata.create_all(connection, tables, checkfirst=False)
        connection.execute(schema_version.insert().values(version_num=REVISION))
        note_works_from(connection)
        Tx(connection).tenants.insert(Tenant(DEFAULT_TENANT), 0)


def _which_file(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a path as given
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _private(path: str) -> None:
    """Keep the database, which knows who did what, from other users of the machine."""
    try:
        os.chmod(path, 0o600)  # noqa: PTH101 - a path as given
    except OSError as e:
        raise StoreUnavailable(
            msg("the database {path} cannot be made private: {why}", path=str(path), why=str(e))
        ) from e
