"""From a job to what its executor is told, and the job's directory on disk."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from mlp_hub.domain.job import Job, RankStatus
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.service.config import Paths, Policy

SUBDIRECTORIES = ("ckpt", "metrics", "code")  # the program's
LOG = "log"  # written from outside of the sandbox only
INSIDE = "/workspace"


def launch_spec(job: Job, uid: int | None, token: str, paths: Paths, policy: Policy) -> LaunchSpec:
    """Return all that the executor needs for the present attempt."""
    spec = job.spec
    env = {
        **spec.env,
        "MLP_JOB": spec.name,
        "MLP_USER": spec.user,
        "MLP_TENANT": spec.tenant,
        "MLP_API_URL": policy.api_url,
        "MLP_JOB_TOKEN": token,
        "MLP_CHECKPOINT_DIR": f"{INSIDE}/ckpt",
        "MLP_RESTART_COUNT": str(job.restarts),
    }
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
        home=str(paths.home(spec.user)),
        workspace=str(paths.workspace(spec.user, spec.name)),
        entry=spec.entry,
        code=spec.code,
        args=spec.args,
        env=env,
        time_limit=None if spec.time_limit is None else float(spec.time_limit),
        grace_s=policy.grace_s,
        network=policy.job_network,
    )


def make_workspace(workspace: Path, uid: int | None) -> None:
    """Make the job's directory with its parts, the program's own for its uid; may be done again."""
    workspace.parent.mkdir(parents=True, exist_ok=True)
    workspace.mkdir(mode=0o750, exist_ok=True)
    for name in (*SUBDIRECTORIES, LOG):
        part = workspace / name
        if not part.is_symlink():
            part.mkdir(mode=0o750, exist_ok=True)
    if uid is not None:
        os.chown(workspace, uid, uid, follow_symlinks=False)
        for name in SUBDIRECTORIES:
            os.chown(workspace / name, uid, uid, follow_symlinks=False)


def remove_workspace(workspace: Path) -> None:
    """Remove the job's directory with all in it; links in it are removed, not followed."""
    if workspace.is_symlink():
        workspace.unlink()
    elif workspace.exists():
        shutil.rmtree(workspace)


def with_pending_ranks(job: Job) -> Job:
    """Return the job with its ranks as they will start, for people to see where they go."""
    workers = len(job.placement) - job.spec.ps
    ranks = tuple(
        RankStatus(r, "worker" if r < workers else "ps", node, "pending")
        for r, node in enumerate(job.placement)
    )
    return replace(job, ranks=ranks)
