"""Lease: one platform decides, even if others were started by mistake.

A row names the holder and the end of its lease. Every writing transaction of a platform checks the row first, and
fails whole if it names another platform. Writing transactions exclude each other, so this is a fence, not a hint.
Such transactions renew the row, and a timer does if there are none. A committed renewal makes its platform sure
of the lease for its length, counted from before the renewal. A standby reads the row without waiting. It takes over
when the lease was given back, when the row stayed the same for the length of a lease, or when the database reports
that the holder is no longer connected. Each platform measures lengths of time by its own steady clock: no wall
clock ends a lease. A holder that lost its connection for a moment notices this before a standby looks twice: it is
not sure until it is connected again.

A platform that hangs within a transaction keeps other writers away. So the next holder ends the
sessions of the one before: its open transaction is undone. The row is taken in a transaction that
excludes all others, if it has not changed since it was read.

A transaction that fails cannot undo actions outside the database. So each such action calls
`ensure_held` right before, and carries its platform's epoch. Each new holder has a higher epoch
than all before. The executor refuses epochs that are lower than one it has seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.store import Database, StoreUnavailable
from mlp_hub.store.records import Lease
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

log = logging.getLogger(__name__)
NAME = "scheduler"
RENEW_AT = 2 / 3
"""Safety: part of a lease's time; the lease is renewed once no more than that is left."""
TAKEN = "lease.taken"
"""Contract: setting with the times at which platforms took the lease lately."""
TAKEN_S = 900.0
"""Tuning: seconds for which such a time is kept and counts: the window of the rule for a lease that flaps."""
TAKEN_MOST = 100
"""Safety: such times that are kept: bounds the row."""
BLOCKED_S = 2.0
"""Safety: seconds after which a transaction that keeps away who takes over is that of a process that hangs."""


def since_boot() -> float:
    """Return seconds of a clock that nobody sets, and that continues while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseLost(Unavailable):
    """Error: another service decides now, and this one must not.

    The holder's name is only in the log: members can read the message.
    """

    def __init__(self) -> None:
        super().__init__(
            msg("this part of the hub is on standby while another one decides; ask again in a moment")
        )


def holder_name() -> str:
    """Return a name for this platform: its host, its process, and what makes it unlike all others."""
    return f"{socket.gethostname()[:200]}/{os.getpid()}/{secrets.token_hex(4)}"


def short_name(holder: str) -> str:
    """Return the part of a holder's name that tells nobody on which machine it is."""
    return holder.rpartition("/")[2]


def _recent(times: Iterable[float], now: float) -> tuple[float, ...]:
    """Return the times within the window; a clock that was set back makes none of them count for longer than another window."""
    return tuple(at for at in times if abs(now - at) < TAKEN_S)


