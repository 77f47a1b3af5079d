"""Why a job waits and when it starts, answered by the kept core: nothing is copied for those nobody asks about."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.job import Job, JobSpec
from mlp_hub.domain.ledger import ResourceRequest
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model import Why
from mlp_hub.scheduler.why import Expected, expectations, explain, explain_planned, offered
from mlp_hub.service.claims import is_claim, without_claims
from mlp_hub.service.discreet import without_names
from mlp_hub.service.fair_line import FairLine
from mlp_hub.service.snapshot import waiting_job

if TYPE_CHECKING:
    from mlp_hub.service.admit import Admission

FEW = 8
"""With more waiting jobs an answer is worth a thread: it runs the core forward, from end to end."""
MOST_OFFERS = 8
"""Of one user, under way or waiting: whoever asked may have gone, and each costs as much as an answer."""

MOST_EXPECTED = 300
"""Waiting jobs of a list whose expected start is looked for; of the others it is told when somebody asks for one of them."""
LIST_EFFORT = 30_000
"""What looking ahead for a list may take (`State.effort`): less than half a second."""
LIST_FRESH_S = 2.0


class Answers:
    """Full answers of the last cycle, and how they are made."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._known: dict[str, tuple[int, Why]] = {}
        self._fork: tuple[int, Core] | None = None
        self._list = asyncio.Lock()  # lists do not wait for full answers
        self._listed: tuple[float, dict[str, Expected]] = (-LIST_FRESH_S, {})
        self._line = FairLine()  # one answer at a time: they cost more than all else
        self._offers: Counter[str] = Counter()  # under way or waiting for their turn, by user

    def known(self, uid: str) -> Why | None:
        """Return the answer for a job, if nothing was decided since it was made."""
        known = self._known.get(uid)
        return known[1] if known is not None and known[0] == self._admission.cycles else None

    async def explain(self, uid: str, now: float) -> Why | None:
        """Return why a job waits and until when; None when it does not wait."""
        asked = self._admission.jobs().get(uid)
        async with self._line.turn("" if asked is None else asked.spec.user):
            known = self.known(uid)
            if known is not None:
                return known
            cycle = self._admission.cycles
            jobs, claims = self._admission.jobs(), self._admission.claims()
            why = await self._explain(uid, now)
            if why is not None:
                job = jobs.get(uid) or self._admission.jobs().get(uid)
                if job is None:
                    return None  # it is gone, and nobody knows whose eyes the answer is for
                why = await self._or_never(job.spec, why)
                why = self._admission.told_to(job.spec.tenant, why, jobs, claims)
                self._known = {u: k for u, k in self._known.items() if k[0] == cycle}
                self._known[uid] = (cycle, why)
            return why

    async def _or_never(self, spec: JobSpec, why: Why) -> Why:
        """Say of a job that could not be submitted any more, as the nodes or quotas are now, that it waits in vain."""
        if why.expected_start is not None or any(v.reason is Reason.EXCEEDS_MAX_QUOTA for v in why.reasons):
            return why
        never = (await self._admission.possible()).check(spec)
        if never is None:
            return why
        text = "it can never start with the nodes and quotas of now"
        return replace(why, reasons=(never,), expected_because=text, sure_because=text)

    async def expected(self, uids: Sequence[str], now: float) -> Mapping[str, Expected]:
        """Return when the first of these waiting jobs start, or why no time can be told; nothing of those it is not known of.

        In words for the tenant of each job.
        """
        a = self._admission
        async with self._list:
            if not 0 <= now - self._listed[0] < LIST_FRESH_S and uids and a.kept is not None:
                # whoever asks first: the answer is for all who ask soon after
                core, jobs, claims = a.kept.core.fork(), a.jobs(), a.claims()
                found = await asyncio.to_thread(_expectations, core, now)
                self._listed = (now, await asyncio.to_thread(_discreet, found, jobs, claims))
        listed = self._listed[1]
        found = {uid: listed[uid] for uid in uids if uid in listed}
        # a full answer looks farther ahead
        full = {uid: why for uid in uids if (why := self.known(uid)) is not None}
        return found | {uid: (why.expected_start, why.expected_because) for uid, why in full.items()}

    async def offer(self, spec: JobSpec, uid: str, now: float) -> tuple[Why, dict[str, int]]:
        """Return what a job would be told if it were submitted now, and how many ranks it would get of each node."""
        if self._offers[spec.user] >= MOST_OFFERS:
            msg = f"{MOST_OFFERS} offers to you are being worked out, the most there may be at a time; wait for one of them"
            raise Refused(Reason.CONFLICT, msg)
        self._offers[spec.user] += 1
        try:
            async with self._line.turn(spec.user):
                return await self._offer(spec, uid, now)
        finally:
            self._offers[spec.user] -= 1
            self._offers = +self._offers

    async def _offer(self, spec: JobSpec, uid: str, now: float) -> tuple[Why, dict[str, int]]:
        a = self._admission
        jobs, claims = a.jobs(), a.claims()
        never = (await a.possible()).check(spec)
        if never is not None:
            return a.told_to(spec.tenant, Why((never,), None, 0, None, never.message), jobs, claims), {}
        probe = waiting_job(spec, uid, now)
        # with the kept core nobody has to be looked at again who waits already
        core = Core.of(await a.snapshot(), now) if a.kept is None else a.kept.core.fork()
        if len(core.state.waiting) + len(core.state.running) > FEW:
            why, start = await asyncio.to_thread(offered, core, probe, now)
        else:
            why, start = offered(core, probe, now)
        placement = dict(Counter(() if start is None else start.placement))
        return a.told_to(spec.tenant, why, jobs, claims), placement

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


def _expectations(core: Core, now: float) -> dict[str, Expected]:
    """Return what is expected of the waiting jobs that are first in their queues, of all tenants alike."""
    seen: Counter[str] = Counter()
    places: dict[str, int] = {}
    for uid, entry in sorted(core.state.waiting.items(), key=lambda e: e[1].key):
        if not is_claim(uid):
            places[uid] = seen[entry.cls.tenant]
            seen[entry.cls.tenant] += 1
    first = heapq.nsmallest(MOST_EXPECTED, places, key=places.__getitem__)
    return expectations(core, first, now, LIST_EFFORT)


def _discreet(
    found: Mapping[str, Expected], jobs: Mapping[str, Job], claims: Mapping[str, ResourceRequest]
) -> dict[str, Expected]:
    """Put what is expected into words for the tenants of the jobs; many jobs are told the same."""
    told: dict[tuple[str, str], str] = {}
    shown: dict[str, Expected] = {}
    for uid, (at, because) in found.items():
        if (job := jobs.get(uid)) is None:
            continue
        key = (job.spec.tenant, because)
        if key not in told:
            text = without_names(because, job.spec.tenant, jobs.values())
            told[key] = without_claims(text, job.spec.tenant, claims.values())
        shown[uid] = (at, told[key])
    return shown
