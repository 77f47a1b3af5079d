"""Homes and jobs' directories take of their tenants' storage: exact once nothing writes any more, whatever was killed meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.departure import DeparturePhase, FilesChoice, JobsChoice
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume.trees.sizes import measured
from mlp_hub.executors.workspace import Home, Size
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

MIB = 2**20
CHARGED = replace(FAST, charge_files=True)
LONG = {"DURATION": 600}


def put(rig: Rig, user: str, size: int, name: str = "data.bin") -> int:
    """Have so many bytes in somebody's home; return what the home takes."""
    home = Path(rig.directories.home(user))
    home.mkdir(parents=True, exist_ok=True)
    (home / name).write_bytes(b"x" * size)
    return measured(home)


def on_disk(rig: Rig, *users: str) -> int:
    """Return what homes and jobs' directories of these users take."""
    found = [rig.directories.homes / user for user in users]
    found += [run for user in users for run in (rig.directories.jobs / user).glob("*")]
    return sum(measured(path) for path in found)


async def rom(rig: Rig, tenant: str = DEFAULT_TENANT) -> int:
    return (await asyncio.to_thread(rig.held, tenant)).rom


async def exact(rig: Rig, *users: str, tenant: str = DEFAULT_TENANT) -> None:
    """Wait until a tenant holds what its users' files take."""

    async def look() -> bool:
        return await rom(rig, tenant) == await asyncio.to_thread(on_disk, rig, *users)

    await until(look, what=f"{tenant} to be charged exactly")


def charged(tmp_path: Path) -> AbstractAsyncContextManager[Rig]:
    return running_rig(tmp_path, policy=CHARGED)


async def red(rig: Rig, rom: int | None, *users: str) -> None:
    """Make the tenant red with some storage and some members."""
    await rig.platform.tenants.create(api.TenantCreate(name="red", rom=rom))
    for user in users:
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member("red", user)


