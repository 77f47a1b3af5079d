"""Next action for one sweep: a pure function of the stored state, the jobs of its trials, and the time.

After a crash the same function is the recovery: nothing is remembered between calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import FINAL, Job, Phase
from mlp_hub.domain.jobs.sweep import (
    ALL_FAILED,
    ENDED_SWEEPS,
    Sweep,
    SweepPhase,
    SweepTrial,
    TrialState,
    check_sweep_move,
)
from mlp_hub.domain.resources import HOUR_S, core_seconds, units
from mlp_language.message import NOTHING, Message, msg

AHEAD = 2
"""Tuning: trials of a sweep that wait for room at a time: room that comes free is taken at once, and the queue stays short."""
S, T = SweepPhase, TrialState


@dataclass(frozen=True, slots=True)
class TrialJob:
    """Job of a trial as last seen: None if it is gone. `reported` are names of reported values, in any order."""

    job: Job | None
    reported: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Plan: sweep and trials to store, trials whose jobs end, number of new ones, time of the next look."""

    sweep: Sweep
    trials: tuple[SweepTrial, ...] = ()  # those that changed
    end: tuple[int, ...] = ()
    make: int = 0
    again_s: float | None = None


def decide(sweep: Sweep, trials: Sequence[SweepTrial], jobs: Mapping[int, TrialJob], now: float) -> SweepPlan:
    """Return the plan; `jobs` has one row for each live trial that already has a job."""
    if sweep.phase is S.DELETING or sweep.phase in ENDED_SWEEPS:
        return SweepPlan(sweep)
    new = [_seen(sweep, t, jobs.get(t.number), now) if t.is_live else t for t in trials]
    changed = tuple(t for t, before in zip(new, trials, strict=True) if t is not before)
    live = [t for t in new if t.is_live]
    if sweep.phase is S.RUNNING:
        if sweep.not_before and now >= sweep.not_before:
            sweep = replace(sweep, not_before=0.0, message=NOTHING)
        outcome, message = _is_over(sweep, new, jobs, now)
        if outcome:
            sweep = _moved(sweep, S.ENDING, outcome=outcome, message=message)
    if sweep.phase is S.ENDING:
        unmade = tuple(replace(t, state=T.CANCELLED, ended_at=now) for t in live if t.number not in jobs)
        live = [t for t in live if t.number in jobs]
        left = {t.number for t in unmade}
        kept = tuple(t for t in changed if t.number not in left) + unmade
        if not live:
            return SweepPlan(_ended(sweep, [t for t in new if t.number not in left], now), kept)
        return SweepPlan(sweep, kept, end=tuple(t.number for t in live))
    if not live and len(new) >= sweep.budget.trials:
        return SweepPlan(_ended(sweep, new, now), changed)
    make = _room(sweep, live, len(new), jobs, now)
    return SweepPlan(sweep, changed, make=make, again_s=_again(sweep, new, jobs, now))


def core_s(job: Job, now: float) -> float:
    """Return the core-seconds that a job took so far."""
    ranks = len(job.placement) or job.spec.ranks_min
    ran = job.ran_in_all
    if job.phase not in FINAL and job.started_at is not None and job.placement:
        ran = job.ran + max(now - job.started_at, 0.0)
    took: float = core_seconds(ran, ranks, job.spec.per_worker.cpu)
    return took


def spent(trials: Sequence[SweepTrial], jobs: Mapping[int, TrialJob], now: float) -> float:
    """Return the core-seconds that a sweep took so far."""
    running = (jobs[t.number].job for t in trials if t.is_live and t.number in jobs)
    return sum(t.core_s for t in trials) + sum(core_s(job, now) for job in running if job is not None)


def _seen(sweep: Sweep, trial: SweepTrial, seen: TrialJob | None, now: float) -> SweepTrial:
    if seen is None:
        return trial
    job = seen.job
    if job is None or job.phase is Phase.DELETING:
        return replace(trial, state=T.CANCELLED, ended_at=now, message=msg("its job was deleted"))
    known = trial if trial.job == job.uid else replace(trial, job=job.uid, called=job.title, state=T.RUNNING)
    if job.phase not in FINAL:
        return known
    state, message = _end_of(sweep, trial, job, seen.reported)
    value = trial.value if trial.value is not None and math.isfinite(trial.value) else None
    return replace(
        known,
        state=state,
        value=value,
        core_s=core_s(job, now),
        ended_at=job.finished_at or now,
        message=message,
    )


