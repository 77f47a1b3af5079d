"""Facts of notebook servers' pods for others than the spawner.

They are: their labels, the tenants that nodes accept, GPUs, and the homes' places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlp_hub.executors.kubernetes.installation import NOTEBOOK, Installation
from mlp_hub.executors.kubernetes.nodes.devices import no_gpus
from mlp_hub.executors.kubernetes.nodes.given_capacity import node as given_node
from mlp_hub.executors.kubernetes.nodes.gpus import Gpus, NoGpus, gpus_of
from mlp_hub.executors.kubernetes.tenancy.given import not_listed as no_namespace
from mlp_hub.executors.nodes import TENANT
from mlp_hub.executors.places import home_mount
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import PODS, Object, name_of, namespace_of

__all__ = [
    "Gpus", "NoGpus", "end", "given_node", "gpus_of", "home_mount", "no_gpus", "no_namespace", "pods", "selector", "tolerations",
]  # fmt: skip


def selector(at: Installation) -> str:
    """Return the selector of all servers' pods of this hub."""
    return f"{at.selector},{names.COMPONENT}={NOTEBOOK}"


async def pods(client: KubernetesClient, at: Installation) -> Sequence[Object]:
    """List the pods of all servers, their `metadata` alone."""
    return (await client.list(PODS, labels=selector(at), metadata=True)).items


async def end(client: KubernetesClient, at: Installation, grace_s: float) -> Sequence[Object]:
    """Delete the pods of all servers, and return them; they are there for as long as their grace."""
    found = await pods(client, at)
    for pod in found:
        await client.delete(
            PODS,
            name_of(pod),
            namespace_of(pod),
            uid=pod["metadata"]["uid"],
            grace_s=max(1, math.ceil(grace_s)),
        )
    return found


def tolerations(at: Installation, tenant: str) -> list[dict[str, Any]]:
    """Return the taints that a tenant's pods tolerate: the tenant's own, and those of all the hub's pods."""
    own = {"key": TENANT, "operator": "Equal", "value": tenant, "effect": "NoSchedule"}
    return [own, *map(dict, at.tolerations)]
