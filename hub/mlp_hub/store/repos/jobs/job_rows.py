"""Rows of jobs: the values of their columns, and values computed from some of them alone."""

from __future__ import annotations

from typing import Any

import msgspec

from mlp_hub.domain.changed import changed
from mlp_hub.domain.jobs.job import AS_SUBMITTED, Job, JobSpec, Phase
from mlp_hub.domain.jobs.stages import NO_TIMES, StageTimes
from mlp_hub.store import codec
from mlp_hub.store.records import EndedJob, SchedulingShape
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import job as t


class HistoryColumns(msgspec.Struct, array_like=True, frozen=True):
    """Data of a job that its columns lack; older hubs did not write the last one."""

    waiting_since: float | None
    waited: float
    ran: float = 0.0
    progress_from: int | None = None
    progress_since: float | None = None
    stages: StageTimes = NO_TIMES


_HISTORY = HistoryColumns.__struct_fields__
RAN = _HISTORY.index("ran")
"""Given: index of the seconds that earlier attempts ran in the JSON of `past`."""
_past_decoder = msgspec.json.Decoder(HistoryColumns)
_spec = msgspec.json.Decoder(JobSpec)
_shape = msgspec.json.Decoder(SchedulingShape)


def _usual(phase: str, queued_at: float | None, admitted_at: float | None) -> tuple[float | None, float]:
    """Return since when a job waits, and what it has waited, if all that happened to it is in these columns."""
    if phase == Phase.QUEUED:
        return queued_at, 0.0
    if queued_at is None or admitted_at is None:
        return None, 0.0
    return None, max(admitted_at - queued_at, 0.0)


def _past_of(job: Job) -> str | None:
    """Return the column of earlier events: null for most jobs, which wait once and run once."""
    usual = _usual(job.phase, job.queued_at, job.admitted_at)
    reported = (job.progress_from, job.progress_since) != (None, None)
    plain = not job.ran and not reported and job.stages == NO_TIMES
    if plain and (job.waiting_since, job.waited) == usual:
        return None
    columns = (job.waiting_since, job.waited, job.ran, job.progress_from, job.progress_since)
    return codec.dumps(columns if job.stages == NO_TIMES else (*columns, job.stages))


ROWS = Rows(
    Job,
    t,
    computed={
        "user": "spec.user",
        "name": "spec.name",
        "tenant": "spec.tenant",
        "sweep": lambda job: None if job.spec.trial is None else job.spec.trial.sweep,
        "trial": lambda job: None if job.spec.trial is None else job.spec.trial.number,
        "past": _past_of,
    },
    given=_HISTORY,
    converted={"note": codec.PRINTABLE},
)
_NEVER_CHANGED = ("uid", "user", "name", "run", "tenant", "spec", "submitted_at", "sweep", "trial")
state = ROWS.without(*_NEVER_CHANGED, "version")
"""Make the columns of a job that change during its life, without its version."""


def job_of(row: Any) -> Job:
    """Return the job of a row with all its columns."""
    past = _past(row)
    job = ROWS.of(
        row,
        waiting_since=past.waiting_since,
        waited=past.waited,
        ran=past.ran,
        progress_from=past.progress_from,
        progress_since=past.progress_since,
        stages=past.stages,
    )
    return job if job.steered is AS_SUBMITTED else changed(job, spec=job.steered.effective_spec(job.spec))


def ended_of(row: Any) -> EndedJob:
    """Return what is known of a job that ended; its program is passed over."""
    past = _past(row)
    return EndedJob(
        row.uid,
        row.name,
        row.user,
        row.tenant,
        row.phase,
        row.restarts,
        row.submitted_at,
        row.queued_at,
        row.started_at,
        row.finished_at,
        past.waited,
        past.ran,
        _shape.decode(row.spec),
        row.run,
    )


def image_of(spec: str) -> str | None:
    """Return the image of a stored specification that its runtime names.

    None if the image of its environment has precedence: images that are fetched in advance run in the
    hub's namespace, and a member names the environment's image.
    """
    found = _spec.decode(spec)
    if found.own_runtime is None or (found.environment is not None and found.environment.image is not None):
        return None
    return found.own_runtime.image


def spec_of(text: str) -> JobSpec:
    """Return a stored specification, as it was submitted."""
    found: JobSpec = _spec.decode(text)
    return found


def ran_of(row: Any) -> float:
    """Return how long all attempts that are over ran, of a row with a job's times and `past`."""
    ran = _past(row).ran
    if row.started_at is None or row.finished_at is None:
        return ran
    return float(ran + max(row.finished_at - row.started_at, 0.0))


def ran_before(row: Any) -> float:
    """Return how long all attempts before the last one ran, of such a row."""
    return _past(row).ran


def _past(row: Any) -> HistoryColumns:
    if row.past is not None:
        past: HistoryColumns = _past_decoder.decode(row.past)
        return past
    return HistoryColumns(*_usual(row.phase, row.queued_at, row.admitted_at))
