"""Record of a choice of victims: the jobs that could be stopped, the loss, and why others were not chosen.

It is recorded as the search for victims ends, before any of them is stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest

from mlp_hub.scheduler.assign.fit import is_inside
from mlp_hub.scheduler.model.types import PendingWorkload
from mlp_hub.scheduler.preemption.eligibility import PreemptionRights, Spared
from mlp_hub.scheduler.preemption.victims import RoomMade, lost_work
from mlp_hub.scheduler.workloads.admitted import Held

MOST_CANDIDATES = 8
"""Tuning: jobs that are named in addition to the chosen ones; a reader's attention against detail."""


class Right(StrEnum):
    """Right by which one job makes another end, or give up workers."""

    RECLAIM = "reclaim"  # its tenant takes back what another borrowed
    PRIORITY = "priority"
    IN_ONE_PIECE = "in-one-piece"  # smaller work moves for larger
    EXTRA = "extra"  # workers beyond its least, which are whose turn it is


class Outcome(StrEnum):
    """Result of the search about one job that could have been stopped or shrunk."""

    STOPPED = "stopped"
    SHRUNK = "shrunk"
    TOO_YOUNG = "too-young"
    DEARER = "dearer"
    NOT_NEEDED = "not-needed"  # or what it holds would not have made room
    NONE_STOPPED = "none-stopped"  # what elastic jobs give up is enough
    EXTRA_NOT_NEEDED = "extra-not-needed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Running job that could have been stopped; `cost` is the work lost, `over_nominal`: its tenant borrows.

    An elastic one can give up `gives` workers instead: it ends all the same, and continues with the
    rest. `right` is the right by which it was chosen.
    """

    job: PendingWorkload
    cost: float
    over_nominal: bool
    outcome: Outcome
    by_gpu: bool  # whether its work is counted in GPUs
    gives: int = 0
    right: Right | None = None

    @property
    def chosen(self) -> bool:
        """Whether it was stopped or shrunk."""
        return self.right is not None


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """The cheapest candidates, and how many running jobs could not be stopped, by why not; `min_run_s` is the policy's then."""

    candidates: tuple[Candidate, ...]
    spared: tuple[tuple[Spared, int], ...]
    min_run_s: float

    def finding_of(self, uid: str) -> Candidate | None:
        """Return what was found about one job."""
        return next((c for c in self.candidates if c.job.uid == uid), None)


def choice_of(rights: PreemptionRights, made: RoomMade, never_ran: set[str]) -> VictimChoice:
    """Return what the victims were chosen from; `never_ran` were admitted in this very cycle, so nothing of theirs ends."""
    state, now = rights.state, rights.state.now
    policy = state.policy
    stops = right_of(rights, made)
    gives = {s.held.run.job.uid: s.by for s in made.shrinks}
    chosen = {h.run.job.uid: h for h in (*made.victims, *(s.held for s in made.shrinks))}
    for uid in never_ran & chosen.keys():
        del chosen[uid]
    whole = {h.run.job.uid: h for h in rights.candidates()}
    open_to = {**whole, **{h.run.job.uid: h for h in rights.shrinkable()}, **chosen}
    costs = {uid: lost_work(h, now, policy.restart_cost_s) for uid, h in open_to.items()}
    stopped = [uid for uid in chosen if uid not in gives]
    dearest = max((costs[uid] for uid in stopped), default=0.0)

    def rank(held: Held) -> tuple[float, int, int]:
        return costs[held.run.job.uid], held.run.job.priority, -held.serial

    passed = (h for uid, h in open_to.items() if uid not in chosen and uid not in never_ran)
    named = sorted([*chosen.values(), *nsmallest(MOST_CANDIDATES, passed, key=rank)], key=rank)
    found = []
    for held in named:
        job = held.run.job
        uid, right = job.uid, None
        if uid in gives and uid in chosen:
            outcome, right = Outcome.SHRUNK, Right.EXTRA
        elif uid in chosen:
            outcome, right = Outcome.STOPPED, stops[uid]
        elif held.run.started_at + policy.min_run_s > now:
            outcome = Outcome.TOO_YOUNG
        elif uid not in whole:
            outcome = Outcome.EXTRA_NOT_NEEDED
        elif not stopped:
            outcome = Outcome.NONE_STOPPED
        else:
            outcome = Outcome.DEARER if costs[uid] > dearest else Outcome.NOT_NEEDED
        over = state.quotas.borrows(job.tenant, held.vector)
        n = gives.get(uid, 0) if right is Right.EXTRA else 0
        found.append(Candidate(job, round(costs[uid], 3), over, outcome, bool(held.demand.gpu), n, right))
    return VictimChoice(tuple(found), _spared(rights, made), policy.min_run_s)


def right_of(rights: PreemptionRights, made: RoomMade) -> Mapping[str, Right]:
    """Return by which right each victim is stopped."""
    job = rights.entry.job
    # without those it stops; where it has this right then, priority is not why others are stopped
    its_own = is_inside(made.quotas, job.tenant, rights.entry.cls.vector)
    found = {}
    for held in made.victims:
        victim = held.run.job
        reclaimed = victim.tenant != job.tenant and (its_own or victim.priority >= job.priority)
        by_right = Right.RECLAIM if reclaimed else Right.PRIORITY
        found[victim.uid] = Right.IN_ONE_PIECE if victim.uid in made.moved else by_right
    return found


def _spared(rights: PreemptionRights, made: RoomMade) -> tuple[tuple[Spared, int], ...]:
    """Count the running jobs that could not be stopped, by why not: as the search came upon them, and the rest."""
    running, found = rights.state.running, Counter(rights.spared)
    found[Spared.STOPPING] = len(running.stopping)
    found[Spared.NOT_PREEMPTIBLE] = len(running) - len(running.stopping) - running.preemptible_count
    # who holds no more than its own is not even gone through
    rest = Spared.NOT_EXAMINED if rights.cut_short else Spared.INSIDE_QUOTA
    found[rest] += (
        running.preemptible_count - sum(rights.spared.values()) - sum(1 for _ in rights.candidates())
    )
    found[Spared.INSIDE_QUOTA] -= len(made.moved)
    return tuple(sorted((why, n) for why, n in found.items() if n > 0))
