"""Why a job waits and when it starts, answered by the kept core: nothing is copied for those nobody asks about."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase
from mlp_hub.domain.jobs.run_times import PastRuns
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.ranges import Past, outlooks
from mlp_hub.scheduler.forecast.why import (
    Expected,
    expectations,
    explain,
    explain_planned,
    offered,
)
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.scheduler.model.types import Why
from mlp_hub.service.admission.feasibility import Feasibility
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.admission.snapshot import waiting_job
from mlp_hub.service.forecast.calibration import StartsCounted
from mlp_hub.service.forecast.past_runs import EarlierRuns
from mlp_hub.service.state.board import Board
from mlp_hub.service.support import limits
from mlp_hub.service.support.costly import CostlyTurns
from mlp_language.message import msg

log = logging.getLogger(__name__)
FEW = 8
"""Tuning: jobs up to which an answer is worked out on the event loop; with more it is in a thread: the event loop stays free,
and small lots cost no switch of threads."""
MOST_EXPECTED = 300
"""Tuning: waiting jobs of a list whose expected start is worked out; of the others it is when somebody asks for one of
them."""
LIST_EFFORT = 30_000
"""Tuning: effort of the forecast for a list (`ClusterState.effort`), at most: less than half a second."""
LIST_FRESH_S = 2.0
"""Tuning: age in seconds up to which a list is not computed again; a trade of work against freshness."""
LIST_TOLD_S = 15.0
"""Tuning: age in seconds up to which an expected start of a list is told: work for freshness."""


Listed = tuple[float, dict[str, Expected], dict[str, Outlook]]
"""When all that wait were looked at, and what is expected of the first of them: by limits, and by earlier runs."""


class Forecasts:
    """Why jobs wait, when they start, and what a new one would be told: full answers."""

    def __init__(
        self, board: Board, admission: Admission, feasibility: Feasibility, clock: Callable[[], float]
    ) -> None:
        self._board = board
        self._admission = admission
        self._feasibility = feasibility
        self._clock = clock
        self.past = EarlierRuns(board)
        self.starts = StartsCounted(board, clock)
        self._known: dict[str, tuple[int, Why]] = {}
        self._fork: tuple[int, Core] | None = None
        self._looking = BackgroundTask(lambda: self._look(self._clock()))  # for those who do not wait for it
        self._list = asyncio.Lock()  # lists do not wait for full answers
        self._listed: Listed = (-LIST_FRESH_S, {}, {})
        self._turns = CostlyTurns()  # one answer at a time: they cost more than all else

    async def start(self) -> None:
        """Learn from runs that end from now on, and from those that ended before."""
        self.past.start()
        await self.starts.start()

    def known(self, uid: str) -> Why | None:
        """Return the answer for a job, if nothing was decided since it was made."""
        known = self._known.get(uid)
        return known[1] if known is not None and known[0] == self._admission.cycles else None

    async def explain(self, uid: str) -> Why | None:
        """Return why a job waits and until when; None when it does not wait."""
        if self._admission.held is not None or self._admission.is_held(uid):
            return self._why_held(uid)
        asked = self._board.jobs.get(uid)
        async with self._turns.turn("" if asked is None else asked.spec.user):
            known = self.known(uid)
            if known is not None:
                return known
            cycle = self._admission.cycles
            why = await self._explain(uid, self._clock())
            if why is not None:
                job = asked or self._board.jobs.get(uid)
                why = why if job is None else await self._or_never(job.spec, why)
                self._known = {u: k for u, k in self._known.items() if k[0] == cycle}
                self._known[uid] = (cycle, why)
                self._told(uid, why.outlook)
            return why

    def _why_held(self, uid: str) -> Why | None:
        wait = self._admission.waiting(uid)
        if wait is None:
            return None
        return Why((wait.verdict,), wait.position, wait.position, None, wait.verdict.headline)

    async def _or_never(self, spec: JobSpec, why: Why) -> Why:
        """Say of a job that could not be submitted any more, as the nodes or quotas are now, that it waits in vain."""
        if why.expected_start is not None or any(v.reason is Reason.EXCEEDS_MAX_QUOTA for v in why.reasons):
            return why
        never = (await self._feasibility.now()).check(spec)
        if never is None:
            return why
        text = msg("it can never start with the present nodes and quotas")
        return replace(why, reasons=(never,), expected_because=text, sure_because=text)

    async def expected(self, uids: Sequence[str]) -> Mapping[str, Expected]:
        """Return when the first of these waiting jobs start, or why no time can be told; nothing of those it is not known of."""
        if self._admission.held is not None:
            return {}
        if uids:
            await self._look(self._clock())
        listed = self._listed[1]
        found = {uid: listed[uid] for uid in uids if uid in listed}
        # a full answer looks farther ahead
        full = {uid: why for uid in uids if (why := self.known(uid)) is not None}
        return found | {uid: (why.expected_start, why.expected_because) for uid, why in full.items()}

    def start_of(self, job: Job) -> float | None:
        """Return the expected start of a job, where it waits and that was worked out lately; works nothing out."""
        if self._admission.held is not None or job.phase is not Phase.QUEUED:
            return None
        uid = job.uid
        full = self.known(uid)
        if full is not None:
            return full.expected_start
        at, listed, _ = self._listed
        return listed[uid][0] if uid in listed and 0 <= self._clock() - at < LIST_TOLD_S else None

    def outlook_of(self, job: Job) -> Outlook | None:
        """Return the forecast of a job by earlier runs: of one that runs its end, of one that waits what was worked out lately."""
        if job.phase is not Phase.QUEUED:
            return self.past.end_of(job, self._clock())
        return self.outlook_of_waiting(job.uid)

    def outlook_of_waiting(self, uid: str) -> Outlook | None:
        """Return what was worked out lately of a job or a request that waits, by earlier runs."""
        if self._admission.held is not None:
            return None
        if (full := self.known(uid)) is not None:
            return full.outlook
        at, _, listed = self._listed
        return listed.get(uid) if 0 <= self._clock() - at < LIST_TOLD_S else None

    def _told(self, uid: str, outlook: Outlook | None) -> None:
        if outlook is not None and outlook.start is not None:
            self.starts.told(uid, outlook.start)

    def look_soon(self) -> None:
        """Have worked out what is expected of those that wait, unless it was just now; nobody waits for it."""
        if not self._is_fresh(self._clock()):
            self._looking.start()

    async def stop(self) -> None:
        """Work out no more."""
        await self.past.stop()
        await self.starts.stop()
        await self._looking.stop()

    def _is_fresh(self, now: float) -> bool:
        return 0 <= now - self._listed[0] < LIST_FRESH_S

    async def _look(self, now: float) -> None:
        """Compute the answer for the first caller; callers soon after get the same."""
        a = self._admission
        async with self._list:
            if not self._is_fresh(now) and a.kept is not None:
                fork = a.kept.core.fork()
                found = await run_in(WorkKind.EXPLAINING, _expectations, fork, now, self.past.of)
                self._listed = (now, *found)
                for uid, outlook in found[1].items():
                    self._told(uid, outlook)

    async def offer(self, spec: JobSpec, uid: str) -> tuple[Why, dict[str, int]]:
        """Return what a job would be told if it were submitted now, and how many ranks it would get of each node."""
        too_many = msg(
            "{most} offers to you are in progress, which is the limit; wait for one of them",
            most=limits.OFFERS_OF_USER,
        )
        async with self._turns.turn(spec.user, limits.OFFERS_OF_USER, too_many):
            return await self._offer(spec, uid, self._clock())

    async def _offer(self, spec: JobSpec, uid: str, now: float) -> tuple[Why, dict[str, int]]:
        a = self._admission
        never = (await self._feasibility.now()).check(spec)
        if never is not None:
            return Why((never,), None, 0, None, never.headline), {}
        if a.held is not None:
            return Why((a.held,), None, 0, None, a.held.headline), {}
        if (stopped := a.hold_of(spec.tenant)) is not None:
            return Why((stopped,), None, 0, None, stopped.headline), {}
        if (capped := await a.cap_of_new(spec, uid)) is not None:
            return Why((capped,), None, 0, None, capped.headline), {}
        probe = waiting_job(spec, uid, now)
        # with the kept core nobody has to be looked at again who waits already
        core = Core.from_snapshot(await a.snapshot(), now) if a.kept is None else a.kept.core.fork()

        def past(one: str) -> tuple[PastRuns, float] | None:
            return self.past.of_spec(spec) if one == uid else self.past.of(one)

        if len(core.state.waiting) + len(core.state.running) > FEW:
            why, start = await run_in(WorkKind.EXPLAINING, offered, core, probe, now, past)
        else:
            why, start = offered(core, probe, now, past)
        return why, dict(Counter(() if start is None else start.placement))

    async def _explain(self, uid: str, now: float) -> Why | None:
        a = self._admission
        kept = a.kept
        if not a.is_large or kept is None:
            snapshot = await a.snapshot()
            if not any(j.uid == uid for j in snapshot.waiting):
                return None
            if len(snapshot.waiting) > FEW:
                return await run_in(WorkKind.EXPLAINING, explain, snapshot, uid, now, self.past.of)
            return explain(snapshot, uid, now, self.past.of)
        wait = a.waiting(uid)
        if wait is None:
            return None
        if uid in kept.promised:
            return Why((wait.verdict,), wait.position, wait.position, None, wait.verdict.headline)
        if self._fork is None or self._fork[0] != a.cycles:
            self._fork = (a.cycles, kept.core.fork())
        return await run_in(WorkKind.EXPLAINING, explain_planned, self._fork[1], uid, now, self.past.of)


def _expectations(core: Core, now: float, past: Past) -> tuple[dict[str, Expected], dict[str, Outlook]]:
    """Return what is expected of the waiting jobs that are first in their queues, of all tenants alike; by earlier runs too."""
    seen: Counter[str] = Counter()
    places: dict[str, int] = {}
    for uid, entry in sorted(core.state.waiting.items(), key=lambda e: e[1].key):
        places[uid] = seen[entry.cls.tenant]
        seen[entry.cls.tenant] += 1
    first = heapq.nsmallest(MOST_EXPECTED, places, key=places.__getitem__)
    return (
        expectations(core, first, now, LIST_EFFORT),
        outlooks(core, first, now, past, LIST_EFFORT),
    )
