"""Manifests of jobs and pods that people create with kubectl."""

from __future__ import annotations

from typing import Any

from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS, Kind

QUEUE = "mlp-hub/queue"
SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


def pod_spec(**fields: Any) -> dict[str, Any]:
    """Return a pod that `restricted` lets pass; what is told of its container goes there."""
    container = {
        "name": "c",
        "image": "nothing/runs:here",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        **fields.pop("container", {}),
    }
    return {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "restartPolicy": "Never",
        **fields,
    }


def pod(name: str, labels: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a pod."""
    about = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": pod_spec(**fields)}


def asked(
    kind: Kind,
    queue: str | None,
    *,
    suspend: bool = True,
    user: str | None = "ann",
    name: str = "asked",
    labels: dict[str, str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a job as somebody asks for it with kubectl; `queue` is what its label says, `fields` are its pods'."""
    fields["container"] = {"resources": SMALL, **fields.get("container", {})}
    if kind in {PYTORCH_JOBS, TF_JOBS}:
        container = "pytorch" if kind == PYTORCH_JOBS else "tensorflow"
        fields["container"] = {**fields["container"], "name": container}
    template = {"metadata": {"labels": fields.pop("template", {})}, "spec": pod_spec(**fields)}
    runs: dict[str, Any] = {"runPolicy": {"suspend": True}} if suspend else {}
    specs = {
        JOBS: {"template": template} | ({"suspend": True} if suspend else {}),
        MPI_JOBS: runs
        | {
            "mpiReplicaSpecs": {
                "Launcher": {"template": template},
                "Worker": {"replicas": 1, "template": template},
            }
        },
        TF_JOBS: runs | {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
        PYTORCH_JOBS: runs | {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    }
    all_labels = (labels or {}) | ({QUEUE: queue} if queue is not None else {})
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "labels": all_labels,
            "annotations": {} if user is None else {"mlp-hub/user": user},
        },
        "spec": specs[kind],
    }
