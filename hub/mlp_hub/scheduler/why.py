"""Why a job waits, when it will start, and what would let it start now: by running the core itself forward."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.fitting import is_too_large
from mlp_hub.scheduler.forward import Forecast, expected_end
from mlp_hub.scheduler.model import (
    Admit,
    Decision,
    Preempt,
    Resize,
    RunningJob,
    Snapshot,
    Wait,
    WaitingJob,
    Why,
)
from mlp_hub.scheduler.quota_words import held_for_good
from mlp_hub.scheduler.smaller import Tries, smaller
from mlp_hub.scheduler.sure import SURE, UNKNOWN, how_sure
from mlp_hub.scheduler.words import count, listing, window_words

MOST_TRYING = 60_000
"""How much looking for a smaller request may take, in what planning looks at (`State.effort`): about a second."""
MOST_ENDS = 2000
MOST_EFFORT = 60_000
"""How far an answer looks ahead: ends of jobs, and what planning after each of them takes (`State.effort`), about two seconds."""


NEVER = "it can never start under this quota"

Expected = tuple[float | None, str]


def explain(snapshot: Snapshot, uid: str, now: float) -> Why:
    """Answer for one waiting job. Raises `KeyError` when no job of that uid waits."""
    if all(j.uid != uid for j in snapshot.waiting):
        raise KeyError(uid)
    return _foreseen(Core.of(snapshot, now), uid, now)[0]


def offered(core: Core, job: WaitingJob, now: float) -> tuple[Why, Admit | None]:
    """Answer for a job that nobody submitted yet, and return how it starts, where it starts now. Takes the core over."""
    core.submit(job)
    return _foreseen(core, job.uid, now)


def _foreseen(core: Core, uid: str, now: float) -> tuple[Why, Admit | None]:
    before = core.snapshot(now)
    job = next(j for j in before.waiting if j.uid == uid)
    length = sum(1 for j in before.waiting if j.tenant == job.tenant)
    plan = core.plan(now)
    mine = next(d for d in plan if d.uid == uid and isinstance(d, Admit | Wait))
    if isinstance(mine, Admit):
        gives_way = tuple(_gives_way(before, plan, uid))
        because = "it fits and starts with the next scheduling cycle"
        if gives_way:
            because = f"it starts as soon as there is room: {' and '.join(gives_way)}"
        return Why((), None, length, now, because, (), SURE, "it fits now", gives_way=gives_way), mine
    if uid not in core.state.waiting:
        return _until_released(mine, length), None
    return _until_started(core, before, mine, length), None


def _gives_way(before: Snapshot, plan: Collection[Decision], uid: str) -> Iterator[str]:
    """Say who is stopped so that this job starts, and who gives up workers for it."""
    running = {r.job.uid: r for r in before.running}
    for decision in plan:
        ran = running.get(decision.uid)
        if ran is None:
            continue
        who = f"job {ran.job.name} of {ran.job.user}"
        if isinstance(decision, Preempt) and decision.preemptor == uid:
            yield f"{who} is stopped for it and goes back into the queue"
        elif isinstance(decision, Resize) and decision.for_uid == uid:
            yield f"{who} gives up {count(ran.workers - decision.workers, 'worker')} for it"


def explain_planned(core: Core, uid: str, now: float) -> Why | None:
    """Answer for one job of a core that has just planned, None when it does not wait. Takes the core over."""
    mine, entry = core.verdict(uid, now), core.state.waiting.get(uid)
    if mine is None:
        return None
    if entry is None:
        return _until_released(mine, mine.position)
    core.state.now = max(core.state.now, now)
    length = core.state.queues[entry.cls.tenant].length
    return _until_started(core, core.snapshot(now), mine, length)


def _until_released(mine: Wait, length: int) -> Why:
    message = mine.verdict.message
    return Why((mine.verdict,), mine.position, length, None, message, (), UNKNOWN, message)


def _until_started(core: Core, snapshot: Snapshot, mine: Wait, length: int) -> Why:
    job = core.state.waiting[mine.uid].job
    at, because = expectations(core, (mine.uid,), core.state.now, MOST_EFFORT)[mine.uid]
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
        cut_short=_cut_short(tries, len(snapshot.waiting), ways) if tries.over else "",
    )


def _cut_short(tries: Tries, waiting: int, ways: Collection[str]) -> str:
    found = "there may be better ones" if ways else "there may be one that starts now"
    some = "only 1 smaller request was" if tries.made == 1 else f"only {tries.made} smaller requests were"
    tried = some if tries.made else "no smaller request was"
    return f"with {waiting} jobs waiting {tried} tried, {found}"


def expectations(core: Core, uids: Collection[str], now: float, most_effort: float) -> dict[str, Expected]:
    """Return when each of these jobs starts, and which end makes it so or why no time can be told; one look ahead for all.

    Ends are those that time limits or estimates promise: jobs may well end sooner, so a time is the latest to expect
    unless more important work arrives. `core` has planned at `now`; it is left as it is.
    """
    ahead = Forecast(core, now, uids, MOST_ENDS, most_effort)
    cut = ahead.steps >= MOST_ENDS or ahead.effort >= most_effort
    cannot = f"more than {ahead.steps} jobs have to end before it" if cut else ""
    cannot = cannot or _cannot_tell(list(core.running.values()), now)
    return {
        uid: (at, _in_vain(core, uid) or cannot if at is None else _because(core, ahead, uid))
        for uid, at in ahead.starts.items()
    }


def _in_vain(core: Core, uid: str) -> str | None:
    """Say why no end of a job lets this one start; None where one may."""
    state = core.state
    entry = state.waiting.get(uid)
    if entry is None:
        return None
    return NEVER if is_too_large(state.quotas, entry.cls) else held_for_good(state, entry)


def _because(core: Core, ahead: Forecast, uid: str) -> str:
    ended, (stopped, shrunk) = ahead.ended_by(uid), ahead.gives_way(uid)
    parts = [] if ended is None else [f"job {ended.name} of {ended.user} ends by then at the latest"]
    at = ahead.starts[uid]
    changing = () if at is None else core.state.bookings.changing_at(at)
    if ended is None and changing:
        first = changing[0]
        does = "opens" if first.start == at else "closes"
        parts.append(f"{window_words(first)} of {first.tenant} {does} then")
    if stopped:
        parts.append(f"{_named(stopped)} {'is' if len(stopped) == 1 else 'are'} stopped for it then")
    if shrunk:
        gives = "gives" if len(shrunk) == 1 else "give"
        parts.append(f"{_named(shrunk)} {gives} up workers for it then")
    least = core.state.policy.min_run_s
    young = f"; nothing is stopped before it has run for {least:g} s" if least and len(parts) == 1 else ""
    return " and ".join(parts) + (young if stopped or shrunk else "") or "it is its turn then"


def _named(jobs: list[WaitingJob]) -> str:
    return listing(f"job {job.name} of {job.user}" for job in jobs)


def _cannot_tell(running: list[RunningJob], now: float) -> str:
    endless = [f"{r.job.name} of {r.job.user}" for r in running if expected_end(r, now) is None]
    if not endless:
        return "what it waits for is not held by jobs: a notebook has to stop, a node to come back or a quota to grow"
    have = "has" if len(endless) == 1 else "have"
    return f"no time can be told: {listing(endless)} {have} no time limit"
