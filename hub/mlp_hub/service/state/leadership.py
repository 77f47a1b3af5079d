"""The lease: one platform decides, whatever was started by mistake beside it.

A row names who decides and until when. Every writing transaction of a platform checks the row first, and fails whole where
it names another: since writing transactions exclude each other, that is a fence, not a hint. The row is renewed by such
transactions, and by a timer where there are none. Who comes second waits until the row has run out or was given back, or
until the database says that whoever has it is connected no more.

What is done outside the database cannot be undone by a transaction that fails. So each such act asks `ensure_held` right before,
and carries the epoch of the one who does it: who takes the lease has a higher one than all before, and the executor
refuses those that are lower than one it has seen.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mlp_hub.domain.errors import Unavailable
from mlp_hub.store import Database
from mlp_hub.store.records import Lease
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

log = logging.getLogger(__name__)
NAME = "scheduler"
RENEW_AT = 2 / 3
"""Safety: part of a lease's time; the lease is renewed once no more than that is left."""


class LeaseLost(Unavailable):
    """Another service decides now; this one must not. Whose it is stands in the log: members may read the message."""

    def __init__(self) -> None:
        super().__init__(
            msg("this part of the hub stands by while another one decides; ask again in a moment")
        )


def holder_name() -> str:
    """Return a name for this platform: its host, its process, and what makes it unlike all others."""
    return f"{socket.gethostname()[:200]}/{os.getpid()}/{secrets.token_hex(4)}"


def short_name(holder: str) -> str:
    """Return the part of a holder's name that tells nobody on which machine it is."""
    return holder.rpartition("/")[2]


class Leadership:
    """The lease as one platform has it, or waits for it.

    `alone` says that the database itself keeps others away (a lock file, an advisory lock): what a dead process left is
    then taken over at once. `floor` tells the highest epoch that was seen elsewhere, where the database may be an older
    one, or new. `lost` is called on the event loop when another has it.
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
    ) -> None:
        self._db = db
        self._clock = clock
        self._length_s = length_s
        self._poll_s = poll_s
        self._alone = alone
        self._floor = floor
        self.epoch = 0
        self.holder = holder_name()
        self._lost = lost
        self.waits_for: str | None = None  # who has it instead
        self._orphan: Lease | None = None  # as it was when its holder was seen to be connected no more
        self._held = False
        self._held_until = 0.0  # so long as stored: no other can have taken it
        self._renewing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_held(self) -> bool:
        """Whether this platform decides, as far as it knows."""
        return self._held

    async def take(self) -> None:
        """Return once this platform has the lease, under a new epoch."""
        await self.forget()
        self._loop = asyncio.get_running_loop()
        while True:
            floor = 0 if self._floor is None else await self._floor()
            found = await self._db.write(lambda tx: self._try(tx, floor), fenced=False)  # noqa: B023 - it is run before the next turn
            if found.holder == self.holder:
                break
            if self.waits_for != found.holder:
                self.waits_for = found.holder
                log.warning(
                    "another service decides about this database: %s; waiting until it ends or has been silent for %g s",
                    found.holder,
                    self._length_s,
                )
            left = found.expires_at - self._clock()
            await asyncio.sleep(min(max(left, 0.01), self._poll_s))
        self.waits_for = None
        self.epoch = found.epoch
        self._held_until = found.expires_at
        self._held = True
        self._alone = False  # who takes it from this one is alive
        self._db.let_pass(self.check)
        log.info("this service decides: %s, epoch %d", self.holder, self.epoch)
        self._renewing = asyncio.ensure_future(self._renew())

    async def give_up(self) -> None:
        """Let another have it at once."""
        await self.forget()
        if self._held:
            self._held = False
            await self._db.write(self._release, fenced=False)
            self._db.let_pass(None)

    async def forget(self) -> None:
        """Renew it no more; it runs out by itself."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None

    async def ensure_held(self) -> None:
        """Raise `LeaseLost` unless this platform decides now: to be asked right before what no transaction fences."""
        if not self._held:
            raise LeaseLost
        if self._clock() >= self._held_until:
            await self.confirm()

    def going_on(self, epoch: int) -> Callable[[], None]:
        """Return what raises `LeaseLost` once this platform does not decide under this epoch any more: for threads, which cannot wait."""

        def goes_on() -> None:
            if not self.is_held or self.epoch != epoch:
                raise LeaseLost

        return goes_on

    async def confirm(self) -> None:
        """Raise `LeaseLost` unless the database says that this platform decides."""
        self._held_until = (await self._db.write(self.check, fenced=False)).expires_at

    def check(self, tx: Tx) -> Lease:
        """Raise `LeaseLost` unless this platform has the lease; renew it when much of its time is over."""
        found = tx.leases.get(NAME)
        if (
            found is None or found.holder != self.holder or not found.expires_at
        ):  # given up: what comes late keeps it not
            who = "nobody" if found is None else found.holder
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._note_lost, self.epoch, who)
            raise LeaseLost
        now = self._clock()
        # one that runs longer than a lease may was written before the clock was put back: who waits would wait as long
        if not self._length_s * RENEW_AT < found.expires_at - now <= self._length_s:
            found = replace(found, expires_at=now + self._length_s)
            tx.leases.put(NAME, found)
        tx.leases.show_life(found)
        return found

    def _try(self, tx: Tx, floor: int) -> Lease:
        """Take the lease if it is free; return it as it is then, whoever has it."""
        now = self._clock()
        found = tx.leases.get(NAME)
        free = found is None or found.holder == self.holder or found.expires_at <= now or self._alone
        if found is not None and not free and not self._is_orphan(tx, found):
            return found
        before = 0 if found is None else found.epoch
        mine = Lease(self.holder, now + self._length_s, max(before, floor) + 1)
        tx.leases.put(NAME, mine)
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
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        log.error("%s decides about this database now: %s acts no more, and stands by", who, self.holder)
        self._lost()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._length_s * (1 - RENEW_AT))
            try:
                await self.confirm()
            except LeaseLost:
                return
            except Unavailable as error:
                log.warning("the lease could not be renewed: %s", error)
