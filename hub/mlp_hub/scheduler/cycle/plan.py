"""The decisions of one cycle, applied to the state as they are taken and mended where a later one undoes an earlier; and their grounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.cycle.elastic import Change, resize
from mlp_hub.scheduler.cycle.grounds import NOBODY, Grounds, Passed, workers_of
from mlp_hub.scheduler.model.resources import resources_of
from mlp_hub.scheduler.model.types import (
    Admit,
    AdmittedWorkload,
    Decision,
    PendingWorkload,
    Preempt,
    Resize,
    Verdict,
)
from mlp_hub.scheduler.nodes.compared import Placed, placed
from mlp_hub.scheduler.policy import end_of, is_one_queue
from mlp_hub.scheduler.preemption.choice import VictimChoice, choice_of, right_of
from mlp_hub.scheduler.preemption.eligibility import PreemptionRights
from mlp_hub.scheduler.preemption.victims import RoomMade, lost_work, without_last
from mlp_hub.scheduler.reasons import verdicts
from mlp_hub.scheduler.workloads.pending import Entry


class Plan:
    """Decisions so far of the cycle at `now`."""

    def __init__(self, state: ClusterState, now: float) -> None:
        self.state = state
        self.now = now
        self.decisions: list[Decision] = []
        self.grounds: dict[str, Grounds] = {}
        self._news = state.take_news()
        self._resized: dict[str, int] = {}  # workers of what ran before and has others from now on

    def admit(self, entry: Entry, placement: tuple[str, ...], passed: Passed = NOBODY) -> None:
        """Let a job run from now on."""
        cls = entry.cls
        self._admit(
            entry, placement, placed(self.state.index, cls.demand, placement, cls.topology), passed=passed
        )

    def _admit(
        self,
        entry: Entry,
        placement: tuple[str, ...],
        where: Placed,
        *,
        passed: Passed,
        choice: VictimChoice | None = None,
        after: tuple[str, ...] = (),
    ) -> None:
        """Let a job run from now on; `after` are the victims that have to end first."""
        state, job = self.state, entry.job
        state.withdraw(job.uid, served=True)
        end = end_of(job, self.now)
        run = AdmittedWorkload(job, placement, self.now, None if end == math.inf else end)
        share = state.meter.share(job.tenant)
        devices, vector = state.hold(run, entry.cls.demand)
        workers = len(placement) - job.ps
        self.decisions.append(Admit(job.uid, placement, workers, resources_of(vector), devices, after))
        size = workers_of(state, job, entry.cls.demand, workers)
        self._record(job, share, passed=passed, placed=where, choice=choice, workers=size)

    def preempt(
        self, entry: Entry, made: RoomMade, rights: PreemptionRights, passed: Passed = NOBODY
    ) -> bool:
        """Stop and shrink what it takes, and admit the job. Returns whether anything that ran before gives way."""
        state, job = self.state, entry.job
        makers = (*made.victims, *(shrink.held for shrink in made.shrinks))
        choice = choice_of(rights, made, {h.run.job.uid for h in makers if self._never_ran(h.run.job.uid)})
        stops = right_of(rights, made)
        gives_way = False
        for shrink in made.shrinks:
            placement, _ = without_last(shrink.held, shrink.by)
            verdict = verdicts.shrunk_for(job, shrink.held, shrink.by)
            change = resize(state, shrink.held, placement, job.uid)
            gives_way = self.resize(change, verdict, job, choice) or gives_way
        after = []
        for held in made.victims:
            uid, victim = held.run.job.uid, held.run.job
            lost = lost_work(held, self.now, state.policy.restart_cost_s)
            verdict = verdicts.preempted_for(job, held, lost, stops[uid])
            share = state.meter.share(victim.tenant)
            if not self._retract(uid):
                self._drop_resizes(uid)
                self.decisions.append(Preempt(uid, job.uid, verdict))
                self._record(victim, share, heir=job, choice=choice)
                after.append(uid)
            state.give_back(uid)
        where = placed(made.index, entry.cls.demand, made.placement, entry.cls.topology)
        self._admit(entry, made.placement, where, passed=passed, choice=choice, after=tuple(after))
        return gives_way or bool(after)

    def resize(
        self,
        change: Change,
        verdict: Verdict | None = None,
        heir: PendingWorkload | None = None,
        choice: VictimChoice | None = None,
    ) -> bool:
        """Note a resize and return whether the job ran before; a job admitted in this cycle starts resized."""
        made, job = change.resize, change.before.job
        at = self._admission(made.uid)
        if at is None:
            self.decisions.append(replace(made, verdict=verdict))
            was = self._resized.setdefault(made.uid, change.before.workers)
            self._record(
                job,
                change.share,
                heir=heir,
                placed=change.placed,
                choice=choice,
                workers=change.workers,
                was=was,
            )
            return True
        after = self.decisions[at].after  # type: ignore[union-attr] # an admission
        self.decisions[at] = Admit(made.uid, made.placement, made.workers, made.amount, made.devices, after)
        held = self.state.running[made.uid]
        workers = change.workers or workers_of(self.state, job, held.demand, made.workers)
        self.grounds[made.uid] = replace(self.grounds[made.uid], placed=change.placed, workers=workers)
        return False

    def report_reasons(self, uids: Iterable[str], wants: verdicts.WantsReason | None = None) -> None:
        """Give these jobs the reasons why they wait, or only those that `wants` accepts."""
        self.decisions += verdicts.waits(self.state, uids, wants)

    def _retract(self, uid: str) -> bool:
        """Take back an admission of this very cycle: the job never started."""
        at = self._admission(uid)
        if at is None:
            return False
        del self.decisions[at], self.grounds[uid]
        self.state.retracted.append(self.state.running[uid].run.job)
        return True

    def _drop_resizes(self, uid: str) -> None:
        """Drop the resizes of a job that is stopped after all; a job for which it shrank awaits its end."""
        if uid not in self._resized:
            return
        del self._resized[uid]
        heirs = {d.for_uid for d in self.decisions if isinstance(d, Resize) and d.uid == uid}
        self.decisions = [
            replace(d, after=(*d.after, uid)) if isinstance(d, Admit) and d.uid in heirs else d
            for d in self.decisions
            if not (isinstance(d, Resize) and d.uid == uid)
        ]

    def _never_ran(self, uid: str) -> bool:
        return self._admission(uid) is not None

    def _admission(self, uid: str) -> int | None:
        """Find what was admitted in this very cycle."""
        if self.state.running[uid].run.started_at < self.now:
            return None
        for i in reversed(range(len(self.decisions))):
            d = self.decisions[i]
            if isinstance(d, Admit) and d.uid == uid:
                return i
        return None

    def _record(self, job: PendingWorkload, share: float, **grounds: Any) -> None:
        """Keep why something was decided about a job."""
        policy, queue = self.state.policy, self.state.queues.get(job.tenant)
        if queue is None:
            self.grounds[job.uid] = Grounds(job, None, None, self._news, **grounds)
            return
        order = policy.name if is_one_queue(policy) else queue.tenant.queue_order
        self.grounds[job.uid] = Grounds(job, order, share, self._news, **grounds)
