"""What the admission loop tells of claims: whoever asks waits until a cycle has seen the claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlp_hub.service.claims import Outlook, uid_of
from mlp_hub.store.database import Database

if TYPE_CHECKING:
    from mlp_hub.service.admit import Admission

DECIDED_S = 5.0
"""So long a try waits for the core to decide about its claim; then its owner is told to ask again."""


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
        await self._admission.watch.next(DECIDED_S)
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
