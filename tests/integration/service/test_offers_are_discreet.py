"""What a tenant is told in offers and in answers does not name other tenants' people and jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.types import JobCreate, TenantCreate
from platform_rig import Rig, node, play

SECRETS = ("zelda", "mallory", "hidden", "nightly")


@pytest.mark.parametrize("limit", [None, 600])
def test_offers_and_answers_name_nobody_of_another_tenant(tmp_path: Path, limit: int | None) -> None:
    async def story(rig: Rig) -> None:
        for tenant, user in (("blue", "zelda"), ("green", "mallory"), ("red", "ann")):
            await rig.platform.tenants.create(TenantCreate(name=tenant))
            await rig.platform.users.ensure(user)
            await rig.platform.tenants.set_member(tenant, user)
        long = {"DURATION": 60}
        await rig.submit("hidden", "zelda", tenant="blue", workers=2, time_limit=limit, sim=long)
        await rig.until("hidden", "running", user="zelda")
        await rig.submit("hidden-2", "zelda", tenant="blue", workers=1, time_limit=700, sim=long)
        await rig.until("hidden-2", "running", user="zelda")
        await rig.submit("nightly", "mallory", tenant="green", workers=4, priority="high", sim=long)
        await rig.submit("mine", "ann", tenant="red", workers=1, sim=long)
        seen = []
        for workers in (1, 2, 4):
            asked = JobCreate(name="x", code="x", cpu=1, ram=100, tenant="red", workers=workers)
            seen.append(repr(await rig.platform.jobs.offer("ann", asked)))
        seen.append(repr(await rig.platform.jobs.why("ann", "mine")))
        seen.append(repr(await rig.platform.jobs.get("ann", "mine")))
        assert any("a job of tenant" in text for text in seen), seen
        for text in seen:
            assert not [s for s in SECRETS if s in text], text

    play(tmp_path, story, node("n1", 4))
