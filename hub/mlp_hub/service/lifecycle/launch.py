"""Conversion of a job into its executor's instructions."""

from __future__ import annotations

import msgspec

from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.jobs.tracing import traceparent
from mlp_hub.domain.stored.data import DATA, targets
from mlp_hub.domain.stored.storage import StoredKind
from mlp_hub.executors.base import Code, DataMount, EntryPoint, LaunchSpec
from mlp_hub.executors.workspace import WORKSPACE, StoredPlace
from mlp_hub.service.config import RunPolicy


def launch_spec(
    job: Job, uid: int | None, token: str, policy: RunPolicy, network: str = "none"
) -> LaunchSpec:
    """Return all that the executor needs for the present attempt; `network` is what jobs of its tenant have."""
    spec = job.spec
    env = {
        **({"MLP_LANGUAGE": spec.language} if spec.language else {}),
        "TRACEPARENT": traceparent(job.uid),  # one in `spec.env` is the user's decision
        **spec.env,
        **({"MLP_REQUEST_ID": spec.request_id} if spec.request_id else {}),
        "MLP_JOB": spec.name,
        "MLP_RUN": str(job.run),
        "MLP_USER": spec.user,
        "MLP_TENANT": spec.tenant,
        "MLP_API_URL": policy.api_url,
        **({"MLP_DATA_URL": policy.data_url} if policy.data_url else {}),
        "MLP_JOB_TOKEN": token,
        "MLP_CHECKPOINT_DIR": f"{WORKSPACE}/ckpt",
        "MLP_RESTART_COUNT": str(job.restarts),
        "MLP_METRICS_MAX": str(policy.metric_spool_max // max(len(job.placement), 1)),
    }
    if spec.replica is not None:
        env["MLP_APP"] = spec.replica.name
    if spec.checkpoint_every is not None:
        env["MLP_CHECKPOINT_EVERY"] = str(spec.checkpoint_every)
    if spec.params:
        env["MLP_PARAMS"] = msgspec.json.encode(dict(spec.params)).decode()
    if spec.trial is not None:
        env |= {"MLP_SWEEP": spec.trial.name, "MLP_TRIAL": str(spec.trial.number)}
        if spec.trial.index is not None:
            env["MLP_ARRAY_INDEX"] = str(spec.trial.index)
    if spec.tensorboard == "off":
        env["MLP_TENSORBOARD"] = spec.tensorboard
    seen = targets(spec.data, spec.user)
    if seen:
        env |= {
            "MLP_DATA": DATA,
            "MLP_DATASETS": ":".join(use.title(spec.user) for use in spec.data),
            "MLP_DATA_PATHS": ":".join(use.target for use in spec.data),
        }
    return LaunchSpec(
        attempt=job.attempt,
        job=spec.name,
        run=job.run,
        user=spec.user,
        uid=uid,
        tenant=spec.tenant,
        runtime=spec.started_by,
        workers=len(job.placement) - spec.ps,
        ps=spec.ps,
        per_worker=spec.per_worker,
        placement=job.placement,
        program=Code(spec.code or "") if spec.entry is None else EntryPoint(spec.entry),
        args=spec.args,
        env=env,
        workdir=spec.workdir,
        time_limit=job.time_left,
        grace_s=policy.grace_s,
        network=network,
        file_max=policy.disk.file,
        data=tuple(
            DataMount(StoredPlace(StoredKind.DATASET.value, use.user, use.name, job.spec.tenant), path)
            for path, use in seen.items()
        ),
        brought=spec.brought,
        listens=spec.replica is not None,
        image=None if spec.environment is None else spec.environment.image,
        environment=None
        if spec.environment is None or spec.environment.image is not None
        else StoredPlace(StoredKind.ENVIRONMENT.value, spec.tenant, spec.environment.directory, spec.tenant),
        model=None if spec.replica is None else spec.replica.model or None,
    )
