"""From a job to what its executor is told, and the job's directory on disk."""

from __future__ import annotations

from mlp_hub.domain.job import Job
from mlp_hub.executors.base import WORKSPACE, LaunchSpec
from mlp_hub.service.config import Paths, RunPolicy


def launch_spec(job: Job, uid: int | None, token: str, paths: Paths, policy: RunPolicy) -> LaunchSpec:
    """Return all that the executor needs for the present attempt."""
    spec = job.spec
    env = {
        **spec.env,
        "MLP_JOB": spec.name,
        "MLP_USER": spec.user,
        "MLP_TENANT": spec.tenant,
        "MLP_API_URL": policy.api_url,
        "MLP_JOB_TOKEN": token,
        "MLP_CHECKPOINT_DIR": f"{WORKSPACE}/ckpt",
        "MLP_RESTART_COUNT": str(job.restarts),
    }
    if spec.checkpoint_every is not None:
        env["MLP_CHECKPOINT_EVERY"] = str(spec.checkpoint_every)
    return LaunchSpec(
        attempt=job.attempt,
        job=spec.name,
        user=spec.user,
        uid=uid,
        tenant=spec.tenant,
        runtime=spec.runtime,
        workers=len(job.placement) - spec.ps,
        ps=spec.ps,
        per_worker=spec.per_worker,
        placement=job.placement,
        home=paths.home_name(spec.user),
        workspace=paths.workspace_name(spec.user, spec.name),
        entry=spec.entry,
        code=spec.code,
        args=spec.args,
        env=env,
        time_limit=job.time_left,
        grace_s=policy.grace_s,
        network=policy.job_network,
    )
