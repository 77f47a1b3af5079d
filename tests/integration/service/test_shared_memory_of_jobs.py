"""Jobs with shared memory of their own size: from the request to the quota, and why one waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mlp_api.jobs.jobs import Resubmit
from mlp_api.types import TenantCreate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import node, running_rig


async def test_a_quota_of_it_holds_the_second_job_back_until_the_first_has_ended(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", amounts={"shm": 100}))
        await rig.platform.users.ensure("ann")
        await rig.platform.tenants.set_member("red", "ann")
        large = {"tenant": "red", "amounts": {"shm": 80}, "sim": {"DURATION": 60, "STOP": 0.1}}
        job = await rig.submit("a", **large)
        assert job.amounts == {"shm": 80}
        await rig.until("a", "running")
        assert (await asyncio.to_thread(rig.held, "red")).amounts == (("shm", 80),)
        tenant = await rig.platform.tenants.get("red")
        assert (tenant.amounts, tenant.amounts_inuse, tenant.free["shm"]) == ({"shm": 100}, {"shm": 80}, 20)

        await rig.submit("b", **large)
        await rig.platform.admission.cycle()
        why = await rig.platform.jobs.why(SYSTEM, "ann", "b")
        assert why.reasons[0].reason == "WaitingForQuota"
        assert "--shm 20" in why.would_start_now
        await rig.platform.jobs.cancel(SYSTEM, "ann", "a")
        await rig.until("b", "running")

        await rig.until("a", "cancelled")
        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "a", Resubmit(amounts={"shm": 10}))
        assert (again.amounts, again.ram) == ({"shm": 10}, 100)
        await rig.until("a", "running")
        assert (await asyncio.to_thread(rig.held, "red")).amounts == (("shm", 90),)
