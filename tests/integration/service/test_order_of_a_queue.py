"""The order of a tenant's queue, from the tenant that is saved to the job that starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store.records import DecayedUsage
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import running_rig
from support.waiting import until


@pytest.mark.parametrize(("order", "first"), [("priority", "urgent"), ("fifo", "older")])
async def test_a_queue_goes_by_the_order_that_is_saved_last_for_its_tenant(
    tmp_path: Path, order: str, first: str
) -> None:
    async with running_rig(tmp_path) as rig:
        tenants = rig.platform.tenants
        other = "fifo" if order == "priority" else "priority"
        made = await tenants.create(TenantCreate(name="red", queue_order=other))
        assert made.queue_order == other
        await tenants.set_member("red", "ann")
        everything = {"workers": 4, "tenant": "red", "sim": {"DURATION": 60}}
        await rig.submit("runs", priority="high", **everything)
        await rig.until("runs", "running")
        await rig.submit("older", priority="normal", **everything)
        await rig.submit("urgent", priority="high", **everything)
        saved = await tenants.update("red", TenantUpdate(queue_order=order))
        assert saved.queue_order == order
        await rig.restart()  # it is kept
        await rig.platform.jobs.cancel(SYSTEM, "ann", "runs")
        await rig.until(first, "running")
        last = "older" if first == "urgent" else "urgent"
        assert (await rig.until(last, "queued")).started_at is None


@pytest.mark.parametrize("order", ["fair", "maxmin"])
async def test_recent_usage_of_members_outlives_the_hub(tmp_path: Path, order: str) -> None:
    async with running_rig(tmp_path) as rig:
        tenants = rig.platform.tenants
        await tenants.create(TenantCreate(name="red", queue_order=order))
        for user in ("ann", "bob"):
            await tenants.set_member("red", user)
        everything = {"workers": 4, "tenant": "red"}
        await rig.submit("before", sim={"DURATION": 0.3}, **everything)
        await rig.until("before", "finished")
        await rig.submit("runs", user="cat", workers=4, sim={"DURATION": 60})
        await rig.until("runs", "running", user="cat")
        await rig.submit("anns", sim={"DURATION": 60}, **everything)
        await rig.until("anns", "queued")
        await rig.submit("bobs", user="bob", sim={"DURATION": 60}, **everything)
        await rig.restart()
        await rig.platform.jobs.cancel(SYSTEM, "cat", "runs")
        await rig.until("bobs", "running", user="bob")


async def test_members_who_leave_nothing_behind_are_forgotten(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:

        def put(tx: Tx) -> None:
            tx.usage.put_many({a: DecayedUsage(1.0, 5.0) for a in ("red", "red/ann", "blue_1", "redder/ann")})

        await rig.platform.db.write(put)
        await rig.platform.db.write(lambda tx: tx.usage.remove("red"))
        assert set(await rig.platform.db.read(lambda tx: tx.usage.all())) == {"blue_1", "redder/ann"}
        await rig.platform.db.write(lambda tx: tx.usage.delete_before(6.0))
        assert set(await rig.platform.db.read(lambda tx: tx.usage.all())) == {"blue_1"}


async def test_of_a_long_queue_the_first_of_all_lines_are_shown_with_how_many_there_are(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        for name in ("blue", "red"):
            await rig.platform.tenants.create(TenantCreate(name=name))
            await rig.platform.tenants.set_member(name, "ann")
        await rig.submit("runs", workers=4, tenant="red", sim={"DURATION": 60})
        await rig.until("runs", "running")
        for tenant in ("blue", "red"):
            for n in range(1, 4):
                await rig.submit(f"{tenant}-{n}", workers=4, tenant=tenant, sim={"DURATION": 60})
        queue = rig.platform.cluster_queue

        async def all_stand_in_line() -> bool:
            return all(e.position for e in await queue.entries() if e.phase == "queued")

        await until(all_stand_in_line, what="all to stand in line")
        found, total = await queue.first(most=2)
        assert ([e.name for e in found], total) == (["runs", "blue-1", "red-1"], 7)
        found, total = await queue.first("red", 2)
        assert ([e.name for e in found], total) == (["runs", "red-1", "red-2"], 4)
        assert len(await queue.entries()) == 7
