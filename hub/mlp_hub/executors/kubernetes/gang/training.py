"""TFJob and PyTorchJob of the Training Operator: a pod for each rank, each with a name that the others find."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.gang.made import Described
from mlp_hub.executors.kubernetes.gang.plan import plan
from mlp_hub.executors.kubernetes.gang.replicas import replicas, run_policy
from mlp_hub.executors.kubernetes.gang.shape import Outline, RankGroup
from mlp_hub.kubernetes.kinds import PYTORCH_JOBS, TF_JOBS

_TYPES = {"chief": "Chief", "worker": "Worker", "ps": "PS"}
"""Replica types by the roles of runtime `tf`."""


def make_tf(shape: Outline) -> Described:
    """Describe a TFJob, which has ended when its chief has."""
    parts = shape.by_role
    hosts = tuple(
        f"{shape.name}-{_TYPES[part.role].lower()}-{number}" for part in parts for number in range(part.count)
    )
    specs = {_TYPES[part.role]: replicas(shape, part, part.count, "tensorflow") for part in parts}
    spec = {"runPolicy": run_policy(shape), "tfReplicaSpecs": specs}
    return Described(shape.object(TF_JOBS, spec=spec), plan(shape, "rank", hosts, waits=True))


def make_pytorch(shape: Outline) -> Described:
    """Describe a PyTorchJob, which has ended when all ranks have.

    All ranks are its workers, and the first of them is the master. With a replica of type Master, the
    operator would make the others wait in an extra container. A namespace that is `restricted` or has a
    quota does not accept that container. Also the end of the master would be the end of the job.
    """
    part = RankGroup(shape.roles[0], 0, shape.spec.ranks)
    hosts = tuple(f"{shape.name}-worker-{number}" for number in range(part.count))
    specs = {"Worker": replicas(shape, part, part.count, "pytorch")}
    spec = {"runPolicy": run_policy(shape), "pytorchReplicaSpecs": specs}
    return Described(shape.object(PYTORCH_JOBS, spec=spec), plan(shape, "rank", hosts, waits=False))
