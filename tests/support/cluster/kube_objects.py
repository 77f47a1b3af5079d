"""Nodes and pods as a cluster's API has them."""

from __future__ import annotations

from typing import Any

READY = ({"type": "Ready", "status": "True", "message": "kubelet is posting ready status"},)
LOST = (
    {"type": "MemoryPressure", "status": "Unknown", "message": "Kubelet stopped posting node status."},
    {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."},
)


def node_object(
    name: str = "n",
    *,
    cpu: str = "8",
    ram: str = "32Gi",
    gpus: int = 0,
    more: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    taints: tuple[dict[str, str], ...] = (),
    conditions: tuple[dict[str, str], ...] = READY,
    **spec: Any,
) -> dict[str, Any]:
    can = {
        "cpu": cpu,
        "memory": ram,
        "pods": "110",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
        **(more or {}),
    }
    return {
        "metadata": {"name": name, "labels": labels or {}, "resourceVersion": "1"},
        "spec": {**({"taints": list(taints)} if taints else {}), **spec},
        "status": {"capacity": can, "allocatable": can, "conditions": list(conditions)},
    }


def container(name: str = "c", *, restart: str | None = None, **requests: str) -> dict[str, Any]:
    """Make a container; of `gpu` and `mig` the resource's name is made."""
    names = {"gpu": "nvidia.com/gpu", "rom": "ephemeral-storage"}
    found: dict[str, Any] = {
        "name": name,
        "resources": {"requests": {names.get(k, k): v for k, v in requests.items()}},
    }
    return found if restart is None else {**found, "restartPolicy": restart}


def pod_object(
    name: str = "p",
    node: str | None = "n",
    *containers: dict[str, Any],
    owner: str | None = None,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    owners = [] if owner is None else [{"kind": owner, "name": "o", "apiVersion": "v1", "uid": "1"}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}, "ownerReferences": owners},
        "spec": {
            "containers": list(containers) or [container()],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": status or {"phase": "Running"},
    }
