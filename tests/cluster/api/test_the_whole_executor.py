"""The executor of a cluster as the service has it: who may change tenants, and what it says of itself."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.base import Superseded, TenantPlace
from mlp_hub.executors.kubernetes.composed import ClusterExecutor
from mlp_hub.executors.kubernetes.tenancy.keeper import TenantKeeper
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NAMESPACES
from support import waiting
from support.cluster.kube import Kube
from support.cluster.kube_lab import configuration
from support.cluster.tenancy import connect_as, installation


def places(tmp_path: Path) -> Directories:
    return Directories(homes=tmp_path / "homes", jobs=tmp_path / "jobs")


async def test_a_newer_service_waits_until_an_older_one_of_its_process_has_kept_its_tenants(
    kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeps, go_on = asyncio.Event(), asyncio.Event()

    async def keep(_: object, __: object, ___: int) -> None:
        keeps.set()
        await go_on.wait()

    monkeypatch.setattr(TenantKeeper, "keep", keep)

    name = f"t{uuid.uuid4().hex[:6]}"
    at = installation(name, root=tmp_path, directories=places(tmp_path))
    client = KubernetesClient(configuration(kube.kubeconfig))
    executor = await ClusterExecutor.make(client, at)
    try:
        await executor.open()
        await executor.fence(1, 1.0)
        keeping = asyncio.ensure_future(executor.keep_tenants([TenantPlace("red")], 1))
        await keeps.wait()
        with pytest.raises(Unavailable):
            await executor.fence(2, 0.05)
        go_on.set()
        await keeping
        await executor.fence(2, 1.0)
        with pytest.raises(Superseded):
            await executor.keep_tenants([], 1)
    finally:
        await client.delete(NAMESPACES, at.namespace)
        await executor.close()


async def test_an_account_that_may_not_look_is_a_trouble_that_health_checks_tell(
    kube: Kube, tmp_path: Path
) -> None:
    account = f"blind-{uuid.uuid4().hex[:6]}"
    kube("-n", "default", "create", "serviceaccount", account)
    token = kube("-n", "default", "create", "token", account).strip()

    try:
        at = installation(account, root=tmp_path, directories=places(tmp_path))
        executor = await ClusterExecutor.make(await connect_as(kube, token), at)
        opening = asyncio.ensure_future(executor.open())
        try:

            async def told() -> str:
                return str(executor.trouble() or "")

            said = await waiting.until(told, what="trouble", every=0.05)
            assert said == (
                "the hub may not read everything that it needs of the cluster; make doctor shows the missing right"
            )
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            await executor.close()
    finally:
        kube("-n", "default", "delete", "serviceaccount", account)
