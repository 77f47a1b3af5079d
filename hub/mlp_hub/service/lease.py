"""The lease: one platform decides, whatever was started by mistake beside it.

A row names who decides and until when. Every transaction that changes jobs checks the row first, and fails whole where
it names another: since writing transactions exclude each other, that is a fence, not a hint. The row is renewed by such
transactions, and by a timer where there are none. Who comes second waits until the row has run out or was given back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable

from mlp_hub.domain.errors import Unavailable
from mlp_hub.store import Database
from mlp_hub.store.records import Lease
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
NAME = "scheduler"
RENEW_AT = 2 / 3
"""A lease is renewed once this part of its time is left, or less."""


class LeaseLost(Unavailable):
    """Another service decides now; this one must not."""


def holder_name() -> str:
    """Return a name for this platform: its host, its process, and what makes it unlike all others."""
    return f"{socket.gethostname()[:200]}/{os.getpid()}/{secrets.token_hex(4)}"


class Leadership:
    """The lease as one platform has it, or waits for it.

    `alone` says that the database itself keeps others away (a lock file, an advisory lock): what a dead process left is
    then taken over at once. `lost` is called on the event loop when another has it.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        *,
        length_s: float,
        poll_s: float,
        alone: bool,
    ) -> None:
        self._db = db
        self._clock = clock
        self._length_s = length_s
        self._poll_s = poll_s
        self._alone = alone
        self.holder = holder_name()
        self.lost: Callable[[], None] = lambda: None
        self.waits_for: str | None = None  # who has it instead
        self._held = False
        self._renewing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_held(self) -> bool:
        """Whether this platform decides, as far as it knows."""
        return self._held

    async def take(self) -> None:
        """Return once this platform has the lease."""
        self._loop = asyncio.get_running_loop()
        while True:
            found = await self._db.write(self._try)
            if found is None:
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
        self._held = True
        self._alone = False  # who takes it from this one is alive
        log.info("this service decides: %s", self.holder)
        self._renewing = asyncio.ensure_future(self._renew())

    async def give_up(self) -> None:
        """Let another have it at once."""
        await self.forget()
        if self._held:
            self._held = False
            await self._db.write(self._release)

    async def forget(self) -> None:
        """Renew it no more; it runs out by itself."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None

    def check(self, tx: Tx) -> None:
        """Raise `LeaseLost` unless this platform has the lease; renew it when much of its time is over."""
        found = tx.leases.get(NAME)
        if found is None or found.holder != self.holder:
            who = "nobody" if found is None else found.holder
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._note_lost)
            raise LeaseLost(f"this service does not decide any more, {who} does; ask that one")
        now = self._clock()
        # one that runs longer than a lease may was written before the clock was put back: who waits would wait as long
        if not self._length_s * RENEW_AT < found.expires_at - now <= self._length_s:
            tx.leases.put(NAME, Lease(self.holder, now + self._length_s))

    def _try(self, tx: Tx) -> Lease | None:
        """Take the lease if it is free; return whose it is if not."""
        now = self._clock()
        found = tx.leases.get(NAME)
        free = found is None or found.holder == self.holder or found.expires_at <= now or self._alone
        if found is not None and not free:
            return found
        tx.leases.put(NAME, Lease(self.holder, now + self._length_s))
        return None

    def _release(self, tx: Tx) -> None:
        found = tx.leases.get(NAME)
        if found is not None and found.holder == self.holder:
            tx.leases.put(NAME, Lease(self.holder, 0.0))

    def _note_lost(self) -> None:
        if not self._held:
            return
        self._held = False
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        log.error("another service decides about this database now: this one acts no more, and stands by")
        self.lost()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._length_s * (1 - RENEW_AT))
            try:
                await self._db.write(self.check)
            except LeaseLost:
                return
            except Unavailable as error:
                log.warning("the lease could not be renewed: %s", error)


def read(tx: Tx) -> Lease | None:
    """Return who decides, as it is stored."""
    return tx.leases.get(NAME)
