"""Answers of the admission loop to those who ask for a workload through the ledger: it holds, or why it waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.scheduler.model.types import Verdict
from mlp_hub.service.quota.caps import refusal
from mlp_hub.store.database import Database
from mlp_language.message import msg

if TYPE_CHECKING:
    from mlp_hub.service.admission.loop import Admission

AGAIN_S = 90.0
"""Tuning: seconds after which who waits is told to ask again, where nobody knows when there is room: fewer requests, for how
late room is noticed."""
ANSWER_S = 2.0
"""Tuning: seconds that who asks is kept waiting while room is being made; then they are told why, and ask again."""
ENDED_S = 10.0
"""Tuning: seconds within which a job that is asked to end mostly does."""
_UNSEEN = Verdict(Reason.WAITING_FOR_RESOURCES, msg("Not examined yet. The next cycle decides."))


class ServerRequests:
    """Says what was decided about pending requests.

    `grace_s` is what those who are stopped have to end, `again_s` when to ask again where nobody knows when there is room.
    """

    def __init__(
        self,
        db: Database,
        admission: Admission,
        clock: Callable[[], float],
        *,
        grace_s: float,
        again_s: float,
    ) -> None:
        self._db = db
        self._admission = admission
        self._clock = clock
        self._ending_s = min(grace_s, ENDED_S)
        self._again_s = again_s

    async def decided(self, request: ResourceRequest) -> ResourceRequest:
        """Return the row of a pending request once it holds. Raises `Refused` with the core's verdict where it waits on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                while True:
                    await self._admission.watch.turned.wait()
                    if self._waits_on(request) or not await self._is_pending(request):
                        break
        row = await self._row(request)
        if row is not None and row.held:
            return row
        raise self._refusal(request)

    async def _row(self, request: ResourceRequest) -> ResourceRequest | None:
        return await self._db.read(lambda tx: tx.ledger.get(request.applier, request.id))

    async def _is_pending(self, request: ResourceRequest) -> bool:
        row = await self._row(request)
        return row is not None and row.waits(self._clock())

    def _waits_on(self, request: ResourceRequest) -> bool:
        """Whether the last cycle found no room for it, and none is being made."""
        kept, uid = self._admission.kept, request.uid
        if kept is None or kept.pending.get(uid) != replace(request, expires_at=None):
            return False  # no cycle has seen it yet
        held = self._admission.held is not None or self._admission.is_held(uid)
        return (held and uid not in kept.promised) or kept.is_inadmissible(uid)

    def _refusal(self, request: ResourceRequest) -> Refused:
        uid = request.uid
        wait = self._admission.waiting(uid)
        verdict = _UNSEEN if wait is None else wait.verdict
        after = None if verdict.reason is Reason.EXCEEDS_MAX_QUOTA else self._after(uid, verdict)
        if verdict is self._admission.cap_of(uid):
            return refusal(verdict.reason, verdict.facts, (request.tenant, request.user), retry_after=after)
        return Refused(verdict.reason, verdict.headline, facts=verdict.facts, retry_after=after)

    def _after(self, uid: str, verdict: Verdict) -> float:
        """Return in how many seconds it is worth while to ask again."""
        kept = self._admission.kept
        if kept is None or verdict is _UNSEEN:
            return 1.0
        if verdict.reason is Reason.WAITING_FOR_PREEMPTED:
            return self._ending_s
        ripe = kept.ripe_at(uid)
        return self._again_s if ripe is None else max(ripe - self._clock(), 0.0) + self._ending_s
