"""What a dataset holds of the quota is what its files take, whatever was killed or not answered on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.stored.datasets import Dataset, DatasetCreate, DatasetHeartbeat
from mlp_api.stored.models import ModelCreate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.dataset import DatasetPhase as P
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import StoredPlace
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

SIZE = 1000
KEYS = {name: name.encode().hex() * 4 for name in ("take", "give", "late")}


class CutError(Exception):
    """The process ended here."""


class CutDatabase:
    """A database whose `cut`-th write is not made, or is made and not answered; nothing works after that."""

    def __init__(self, db: Any, cut: int, *, made: bool) -> None:
        self._db, self._cut, self._made = db, cut, made
        self.writes = 0

    async def read(self, fn: Any) -> Any:
        return await self._db.read(fn)

    async def write(self, fn: Any, **more: Any) -> Any:
        self.writes += 1
        if self.writes > self._cut or (self.writes == self._cut and not self._made):
            raise CutError
        found = await self._db.write(fn, **more)
        if self.writes == self._cut:
            raise CutError
        return found


def files(rig: Rig, name: str) -> Path:
    return rig.directories.stored(StoredPlace("dataset", "ann", name))


def put(rig: Rig, name: str, file: str, size: int) -> None:
    files(rig, name).mkdir(parents=True, exist_ok=True)
    (files(rig, name) / file).write_bytes(b"x" * size)


async def show(rig: Rig, name: str = "pets") -> Dataset:
    return await rig.platform.datasets.get(SYSTEM, "ann", name)


async def charged(rig: Rig, size: int, tenant: str = "default") -> None:
    """Wait until a tenant holds exactly so much."""

    async def look() -> bool:
        return (await asyncio.to_thread(rig.held, tenant)).rom == size

    await until(look, what=f"{tenant} to hold {size} bytes")


async def uid_of(rig: Rig, name: str = "pets") -> str:
    found = await rig.db.read(lambda tx: tx.datasets.find(SYSTEM, "ann", name))
    assert found is not None
    return found.item.uid


async def make(rig: Rig, name: str = "pets", size: int = 0) -> str:
    await rig.platform.datasets.create("ann", DatasetCreate(name=name, size=size))
    return await uid_of(rig, name)


async def say(rig: Rig, state: str, name: str = "pets") -> None:
    beat = DatasetHeartbeat(state=state, progress=0)  # type: ignore[arg-type]
    await rig.platform.datasets.heartbeat(SYSTEM, "ann", name, beat)


async def the_life(rig: Rig, go_on: Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]) -> None:
    """Make a dataset, upload a file, say that it is ready, delete it; each step is asked for through `go_on`."""
    datasets = lambda: rig.platform.datasets  # noqa: E731 - after a kill it is another one

    async def create() -> None:
        try:
            await make(rig, size=2 * SIZE)
        except Refused as refused:
            assert refused.reason is Reason.CONFLICT  # noqa: PT017 - who got no answer asks again

    await go_on(create)
    uid = await uid_of(rig)
    await go_on(lambda: datasets().grant_bytes(uid, SIZE, KEYS["take"]))
    await asyncio.to_thread(put, rig, "pets", "file", SIZE)
    await go_on(lambda: datasets().settle_bytes(uid, SIZE, SIZE, KEYS["give"]))
    found = await rig.db.read(lambda tx: tx.stored.get(uid))
    assert found is not None
    assert (found.used, found.granted) == (SIZE, 0), "taken and given once, however often it was told"

    async def ready() -> None:
        if (await show(rig)).state != "ready":
            await say(rig, "ready")

    await go_on(ready)
    await charged(rig, SIZE)

    async def delete() -> None:
        found = await rig.db.read(lambda tx: tx.datasets.find(SYSTEM, "ann", "pets"))
        if found is not None and found.phase != "deleting":
            await datasets().delete(SYSTEM, "ann", "pets", actor="ann")

    await go_on(delete)
    await charged(rig, 0)
    assert not await asyncio.to_thread(files(rig, "pets").exists)


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(1, 8))
async def test_a_dataset_whose_service_is_killed_at_any_write_is_charged_exactly(
    tmp_path: Path, cut: int, *, made: bool
) -> None:
    """Its life has seven writes: create, take, give, ready, measured, delete, gone."""

    async with running_rig(tmp_path) as rig:
        db = CutDatabase(rig.db, cut, made=made)
        service = rig.platform.datasets
        service._db = service._worker._db = db  # type: ignore[assignment]
        killed = False

        async def kill() -> None:
            nonlocal killed
            killed = True
            rig.crash()
            await rig.start()

        async def go_on(step: Callable[[], Awaitable[object]]) -> None:
            try:
                await step()
            except CutError:
                await kill()
                await step()
            # the worker writes by itself: where its write was cut, the next service is to do it
            if not killed:
                await settled()

        async def settled() -> None:
            async def look() -> bool:
                if db.writes >= cut:
                    return True
                found = await rig.db.read(lambda tx: tx.datasets.in_phases(SYSTEM, (P.DELETING, P.READY)))
                return not any(each.phase is P.DELETING or each.item.reserved for each in found)

            await until(look, what="the worker to rest")
            if db.writes >= cut:
                await kill()

        await the_life(rig, go_on)
        assert killed, f"there is no write {cut}"


async def test_an_unconfirmed_charge_is_given_back_and_not_taken_later(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        uid = await make(rig)
        datasets = rig.platform.datasets
        await datasets.grant_bytes(uid, SIZE, KEYS["take"])
        await datasets.grant_bytes(uid, SIZE, KEYS["take"])
        await charged(rig, SIZE)
        for _ in range(2):
            await datasets.settle_bytes(uid, SIZE, 0, KEYS["give"], took=KEYS["take"])
        await charged(rig, 0)
        await datasets.settle_bytes(uid, SIZE, 0, "ab" * 16, took=KEYS["late"])
        await datasets.grant_bytes(uid, SIZE, KEYS["late"])
        await charged(rig, 0)


async def test_an_upload_that_nobody_ends_fails_with_its_reason_and_is_gone_on_with(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, upload_silent_s=3600)) as rig:
        uid = await make(rig, size=50 * SIZE)
        await rig.platform.datasets.grant_bytes(uid, SIZE)
        await asyncio.to_thread(put, rig, "pets", "first", SIZE)
        await rig.platform.datasets.settle_bytes(uid, SIZE, SIZE)
        await charged(rig, 50 * SIZE)
        await rig.platform.datasets.end_silent_uploads()
        rig.ahead = 3500
        await say(rig, "creating")
        rig.ahead = 4000
        await rig.platform.datasets.end_silent_uploads()
        assert (await show(rig)).state == "creating", "its owner was heard of"
        rig.ahead = 8000
        await rig.platform.datasets.end_silent_uploads()
        failed = await show(rig)
        assert failed.state == "error"
        assert "its upload sent nothing" in str(failed.message)
        await charged(rig, SIZE)
        await say(rig, "creating")
        again = await show(rig)
        assert (again.state, str(again.message)) == ("creating", "")
        await rig.platform.datasets.grant_bytes(uid, SIZE)
        await asyncio.to_thread(put, rig, "pets", "second", SIZE)
        await rig.platform.datasets.settle_bytes(uid, SIZE, SIZE)
        await say(rig, "ready")
        await charged(rig, 2 * SIZE)


async def test_an_upload_in_progress_is_not_silent_however_long_it_takes(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, upload_silent_s=3600)) as rig:
        uid = await make(rig, size=SIZE)
        await rig.platform.datasets.grant_bytes(uid, SIZE)
        for hours in range(1, 5):
            rig.ahead = hours * 3000
            await rig.platform.datasets.end_silent_uploads()
        assert (await show(rig)).state == "creating"


async def test_changes_by_programs_in_a_dataset_are_charged_after_a_while(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await make(rig)
        await asyncio.to_thread(put, rig, "pets", "file", SIZE)
        await say(rig, "ready")
        await rig.platform.datasets.end_silent_uploads()
        await charged(rig, SIZE)
        await asyncio.to_thread(put, rig, "pets", "more", 2 * SIZE)
        rig.ahead = 1200
        await rig.platform.datasets.end_silent_uploads()
        await charged(rig, 3 * SIZE)
        assert (await show(rig)).used == 3 * SIZE


async def test_a_tenant_with_datasets_or_models_is_deleted_only_once_they_are_gone(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        platform = rig.platform
        await platform.tenants.create(TenantCreate(name="red"))
        await platform.users.ensure("ann")
        await platform.tenants.set_member("red", "ann")
        await platform.datasets.create("ann", DatasetCreate(name="pets", size=0, tenant="red"))
        await asyncio.to_thread(put, rig, "pets", "file", SIZE)
        await say(rig, "ready")
        home = Path(rig.directories.home("ann"))
        await asyncio.to_thread(home.mkdir, parents=True)
        await asyncio.to_thread((home / "net.bin").write_bytes, b"w" * 7)
        await platform.models.register(
            SYSTEM, "ann", ModelCreate(name="net", src="home/net.bin", any_files=True, tenant="red")
        )
        await platform.datasets.end_silent_uploads()
        await charged(rig, SIZE + 7, "red")
        await platform.tenants.remove_member("red", "ann")
        with pytest.raises(Refused, match="dataset pets of ann and model net@1 of ann") as refused:
            await platform.tenants.delete("red")
        assert refused.value.reason is Reason.WRONG_STATE
        await platform.datasets.delete(SYSTEM, "ann", "pets", actor="ann")
        await platform.models.delete(SYSTEM, "ann", "net", actor="ann")
        await charged(rig, 0, "red")
        await platform.tenants.delete("red")
        assert not await asyncio.to_thread(files(rig, "pets").exists)
        left = await asyncio.to_thread(lambda: [p for p in (rig.root / "models").rglob("*") if p.is_file()])
        assert left == []


async def test_files_open_again_before_anything_is_measured(tmp_path: Path) -> None:
    """A dataset of millions of files that was being written to holds up nobody: it is charged with all that was taken meanwhile."""

    async with running_rig(tmp_path) as rig:
        uid = await make(rig)
        await rig.platform.datasets.grant_bytes(uid, 2 * SIZE)
        await asyncio.to_thread(put, rig, "pets", "half", SIZE)
        worker = rig.platform.datasets._worker
        looked, look_on = worker._workspace.stored_size, asyncio.Event()

        async def slow(of: StoredPlace) -> int:
            await look_on.wait()
            return await looked(of)

        worker._workspace.stored_size = slow  # type: ignore[method-assign]
        await rig.platform.datasets.begun()
        await charged(rig, 2 * SIZE)
        look_on.set()
        await charged(rig, SIZE)