def _end_of(sweep: Sweep, trial: SweepTrial, job: Job, reported: Sequence[str]) -> tuple[TrialState, Message]:
    if job.phase is Phase.CANCELLED:
        return (T.STOPPED if job.reason == Reason.STOPPED_EARLY else T.CANCELLED), job.message
    if job.phase is Phase.FAILED:
        return T.FAILED, job.failure_message
    metric = sweep.spec.metric
    if not metric or (trial.value is not None and math.isfinite(trial.value)):
        return T.FINISHED, NOTHING
    if trial.value is not None:
        return T.FAILED, msg("the last {metric} that it reported is not a finite number", metric=metric)
    return T.FAILED, msg(
        "it never reported {metric}; it reported: {reported}",
        metric=metric,
        reported=tuple(reported[:10]) or msg("nothing"),
    )


def _is_over(
    sweep: Sweep, trials: Sequence[SweepTrial], jobs: Mapping[int, TrialJob], now: float
) -> tuple[str, Message]:
    """Return the end of a sweep before all its trials were made; an empty text if it continues."""
    states = [t.state for t in trials]
    failed = [t for t in trials if t.state is T.FAILED]
    if len(failed) >= ALL_FAILED and not {T.FINISHED, T.STOPPED} & set(states):
        last = max(failed, key=lambda t: t.ended_at or 0.0)
        return S.FAILED.value, msg(
            "all of its first {n} trials failed, so the sweep gives up; the last one: {why}",
            n=len(failed),
            why=last.message,
        )
    budget = sweep.budget
    if budget.core_hours is not None and spent(trials, jobs, now) >= budget.core_hours * HOUR_S:
        return S.FINISHED.value, msg("its {n} core-hours are used up", n=f"{budget.core_hours:g}")
    if budget.deadline is not None and now >= budget.deadline:
        return S.FINISHED.value, msg("its deadline has passed")
    return "", NOTHING


def _ended(sweep: Sweep, trials: Sequence[SweepTrial], now: float) -> Sweep:
    phase, message = S(sweep.outcome or S.FINISHED), sweep.message
    failed = [t for t in trials if t.state is T.FAILED]
    if not sweep.outcome:
        message = NOTHING
        if failed and not {T.FINISHED, T.STOPPED} & {t.state for t in trials}:
            phase = S.FAILED
            message = msg("all of its trials failed; the last one: {why}", why=failed[-1].message)
    return _moved(sweep, phase, outcome="", message=message, ended_at=now)


def _room(
    sweep: Sweep, live: Sequence[SweepTrial], made: int, jobs: Mapping[int, TrialJob], now: float
) -> int:
    if now < sweep.not_before:
        return 0
    waiting = sum(1 for t in live if (seen := jobs.get(t.number)) is None or _waits(seen.job))
    room = min(sweep.budget.trials - made, AHEAD - waiting)
    if sweep.spec.parallel is not None:
        room = min(room, sweep.spec.parallel - len(live))
    return max(room, 0)


def _waits(job: Job | None) -> bool:
    return job is not None and job.phase is Phase.QUEUED


def _again(
    sweep: Sweep, trials: Sequence[SweepTrial], jobs: Mapping[int, TrialJob], now: float
) -> float | None:
    waits = [sweep.not_before - now] if now < sweep.not_before else []
    budget = sweep.budget
    if budget.deadline is not None:
        waits.append(budget.deadline - now)
    if budget.core_hours is not None:
        held = [seen.job for seen in jobs.values() if seen.job is not None and seen.job.placement]
        rate = sum(len(job.placement) * units(job.spec.per_worker.cpu) for job in held)
        if rate:
            waits.append((budget.core_hours * HOUR_S - spent(trials, jobs, now)) / rate)
    return max(min(waits), 0.1) if waits else None


def _moved(sweep: Sweep, phase: SweepPhase, **changes: object) -> Sweep:
    check_sweep_move(sweep, phase)
    return replace(sweep, phase=phase, **changes)  # type: ignore[arg-type]
