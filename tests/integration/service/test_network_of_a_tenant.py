"""What network a tenant's jobs have is the tenant's setting: in force, and shown before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import FAST, Rig, running_rig


def networks(rig: Rig) -> list[str]:
    """Note what network each attempt is started with."""
    seen: list[str] = []
    start = rig.executor.start

    async def noting(spec: LaunchSpec, epoch: int = 0) -> None:
        seen.append(spec.network)
        await start(spec, epoch)

    rig.executor.start = noting  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("hubs", ["none", "outbound"])
async def test_a_tenants_own_setting_holds_and_the_hubs_for_those_that_say_nothing(
    tmp_path: Path, hubs: str
) -> None:
    other = {"none": "outbound", "outbound": "none"}[hubs]

    async with running_rig(tmp_path, policy=replace(FAST, job_network=hubs)) as rig:
        seen = networks(rig)
        tenants = rig.platform.tenants
        assert (await tenants.create(TenantCreate(name="red"))).job_network == hubs
        await tenants.set_member("red", "ann")
        for number, (said, has) in enumerate(((None, hubs), (other, other), (hubs, hubs), (None, hubs))):
            shown = await tenants.update("red", TenantUpdate(network=said))  # type: ignore[arg-type]
            assert (shown.network, shown.job_network) == (said, has)
            asked = JobCreate(name="offered", code="x", tenant="red", ram=100)
            offer = await rig.platform.jobs.offer("ann", asked)
            assert (offer.tenant, offer.network) == ("red", has)
            await rig.submit(f"job{number}", tenant="red", sim={"DURATION": 0.05})
            await rig.until(f"job{number}", "finished")
            assert seen[-1] == has
        await rig.restart()
        assert (await rig.platform.tenants.get("red")).network is None


async def test_a_start_reads_its_tenant_only_where_tenants_have_changed(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        networks = rig.platform.reconciler._networks
        reads: list[str] = []
        read = rig.db.read

        async def noting(work: Callable[[Tx], object]) -> object:
            reads.append("")
            return await read(work)

        networks._db = SimpleNamespace(read=noting)  # type: ignore[assignment]
        for n in range(3):
            await rig.submit(f"job{n}", sim={"DURATION": 0.05})
            await rig.until(f"job{n}", "finished")
        assert len(reads) == 1
        await rig.platform.tenants.create(TenantCreate(name="red"))
        await rig.submit("last", sim={"DURATION": 0.05})
        await rig.until("last", "finished")
        assert len(reads) == 2


async def test_a_setting_that_changes_during_its_read_is_read_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        networks = Networks(rig.db, "none")
        asked = asyncio.ensure_future(networks.network_of("default"))
        await asyncio.sleep(0)  # it reads
        networks.forget()
        await asked
        await rig.db.write(lambda tx: tx.tenants.update(Tenant("default", network="outbound")))
        assert await networks.network_of("default") == "outbound"