async def test_files_of_a_job_are_charged_until_it_is_deleted(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await asyncio.to_thread(put, rig, "ann", 3 * MIB)
        await rig.submit("digits", sim=LONG)
        job = await rig.until("digits", "running")
        kept = rig.workspace("ann", "digits") / "ckpt" / "best.pt"
        await asyncio.to_thread(kept.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(kept.write_bytes, b"x" * 5 * MIB)
        rig.end(job)
        await rig.until("digits", "finished")
        await exact(rig, "ann")
        assert await rom(rig) >= 8 * MIB
        usage = await rig.platform.tenants.usage(DEFAULT_TENANT)
        assert {str(h.holder) for h in usage.holdings} == {"home of ann", "files of the jobs of ann"}
        await rig.platform.jobs.delete(SYSTEM, "ann", "digits")
        run = rig.workspace("ann", "digits")
        await until(lambda: asyncio.to_thread(lambda: not run.exists()), what="the job's files to go")
        await exact(rig, "ann")
        assert 3 * MIB <= await rom(rig) < 4 * MIB, "the home alone"


async def test_stored_points_of_a_job_are_charged_until_they_are_deleted(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await rig.submit("digits", sim=LONG)
        job = await rig.until("digits", "running")
        wide = {f"m{k}": 0.5 for k in range(100)}
        points = [MetricPoint(n=n, t=1.0, v=wide) for n in range(1, 3001)]
        batch = MetricBatch(source="0.0.a", points=points)
        await rig.platform.metrics.append(SYSTEM, "ann", "digits", batch)
        stored = rig.db.read_now(lambda tx: tx.metrics.sizes([job.uid]))[job.uid]
        assert stored > 2 * MIB
        rig.end(job)
        await rig.until("digits", "finished")

        async def look(more: int) -> bool:
            return await rom(rig) == await asyncio.to_thread(on_disk, rig, "ann") + more

        await until(lambda: look(stored), what="the points to be charged")
        await rig.platform.metrics.delete(SYSTEM, "ann", "digits")
        await until(lambda: look(0), what="what they took to be given back")


async def test_a_charge_that_changes_nothing_wakes_nobody_and_jobs_that_end_together_cause_one_walk(
    tmp_path: Path,
) -> None:
    async with charged(tmp_path) as rig:
        accounting = rig.platform.file_accounting
        for name in ("one", "two", "three"):
            await rig.submit(name, sim={"DURATION": 0})
        for name in ("one", "two", "three"):
            await rig.until(name, "finished")
        await exact(rig, "ann")
        told: list[None] = []
        accounting._changed = lambda: told.append(None)
        walks: list[object] = []
        measure = accounting._workspace.disk_size

        async def noted(place: object) -> int:
            walks.append(place)
            return await measure(place)  # type: ignore[arg-type]

        accounting._workspace.disk_size = noted  # type: ignore[method-assign, assignment]
        await accounting._home("ann")
        assert (walks, told) == ([Home("ann")], [])
        jobs = [
            job
            for name in ("one", "two", "three")
            if (job := await rig.platform.jobs.get(SYSTEM, "ann", name))
        ]
        for job in jobs:
            await accounting._output(job.uid)
        assert told == []


async def test_a_limit_of_storage_that_is_set_later_holds_for_the_next_job(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await red(rig, None, "ann")
        await asyncio.to_thread(put, rig, "ann", 3 * MIB)
        await rig.submit("one", sim={"DURATION": 0}, tenant="red")
        await rig.until("one", "finished")
        await rig.submit("two", sim={"DURATION": 0}, tenant="red")
        await rig.until("two", "finished")
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann", tenant="red")
        await rig.platform.tenants.update("red", api.TenantUpdate(rom=1))
        with pytest.raises(Refused, match="the storage of red is full"):
            await rig.submit("three", sim={"DURATION": 0}, tenant="red")


@pytest.mark.parametrize("when", ["running", "ended"])
async def test_a_service_that_dies_charges_what_was_written_meanwhile(tmp_path: Path, when: str) -> None:
    async with charged(tmp_path) as rig:
        await rig.submit("digits", sim=LONG)
        job = await rig.until("digits", "running")
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann")
        if when == "ended":
            rig.crash()
            rig.end(job)
        else:
            rig.crash()
        await asyncio.to_thread(put, rig, "ann", 2 * MIB)
        left = rig.workspace("ann", "digits") / "left.bin"
        await asyncio.to_thread(left.write_bytes, b"x" * MIB)
        await rig.start()
        if when == "running":
            rig.end(await rig.platform.jobs.get(SYSTEM, "ann", "digits"))  # type: ignore[arg-type]
        await rig.until("digits", "finished")
        await exact(rig, "ann")
        assert await rom(rig) >= 3 * MIB


async def test_files_left_by_an_older_hub_are_charged_after_the_upgrade(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for name in ("one", "two"):
            await rig.submit(name, sim={"DURATION": 0})
            await rig.until(name, "finished")
            kept = rig.workspace("ann", name) / "kept.bin"
            await asyncio.to_thread(kept.write_bytes, b"x" * MIB)
        await rig.platform.users.ensure("ann")
        await asyncio.to_thread(put, rig, "ann", MIB)
        assert await rom(rig) == 0, "nothing is charged where that is not wanted"
        rig.policy = CHARGED
        await rig.restart()
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann")
        assert await rom(rig) >= 3 * MIB


async def test_growth_is_charged_while_a_job_runs_once_it_is_much(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann")

        async def charges(size: int) -> None:
            async def look() -> bool:
                return await rom(rig) >= size

            await until(look, what=f"{size} bytes to be charged")

        rig.platform.file_accounting.note({Home("ann"): Size(64 * MIB)})
        await charges(64 * MIB)
        before = await rom(rig)
        rig.platform.file_accounting.note({Home("ann"): Size(64 * MIB + 4096)})
        assert not rig.platform.file_accounting._noted, "so little is no reason to write"
        assert await rom(rig) == before
        rig.platform.file_accounting.note({Home("ann"): Size(70 * MIB)})
        await charges(70 * MIB)


async def test_only_the_user_who_fills_the_storage_is_stopped_and_warned(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await red(rig, 10 * MIB, "ann", "bob")
        for user in ("ann", "bob"):
            await rig.submit("runs", user, tenant="red", sim=LONG)
            await rig.until("runs", "running", user=user)
        await asyncio.to_thread(put, rig, "bob", MIB)
        await asyncio.to_thread(put, rig, "ann", 12 * MIB)
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann", "bob", tenant="red")
        with pytest.raises(
            Refused, match=r"the storage of red is full: .* of that by you \(home of ann: "
        ) as full:
            await rig.submit("more", tenant="red")
        assert full.value.reason is Reason.WAITING_FOR_QUOTA
        for _ in range(2):
            await rig.platform.file_accounting.full.warn()
        kinds = [event.kind for event in await rig.platform.jobs.events(SYSTEM, "ann", "runs")]
        assert kinds.count("storage-full") == 1
        assert "the storage of red is full" in str(
            (await rig.platform.jobs.why(SYSTEM, "ann", "runs")).expected_because
        )
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "runs")).phase == "running"
        await rig.submit("more", "bob", tenant="red", sim=LONG)
        await rig.until("more", "running", user="bob")
        assert "storage-full" not in [e.kind for e in await rig.platform.jobs.events(SYSTEM, "bob", "runs")]
        (rig.directories.homes / "ann" / "data.bin").unlink()
        rig.end(await rig.platform.jobs.get(SYSTEM, "ann", "runs"))  # type: ignore[arg-type]
        await rig.until("runs", "finished")
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann", "bob", tenant="red")
        await rig.submit("more", tenant="red", sim={"DURATION": 0})


async def test_a_home_counts_where_its_owner_works_and_keeps_no_tenant(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await red(rig, None, "ann")
        await asyncio.to_thread(put, rig, "ann", MIB)
        await rig.submit("digits", tenant="red", sim={"DURATION": 0})
        await rig.until("digits", "finished")
        await rig.platform.file_accounting.review_homes()
        await exact(rig, "ann", tenant="red")
        await rig.platform.tenants.remove_member("red", "ann")
        await rig.platform.file_accounting.review_homes()
        home = await asyncio.to_thread(measured, rig.directories.homes / "ann")

        async def moved() -> bool:
            return await rom(rig) == home

        await until(moved, what="the home to count for the default tenant")
        await rig.platform.tenants.delete("red")
        await exact(rig, "ann")
        assert await rom(rig, "red") == 0


async def test_a_departure_with_all_files_leaves_no_bytes_and_no_charge(tmp_path: Path) -> None:
    async with charged(tmp_path) as rig:
        await asyncio.to_thread(put, rig, "ann", MIB)
        await rig.submit("digits", sim={"DURATION": 0})
        await rig.until("digits", "finished")
        await exact(rig, "ann")
        assert await rom(rig) >= MIB
        await rig.platform.offboarding.begin("ann", JobsChoice.STOP, FilesChoice.REMOVE, actor="root")

        async def left() -> bool:
            found = await rig.platform.offboarding.departure_of("ann")
            return found is not None and found.phase is DeparturePhase.LEFT

        await until(left, what="ann to have left")
        assert await asyncio.to_thread(on_disk, rig, "ann") == await rom(rig) == 0
        assert rig.db.read_now(lambda tx: tx.stored.homes()) == []
