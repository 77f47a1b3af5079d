"""A tenant's files are moved whole from one grade of isolation to another: what waits, what is refused, what is killed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mlp_api.stored.datasets import DatasetCreate
from mlp_api.types import ResourceRequestTry, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.local import kernels
from mlp_hub.executors.tenant_files import TreeRoom
from mlp_hub.sandbox.homes import open_environments
from support.rigs.platform_rig import running_rig
from support.rigs.relocating import (
    TENANT,
    ask,
    content,
    dataset,
    furnish,
    left_in_shared,
    of_tenant,
    over,
    state,
)
from support.waiting import until

LONG = {"DURATION": 600}


async def refusal(of: Any) -> tuple[Reason, str]:
    with pytest.raises(Refused) as refused:
        await of
    return refused.value.reason, str(refused.value.message)


async def test_all_files_of_a_tenant_move_to_a_dedicated_root_and_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        before, held = await asyncio.to_thread(of_tenant, rig), await asyncio.to_thread(rig.held, TENANT)
        root = rig.root.parent / "volume" / "red"
        await ask(rig, "dedicated", str(root))
        done = await over(rig, "done", "failed")
        assert (done.state, done.old, done.new) == ("done", "shared", "dedicated")
        assert done.total == done.done > 14_000
        assert dataset(rig, "pets") == root / "datasets" / "ann" / "pets"
        assert await asyncio.to_thread(of_tenant, rig) == before
        assert left_in_shared(rig) == []
        assert (rig.root / "datasets" / "bob" / "other" / "sub" / "a").exists(), (
            "others' files are left alone"
        )
        assert await asyncio.to_thread(rig.held, TENANT) == held

        await rig.submit("more", "ann", tenant=TENANT)
        await rig.until("more", "finished")
        assert (root / "jobs" / "ann" / "more").is_dir(), "what comes later lies there too"
        await ask(rig, "shared")
        assert (await over(rig, "done", "failed")).state == "done"
        assert await asyncio.to_thread(of_tenant, rig) == before
        assert (rig.root / "jobs" / "ann" / "more").is_dir()
        assert not root.exists(), "nothing is left where it was"
        entries = await rig.db.read(lambda tx: tx.audit.page(action="tenant.moved"))
        assert len(entries[0]) == 2


async def test_kernels_of_environments_go_where_these_go(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        shelf, root = rig.root / "environments" / TENANT, rig.root.parent / "volume" / "red"
        kernel = ".kernels/kernels/mlp-env-tools/kernel.json"
        await asyncio.to_thread(lambda: open_environments(rig.root, TENANT).close())
        await asyncio.to_thread(kernels.offer, shelf, "Tools", "tools-0123456789ab")
        await ask(rig, "dedicated", str(root))
        assert (await over(rig, "done", "failed")).state == "done"
        assert (root / "environments" / TENANT / kernel).is_file()
        assert not (shelf / ".kernels").exists()
        await ask(rig, "shared")
        assert (await over(rig, "done", "failed")).state == "done"
        assert (shelf / kernel).is_file()
        assert not root.exists()


async def test_running_jobs_continue_during_a_move_and_new_ones_wait_with_the_reason(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        await rig.submit("long", "ann", tenant=TENANT, sim=LONG)
        running = await rig.until("long", "running")
        await ask(rig, "dedicated", str(tmp_path / "red"))

        async def told() -> bool:
            return "waits for 1 to end: job long" in str((await state(rig)).message)

        await until(told, what="the admin to be told who still runs")
        await rig.submit("next", "ann", tenant=TENANT)

        async def waits() -> bool:
            return (await rig.platform.jobs.get(SYSTEM, "ann", "next")).reason == "TenantMoves"

        await until(waits, what="the new job to wait for that reason")
        await rig.submit("theirs", "bob")
        await rig.until("theirs", "finished", user="bob")
        asked = ResourceRequestTry(
            id="a1", applier="sp", request_type="request", tenant=TENANT, cpu=1, ram=100, user="ann"
        )
        assert (await refusal(rig.platform.ledger.try_(asked)))[0] is Reason.TENANT_MOVES
        write = rig.platform.datasets.access(SYSTEM, "ann", "pets", write=True)
        assert await refusal(write) == (
            Reason.TENANT_MOVES,
            "dataset pets cannot be written to while the files of team red are being moved; try again when that is done",
        )
        assert (await rig.platform.datasets.access(SYSTEM, "ann", "pets", write=False)).tenant == TENANT
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "long")).phase == "running"
        rig.end(await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", running.name)))
        assert (await over(rig, "done", "failed")).state == "done"
        await rig.until("next", "finished")
        assert (tmp_path / "red" / "jobs" / "ann" / "next").is_dir()
        assert (tmp_path / "red" / "jobs" / "ann" / "long").is_dir()


async def test_it_is_called_off_while_it_waits_and_nothing_is_left(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        before = await asyncio.to_thread(of_tenant, rig)
        await rig.submit("long", "ann", tenant=TENANT, sim=LONG)
        await rig.until("long", "running")
        root = tmp_path / "red"
        await ask(rig, "dedicated", str(root))
        assert (await refusal(ask(rig, "dedicated", str(tmp_path / "blue"))))[0] is Reason.WRONG_STATE
        assert (await refusal(rig.platform.tenants.delete(TENANT)))[0] is Reason.WRONG_STATE
        await ask(rig, "shared")
        failed = await over(rig, "failed")
        assert str(failed.message) == "cancelled by root"
        assert not root.exists()
        assert await asyncio.to_thread(of_tenant, rig) == before
        await rig.submit("next", "ann", tenant=TENANT)
        await rig.until("next", "finished")


class Gate:
    """Stands before the trees of tenants' files and holds up at one step, before or after it: there the process is killed."""

    def __init__(self, files: Any, step: str, number: int, *, after: bool) -> None:
        self._files, self._step, self._left, self._after = files, step, number, after
        self.reached = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        of = getattr(self._files, name)
        if name != self._step:
            return of

        async def held(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left:
                return await of(*args, **kwargs)
            if self._after:
                await of(*args, **kwargs)
            self.reached.set()
            return await asyncio.Event().wait()

        return held


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("step", "number"),
    [("enter", 1), ("room", 1), ("copy", 1), ("compare", 1), ("enter", 2), ("dissolve", 1), ("enter", 3)],
)
async def test_a_move_killed_at_any_step_loses_nothing_and_leaves_nothing(
    tmp_path: Path, step: str, number: int, *, after: bool
) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        before, held = await asyncio.to_thread(of_tenant, rig), await asyncio.to_thread(rig.held, TENANT)
        gate = Gate(rig.executor.workspace.tenants, step, number, after=after)
        rig.platform.storage_migration._files = gate  # type: ignore[assignment]
        await ask(rig, "dedicated", str(tmp_path / "red"))
        await gate.reached.wait()
        rig.crash()
        assert await asyncio.to_thread(of_tenant, rig) == before, "the files are whole at this very moment"
        await rig.start()
        assert (await over(rig, "done", "failed")).state == "done"
        assert await asyncio.to_thread(of_tenant, rig) == before
        assert left_in_shared(rig) == []
        assert await asyncio.to_thread(rig.held, TENANT) == held
        await rig.submit("next", "ann", tenant=TENANT)
        await rig.until("next", "finished")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("step", "number"), [("dissolve", 1), ("enter", 2)])
