"""What is stored takes of its tenant's storage, in the one ledger, and is refused by the quota."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.workload.ledger import APPLIERS, OF_STORAGE
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import Rig, running_rig

GIB = 2**30


def item(uid: str, reserved: int = 0, kind: StoredKind = StoredKind.DATASET, name: str = "") -> StoredItem:
    return StoredItem(uid, kind, "red", "ann", name or uid, 1.0, reserved=reserved)


async def red(rig: Rig, rom: int | None = 10 * GIB) -> None:
    quota = {} if rom is None else {"rom": rom}
    await rig.platform.tenants.create(api.TenantCreate(name="red", **quota))


def rom(rig: Rig) -> int:
    return rig.held("red").rom


async def test_each_step_is_charged_and_given_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        storage = rig.platform.storage

        async def do(name: str, *args: object) -> int:
            def work(tx: Tx) -> None:
                getattr(storage, name)(tx, *args)

            await rig.db.write(work)
            return await asyncio.to_thread(rom, rig)

        assert await do("reserve", item("d", 4 * GIB)) == 4 * GIB
        assert await do("reserve", item("m", kind=StoredKind.MODEL)) == 4 * GIB
        assert await do("grant_bytes", "d", GIB) == 4 * GIB, "within what is reserved"
        assert await do("settle_bytes", "d", GIB, GIB // 2) == 4 * GIB
        assert await do("grant_bytes", "d", 4 * GIB) == 4 * GIB + GIB // 2
        assert await do("settle_bytes", "d", 4 * GIB, 0) == 4 * GIB
        assert await do("settle", "d", GIB // 2) == GIB // 2
        assert await do("grant_bytes", "m", GIB) == GIB // 2 + GIB
        assert await do("settle_bytes", "m", GIB, 7) == GIB // 2 + 7
        assert await do("settle", "m", 11 * GIB) == 11 * GIB + GIB // 2, "what is there is never refused"
        assert await do("settle", "gone", GIB) == await do("grant_bytes", "gone", GIB) == 11 * GIB + GIB // 2
        assert await do("drop", "d") == 11 * GIB
        assert await do("drop", "m") == 0


async def test_storage_beyond_the_quota_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        storage = rig.platform.storage
        await rig.db.write(lambda tx: storage.reserve(tx, item("d", 6 * GIB, name="digits")))
        with pytest.raises(Refused, match="dataset digits of ann") as full:
            await rig.db.write(lambda tx: storage.reserve(tx, item("e", 5 * GIB)))
        assert full.value.reason is Reason.WAITING_FOR_QUOTA
        with pytest.raises(Refused) as never:
            await rig.db.write(lambda tx: storage.reserve(tx, item("f", 11 * GIB)))
        assert never.value.reason is Reason.EXCEEDS_MAX_QUOTA
        with pytest.raises(Refused):
            await rig.db.write(lambda tx: storage.grant_bytes(tx, "d", 11 * GIB))
        with pytest.raises(Refused, match="dataset digits of ann already exists") as twice:
            await rig.db.write(lambda tx: storage.reserve(tx, item("g", 1, name="digits")))
        assert twice.value.reason is Reason.CONFLICT
        assert await asyncio.to_thread(rom, rig) == 6 * GIB
        usage = await rig.platform.tenants.usage("red")
        assert [(h.user, h.rom) for h in usage.holdings] == [("ann", 6 * GIB)]


def test_nobody_outside_asks_in_the_name_of_storage() -> None:
    assert OF_STORAGE in APPLIERS
    for asked in (api.ResourceRequestTry, api.ResourceRequestKey):
        assert OF_STORAGE not in str(asked.__annotations__["applier"])
