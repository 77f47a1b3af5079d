"""The order of a tenant's queue, from the tenant that is saved to the job that starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.types import TenantCreate, TenantUpdate
from platform_rig import Rig, play


@pytest.mark.parametrize(("order", "first"), [("priority", "urgent"), ("fifo", "older")])
def test_a_queue_goes_by_the_order_that_is_saved_last_for_its_tenant(
    tmp_path: Path, order: str, first: str
) -> None:
    async def story(rig: Rig) -> None:
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
        await rig.platform.jobs.cancel("ann", "runs")
        await rig.until(first, "running")
        last = "older" if first == "urgent" else "urgent"
        assert (await rig.until(last, "queued")).started_at is None

    play(tmp_path, story)