async def test_an_undo_of_a_move_that_is_killed_leaves_everything_as_it_was(
    tmp_path: Path, step: str, number: int, *, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        before = await asyncio.to_thread(of_tenant, rig)
        files = rig.executor.workspace.tenants

        async def little(*_: object) -> TreeRoom:
            await asyncio.to_thread(rig.roots.prepare, TENANT, (await rig.db.read(_new)))
            return TreeRoom(2 << 20, 1 << 20)

        monkeypatch.setattr(files, "room", little)
        gate = Gate(files, step, number, after=after)
        rig.platform.storage_migration._files = gate  # type: ignore[assignment]
        await ask(rig, "dedicated", str(tmp_path / "red"))
        await gate.reached.wait()
        rig.crash()
        await rig.start()
        failed = await over(rig, "failed")
        assert "2 MiB must be copied, but only 1 MiB are free" in str(failed.message)
        assert (await rig.platform.tenants.get(TENANT)).isolation == "shared"
        assert await asyncio.to_thread(of_tenant, rig) == before
        assert not (tmp_path / "red").exists()


def _new(tx: Any) -> Any:
    return tx.relocations.get(TENANT).new


async def test_files_changed_during_a_copy_are_copied_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        files = rig.executor.workspace.tenants
        copy, times = files.copy, []

        async def copied(*args: Any) -> None:
            await copy(*args)
            times.append(1)
            if len(times) == 1:
                await asyncio.to_thread((rig.root / "datasets/ann/pets/late").write_text, "late")

        monkeypatch.setattr(files, "copy", copied)
        await ask(rig, "dedicated", str(tmp_path / "red"))
        assert (await over(rig, "done", "failed")).state == "done"
        assert len(times) == 2
        assert (tmp_path / "red/datasets/ann/pets/late").read_text() == "late"


async def test_roots_that_cannot_be_one_are_refused_with_the_reason(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        files = rig.executor.workspace.tenants
        files._platform = (rig.root,)
        await furnish(rig)
        others = tmp_path / "blue"
        await rig.platform.tenants.create(
            TenantCreate(name="blue", isolation="dedicated", data_root=str(others))
        )
        full, open_to_all = tmp_path / "full", tmp_path / "open"
        for place in (full, open_to_all):
            place.mkdir()
        (full / "theirs").touch()
        open_to_all.chmod(0o777)
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "file").touch()
        for root, why in {
            "": "isolation dedicated needs data_root",
            "red": "give an absolute path",
            f"{tmp_path}/a/../b": "give an absolute path",
            "/": "give an absolute path",
            str(rig.root / "datasets" / "red"): "it is inside the hub's own files",
            str(tmp_path): "it is inside the hub's own files",
            str(others / "below"): "it is inside the root of team blue",
            str(full): "it is not empty",
            str(open_to_all / "red"): "others may change a directory on the way to it",
            str(tmp_path / "link" / "red"): "link on the way to it is a link",
            str(tmp_path / "link"): "is a link or not a directory",
            str(tmp_path / "file"): "is a link or not a directory",
        }.items():
            reason, said = await refusal(ask(rig, "dedicated", root))
            assert reason is Reason.INVALID
            assert why in said, (root, said)
        shared = rig.platform.tenants.update(TENANT, TenantUpdate(data_root="/srv/red"))
        assert "has no meaning with isolation shared" in (await refusal(shared))[1]
        assert (await rig.platform.tenants.get(TENANT)).move is None


async def test_a_volume_that_is_not_mounted_is_never_written_beside(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        root = tmp_path / "red"
        await ask(rig, "dedicated", str(root))
        await over(rig, "done")
        root.rename(tmp_path / "away")
        root.mkdir()
        await rig.submit("next", "ann", tenant=TENANT)

        async def told() -> bool:
            return "mount its volume" in str((await rig.platform.jobs.get(SYSTEM, "ann", "next")).message)

        await until(told, what="the job to say what it waits for")
        assert list(root.iterdir()) == []
        root.rmdir()
        (tmp_path / "away").rename(root)
        await rig.until("next", "finished")


async def test_a_tenant_whose_deletion_would_orphan_files_cannot_be_deleted(tmp_path: Path) -> None:
    async with running_rig(tmp_path / "hub") as rig:
        await rig.platform.tenants.create(
            TenantCreate(name=TENANT, isolation="dedicated", data_root=str(tmp_path / "red"))
        )
        await over(rig, "done")
        reason, said = await refusal(rig.platform.tenants.delete(TENANT))
        assert (reason, "set its isolation to shared" in said) == (Reason.WRONG_STATE, True)
        await ask(rig, "shared")
        await over(rig, "done")
        await rig.platform.tenants.delete(TENANT)


async def test_of_two_tenants_each_finds_its_own_under_one_users_name(tmp_path: Path) -> None:
    """A member of both reads across by no name: a dataset's tree is that of its own tenant, whatever job asks."""

    async with running_rig(tmp_path / "hub") as rig:
        await furnish(rig)
        await rig.platform.tenants.create(TenantCreate(name="blue"))
        await rig.platform.tenants.set_member("blue", "ann")
        await ask(rig, "dedicated", str(tmp_path / "red"))
        await over(rig, "done")
        said = await refusal(rig.submit("peek", "ann", tenant="blue", data=["pets"]))
        assert said[0] is Reason.INVALID
        assert (
            await refusal(
                rig.platform.datasets.create("ann", DatasetCreate(name="pets", size=1, tenant="blue"))
            )
        )[0] is Reason.CONFLICT
        assert content(rig.root / "datasets" / "ann") == {}
