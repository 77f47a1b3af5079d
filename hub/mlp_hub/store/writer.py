"""One thread writes, and commits for many at once."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from mlp_hub.domain.errors import Unavailable
from mlp_hub.store.errors import StatementFailed, StoreUnavailable
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)

MAX_BATCH = 512
MAX_BATCH_S = 0.05  # work that waits for the common commit waits no longer than about this


@dataclass(slots=True)
class _Work:
    fn: Callable[[Tx], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs queued functions in order, each in a savepoint of one shared transaction, then commits once.

    A function that raises takes back only its own savepoint. If the commit fails nothing of the batch
    happened, and everybody in it is told so: also those who were refused, because what they were refused for
    may have been a neighbour's change that is now undone.
    """

    def __init__(self, engine: Engine, on_connect: Callable[[Connection], None]) -> None:
        self._engine = engine
        self._on_connect = on_connect
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="mlp-store-writer", daemon=True)
        self._closed = False
        self._ending = False  # the writer thread saw that it is to end
        self.commits = 0  # batches committed, and
        self.works = 0  # functions in them: their ratio is what group commit saves

    def start(self) -> None:
        """Connect and begin to work; raises what connecting raises."""
        self._connect()
        self._thread.start()

    def submit(self, fn: Callable[[Tx], Any]) -> asyncio.Future[Any]:
        """Queue a function; the future of the running loop gets what it returned, once that is durable."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        work = _Work(fn, loop, loop.create_future())
        self._queue.put(work)
        return work.future

    def close(self) -> None:
        """Finish what is queued, then disconnect."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._disconnect()

    def _run(self) -> None:
        while not self._ending:
            self._turn()

    def _turn(self) -> None:
        first = self._queue.get()
        if first is None:
            self._ending = True
            return
        batch = [first]
        try:
            self._commit(batch)
        except BaseException as e:  # reported to everybody who waits; the thread lives on
            failure = _as_unavailable(e)
            if not isinstance(e, (SQLAlchemyError, Unavailable)):
                log.exception("The store's writer failed")
            for work in batch:
                work.result, work.error = None, failure
            self._recover(e)
        _settle(batch)

    def _commit(self, batch: list[_Work]) -> None:
        """Run the batch and what is queued by now, and commit once."""
        connection = self._connection or self._connect()
        started = time.monotonic()
        with _transaction(connection):
            self._apply(connection, batch[0])
            while len(batch) < MAX_BATCH and time.monotonic() - started < MAX_BATCH_S:
                try:
                    work = self._queue.get_nowait()
                except queue.Empty:
                    break
                if work is None:
                    self._ending = True
                    break
                batch.append(work)
                self._apply(connection, work)
        self.commits += 1
        self.works += len(batch)

    def _apply(self, connection: Connection, work: _Work) -> None:
        # not SQLAlchemy's begin_nested: it gives each savepoint a name of its own and compiles it anew
        connection.exec_driver_sql("SAVEPOINT work")
        try:
            work.result = work.fn(Tx(connection))
        except Exception as e:  # belongs to the one who asked
            if lost(connection, e):
                raise
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT work")
            connection.exec_driver_sql("RELEASE SAVEPOINT work")
            work.error = _failed(e) if isinstance(e, DBAPIError) else e
        else:
            connection.exec_driver_sql("RELEASE SAVEPOINT work")

    def _connect(self) -> Connection:
        connection = self._engine.connect()
        try:
            self._on_connect(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _recover(self, error: BaseException) -> None:
        """Begin the next batch on a connection that is known to be good."""
        log.warning("A transaction failed as a whole: %s", error)
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.invalidate()
                connection.close()
            except SQLAlchemyError as e:
                log.debug("Closing a broken connection: %s", e)


def lost(connection: Connection, error: Exception) -> bool:
    """Whether the error ended the whole transaction: the connection broke, or SQLite rolled back by itself.

    SQLite does that on a full disk or an I/O error; going on would commit the rest without the beginning.
    """
    if connection.invalidated or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return True
    if connection.dialect.name == "sqlite":
        return not connection.connection.dbapi_connection.in_transaction  # type: ignore[union-attr]
    return False


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    transaction = connection.begin()
    try:
        yield
    except BaseException:
        transaction.close()
        raise
    transaction.commit()


def _as_unavailable(error: BaseException) -> BaseException:
    if isinstance(error, Unavailable):
        return error
    if isinstance(error, SQLAlchemyError):
        cause = getattr(error, "orig", None) or error
        failure: BaseException = StoreUnavailable(f"the database does not answer as it should: {cause}")
    else:
        failure = StoreUnavailable(f"the store failed: {error!r}")
    failure.__cause__ = error
    return failure


def _failed(error: DBAPIError) -> StatementFailed:
    failure = StatementFailed(f"the database does not answer as it should: {error.orig or error}")
    failure.__cause__ = error
    return failure


def _settle(batch: list[_Work]) -> None:
    """Resolve the futures of a batch, waking each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[_Work]] = {}
    for work in batch:
        loops.setdefault(work.loop, []).append(work)
    for loop, works in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, works)
        except RuntimeError:  # that loop is gone, and with it whoever waited
            log.debug("Nobody waits for %s finished writes", len(works))


def _resolve(works: list[_Work]) -> None:
    for work in works:
        if work.future.done():
            continue
        if work.error is not None:
            work.future.set_exception(work.error)
        else:
            work.future.set_result(work.result)