class Leadership:
    """The lease of one platform, held or awaited.

    `alone`: the database itself keeps others away (a lock file, an advisory lock). Then the lease of a
    dead process is taken over at once. `floor` returns the highest epoch that was seen elsewhere, for a
    database that can be older, or new. `lost` is called on the event loop when another has it. `clock`
    gives seconds since the epoch, for displays. `steady` is any clock that is never set; without it,
    `clock` is never set. `of_tables` raises if this platform does not work with the tables as they are now: an upgrade may have changed
    them while it stood by.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        *,
        length_s: float,
        poll_s: float,
        alone: bool,
        floor: Callable[[], Awaitable[int]] | None = None,
        lost: Callable[[], None] = lambda: None,
        steady: Callable[[], float] | None = None,
        of_tables: Callable[[Tx], None] = lambda tx: tx.leases.check_tables(),
    ) -> None:
        self._db = db
        self._clock = clock
        self._steady = steady or clock
        self._length_s = length_s
        self._poll_s = poll_s
        self._alone = alone
        self._of_tables = of_tables
        self._floor = floor
        self.epoch = 0
        self.holder = holder_name()
        self._lost = lost
        self.waits_for: str | None = None  # who has it instead
        self._taken: tuple[float, ...] = ()  # when it was taken lately by any platform, as this one knows
        self._orphan: Lease | None = None  # as it was when its holder was seen to be connected no more
        self._seen: tuple[Lease | None, float] = (
            None,
            0.0,
        )  # the lease of another, and since when it is that
        self._held = False
        self.stood_by = False
        """Whether another has had it while this one waited."""
        # as this platform last stored it, and until when of the steady clock no other can have taken that; one value, since
        # the thread that writes changes it
        self._stored: tuple[Lease | None, float] = (None, 0.0)
        self._renewing = BackgroundTask(self._renew)
        self._renew_now = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def takeovers(self) -> int:
        """Number of times that a platform took the lease within the last 15 minutes, as this one knows.

        It is stored with the lease: neither a restart nor another holder forgets it.
        """
        return len(_recent(self._taken, self._clock()))

    @property
    def is_held(self) -> bool:
        """Whether this platform decides, as far as it knows."""
        return self._held

    @property
    def is_sure(self) -> bool:
        """Whether this platform decides, and no other can have begun to since the database said so.

        Another begins once a lease is over, or at its second look, `poll_s` after the first, at a database to which this
        platform is not connected. This one is not sure from `writer.LOOK_S` after it was cut off, which is before that.
        """
        return self._held and self._steady() < self._held_until

    @property
    def _held_until(self) -> float:
        return self._stored[1]

    async def acquire_lease(self) -> None:
        """Return once this platform has the lease, under a new epoch."""
        await self.forget()
        self._loop = asyncio.get_running_loop()
        self._db.open()
        while True:
            asked = self._steady()
            found = await self._attempt()
            if found is not None and found.holder == self.holder:
                break
            if found is not None and self.waits_for != found.holder:
                self.waits_for, self.stood_by = found.holder, True
                log.warning(
                    "another service decides about this database: %s; waiting until it ends or has been silent for %g s",
                    found.holder,
                    self._length_s,
                )
            await asyncio.sleep(self._poll_s)
        self.waits_for = None
        self.epoch = found.epoch
        self._stored = found, asked + self._length_s
        self._held = True
        self._alone = False  # who takes it from this one is alive
        self._db.let_pass(self._fence, self._note_cut)
        log.info("this service decides: %s, epoch %d", self.holder, self.epoch)
        self._renewing.start()

    async def give_up(self) -> None:
        """Let another have it at once."""
        await self.forget()
        if self._held:
            self._held = False
            await self._db.write(self._release, fenced=False)
            self._db.let_pass(None)

    async def forget(self) -> None:
        """Renew it no more; it runs out by itself."""
        await self._renewing.stop()

    async def ensure_held(self) -> None:
        """Raise `LeaseLost` unless this platform decides now: to be asked right before what no transaction fences."""
        if not self._held:
            raise LeaseLost
        while not self.is_sure:  # an answer that came late says how it was: another may have it by now
            await self.confirm()

    def going_on(self, epoch: int) -> Callable[[], None]:
        """Return what raises `LeaseLost` once this platform does not decide under this epoch any more: for threads, which cannot wait."""

        def check_cancelled() -> None:
            if not self.is_held or self.epoch != epoch:
                raise LeaseLost

        return check_cancelled

    async def confirm(self) -> None:
        """Raise `LeaseLost` unless the database says that this platform decides."""
        await self._db.write(self._own)  # which the fence lets pass: that renews it

    def check(self, tx: Tx) -> Lease:
        """Raise `LeaseLost` unless this platform has the lease; renew it when much of its time is over."""
        found = self._own(tx)
        now, little = self._clock(), self._length_s * RENEW_AT
        # one that is not as it was stored was renewed by a commit whose answer never came: nobody knows when. One that runs
        # longer than a lease may was written before the clock was put back: who waits would wait as long
        if (
            found != self._stored[0]
            or self._held_until - self._steady() <= little
            or not little < found.expires_at - now <= self._length_s
        ):
            found = replace(found, expires_at=now + self._length_s)
            tx.leases.put(NAME, found)
        tx.leases.show_life(found)
        return found

    def _fence(self, tx: Tx) -> Callable[[], None]:
        """Do what `check` does; return what to call once that is committed."""
        asked = self._steady()
        lease = self.check(tx)
        return lambda: self._note_stored(lease, asked + self._length_s)

    def _note_stored(self, lease: Lease, until: float) -> None:
        """Note a renewed lease as sure: waiting platforms have seen it since its commit at the earliest."""
        if lease != self._stored[0]:
            self._stored = lease, until

    def _note_cut(self) -> None:
        """Be unsure from now on, and connect again before anybody takes this platform for a dead one."""
        self._stored = self._stored[0], float("-inf")
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._renew_now.set)

    def _own(self, tx: Tx) -> Lease:
        """Return the lease; raise `LeaseLost` where it is not this platform's."""
        found = tx.leases.get(NAME)
        if (
            found is None or found.holder != self.holder or not found.expires_at
        ):  # given up: what comes late keeps it not
            who = "nobody" if found is None else found.holder
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._note_lost, self.epoch, who)
            raise LeaseLost
        return found

    async def _attempt(self) -> Lease | None:
        """Take the lease if it is free; return it as it is then, whoever has it. None: it is free, and could not be taken."""
        found, free = await self._db.read(self._look)
        if not free:
            return found
        floor = 0 if self._floor is None else await self._floor()
        if found is not None and self.waits_for == found.holder and found.expires_at:
            await self._end(lambda tx: tx.leases.end_sessions(NAME, found))
        try:
            return await self._db.write(lambda tx: self._try(tx, floor), fenced=False)
        except StoreUnavailable:
            if not await self._end(lambda tx: tx.leases.end_blocker(BLOCKED_S)):
                raise
            return None

    async def _end(self, ending: Callable[[Tx], int]) -> int:
        """End sessions that hang, or were cut off; return how many."""
        ended = await self._db.read(ending)
        if ended:
            log.warning("%d sessions of who does not answer any more were ended at the database", ended)
        return ended

    def _look(self, tx: Tx) -> tuple[Lease | None, bool]:
        """Return the lease as it is, and whether it may be taken."""
        found = tx.leases.get(NAME)
        now = self._steady()
        if found is None or found.holder == self.holder or not found.expires_at or self._alone:
            return found, True
        if self._seen[0] != found:
            self._seen = (found, now)
        silent = now - self._seen[1] >= self._length_s
        return found, silent or self._is_orphan(tx, found)

    def _try(self, tx: Tx, floor: int) -> Lease:
        """Take the lease if it is free; return it as it is then, whoever has it."""
        found, free = self._look(tx)
        if found is not None and not free:
            return found
        self._of_tables(tx)
        before = 0 if found is None else found.epoch
        mine = Lease(self.holder, self._clock() + self._length_s, max(before, floor) + 1)
        tx.leases.put(NAME, mine)
        now = self._clock()
        self._taken = (*_recent(tx.settings.get(TAKEN) or (), now), now)[-TAKEN_MOST:]
        tx.settings.put(TAKEN, list(self._taken))
        tx.leases.show_life(mine)
        return mine

    def _is_orphan(self, tx: Tx, lease: Lease) -> bool:
        """Whether its holder was gone at the last try too: one that only lost its connection has another by now."""
        before, self._orphan = self._orphan, lease if tx.leases.is_orphan(lease) else None
        return self._orphan is not None and before == lease

    def _release(self, tx: Tx) -> None:
        found = tx.leases.get(NAME)
        if found is not None and found.holder == self.holder:
            tx.leases.put(NAME, replace(found, expires_at=0.0))

    def _note_lost(self, epoch: int, who: str) -> None:
        if not self._held or epoch != self.epoch:
            return
        self._held = False
        self._renewing.cancel()
        log.error("%s decides about this database now: %s acts no more, and stands by", who, self.holder)
        self._lost()

    async def _renew(self) -> None:
        while True:
            # when it is due, however lately something that was written renewed it
            due_in = self._held_until - self._steady() - self._length_s * RENEW_AT
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self._length_s / 9, due_in)):
                    await self._renew_now.wait()
            self._renew_now.clear()
            try:
                await self.confirm()
            except LeaseLost:
                return
            except Unavailable as error:
                log.warning("the lease could not be renewed: %s", error)
            except Exception:
                # without this task the service would refuse all that is asked of it, and no other could tell why
                log.exception("the lease could not be renewed")
