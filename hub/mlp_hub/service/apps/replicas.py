"""Replicas of apps as jobs: the job for one, and the probe whether it answers."""

from __future__ import annotations

from mlp_hub.domain.apps.app import App, replica_name
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import Job, JobSpec, Replica
from mlp_hub.domain.runtime.environment import EnvironmentUse
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.executors.base import Executor
from mlp_hub.service.apps.probing import ReplicaProbe

PROGRAM = "from mlp.serving import main\n\nmain()\n"
"""Given: program of a replica; all else is in its arguments."""


def replica_spec(app: App, slot: int, runtime: Runtime | None) -> JobSpec:
    """Return what is submitted for a replica; `runtime` is a tenant's own, None for one of the platform's."""
    spec = app.spec
    model = names.reference(spec.model, spec.version) if spec.model else ""
    args = ["--name", spec.model or app.name]
    if spec.version:
        args += ["--version", str(spec.version)]
    if spec.command:
        args += ["--port", str(spec.inner_port), "--command", spec.command]
    return JobSpec(
        name=replica_name(app.name, slot),
        user=app.user,
        tenant=app.tenant,
        runtime=spec.runtime,
        own_runtime=runtime,
        per_worker=spec.per_replica,
        code=PROGRAM,
        args=tuple(args),
        env=dict(spec.env),
        environment=EnvironmentUse(spec.environment) if spec.environment else None,
        gpu_kind=spec.gpu_kind,
        priority=spec.priority,
        tensorboard="off",
        replica=Replica(app.uid, app.name, app.generation, model, slot),
    )


def probe_of(app: App, job: Job, executor: Executor) -> ReplicaProbe:
    """Return the probe of a running replica; a command is free in its use of the path, so any answer will do."""
    command = bool(app.spec.command)
    return ReplicaProbe(executor.address(job.attempt), "/" if command else "/v2/health/ready", command)
