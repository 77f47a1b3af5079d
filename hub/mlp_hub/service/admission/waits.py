"""Reasons why jobs wait, as people see them: the present, the stored, and the last one watchers saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.scheduler.model.types import Admit, Verdict, Wait
from mlp_hub.scheduler.reasons.verdicts import waits_for_preempted
from mlp_hub.service.admission.cache import AdmissionPlan, KeptCore
from mlp_hub.service.admission.reason_counts import ReasonCounts
from mlp_hub.service.state.board import Board, WaitChanged
from mlp_hub.service.state.bus import QUEUE_TOPIC, job_topic

_OWN = frozenset({Reason.GATED, Reason.SUSPENDED, Reason.IDLE_GPUS})
"""Reasons of waiting that only the job's own user ends."""


class WaitReasons:
    """Says why jobs on the board wait, and remembers what was said, so that only what is new is said again."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._said: dict[str, Wait] = {}  # what was last written down of those that wait
        self._shown: dict[str, Wait] = {}  # what watchers were last told
        self._asked: dict[str, Wait] = {}  # of requests, when the queue was last told to be another one
        self.counts = ReasonCounts()
        self.held: Verdict | None = None
        """Why nobody may start now, whatever the core says; None where somebody may."""
        self.tenants: Mapping[str, Verdict] = {}
        """Why nothing of these tenants may start, which the core therefore does not know of."""
        self.capped: Mapping[str, Verdict] = {}
        """Why these jobs and pending requests may not start, of which the core does not know either: their members hold what they may."""

        self._next_tenants: Mapping[str, Verdict] = {}  # what the next cycle finds in `tenants`
        self._held_by: dict[str, Mapping[str, Verdict]] = {}

    def hold_tenants(self, why: Mapping[str, Verdict], by: str) -> bool:
        """Take the tenants that a caller holds from now on, and return whether that changes anything; see `begin_holds`."""
        self._held_by[by] = dict(why)
        held = {tenant: verdict for each in self._held_by.values() for tenant, verdict in each.items()}
        changed, self._next_tenants = held != self._next_tenants, held
        return changed

    def begin_holds(self) -> None:
        """Hold the tenants that were given last."""
        self.tenants = self._next_tenants

    def is_held(self, uid: str, pending: Mapping[str, ResourceRequest]) -> bool:
        """Return whether a workload waits that is held back itself, or whose tenant is."""
        job, request = self._board.waiting.get(uid), pending.get(uid)
        if uid in self.capped and (job is not None or request is not None):
            return True
        tenant = job.spec.tenant if job is not None else None if request is None else request.tenant
        return tenant in self.tenants

    @property
    def said(self) -> Mapping[str, Wait]:
        """Reasons that were last stored of jobs that wait, by uid."""
        return self._said

    def reasons_of(self, kept: KeptCore | None, uids: Sequence[str]) -> dict[str, Wait]:
        """Return why each of these jobs waits, of those that do; without a core, as it was last written down."""
        held = self.held
        found = self._of(kept, uids)
        if self.tenants or self.capped:
            found |= self._of_held(uids, {} if kept is None else kept.pending)
        if held is None:
            return found
        return {u: w if w.verdict.reason in _OWN else replace(w, verdict=held) for u, w in found.items()}

    def _of(self, kept: KeptCore | None, uids: Sequence[str]) -> dict[str, Wait]:
        if kept is None:
            return {uid: self._said[uid] for uid in uids if uid in self._said}
        found: dict[str, Wait] = {}
        for uid in uids:
            promised = kept.promised.get(uid)
            if promised is not None:
                found[uid] = self._until_stopped(promised)
        verdicts = kept.core.verdicts([u for u in uids if u not in found], self._clock())
        return found | verdicts

    def _until_stopped(self, admit: Admit) -> Wait:
        """Return why a job waits for which others are being stopped."""
        there = [job.ref for uid in admit.after if (job := self._board.holding.get(uid)) is not None]
        return Wait(admit.uid, waits_for_preempted(there, tuple(j.uid for j in there), for_it=True), 1)

    def _of_held(self, uids: Sequence[str], pending: Mapping[str, ResourceRequest]) -> dict[str, Wait]:
        """Return why those of them wait whose tenants, or who themselves, are held, requests first, in the order in which they came."""
        places: dict[str, int] = {}
        asked, found = set(uids), {}
        requests = ((uid, request.tenant) for uid, request in pending.items())
        for uid, tenant in chain(requests, ((u, job.spec.tenant) for u, job in self._board.waiting.items())):
            why = self.tenants.get(tenant) or self.capped.get(uid)
            if why is not None:
                places[tenant] = places.get(tenant, 0) + 1
                if uid in asked:
                    found[uid] = Wait(uid, why, places[tenant])
        return found

    def news_of_held(self) -> list[Wait]:
        """Return the reasons of those whose tenants, or who themselves, are held, as far as they were not said before."""
        if not self.tenants and not self.capped:
            return []
        found = self._of_held(list(self._board.waiting), {})
        return [
            w
            for uid, w in found.items()
            if (said := self._said.get(uid)) is None or said.verdict is not w.verdict
        ]

    def news(self, kept: KeptCore, plan: AdmissionPlan) -> list[Wait]:
        """Return the reasons to store: those that are new or of another kind than the last one."""
        promised = [self._until_stopped(a) for a in plan.admits if a.uid in kept.promised]
        news = []
        for wait in (*plan.waits, *promised):
            if wait.uid in kept.pending:
                continue  # a request has no timeline: who asks is told
            said = self._said.get(wait.uid)
            if said is None or said.verdict.reason is not wait.verdict.reason:
                news.append(wait)
        return news

    def written(self, waits: Sequence[Wait]) -> None:
        """Note that these reasons are stored."""
        for wait in waits:
            job = self._board.waiting.get(wait.uid)
            if job is not None:
                self._said[wait.uid] = wait
                since = job.submitted_at if job.waiting_since is None else job.waiting_since
                self.counts.put(wait.uid, wait.verdict.reason.value, since, job.spec.tenant)

    def forget(self, uid: str) -> None:
        """Note that a job waits no more."""
        if self._said.pop(uid, None) is not None:
            self.counts.remove(uid)

    def begin(self) -> None:
        """Forget what was stored of jobs that wait no more: another may have decided meanwhile."""
        said, self._said = self._said, {}
        self.counts = ReasonCounts()
        self.written([wait for uid, wait in said.items() if uid in self._board.waiting])

    def show(self, kept: KeptCore | None) -> None:
        """Tell watchers whose reason or place has changed; of requests, which nobody watches alone, those who look at the queue."""
        bus = self._board.bus
        if kept is not None and (kept.pending or self._asked) and bus.watched(QUEUE_TOPIC):
            asked = self.reasons_of(kept, list(kept.pending))
            if asked != self._asked:
                bus.publish(QUEUE_TOPIC, {"type": "changed"})
            self._asked = asked
        watched = [uid for uid in bus.watched_jobs() if uid in self._board.waiting]
        if not watched and not self._shown:
            return
        now = self.reasons_of(kept, watched)
        for uid, wait in now.items():
            if self._shown.get(uid) != wait:
                bus.publish(job_topic(uid), WaitChanged())
        self._shown = now
