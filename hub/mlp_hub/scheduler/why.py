"""Why a job waits, when it will start, and what would let it start now: by running the core itself forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlp_hub.domain.resources import MILLI, Resources
from mlp_hub.scheduler.core import plan_cycle
from mlp_hub.scheduler.model import Admit, Decision, RunningJob, Snapshot, Wait, WaitingJob, Why
from mlp_hub.scheduler.words import listing

MOST_STEPS = 200
"""How many ends of running jobs the forecast looks ahead; beyond that it says that it cannot tell."""


def explain(snapshot: Snapshot, uid: str, now: float) -> Why:
    """Answer for one waiting job. Raises `KeyError` when no job of that uid waits."""
    job = next((j for j in snapshot.waiting if j.uid == uid), None)
    if job is None:
        raise KeyError(uid)
    plan = plan_cycle(snapshot, now)
    mine = _decision(plan, uid)
    length = sum(1 for j in snapshot.waiting if j.tenant == job.tenant)
    if isinstance(mine, Admit):
        return Why((), None, length, now, "it fits and starts with the next scheduling cycle")
    assert isinstance(mine, Wait)  # noqa: S101 - every waiting job gets one of the two
    if job.gated is not None:
        return Why((mine.verdict,), mine.position, length, None, mine.verdict.message)
    at, because = forecast(snapshot, uid, now)
    return Why((mine.verdict,), mine.position, length, at, because, tuple(_smaller(snapshot, job, now)))


def forecast(snapshot: Snapshot, uid: str, now: float) -> tuple[float | None, str]:
    """Run the core forward from one end of a running job to the next until this job is admitted.

    Returns its expected start and which end makes it possible, or None and why no time can be told. Ends are
    those that time limits or estimates promise: jobs may well end sooner, so the time is the latest to expect
    unless more important work arrives.
    """
    running = list(snapshot.running)
    waiting = list(snapshot.waiting)
    ended: RunningJob | None = None
    for _ in range(MOST_STEPS):
        step = replace(snapshot, waiting=tuple(waiting), running=tuple(running))
        admitted = {d.uid: d for d in plan_cycle(step, now) if isinstance(d, Admit)}
        if uid in admitted:
            if ended is None:
                return now, "it fits now"
            return now, f"job {ended.job.name} of {ended.job.user} ends by then at the latest"
        for job in waiting:
            if job.uid in admitted:
                span = job.estimate if job.estimate is not None else job.time_limit
                running.append(
                    RunningJob(job, admitted[job.uid].placement, now, None if span is None else now + span)
                )
        waiting = [j for j in waiting if j.uid not in admitted]
        known = [r for r in running if r.expected_end is not None]
        if not known:
            return None, _cannot_tell(running)
        ended = min(known, key=lambda r: (r.expected_end or 0.0, r.job.uid))
        now = max(now, ended.expected_end or now)
        running.remove(ended)
    return None, f"more than {MOST_STEPS} jobs have to end before it"


def _cannot_tell(running: list[RunningJob]) -> str:
    endless = [f"{r.job.name} of {r.job.user}" for r in running if r.expected_end is None]
    if not endless:
        return "what it waits for is not held by jobs: a notebook has to stop, a node to come back or a quota to grow"
    have = "has" if len(endless) == 1 else "have"
    return f"no time can be told: {listing(endless)} {have} no time limit"


def _smaller(snapshot: Snapshot, job: WaitingJob, now: float) -> Iterator[str]:
    """Yield the smallest single changes with which the job would start now."""
    low, high = 0, job.workers_min - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _starts(snapshot, replace(job, workers_min=middle, workers_max=middle), now):
            low = middle
        else:
            high = middle - 1
    if low and _starts(snapshot, replace(job, workers_min=low, workers_max=low), now):
        yield f"--workers {low}"
    for option, dimension, least, step in (
        ("--cpu", "cpu", 100, 100),
        ("--ram", "ram", 100, 64),
        ("--gpu", "gpu", 0, MILLI),
    ):
        asked = getattr(job.per_worker, dimension)
        steps = (asked - least) // step
        if steps <= 0:
            continue
        low, high = 0, steps  # how many steps of the asked amount may stay
        if not _starts(snapshot, _with(job, dimension, least), now):
            continue
        while low < high:
            middle = (low + high + 1) // 2
            if _starts(snapshot, _with(job, dimension, least + middle * step), now):
                low = middle
            else:
                high = middle - 1
        value = least + low * step
        yield f"{option} {value if dimension == 'ram' else f'{value / MILLI:g}'}"


def _with(job: WaitingJob, dimension: str, value: int) -> WaitingJob:
    per_worker: Resources = replace(job.per_worker, **{dimension: value})  # type: ignore[arg-type]
    return replace(job, per_worker=per_worker)


def _starts(snapshot: Snapshot, job: WaitingJob, now: float) -> bool:
    waiting = tuple(job if j.uid == job.uid else j for j in snapshot.waiting)
    return isinstance(_decision(plan_cycle(replace(snapshot, waiting=waiting), now), job.uid), Admit)


def _decision(plan: list[Decision], uid: str) -> Decision:
    return next(d for d in plan if d.uid == uid)
