"""One thread writes, and commits for many at once."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.exc import DataError, DBAPIError, OperationalError, SQLAlchemyError

from mlp_hub.domain.errors import Unavailable
from mlp_hub.store.engine import BUSY_MS, run_briefly
from mlp_hub.store.errors import DatabaseFileGone, StatementFailed, StoreUnavailable, ValueRefused
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)

NO_PLACE = msg(
    "a value that was sent cannot be stored: a number is too large, or a text has a NUL character; send another one"
)
Fence = Callable[[Tx], Callable[[], None]]
"""Function that raises if this process must not write; its result is called once its data is committed.

That data is all that it read and changed.
"""
MAX_BATCH = 512
MAX_BATCH_S = 0.05  # work that waits for the common commit waits no longer than about this


@dataclass(slots=True)
class _Work:
    fn: Callable[[Tx], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    durable: bool = True
    fenced: bool = True
    result: Any = None
    error: BaseException | None = None


class _Works(queue.SimpleQueue["_Work | None"]):
    """Queue of work whose reader can watch a descriptor while nothing is queued."""

    def __init__(self) -> None:
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watching = False

    def add(self, work: _Work | None) -> None:
        """Queue work, or None for the end."""
        self.put(work)
        if self._watching:
            os.eventfd_write(self._woken, 1)

    def watch(self, descriptor: int) -> bool:
        """Wait until work is queued or the descriptor can be read; return whether the latter holds."""
        arrived = select.poll()
        arrived.register(descriptor, select.POLLIN)
        arrived.register(self._woken, select.POLLIN)
        self._watching = True  # before the look into the queue: work that comes between the two wakes
        try:
            ready = dict(arrived.poll(None if self.empty() else 0))
        finally:
            self._watching = False
        if self._woken in ready:
            os.eventfd_read(self._woken)
        return descriptor in ready

    def close(self) -> None:
        """Give the descriptor back; nothing may be added any more."""
        os.close(self._woken)


class Writer:
    """Runs queued functions in order, each in a savepoint of one shared transaction, then commits once.

    A function that raises takes back only its own savepoint. The first one needs none: if it raises, its transaction
    is undone, and the rest waits for the next one. If the commit fails nothing of the batch
    happened, and everybody in it is told so: also those who were refused, because what they were refused for
    may have been a neighbour's change that is now undone.
    """

    def __init__(
        self,
        engine: Engine,
        on_connect: Callable[[Connection], None],
        before_batch: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._on_connect = on_connect
        self._before_batch = before_batch
        self._clock = clock
        self._queue = _Works()
        self._connection: Connection | None = None
        self.fence: Fence | None = None
        self.cut: Callable[[], None] | None = None
        """Called by the thread that writes when PostgreSQL has ended its connection, with all locks that it held."""
        self._passed: Callable[[], None] | None = None  # of the fence that let this transaction pass
        self._relaxed = False  # commits of the connection are not waited for until they are on the disk
        self._held: _Work | None = None  # taken from the queue, for the next batch
        self._thread = threading.Thread(target=self._run, name="mlp-store-writer", daemon=True)
        self._closed = False
        self._ending = False  # the writer thread saw that it is to end
        self.trouble: str | None = None  # why the last commit failed; None after one that did not
        self.busy_since: float | None = None  # of time.monotonic: when the commit at work was begun
        self.commits = 0  # batches committed, and
        self.works = 0  # functions in them: their ratio is what group commit saves
        self.on_commit: Callable[[float, bool], None] | None = None
        """Called by the thread that writes after each transaction: its seconds, and whether it was committed."""

    def start(self) -> None:
        """Connect and begin to work; raises what connecting raises, and is of no use then."""
        try:
            self._connect()
        except BaseException:
            self._queue.close()
            raise
        self._thread.start()

    def submit(
        self, fn: Callable[[Tx], Any], *, durable: bool = True, fenced: bool = True
    ) -> asyncio.Future[Any]:
        """Queue a function; the future of the running loop gets what it returned, once that is durable.

        Not `durable`: once it is committed. It outlives this process at once, and a loss of power from the next durable
        commit on. Only SQLite knows the difference. Not `fenced`: also where the fence lets nothing pass.
        """
        if self._closed:
            raise StoreUnavailable(msg("the store is closed"))
        loop = asyncio.get_running_loop()
        work = _Work(fn, loop, loop.create_future(), durable, fenced)
        self._queue.add(work)
        return work.future

    def close(self) -> None:
        """Finish what is queued, then disconnect."""
        if self._closed:
            return
        self._closed = True
        self._queue.add(None)
        self._thread.join()
        self._queue.close()
        self._disconnect()

    def _run(self) -> None:
        while self._held is not None or not self._ending:
            self._turn()

    def _turn(self) -> None:
        held, self._held = self._held, None
        first = held or self._next()
        if first is None:
            self._ending = True
            return
        batch = [first]
        self.busy_since = began = time.monotonic()
        committed = False
        try:
            self._commit(batch)
            committed = True
            if self._passed is not None:
                self._passed()
            refused = next((w.error for w in batch if _is_outage(w.error)), None)
            self.trouble = None if refused is None else str(refused)
        except BaseException as e:  # reported to everybody who waits; the thread lives on
            failure = _as_unavailable(e)
            if not isinstance(e, (SQLAlchemyError, Unavailable)):
                log.exception("The store's writer failed")
            for work in batch:
                work.result, work.error = None, failure
            self.trouble = str(failure)
            if not isinstance(e, DatabaseFileGone):  # the connection is all that still leads to the file
                self._recover(f"a transaction failed as a whole: {e}")
        finally:
            self.busy_since = None
            if self.on_commit is not None:
                self.on_commit(time.monotonic() - began, committed)
        _settle(batch)

    def _next(self) -> _Work | None:
        """Return the next piece of work to write. Meanwhile check whether PostgreSQL has ended the connection."""
        while self._connection is not None and not self._in_a_file and self._queue.empty():
            driver: Any = self._connection.connection.dbapi_connection
            if driver.closed or (self._queue.watch(driver.pgconn.socket) and _is_ended(driver)):
                self._recover("its connection was ended")
        return self._queue.get()

    @property
    def _in_a_file(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    def _commit(self, batch: list[_Work]) -> None:
        """Run the batch and what is queued by now, and commit once."""
        self._passed = None
        self._before_batch()
        started = time.monotonic()
        relaxed = self._in_a_file and not batch[0].durable
        connection, transaction = self._begin(relaxed)
        with _ending(transaction):
            if not self._apply(connection, batch[0]):
                transaction.rollback()
                return
            while len(batch) < MAX_BATCH and time.monotonic() - started < MAX_BATCH_S:
                try:
                    work = self._queue.get_nowait()
                except queue.Empty:
                    break
                if work is None:
                    self._ending = True
                    break
                if relaxed and work.durable:
                    self._held = work
                    break
                batch.append(work)
                # not SQLAlchemy's begin_nested: it gives each savepoint a name of its own and compiles it each time
                run_briefly(connection, "SAVEPOINT work")
                if not self._apply(connection, work):
                    run_briefly(connection, "ROLLBACK TO SAVEPOINT work")
                run_briefly(connection, "RELEASE SAVEPOINT work")
        self.commits += 1
        self.works += len(batch)

    def _begin(self, relaxed: bool) -> tuple[Connection, RootTransaction]:
        """Open a transaction, on another connection where the one that was kept has been ended meanwhile."""
        kept = self._connection
        try:
            connection = kept or self._connect()
            self._relax(connection, relaxed)
            return connection, connection.begin()
        except DBAPIError as e:
            if kept is None or not (e.connection_invalidated or kept.invalidated):
                raise
        self._disconnect()  # nothing was asked of it yet, so that nobody need be told
        connection = self._connect()
        return connection, connection.begin()

    def _relax(self, connection: Connection, relaxed: bool) -> None:
        """Say whether commits wait for the disk; SQLite takes that between transactions only."""
        if relaxed is not self._relaxed:
            level = "NORMAL" if relaxed else "FULL"
            # not by the connection: that would begin a transaction first
            connection.connection.dbapi_connection.execute(f"PRAGMA synchronous={level}")  # type: ignore[union-attr]
            self._relaxed = relaxed

    def _apply(self, connection: Connection, work: _Work) -> bool:
        """Run one function; False if it raised, and the caller must take back what it changed."""
        fence = self.fence if work.fenced and self._passed is None else None
        try:
            tx = Tx(connection, self._clock)
            if fence is not None:
                self._passed = fence(tx)  # once: what it saw holds until the transaction ends
            work.result = work.fn(tx)
            if not self._in_a_file:
                _check_not_aborted(connection)
        except Exception as e:  # belongs to the one who asked
            if lost(connection, e):
                raise
            if fence is not None:
                self._passed = None  # what it changed is undone too: the next one asks it again
            work.error = _failed(e) if isinstance(e, DBAPIError) else e
            return False
        return True

    def _connect(self) -> Connection:
        connection = self._engine.connect()
        try:
            self._on_connect(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._relaxed = connection, False
        return connection

    def _recover(self, why: str) -> None:
        """Begin the next batch on a connection that is known to be good."""
        log.warning("The store's writer connects again: %s", why)
        self._disconnect()
        if self.cut is not None and not self._in_a_file:
            try:
                self.cut()
            except Exception:  # whoever is told may be ending: this thread lives on for what is queued
                log.exception("The store's writer could not report that its connection was ended")

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


def _check_not_aborted(connection: Connection) -> None:
    """Raise `StatementFailed` if a function caught the error of a statement: PostgreSQL then stores nothing more.

    Its commit of such a transaction undoes all, and reports success.
    """
    from psycopg.pq import TransactionStatus  # noqa: PLC0415 - only where PostgreSQL is used

    driver: Any = connection.connection.dbapi_connection
    if driver.info.transaction_status == TransactionStatus.INERROR:
        raise StatementFailed(_not_correct("current transaction is aborted"))


def _is_ended(driver: Any) -> bool:
    """Whether PostgreSQL has ended a connection on which nothing is asked now, and something can be read."""
    import psycopg  # noqa: PLC0415 - only where PostgreSQL is used

    try:
        driver.pgconn.consume_input()
    except psycopg.Error:
        return True
    return False


@contextmanager
def _ending(transaction: RootTransaction) -> Iterator[None]:
    """Commit at the end, unless the transaction was rolled back by then; undo it if anything is raised."""
    try:
        yield
    except BaseException:
        transaction.close()
        raise
    if transaction.is_active:
        transaction.commit()


def _as_unavailable(error: BaseException) -> BaseException:
    if isinstance(error, Unavailable):
        return error
    if isinstance(error, SQLAlchemyError):
        failure: BaseException = StoreUnavailable(_said(error))
    else:
        failure = StoreUnavailable(msg("the store failed: {error}", error=repr(error)))
    failure.__cause__ = error
    return failure


def _said(error: SQLAlchemyError) -> Message:
    cause = str(getattr(error, "orig", None) or error)
    if cause == "database is locked":  # SQLite's word for who waited for so long as it may
        return msg(
            "another process has locked the database for {n} s; end that command if it hangs",
            n=BUSY_MS // 1000,
        )
    if cause == "database or disk is full":
        return msg(
            "the disk of the database is full; nothing new is accepted until there is room, jobs continue"
        )
    return _not_correct(cause)


def _not_correct(cause: str) -> Message:
    return msg("the database does not answer correctly: {cause}", cause=cause)


def _failed(error: DBAPIError) -> StatementFailed:
    failure = ValueRefused(NO_PLACE) if isinstance(error, DataError) else StatementFailed(_said(error))
    failure.__cause__ = error
    return failure


def _is_outage(error: BaseException | None) -> bool:
    """Return whether a statement failed for a trouble of the database, as a full disk, not for its content."""
    return isinstance(error, StatementFailed) and isinstance(error.__cause__, OperationalError)


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
