"""Room that somebody announces a need of: no more than the disk has, and no longer than bytes of it come."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.stored.datasets import DatasetCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.datasets.worker import ANNOUNCED_S
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

MIB = 2**20


async def make(rig: Rig, size: int) -> str:
    await rig.platform.datasets.create("ann", DatasetCreate(name="pets", size=size))
    return (await rig.platform.datasets.access(SYSTEM, "ann", "pets", write=True)).uid


async def kept(rig: Rig) -> tuple[str, int]:
    await rig.platform.datasets.end_silent_uploads()
    now = await rig.platform.datasets.get(SYSTEM, "ann", "pets")
    return now.state, now.size


async def test_nobody_announces_more_than_the_disk_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        monkeypatch.setattr(rig.platform.storage, "_free", lambda: MIB)
        with pytest.raises(Refused, match=r"the disk has .* for all, but .* are requested") as refused:
            await make(rig, MIB + 1)
        assert refused.value.reason is Reason.DISK_FULL
        uid = await make(rig, MIB)
        with pytest.raises(Refused, match="the disk has"):
            await rig.platform.datasets.grant_bytes(uid, 10 * MIB)
        await rig.platform.datasets.grant_bytes(uid, MIB)


async def test_room_is_kept_while_bytes_come_and_no_longer(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        uid = await make(rig, 10 * MIB)
        rig.ahead += ANNOUNCED_S - 60
        assert await kept(rig) == ("creating", 10 * MIB)
        await rig.platform.datasets.grant_bytes(uid, MIB)
        await rig.platform.datasets.settle_bytes(uid, MIB, MIB)
        rig.ahead += ANNOUNCED_S - 60
        assert await kept(rig) == ("creating", 10 * MIB)
        rig.ahead += 120

        async def released() -> bool:
            # no file is there in truth, which a look finds sooner or later; if it stores that meanwhile, the next round releases
            state, size = await kept(rig)
            return state == "creating" and size <= MIB

        await until(released)
        await rig.platform.datasets.grant_bytes(uid, MIB)
