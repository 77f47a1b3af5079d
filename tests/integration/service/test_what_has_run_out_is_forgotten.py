"""What a refusal says of what others hold is true at that moment, also when it has run out by itself."""

from __future__ import annotations

from pathlib import Path

from mlp_api.types import TenantCreate
from mlp_hub.service.support import limits
from support.rigs.asking import asked
from support.rigs.platform_rig import node, running_rig
from support.waiting import until


async def test_a_try_that_nobody_confirmed_is_in_no_refusal_once_it_is_over(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        platform = rig.platform
        await platform.tenants.create(TenantCreate(name="blue", cpu=4))
        await platform.users.ensure("bob")
        await platform.tenants.set_member("blue", "bob")
        assert await platform.ledger.try_(asked(cpu=3))

        async def rests() -> bool:
            # what the try itself changed is behind: two cycles go by and nothing is forgotten
            known, cycles = await platform.feasibility.now(), platform.admission.cycles

            async def went_by() -> bool:
                return platform.admission.cycles > cycles + 1

            await until(went_by, what="two cycles")
            return await platform.feasibility.now() is known

        await until(rests, what="what is known to rest")
        before = await platform.feasibility.now()
        rig.ahead += limits.UNCONFIRMED_S

        async def forgotten() -> bool:
            return await platform.feasibility.now() is not before

        await until(forgotten, what="what was known of it to be forgotten")
