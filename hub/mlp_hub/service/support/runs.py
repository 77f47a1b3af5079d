"""Runs by their names, and the names of runs and attempts as executors have them."""

from __future__ import annotations

from mlp_hub.domain.errors import not_found
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.executors.base import AttemptKey
from mlp_hub.executors.workspace import JobRun
from mlp_hub.store.tx import Tx


def run_of(job: Job) -> JobRun:
    """Return the run that a job is."""
    return JobRun(job.spec.user, job.spec.name, job.run, job.spec.tenant)


def attempt_of(job: Job) -> AttemptKey:
    """Return its present attempt."""
    return AttemptKey(job.attempt, run_of(job))


def found_job(tx: Tx, context: TenantContext, user: str, name: str) -> Job:
    """Return the job that `NAME` or `NAME@RUN` means. Raises NotFound."""
    job = tx.jobs.find(context, user, name)
    if job is None:
        raise not_found("job", name)
    return job
