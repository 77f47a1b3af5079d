"""Sweeps as they cross the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from mlp_api.jobs import sweeps as api
from mlp_api.localized import Detail, Text
from mlp_hub.domain.jobs.job import Job, Phase
from mlp_hub.domain.jobs.space import Choice, Range
from mlp_hub.domain.jobs.sweep import Sweep, SweepPhase, SweepTrial, TrialState, best_of
from mlp_hub.domain.resources import HOUR_S, units
from mlp_hub.service.jobs.wire import workers_to
from mlp_hub.service.support.units import maybe_when, when
from mlp_hub.service.sweeps.next_action import core_s

T = TrialState


def space_text(space: Range | Choice) -> str:
    """Write a space as people do."""
    if not isinstance(space, Range):
        return f"choice({', '.join(_word(option) for option in space)})"
    kind = f"{'log' if space.log else ''}{'int' if space.whole else 'uniform'}"
    return f"{kind}({space.low:g}, {space.high:g})"


def _word(option: object) -> str:
    return str(option).lower() if isinstance(option, bool) else str(option)


def to_wire(
    sweep: Sweep, trials: Sequence[SweepTrial], jobs: Mapping[int, Job], now: float, *, with_trials: bool
) -> api.Sweep:
    """Return a sweep; `jobs` are those of its live trials."""
    spec, job = sweep.spec, sweep.spec.job
    took = sum(_core_hours(trial, jobs.get(trial.number), now) for trial in trials)
    best = best_of(spec, list(trials)) if spec.metric else None
    return api.Sweep(
        name=sweep.name,
        run=sweep.run,
        user=job.user,
        tenant=job.tenant,
        uid=sweep.uid,
        state=msgspec.convert(sweep.phase.value, api.SweepState),
        message=Text(sweep.message),
        detail=Detail(sweep.message),
        runtime=job.runtime,
        entry=job.entry,
        code=job.code if with_trials else None,
        args=list(job.args),
        priority=job.priority,
        workers=workers_to(job),
        cpu=units(job.per_worker.cpu),
        gpu=units(job.per_worker.gpu),
        ram=job.per_worker.ram,
        amounts=dict(job.per_worker.amounts),
        grid={name: list(values) for name, values in spec.grid},
        search={name: space_text(space) for name, space in spec.search},
        array=spec.array,
        metric=spec.metric or None,
        goal=("max" if spec.maximize else "min") if spec.metric else None,
        stop=msgspec.convert(spec.stop, api.StopRule),
        warmup=spec.warmup,
        sampler=msgspec.convert(spec.sampler, api.Sampler),
        parallel=spec.parallel,
        budget_trials=sweep.budget.trials,
        budget_core_hours=sweep.budget.core_hours,
        deadline=maybe_when(sweep.budget.deadline),
        core_hours=round(took, 6),
        counts=_counts(sweep, trials, jobs),
        best=None if best is None else trial_to(best, jobs.get(best.number), now),
        trials=[trial_to(each, jobs.get(each.number), now) for each in trials] if with_trials else [],
        submitted_at=when(sweep.made_at),
        ended_at=maybe_when(sweep.ended_at),
    )


def trial_to(trial: SweepTrial, job: Job | None, now: float) -> api.SweepTrial:
    """Return a trial; `job` is its job while it is live."""
    message = job.message if job is not None and trial.is_live else trial.message
    return api.SweepTrial(
        number=trial.number,
        params=dict(trial.params),
        state=msgspec.convert(trial.state.value, api.TrialState),
        job=trial.called or None,
        phase=None if job is None else job.phase.value,
        value=trial.value,
        steps=trial.steps,
        core_hours=round(_core_hours(trial, job, now), 6),
        ended_at=maybe_when(trial.ended_at),
        message=Text(message),
        detail=Detail(message),
    )


def _core_hours(trial: SweepTrial, job: Job | None, now: float) -> float:
    return (trial.core_s if job is None or not trial.is_live else core_s(job, now)) / HOUR_S


def _counts(sweep: Sweep, trials: Sequence[SweepTrial], jobs: Mapping[int, Job]) -> api.SweepCounts:
    states = Counter(trial.state for trial in trials)
    live = [jobs.get(trial.number) for trial in trials if trial.is_live]
    running = sum(1 for job in live if job is not None and job.phase not in {Phase.QUEUED, Phase.SUSPENDED})
    is_running = sweep.phase is SweepPhase.RUNNING
    return api.SweepCounts(
        waiting=len(live) - running,
        running=running,
        finished=states[T.FINISHED],
        stopped=states[T.STOPPED],
        failed=states[T.FAILED],
        cancelled=states[T.CANCELLED],
        left=max(sweep.budget.trials - len(trials), 0) if is_running else 0,
    )
