"""Cost of a sweep before it starts, by the queue, its limits and earlier runs."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

from mlp_api.jobs import sweeps as api
from mlp_api.jobs.earlier_runs import RunForecast
from mlp_api.localized import Text
from mlp_hub.domain.jobs.job import JobSpec, Phase
from mlp_hub.domain.jobs.sweep import Budget, SweepSpec, TrialState
from mlp_hub.domain.resources import HOUR_S, units
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.service.jobs.forecasts import forecast_to
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.support.units import maybe_when
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

LOOKED_AT = 50
"""Tuning: trials of the last run of a name, or runs of a job, that say how long one takes."""


async def preview(
    submissions: Submissions, db: Database, context: TenantContext, spec: SweepSpec, budget: Budget
) -> api.SweepPreview:
    """Ask the scheduler how many trials would run at once, and work out the rest."""
    job = spec.job
    most = min(budget.trials, spec.parallel or budget.trials)
    why, placement = await submissions.offer_of(_side_by_side(job, most))
    alone = why if placement else (await submissions.offer_of(job))[0]
    width = max(sum(placement.values()) // job.ranks_max, 1)
    trial_s, because = await db.read(lambda tx: _lasts(tx, context, spec))
    cores = units(job.per_worker.cpu) * job.ranks_min
    each = None if trial_s is None else trial_s * cores / HOUR_S
    hours = None if each is None else each * budget.trials
    if budget.core_hours is not None:
        hours = budget.core_hours if hours is None else min(hours, budget.core_hours)
    end = budget.deadline
    if trial_s is not None and alone.expected_start is not None:
        trials = budget.trials if not each or hours is None else min(budget.trials, math.ceil(hours / each))
        end = alone.expected_start + math.ceil(trials / min(width, most)) * trial_s
        end = end if budget.deadline is None else min(end, budget.deadline)
    limit = job.time_limit
    return api.SweepPreview(
        trials=budget.trials,
        at_a_time=min(width, most),
        core_hours=None if hours is None else round(hours, 4),
        core_hours_most=None if limit is None else round(cores * limit / HOUR_S * budget.trials, 4),
        trial_s=None if trial_s is None else round(trial_s, 1),
        expected_start=maybe_when(alone.expected_start),
        expected_end=maybe_when(end),
        because=Text(because),
        tenant=job.tenant,
        forecast=_start_of(alone.outlook),
    )


def _start_of(outlook: Outlook | None) -> RunForecast | None:
    """Return the range of the start alone: the end of the outlook is that of one trial."""
    if outlook is None or outlook.start is None:
        return None
    return forecast_to(replace(outlook, end=None))


def _side_by_side(job: JobSpec, most: int) -> JobSpec:
    """Return a job as large as `most` trials together: the part of it that would start gives their number."""
    ranks = job.ranks_max
    return replace(job, ps=0, workers_min=ranks, workers_max=ranks * most, topology=None)


def _lasts(tx: Tx, context: TenantContext, spec: SweepSpec) -> tuple[float | None, Message]:
    """Return how long a trial takes in seconds, and where that is known from."""
    job = spec.job
    cores = units(job.per_worker.cpu) * job.ranks_min or 1.0
    last = tx.sweeps.find(context, job.user, job.name)
    if last is not None:
        ran = [
            t.core_s / cores
            for t in tx.sweeps.trials(context, last.uid)
            if t.state is TrialState.FINISHED and t.core_s
        ]
        if ran:
            return median(ran), msg("the median trial of its last run took {s} s", s=f"{median(ran):.0f}")
    runs, _ = tx.jobs.page(context, user=job.user, name=job.name, limit=LOOKED_AT)
    lasted = [run.ran_in_all for run in runs if run.phase is Phase.FINISHED]
    if lasted:
        return median(lasted), msg(
            "the median run of job {name} took {s} s", name=job.name, s=f"{median(lasted):.0f}"
        )
    if job.time_limit is not None:
        return float(job.time_limit), msg(
            "its time limit is {s} s; nothing of this name has run yet", s=job.time_limit
        )
    return None, msg(
        "nothing of this name has run yet, and it has no time limit: the length of a trial is not known"
    )
