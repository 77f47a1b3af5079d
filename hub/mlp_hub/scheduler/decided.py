"""Why the core decided as it did: the plan taken once more, step by step, with a look around before each.

Pure, and outside of the cycle: it costs a copy of the core from before the plan, so it is for plans of few decisions on a
state of moderate size.
What it tells is of the moment before the decision: which places there were, and whom a job could have stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.fitting import is_safe
from mlp_hub.scheduler.model import Admit, Decision, Preempt, Resize, RunningJob
from mlp_hub.scheduler.ordering import dominant_share
from mlp_hub.scheduler.preemption import lost_work
from mlp_hub.scheduler.queues import Entry
from mlp_hub.scheduler.rights import Rights
from mlp_hub.scheduler.running import Held
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import resources_of

MOST_PLACES = 4
"""Places besides the chosen ones that are told."""
MOST_CANDIDATES = 8
"""Jobs besides the chosen ones that are told."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node that ranks got, or could have got: so many of them, what it has free after that, its score (least is best)."""

    node: str
    ranks: int
    chosen: bool
    free_after: Resources
    score: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A running job that could have been stopped. `cost` is the work that this loses; `over_nominal`: its tenant borrows."""

    uid: str
    cost: float
    over_nominal: bool
    chosen: bool
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    """What stood behind one decision. `spared` counts the running jobs that could not be stopped, by why not."""

    uid: str
    kind: str  # admitted, preempted, resized
    for_uid: str | None = None
    places: tuple[Place, ...] = ()
    only: bool = False  # no other node had room
    alone: bool = False  # there is no other node
    candidates: tuple[Candidate, ...] = ()
    spared: tuple[tuple[str, int], ...] = ()
    share: float | None = None  # dominant share of its tenant, before


def explain_decisions(core: Core, plan: Sequence[Decision], now: float) -> list[Explained]:
    """Return what stood behind each admission, preemption and resize of a plan, in its order.

    `core` is a copy of the one that planned, from before it did; the plan is followed on it, so it is used up.
    """
    state = core.state
    state.begin_cycle(now)
    victims: dict[str, set[str]] = {}
    for decision in plan:
        if isinstance(decision, Preempt):
            victims.setdefault(decision.preemptor, set()).add(decision.uid)
    looked: dict[str, tuple[tuple[Candidate, ...], tuple[tuple[str, int], ...]]] = {}
    found: list[Explained] = []
    for decision in plan:
        uid = decision.uid
        if isinstance(decision, Preempt):
            by = decision.preemptor
            if by not in looked:
                looked[by] = _candidates(state, state.waiting.get(by), victims[by], now)
            held = state.running.get(uid)
            share = None if held is None else _share(state, held.run.job.tenant)
            candidates, spared = looked[by]
            found.append(Explained(uid, "preempted", by, candidates=candidates, spared=spared, share=share))
            if held is not None:
                core.end(uid, now)
        elif isinstance(decision, Admit):
            found.append(_admitted(core, decision, looked.get(uid, ((), ())), now))
        elif isinstance(decision, Resize):
            held = state.running.get(uid)
            share = None if held is None else _share(state, held.run.job.tenant)
            found.append(Explained(uid, "resized", decision.for_uid, share=share))
            if held is not None:
                run = held.run
                core.end(uid, now)
                core.start(
                    RunningJob(run.job, decision.placement, run.started_at, run.expected_end, devices=())
                )
    return found


def _admitted(
    core: Core,
    admit: Admit,
    looked: tuple[tuple[Candidate, ...], tuple[tuple[str, int], ...]],
    now: float,
) -> Explained:
    state = core.state
    entry = state.waiting.get(admit.uid)
    if entry is None:
        return Explained(admit.uid, "admitted")
    places, only = _places(state, entry, admit.placement)
    alone = len(state.index.names) == 1
    told = Explained(
        admit.uid,
        "admitted",
        None,
        places,
        only,
        alone,
        tuple(c for c in looked[0] if c.chosen),
        share=_share(state, entry.cls.tenant),
    )
    job = core.withdraw(admit.uid)
    core.start(RunningJob(job, admit.placement, now, None))
    return told


def _share(state: State, tenant: str) -> float | None:
    if tenant not in state.queues:
        return None
    return round(dominant_share(resources_of(dict(state.quotas.used(tenant))), state.index.total), 6)


def _places(state: State, entry: Entry, placement: tuple[str, ...]) -> tuple[tuple[Place, ...], bool]:
    """Return the chosen nodes and the next best ones, as the rule of placement ranks them."""
    index, demand = state.index, entry.cls.demand
    ask = index.catalog.ask(demand)
    chosen = Counter(n for n in placement if n in index)
    found: list[Place] = []
    for name, ranks in chosen.items():
        fits = index.slots(name, demand) >= ranks
        record = index.record(name)
        score: tuple[float, ...] = ()
        if fits and record.state is not None:
            score = index.catalog.score(record.state, ask, ranks, index.rule)
        found.append(Place(name, ranks, True, index.free(name) - entry.job.per_worker * ranks, score))
    # of a gang on one node: others that hold it whole; else: others that hold one rank
    ranks = len(placement) if len(chosen) == 1 else 1
    others: list[Place] = []
    for listed in index.order(ask, ranks, index.rule).entries:
        for number in index.by_state[listed[3]]:
            name = index.name_of(number)
            if name in chosen:
                continue
            after = index.free(name) - entry.job.per_worker * ranks
            others.append(Place(name, ranks, False, after, listed[0]))
            if len(others) >= MOST_PLACES:
                return (*found, *others), False
    return (*found, *others), not others


def _candidates(
    state: State, entry: Entry | None, chosen: set[str], now: float
) -> tuple[tuple[Candidate, ...], tuple[tuple[str, int], ...]]:
    """Return whom a job could have stopped, the cheapest first, and why it could not stop the others."""
    if entry is None:
        return (), ()
    cost_of, least = state.policy.restart_cost_s, state.policy.min_run_s
    rights = Rights(state, entry)
    open_to = {held.run.job.uid: held for held in rights.candidates()}
    open_to |= {uid: state.running[uid] for uid in chosen if uid in state.running}
    costs = {uid: round(lost_work(held, now, cost_of), 3) for uid, held in open_to.items()}
    dearest = max((costs[uid] for uid in chosen if uid in costs), default=0.0)
    ordered = sorted(open_to.values(), key=lambda h: (costs[h.run.job.uid], h.run.job.priority, -h.serial))
    found: list[Candidate] = []
    left = MOST_CANDIDATES
    for held in ordered:
        uid = held.run.job.uid
        if uid not in chosen:
            if not left:
                continue
            left -= 1
        over = state.quotas.borrows(held.run.job.tenant, held.vector)
        young = least if held.run.started_at + least > now else 0.0
        found.append(
            Candidate(uid, costs[uid], over, uid in chosen, _why(uid in chosen, costs[uid], dearest, young))
        )
    spared: Counter[str] = Counter()
    for uid, held in state.running.items():
        if uid not in open_to:
            spared[_why_not(state, entry, held)] += 1
    return tuple(found), tuple(sorted(spared.items()))


def _why(chosen: bool, cost: float, dearest: float, young: float) -> str:
    if chosen:
        return "of those that may be stopped, the least work is lost by what makes enough room"
    if young:
        return f"it had not run for {young:g} s yet; nothing is stopped before that"
    if cost > dearest:
        return "more work would have been lost"
    return "it was not needed, or what it holds would not have made room"


def _why_not(state: State, entry: Entry, held: Held) -> str:
    """Say why a running job was no candidate."""
    run, job = held.run, entry.job
    if run.stopping:
        return "is stopping already"
    if not run.job.preemptible:
        return "may not be preempted"
    if run.job.tenant != job.tenant and is_safe(state.quotas, run.job.tenant, held.vector):
        return "is inside the quota of its tenant"
    if run.job.priority >= job.priority:
        return "has no lower priority"
    return "stands before the job by its age or its tenant's share"
