"""Why the core decided as it did: the plan taken once more, step by step, with a look around before each.

Pure, and outside of the cycle: it costs a copy of the core from before the plan, so it is for plans of few decisions on a
state of moderate size.
What it tells is of the moment before the decision: which places there were, and whom a job could have stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.fitting import is_safe
from mlp_hub.scheduler.model import Admit, Decision, Preempt, Resize, RunningJob, WaitingJob
from mlp_hub.scheduler.ordering import dominant_share
from mlp_hub.scheduler.preemption import lost_work
from mlp_hub.scheduler.queues import Entry
from mlp_hub.scheduler.rights import Rights
from mlp_hub.scheduler.running import Held
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.vectors import resources_of, vector_of_ranks
from mlp_hub.scheduler.words import count

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
    """A running job that could have been stopped. `cost` is the work that this loses; `over_nominal`: its tenant borrows.

    An elastic one may give up workers instead, so many as `gives`: it ends all the same, and goes on with the rest.
    """

    uid: str
    cost: float
    over_nominal: bool
    chosen: bool
    why: str
    gives: int = 0


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
    was: int = 0  # how many workers a job that is resized had before
    size: str = ""  # of an elastic job: with how many workers, and why with so many


@dataclass(slots=True)
class _Makes:
    """Who makes room for one job: those that are stopped, and those that give up so many workers."""

    stopped: set[str] = field(default_factory=set)
    gives: dict[str, int] = field(default_factory=dict)


Looked = tuple[tuple[Candidate, ...], tuple[tuple[str, int], ...]]


def explain_decisions(core: Core, plan: Sequence[Decision], now: float) -> list[Explained]:
    """Return what stood behind each admission, preemption and resize of a plan, in its order.

    `core` is a copy of the one that planned, from before it did; the plan is followed on it, so it is used up.
    """
    state = core.state
    state.begin_cycle(now)
    makers, first = _makers(state, plan)
    looked: dict[str, Looked] = {}
    found: list[Explained] = []

    def looks(heir: str) -> Looked:
        if heir not in looked:
            looked[heir] = _candidates(state, state.waiting.get(heir), makers[heir], now)
        return looked[heir]

    for decision in plan:
        uid = decision.uid
        held = state.running.get(uid)
        share = None if held is None else _share(state, held.run.job.tenant)
        if isinstance(decision, Preempt):
            by = decision.preemptor
            candidates, spared = looks(by)
            found.append(Explained(uid, "preempted", by, candidates=candidates, spared=spared, share=share))
            if held is not None:
                core.end(uid, now)
        elif isinstance(decision, Admit):
            found.append(_admitted(core, decision, looked.get(uid, ((), ())), now))
        elif isinstance(decision, Resize):
            heir = decision.for_uid
            candidates, spared = ((), ()) if heir is None else looks(heir)
            told = Explained(
                uid, "resized", heir, candidates=candidates, spared=spared, share=share, was=first.get(uid, 0)
            )
            found.append(told if held is None else _resized(core, told, held, decision, now))
    return found


def _makers(state: State, plan: Sequence[Decision]) -> tuple[dict[str, _Makes], dict[str, int]]:
    """Return who makes room for whom, and how many workers those who are resized had before all of it."""
    makers: dict[str, _Makes] = {}
    first: dict[str, int] = {}
    has: dict[str, int] = {}
    for d in plan:
        if isinstance(d, Preempt):
            makers.setdefault(d.preemptor, _Makes()).stopped.add(d.uid)
        elif isinstance(d, Resize):
            held = state.running.get(d.uid)
            before = has.get(d.uid, d.workers if held is None else held.run.workers)
            first.setdefault(d.uid, before)
            has[d.uid] = d.workers
            if d.for_uid is not None:
                makers.setdefault(d.for_uid, _Makes()).gives[d.uid] = before - d.workers
    return makers, first


def _resized(core: Core, told: Explained, held: Held, resize: Resize, now: float) -> Explained:
    """Let a job go on with other workers, and tell where and why with so many."""
    run, index = held.run, core.state.index
    grows = resize.workers > run.workers
    added = resize.placement[run.workers : resize.workers] if grows else ()
    others = _others(core.state, held.demand, run.job, 1, set(added)) if grows else []
    core.end(run.job.uid, now)
    core.start(RunningJob(run.job, resize.placement, run.started_at, run.expected_end, devices=()))
    chosen = Counter(n for n in resize.placement if n in index)
    places = [Place(name, ranks, True, index.free(name), ()) for name, ranks in chosen.items()]
    size = _size(core.state, run.job, held.demand, resize.workers) if grows else ""
    return replace(told, places=(*places, *others), only=grows and not others, size=size)


def _admitted(
    core: Core,
    admit: Admit,
    looked: Looked,
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
    size = _size(state, job, entry.cls.demand, admit.workers)
    return replace(told, size=size)


def _size(state: State, job: WaitingJob, demand: Demand, workers: int) -> str:
    """Say with how many workers an elastic job runs from now on, and why with no more; nothing of one of a fixed size."""
    if job.workers_min == job.workers_max:
        return ""
    if workers >= job.workers_max:
        return f"with {count(workers, 'worker')}, its most"
    told = f"with {workers} of at most {count(job.workers_max, 'worker')}"
    one, quotas = vector_of_ranks(demand, 1), state.quotas
    left = {d: quotas.available(job.tenant, d) if job.tenant in state.queues else None for d in one}
    if any(room is not None and room < one[d] for d, room in left.items()):
        return f"{told}, since its tenant has no quota for one more"
    if not state.index.total_slots(demand, job.topology):
        return f"{told}, since the nodes have no room for one more"
    return f"{told}, since what is left is kept for others"


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
    others = _others(state, demand, entry.job, ranks, chosen)
    return (*found, *others), not others


def _others(
    state: State, demand: Demand, job: WaitingJob, ranks: int, chosen: Collection[str]
) -> list[Place]:
    """Return the best few nodes besides the chosen ones that have room for so many ranks."""
    index = state.index
    found: list[Place] = []
    for listed in index.order(index.catalog.ask(demand), ranks, index.rule).entries:
        for number in index.by_state[listed[3]]:
            name = index.name_of(number)
            if name in chosen:
                continue
            found.append(Place(name, ranks, False, index.free(name) - job.per_worker * ranks, listed[0]))
            if len(found) >= MOST_PLACES:
                return found
    return found


def _candidates(state: State, entry: Entry | None, makes: _Makes, now: float) -> Looked:
    """Return whom a job could have stopped or shrunk, the cheapest first, and why it could not stop the others."""
    if entry is None:
        return (), ()
    cost_of, least = state.policy.restart_cost_s, state.policy.min_run_s
    rights = Rights(state, entry)
    chosen = makes.stopped | makes.gives.keys()
    whole = {held.run.job.uid for held in rights.candidates()} | makes.stopped
    open_to = {held.run.job.uid: held for held in (*rights.candidates(), *rights.shrinkable())}
    open_to |= {uid: state.running[uid] for uid in sorted(chosen) if uid in state.running}
    costs = {uid: round(lost_work(held, now, cost_of), 3) for uid, held in open_to.items()}
    dearest = max((costs[uid] for uid in makes.stopped if uid in costs), default=0.0)
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
        gives = makes.gives.get(uid, 0)
        if gives:
            why = f"extra workers of elastic jobs go before any job is stopped, and its least is {held.run.job.workers_min}"
        elif uid not in chosen and not young and (uid not in whole or not makes.stopped):
            why = _not_needed(whole=uid in whole)
        else:
            why = _why(uid in chosen, costs[uid], dearest, young)
        found.append(Candidate(uid, costs[uid], over, uid in chosen, why, gives))
    spared: Counter[str] = Counter()
    for uid, held in state.running.items():
        if uid not in open_to:
            spared[_why_not(state, entry, held)] += 1
    return tuple(found), tuple(sorted(spared.items()))


def _not_needed(*, whole: bool) -> str:
    if whole:
        return "no job had to be stopped: the workers that elastic jobs give up are enough"
    return "its extra workers were not needed, or would not have made room"


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
