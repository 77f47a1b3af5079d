"""What the admission loop tells of claims: whoever asks waits until a cycle has seen the claim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlp_hub.service.claims import Outlook, uid_of
from mlp_hub.store.database import Database

if TYPE_CHECKING:
    from mlp_hub.service.admit import Admission

DECIDED_S = 5.0
"""So long a try waits for the core to decide about its claim; then its owner is told to ask again."""


class Turns:
    """Counts cycles, so that one can wait for one that has seen what is stored now."""

    def __init__(self) -> None:
        self._begun = 0
        self._over = 0
        self._turned = asyncio.Event()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Go through one cycle, whatever becomes of it."""
        self._begun += 1
        mine = self._begun
        try:
            yield
        finally:
            self._over = max(self._over, mine)
            self._turned.set()
            self._turned = asyncio.Event()

    async def next(self, timeout_s: float) -> None:
        """Return when a cycle that begins from now on is over, or when that takes too long."""
        wanted = self._begun + 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._over < wanted:
                    await self._turned.wait()


class Reclaims:
    """Says what comes of claims. `grace_s` is what those who are stopped have to end."""

    def __init__(
        self, db: Database, admission: Admission, clock: Callable[[], float], grace_s: float
    ) -> None:
        self._db = db
        self._admission = admission
        self._clock = clock
        self._grace_s = grace_s

    async def outlook(self, uid: str) -> Outlook | None:
        """Return what comes of a claim that is stored; None when nobody can be stopped for it."""
        await self._admission.turns.next(DECIDED_S)
        now = self._clock()
        claims = await self._db.read(lambda tx: {uid_of(c): c for c in tx.ledger.claims(now)})
        claim, kept = claims.get(uid), self._admission.kept
        if claim is None or claim.shares:
            return Outlook(
                self._grace_s, self._grace_s, made=True
            )  # or it holds by now, which the next try finds out
        return (
            Outlook(self._grace_s, self._grace_s) if kept is None else kept.outlook(uid, now, self._grace_s)
        )
