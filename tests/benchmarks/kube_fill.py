"""Fills a cluster with nodes that kwok plays and pods on them, and empties it again."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS
from support.cluster.kube import Kube
from support.waiting import until

SPACE = "mlp-bench"
AT_ONCE = 24
KWOK_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
TOLERATES = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}


async def fill(
    kubeconfig: Path,
    nodes: range,
    pods: range,
    *,
    taints: Sequence[dict[str, str]] = (KWOK_TAINT,),
    on: int | None = None,
) -> float:
    """Make these nodes, which have one of the taints each in turn, and these pods on the first `on`; return the seconds."""
    began = time.monotonic()
    client = await KubernetesClient.connect(kubeconfig)
    try:
        await client.create(NAMESPACES.named(SPACE), NAMESPACES)
        await until(lambda: client.get(SERVICE_ACCOUNTS, "default", SPACE), what="the namespace")
        await all_of(client.create(node(i, taints[i % len(taints)]), NODES) for i in nodes)
        await all_of(client.create(pod(i, on or nodes.stop), PODS) for i in pods)
    finally:
        await client.close()
    return time.monotonic() - began


async def all_of(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """Do all of it, so much at a time."""
    left = iter(work)

    async def some() -> None:
        for one in left:
            await one

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def node(i: int, taint: dict[str, str]) -> dict[str, Any]:
    """Return a node with eight GPUs."""
    can = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {
        "mlp-bench": "1",
        "kubernetes.io/hostname": f"bench-{i}",
        "topology.kubernetes.io/zone": f"z{i % 8}",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"bench-{i}", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [taint]},
        "status": {"allocatable": can, "capacity": can},
    }


def pod(i: int, nodes: int) -> dict[str, Any]:
    """Return a pod that has its node; each second one looks like a hub's own that is called mlp."""
    own = {"app.kubernetes.io/managed-by": "mlp-hub", "app.kubernetes.io/instance": "mlp"}
    asks = {"cpu": "1", "memory": "2Gi"}
    container = {"name": "c", "image": "nothing/runs:here", "resources": {"requests": asks, "limits": asks}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{i}", "namespace": SPACE, "labels": own if i % 2 else {"app": "theirs"}},
        "spec": {
            "nodeName": f"bench-{i % nodes}",
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
        },
    }


def empty(kubeconfig: Path) -> None:
    """Remove all of it."""
    command = [Kube(kubeconfig).program, f"--kubeconfig={kubeconfig}", "delete"]
    pods = ["pods", "--all", f"--namespace={SPACE}", "--force", "--grace-period=0", "--wait=false"]
    for what in (pods, ["namespace", SPACE, "--wait=false"], ["nodes", "-l", "mlp-bench=1", "--wait=false"]):
        subprocess.run([*command, *what, "--ignore-not-found"], capture_output=True, check=False)
