"""Whether the admission policies hold: the API takes a moment for it after they were made."""

from __future__ import annotations

import asyncio

from mlp_hub.domain.errors import Unavailable
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError
from mlp_hub.kubernetes.kinds import PODS, Object
from mlp_language.message import msg

TRIES, EVERY_S = 300, 0.1
"""Safety: tries, and seconds between two of them, until policies count as not enforced."""
_RIGHTS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_SPEC = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{"name": "c", "image": "none", "securityContext": _RIGHTS}],
}


async def holds(client: KubernetesClient, namespace: str) -> bool:
    """Whether the API refuses in a tenant's namespace what it is told to.

    It judges a pod that nothing is wrong with but that it carries no label; of all policies it learns together.
    """
    pod: Object = PODS.named("mlp-none", namespace, spec=_SPEC)
    try:
        await client.try_create(pod, PODS)
    except ClusterError as error:
        if "MLP Hub" in error.said:
            return True
        if error.status != 403:  # an account that is not made yet is a 403 too
            raise
    return False


async def hold(client: KubernetesClient, namespace: str) -> None:
    """Return once it does: before that nobody is let in."""
    for _ in range(TRIES):
        if await holds(client, namespace):
            return
        await asyncio.sleep(EVERY_S)
    raise Unavailable(
        msg(
            "the cluster does not enforce the admission policies in namespace {namespace}: nobody is let in until the cluster enforces them",
            namespace=namespace,
        )
    )
