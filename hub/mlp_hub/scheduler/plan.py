"""The decisions of one cycle: applied to the state as they are taken, and mended where a later one undoes an earlier."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from mlp_hub.scheduler import verdicts
from mlp_hub.scheduler.elastic import resize
from mlp_hub.scheduler.fitting import is_inside
from mlp_hub.scheduler.model import Admit, Decision, Preempt, Resize, RunningJob
from mlp_hub.scheduler.ordering import end_of
from mlp_hub.scheduler.preemption import RoomMade, lost_work, without_last
from mlp_hub.scheduler.queues import Entry
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import resources_of


class Plan:
    """What was decided so far in the cycle at `now`."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.decisions: list[Decision] = []
        self._resized: set[str] = set()  # uids of what ran before and has other workers from now on

    def admit(self, entry: Entry, placement: tuple[str, ...], after: tuple[str, ...] = ()) -> None:
        """Let a job run from now on; `after` are the victims that have to end first."""
        state, job = self.state, entry.job
        state.withdraw(job.uid, served=True)
        end = end_of(job, self.now)
        run = RunningJob(job, placement, self.now, None if end == math.inf else end)
        devices, vector = state.hold(run, entry.cls.demand)
        workers = len(placement) - job.ps
        self.decisions.append(Admit(job.uid, placement, workers, resources_of(vector), devices, after))

    def preempt(self, entry: Entry, made: RoomMade) -> bool:
        """Stop and shrink what it takes, and admit the job. Returns whether anything that ran before gives way."""
        state, job = self.state, entry.job
        # without those it stops; where it has this right then, priority is not why others are stopped
        its_own = is_inside(made.quotas, job.tenant, entry.cls.vector)
        gives_way = False
        for shrink in made.shrinks:
            placement, _ = without_last(shrink.held, shrink.by)
            verdict = verdicts.shrunk_for(job, shrink.held, shrink.by)
            change = resize(state, shrink.held, placement, job.uid)
            gives_way = self.resize(replace(change, verdict=verdict)) or gives_way
        after = []
        for held in made.victims:
            uid, victim = held.run.job.uid, held.run.job
            reclaimed = victim.tenant != job.tenant and (its_own or victim.priority >= job.priority)
            lost = lost_work(held, self.now, state.policy.restart_cost_s)
            verdict = verdicts.preempted_for(job, held, lost, reclaimed=reclaimed, moved=uid in made.moved)
            if not self._retract(uid):
                self._drop_resizes(uid)
                self.decisions.append(Preempt(uid, job.uid, verdict))
                after.append(uid)
            state.give_back(uid)
        self.admit(entry, made.placement, tuple(after))
        return gives_way or bool(after)

    def resize(self, change: Resize) -> bool:
        """Note a resize; what was admitted in this very cycle just starts so. Returns whether it ran before."""
        at = self._admission(change.uid)
        if at is None:
            self.decisions.append(change)
            self._resized.add(change.uid)
            return True
        after = self.decisions[at].after  # type: ignore[union-attr] # an admission
        self.decisions[at] = Admit(
            change.uid, change.placement, change.workers, change.amount, change.devices, after
        )
        return False

    def tell(self, uids: Iterable[str], hears: verdicts.Hears | None = None) -> None:
        """Say why to these jobs if they wait, or of them to who `hears`."""
        self.decisions += verdicts.waits(self.state, uids, hears)

    def _retract(self, uid: str) -> bool:
        """Take back an admission of this very cycle: the job never started."""
        at = self._admission(uid)
        if at is None:
            return False
        del self.decisions[at]
        self.state.requeue.append(self.state.running[uid].run.job)
        return True

    def _drop_resizes(self, uid: str) -> None:
        """Drop the resizes of a job that is stopped after all; who was to start on what it gave up awaits its end."""
        if uid not in self._resized:
            return
        self._resized.discard(uid)
        heirs = {d.for_uid for d in self.decisions if isinstance(d, Resize) and d.uid == uid}
        self.decisions = [
            replace(d, after=(*d.after, uid)) if isinstance(d, Admit) and d.uid in heirs else d
            for d in self.decisions
            if not (isinstance(d, Resize) and d.uid == uid)
        ]

    def _admission(self, uid: str) -> int | None:
        """Find what was admitted in this very cycle."""
        if self.state.running[uid].run.started_at < self.now:
            return None
        for i in reversed(range(len(self.decisions))):
            d = self.decisions[i]
            if isinstance(d, Admit) and d.uid == uid:
                return i
        return None
