"""What is worked out for one who lists the queue is there for all who list it soon after, whosever jobs they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.types import TenantCreate
from mlp_hub.service.forecast import service
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

OF = {"red": "ann", "blue": "bob"}


async def full(rig: Rig, waiting: int) -> None:
    """Let each of two tenants run one job, and have `waiting` more that do not fit."""
    for tenant, user in OF.items():
        await rig.platform.tenants.create(TenantCreate(name=tenant, cpu=4))
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(tenant, user)
        await rig.submit("runs", user, cpu=2.0, tenant=tenant, sim={"DURATION": 60})
        await rig.until("runs", "running", user=user)
        for n in range(waiting):
            await rig.submit(f"w{n}", user, cpu=4.0, tenant=tenant, sim={"DURATION": 60})


async def expected(rig: Rig, tenant: str) -> dict[str, str]:
    queue = await rig.platform.cluster_queue.entries(tenant)
    return {e.name: str(e.expected_because) for e in queue if e.phase == "queued"}


@pytest.mark.parametrize("most", [300, 2])
async def test_repeated_listing_of_a_users_own_queue_hides_nothing_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(service, "LIST_FRESH_S", 3600.0)
    monkeypatch.setattr(service, "MOST_EXPECTED", most)

    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await full(rig, 2)

        async def all_wait() -> bool:
            kept = rig.platform.admission.kept
            return kept is not None and len(kept.core.state.waiting) == 4

        await until(all_wait)
        rig.platform.forecasts._listed = (-3600.0, {})  # nobody asked yet
        for tenant in OF:
            told = await expected(rig, tenant)
            assert "no time limit" in told["w0"]
            assert bool(told["w1"]) is (most > 2)
