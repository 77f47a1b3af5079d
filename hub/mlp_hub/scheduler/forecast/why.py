"""Why a job waits, when it will start, and what would let it start now: by running the core itself forward."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mlp_hub.scheduler.assign.fit import is_too_large
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.confidence import SURE, UNKNOWN, how_sure
from mlp_hub.scheduler.forecast.forecast import Forecast, expected_end
from mlp_hub.scheduler.forecast.ranges import Past, ending, outlooks
from mlp_hub.scheduler.forecast.smaller_request import Tries, smaller
from mlp_hub.scheduler.model.types import (
    Admit,
    AdmittedWorkload,
    Decision,
    PendingWorkload,
    Preempt,
    Resize,
    Snapshot,
    Wait,
    Why,
)
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.reasons.quota import held_for_good, window
from mlp_hub.scheduler.reasons.verdicts import must_return
from mlp_hub.scheduler.workloads.pending import JobClass
from mlp_language.message import NOTHING, Arg, JobRef, Message, Span, TenantRef, msg, msgs, some

MOST_TRYING = 60_000
"""Tuning: effort of the search for a smaller request (`ClusterState.effort`), at most: about a second."""
MOST_ENDS = 2000
"""Tuning: ends of jobs that an answer goes through: time of an answer, for how far it looks."""
MOST_EFFORT = 60_000
"""Tuning: effort of the plans after each of them (`ClusterState.effort`), at most: about two seconds."""


NEVER = msg("it can never start under this quota")
NOT_HELD_BY_JOBS = msg(
    "jobs do not hold the resources that it waits for: a notebook has to stop, a node to come back or a quota to grow"
)

Expected = tuple[float | None, Message]


def explain(snapshot: Snapshot, uid: str, now: float, past: Past | None = None) -> Why:
    """Answer for one waiting job, with earlier runs of jobs. Raises `KeyError` when no job of that uid waits."""
    if all(j.uid != uid for j in snapshot.waiting):
        raise KeyError(uid)
    return _foreseen(Core.from_snapshot(snapshot, now), uid, now, past)[0]


def offered(
    core: Core, job: PendingWorkload, now: float, past: Past | None = None
) -> tuple[Why, Admit | None]:
    """Answer for a job that nobody submitted yet, and return how it starts, where it starts now. Takes the core over."""
    core.submit(job)
    return _foreseen(core, job.uid, now, past)


def _foreseen(core: Core, uid: str, now: float, past: Past | None) -> tuple[Why, Admit | None]:
    before = core.snapshot(now)
    job = next(j for j in before.waiting if j.uid == uid)
    length = sum(1 for j in before.waiting if j.tenant == job.tenant)
    plan = core.plan(now)
    mine = next(d for d in plan if d.uid == uid and isinstance(d, Admit | Wait))
    if isinstance(mine, Admit):
        gives_way = tuple(_gives_way(before, plan, uid))
        because = msg("it fits and starts with the next scheduling cycle")
        if gives_way:
            because = msg("it starts as soon as there is room: {gives_way}", gives_way=gives_way)
        own = None if past is None else past(uid)
        outlook = None if own is None else ending(own[0], now)
        fits = msg("it fits now")
        return Why((), None, length, now, because, (), SURE, fits, NOTHING, gives_way, outlook), mine
    if uid not in core.state.waiting:
        return _until_released(mine, length), None
    return _until_started(core, before, mine, length, past), None


def _gives_way(before: Snapshot, plan: Collection[Decision], uid: str) -> Iterator[Message]:
    """Say who is stopped so that this job starts, and who gives up workers for it."""
    running = {r.job.uid: r for r in before.running}
    for decision in plan:
        ran = running.get(decision.uid)
        if ran is None:
            continue
        if isinstance(decision, Preempt) and decision.preemptor == uid:
            yield msg("{job} is stopped for it and goes back into the queue", job=ran.job.ref)
        elif isinstance(decision, Resize) and decision.for_uid == uid:
            yield msgs(
                "{job} gives up {n} worker for it",
                "{job} gives up {n} workers for it",
                n=ran.workers - decision.workers,
                job=ran.job.ref,
            )


def explain_planned(core: Core, uid: str, now: float, past: Past | None = None) -> Why | None:
    """Answer for one job of a core that has just planned, None when it does not wait. Takes the core over."""
    mine, entry = core.verdict(uid, now), core.state.waiting.get(uid)
    if mine is None:
        return None
    if entry is None:
        return _until_released(mine, mine.position)
    core.state.now = max(core.state.now, now)
    length = core.state.queues[entry.cls.tenant].length
    return _until_started(core, core.snapshot(now), mine, length, past)


def _until_released(mine: Wait, length: int) -> Why:
    said = mine.verdict.headline
    return Why((mine.verdict,), mine.position, length, None, said, (), UNKNOWN, said)


def _until_started(core: Core, snapshot: Snapshot, mine: Wait, length: int, past: Past | None) -> Why:
    job = core.state.waiting[mine.uid].job
    at, because = expectations(core, (mine.uid,), core.state.now, MOST_EFFORT)[mine.uid]
    learned = {} if past is None else outlooks(core, (mine.uid,), core.state.now, past, MOST_EFFORT)
    tries = Tries(core, job, MOST_TRYING)
    ways = tuple(smaller(tries, job))
    return Why(
        (mine.verdict,),
        mine.position,
        length,
        at,
        because,
        ways,
        *how_sure(snapshot, job, at, because),
        cut_short=_cut_short(tries, len(snapshot.waiting), ways) if tries.over else NOTHING,
        outlook=learned.get(mine.uid),
    )


def _cut_short(tries: Tries, waiting: int, ways: Collection[str]) -> Message:
    found = msg("better ones are possible") if ways else msg("one that starts now is possible")
    if not tries.made:
        return msg(
            "with {waiting} waiting jobs, no smaller request was tried: {found}", waiting=waiting, found=found
        )
    return msgs(
        "with {waiting} waiting jobs, only {n} smaller request was tried: {found}",
        "with {waiting} waiting jobs, only {n} smaller requests were tried: {found}",
        n=tries.made,
        waiting=waiting,
        found=found,
    )


def expectations(core: Core, uids: Collection[str], now: float, most_effort: float) -> dict[str, Expected]:
    """Return when each of these jobs starts, and which end makes it so or why no time can be told; one look ahead for all.

    Ends are those that time limits or estimates promise: jobs may well end sooner, so a time is the latest to expect
    unless more important work arrives. `core` has planned at `now`; it is left as it is.
    """
    ahead = Forecast(core, now, uids, MOST_ENDS, most_effort)
    cut = ahead.steps >= MOST_ENDS or ahead.effort >= most_effort
    cannot = msg("more than {n} jobs have to end before it", n=ahead.steps) if cut else NOTHING
    cannot = cannot or _cannot_tell(list(core.running.values()), now)
    return {
        uid: (at, _in_vain(core, uid) or cannot if at is None else _because(core, ahead, uid))
        for uid, at in ahead.starts.items()
    }


def _in_vain(core: Core, uid: str) -> Message | None:
    """Say why no end of a job lets this one start; None where one may."""
    state = core.state
    entry = state.waiting.get(uid)
    if entry is None:
        return None
    if is_too_large(state.quotas, entry.cls):
        return NEVER
    held = held_for_good(state, entry)
    return _shut_out(state.index, entry.cls) if held is None else held.because


def _shut_out(index: NodeIndex, cls: JobClass) -> Message | None:
    """Say that it waits for nodes that take nothing new, where no end of a job on the others makes room for it."""
    if back := must_return(index, cls):
        return msgs(
            "node {nodes} is drained by an administrator: it can start when that node is back in service",
            "nodes {nodes} are drained by an administrator: it can start when enough of them are back in service",
            n=len(back),
            nodes=some(back),
        )
    if index.shut(cls.demand) and not index.could_hold(cls.demand, cls.ranks_min):
        return NOT_HELD_BY_JOBS
    return None


def _because(core: Core, ahead: Forecast, uid: str) -> Message:
    ended, (stopped, shrunk) = ahead.ended_by(uid), ahead.gives_way(uid)
    parts = [] if ended is None else [msg("{job} ends by then at the latest", job=ended.ref)]
    at = ahead.starts[uid]
    changing = () if at is None else core.state.bookings.changing_at(at)
    if ended is None and changing:
        first = changing[0]
        which, whose = window(first), TenantRef(first.tenant)
        if first.start == at:
            parts.append(msg("{window} of {tenant} opens then", window=which, tenant=whose))
        else:
            parts.append(msg("{window} of {tenant} closes then", window=which, tenant=whose))
    if stopped:
        parts.append(msg("the scheduler stops {jobs} for it then", jobs=_named(stopped)))
    if shrunk:
        parts.append(msg("it gets workers of {jobs} then", jobs=_named(shrunk)))
    least = core.state.policy.min_run_s
    if not parts:
        return msg("it is its turn then")
    if (stopped or shrunk) and least and len(parts) == 1:
        return msg(
            "{parts}; nothing is stopped before it has run for {least}",
            parts=tuple(parts),
            least=Span(least),
        )
    return msg("{parts}", parts=tuple(parts))


def _named(jobs: list[PendingWorkload]) -> tuple[Arg, ...]:
    return some([job.ref for job in jobs])


def _cannot_tell(running: list[AdmittedWorkload], now: float) -> Message:
    endless = [r.job.ref for r in running if expected_end(r, now) is None]
    if not endless:
        return NOT_HELD_BY_JOBS
    return no_time_limit(endless)


def no_time_limit(endless: Sequence[JobRef]) -> Message:
    """Say that no time can be told, because of these jobs."""
    return msgs(
        "no time can be estimated: {jobs} has no time limit",
        "no time can be estimated: {jobs} have no time limit",
        n=len(endless),
        jobs=some(endless),
    )
