"""Removal of the objects of tenants that no longer exist."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import is_ours
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import Kind
from mlp_hub.kubernetes.reflector import Key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Left:
    """Something of ours that nobody told, with the label of its tenant."""

    kind: Kind
    key: Key
    tenant: str


class Removal:
    """Removes what is ours and was not told; of a tenant's all or nothing: nothing while anything runs there."""

    def __init__(self, client: KubernetesClient, at: Installation) -> None:
        self._client, self._at = client, at

    async def remove(self, left: Sequence[Left]) -> None:
        """Remove these objects; those in a namespace are removed with it."""
        going = {each.key[1]: each.tenant for each in left if each.kind == kinds.NAMESPACES}
        held = {tenant for namespace, tenant in going.items() if await self._holds(namespace)}
        for namespace in sorted(name for name, tenant in going.items() if tenant in held):
            log.warning(
                "namespace %s is of no tenant any more; it goes when what runs in it has ended", namespace
            )
        for each in left:
            namespace, name = each.key
            if namespace in going or (each.tenant and each.tenant in held):
                continue
            found = await self._client.get(each.kind, name, namespace or None)
            if found is not None and is_ours(self._at, found):
                await self._client.delete(each.kind, name, namespace or None, uid=found["metadata"]["uid"])

    async def _holds(self, namespace: str) -> bool:
        """Whether there is a pod, or an attempt that the executor knows."""
        pods = await self._client.list(kinds.PODS, namespace)
        claims = await self._client.list(kinds.CONFIG_MAPS, namespace, labels=names.ATTEMPT)
        return bool(pods.items or claims.items)
