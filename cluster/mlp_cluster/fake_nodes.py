"""Nodes that kwok plays: they take pods and run nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from mlp_cluster.running import ClusterError, output, say

LABEL = {"type": "kwok"}
"""What every node has that kwok plays."""
ADDED = {"mlp-cluster": "added"}
"""What only the nodes of `add` have: tests make and delete nodes of their own beside them."""


def node(number: int, gpus: int) -> dict[str, Any]:
    """Return a node with GPUs as a vendor's plugins would describe it; only who tolerates it gets there."""
    labels = {
        **LABEL,
        "kubernetes.io/hostname": f"fake-{number}",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        # else the cluster adds these when it comes to it, and the node has changed
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    can = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    if gpus:
        can["nvidia.com/gpu"] = str(gpus)
        labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"fake-{number}",
            "labels": labels,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": can, "capacity": can},
    }


def add(kubeconfig: Path, count: int, gpus: int) -> None:
    """Make so many nodes; those that are there stay."""
    beside = kubeconfig.with_name("kubectl")
    kubectl = str(beside) if beside.exists() else shutil.which("kubectl")
    if kubectl is None:
        raise ClusterError(f"there is no kubectl beside {kubeconfig}, and none in PATH")
    items = [node(number, gpus) for number in range(count)]
    for item in items:
        item["metadata"]["labels"] |= ADDED
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    output(
        [kubectl, f"--kubeconfig={kubeconfig}", "apply", "--server-side", "-f", "-"], given=json.dumps(whole)
    )
    say(f"{count} nodes that kwok plays")
