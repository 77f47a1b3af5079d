"""Names of runs and attempts as executors have them."""

from __future__ import annotations

from mlp_hub.domain.job import Job
from mlp_hub.executors.base import AttemptKey
from mlp_hub.executors.workspace import JobRun


def run_of(job: Job) -> JobRun:
    """Return the run that a job is."""
    return JobRun(job.spec.user, job.spec.name, job.run, job.spec.tenant)


def attempt_of(job: Job) -> AttemptKey:
    """Return its present attempt."""
    return AttemptKey(job.attempt, run_of(job))
