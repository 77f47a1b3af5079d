"""Why a job waits and when it starts, answered by the kept core: nothing is copied for those nobody asks about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model import Verdict, Wait, Why
from mlp_hub.scheduler.why import explain, explain_planned

if TYPE_CHECKING:
    from mlp_hub.service.admit import Admission

FEW = 8
"""With more waiting jobs an answer is worth a thread: it runs the core forward, from end to end."""


class Answers:
    """Full answers of the last cycle, and how they are made."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._known: dict[str, tuple[int, Why]] = {}
        self._fork: tuple[int, Core] | None = None
        self._one = asyncio.Lock()  # one answer at a time: they cost more than all else

    def known(self, uid: str) -> Why | None:
        """Return the answer for a job, if nothing was decided since it was made."""
        known = self._known.get(uid)
        return known[1] if known is not None and known[0] == self._admission.cycles else None

    def verdicts(self, core: Core, uids: Sequence[str]) -> dict[str, Wait]:
        """Return why these jobs wait; equal requests share one verdict."""
        found: dict[str, Wait] = {}
        shared: dict[int, Verdict] = {}
        state = core.state
        for uid in uids:
            entry = state.waiting.get(uid)
            verdict = None if entry is None else shared.get(entry.cls.serial)
            if entry is not None and verdict is not None:
                found[uid] = Wait(uid, verdict, state.queues[entry.cls.tenant].position(entry.key))
                continue
            wait = core.verdict(uid)
            if wait is not None:
                found[uid] = wait
                if entry is not None:
                    shared[entry.cls.serial] = wait.verdict
        return found

    async def explain(self, uid: str, now: float) -> Why | None:
        """Return why a job waits and until when; None when it does not wait."""
        async with self._one:
            known = self.known(uid)
            if known is not None:
                return known
            cycle = self._admission.cycles
            why = await self._explain(uid, now)
            if why is not None:
                why = self._admission.for_its_tenant(uid, why)
                self._known = {u: k for u, k in self._known.items() if k[0] == cycle}
                self._known[uid] = (cycle, why)
            return why

    async def _explain(self, uid: str, now: float) -> Why | None:
        a = self._admission
        kept = a.kept
        if not a.is_large or kept is None:
            snapshot = await a.snapshot()
            if not any(j.uid == uid for j in snapshot.waiting):
                return None
            if len(snapshot.waiting) > FEW:
                return await asyncio.to_thread(explain, snapshot, uid, now)
            return explain(snapshot, uid, now)
        wait = a.waiting(uid)
        if wait is None:
            return None
        if uid in kept.promised:
            return Why((wait.verdict,), wait.position, wait.position, None, wait.verdict.message)
        if self._fork is None or self._fork[0] != a.cycles:
            self._fork = (a.cycles, kept.core.fork())
        return await asyncio.to_thread(explain_planned, self._fork[1], uid, now)
