"""Tenants in a real cluster, kept by a keeper of the test's own installation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kubernetes_asyncio import client as api
from kubernetes_asyncio import config

from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.keeper import KEPT, TenantKeeper
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import selector
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import QUEUES, Kind, Object, name_of, namespace_of
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.waiting import PATIENCE_S, until


class Tenancy:
    """One installation in a cluster, its keeper, and what it has there."""

    def __init__(self, kube: Kube, client: KubernetesClient, at: Installation) -> None:
        self.kube, self.client, self.at = kube, client, at
        self.keeper = TenantKeeper(client, at)

    async def keep(self, *places: TenantPlace) -> None:
        await self.keeper.keep(places)

    async def all(self) -> set[tuple[str, str, str]]:
        """Name all that is there of this installation."""
        found = set()
        for kind in (*KEPT, QUEUES):
            listed = await self.client.list(kind, labels=selector(self.at))
            found |= {(kind.kind, namespace_of(each), name_of(each)) for each in listed.items}
        return found

    async def get(self, kind: Kind, name: str, tenant: str) -> Object | None:
        return await self.client.get(kind, name, self.at.namespace_of(tenant) if kind.namespaced else None)

    async def until(self, look: Callable[[], Awaitable[Any]], what: str) -> Any:
        return await until(look, what=what, every=0.05)


@contextlib.asynccontextmanager
async def tenancy(kube: Kube, name: str | None = None, **fields: Any) -> AsyncIterator[Tenancy]:
    """Have an installation of its own name, and nothing of it afterwards."""
    at = installation(name or f"t{uuid.uuid4().hex[:6]}", **fields)
    client = await KubernetesClient.connect(kube.kubeconfig)
    own = Tenancy(kube, client, at)
    try:
        yield own
    finally:
        await own.keeper.close()
        for kind in (*KEPT, QUEUES):
            for each in (await client.list(kind, labels=selector(at))).items:
                await client.delete(kind, name_of(each), namespace_of(each) or None)
        await client.close()


@asynccontextmanager
async def running_rig(kube: Kube, **fields: Any) -> AsyncIterator[Tenancy]:
    """Hand out an installation of its own; the timeout only bounds a failing test."""

    async with asyncio.timeout(PATIENCE_S), tenancy(kube, **fields) as own:
        yield own


def as_somebody(kube: Kube, who: str, namespace: str) -> Callable[..., str]:
    """Return kubectl of somebody else, in a namespace."""

    def run(*words: str, given: Any = None) -> str:
        text = given if given is None or isinstance(given, str) else json.dumps(given)
        return kube(
            f"--as={who}", "--as-group=system:authenticated", "--namespace", namespace, *words, given=text
        )

    return run


async def connect_as(kube: Kube, token: str) -> KubernetesClient:
    """Return a client of whoever has this token."""
    configuration = api.Configuration()
    await config.load_kube_config(str(kube.kubeconfig), client_configuration=configuration)
    configuration.cert_file = configuration.key_file = None
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    return KubernetesClient(configuration)
