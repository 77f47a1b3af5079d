"""A home that takes for ever to measure, and a process with countless open files: the floor is watched as if they were not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.base import DiskUse
from mlp_hub.executors.local import disk
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.shared_volume import workspace as shared_volume
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.turns import Steps
from mlp_hub.executors.workspace import Home, Size, Space
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk.rules import GIB, MIB
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

FLOOR = replace(FAST, disk=DiskPolicy(floor=GIB, home=GIB))


def endless(size: int) -> Steps[Size]:
    while True:
        yield size


@pytest.fixture(autouse=True)
def huge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make homes of millions of files: of ann, and of bob, who holds more than anybody may."""
    measure = shared_volume.measure
    sizes = {"ann": MIB, "bob": 2 * GIB}

    def measured(path: Path) -> Steps[Size]:
        return endless(sizes[path.name]) if path.name in sizes else measure(path)

    monkeypatch.setattr(shared_volume, "measure", measured)


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> list[Space]:
    """Say how much room there is; the last one counts."""
    told = [Space(100 * GIB, 50 * GIB)]
    monkeypatch.setattr(shared_volume, "space_of", lambda path: told[-1] if path.exists() else None)
    return told


async def told(rig: Rig, full: bool) -> None:
    async def look() -> bool:
        return bool(await rig.platform.disk.problems()) is full

    await until(look, what="the watch to notice")


async def test_its_owner_submits_and_the_floor_is_watched_meanwhile(
    tmp_path: Path, space: list[Space]
) -> None:
    async with running_rig(tmp_path, policy=FLOOR) as rig:
        for path in (rig.directories.homes, rig.directories.jobs):
            path.mkdir(exist_ok=True)
        await asyncio.gather(*(rig.submit(f"a{n}", "ann", sim={"DURATION": 60}) for n in range(3)))
        await rig.until("a0", "running", user="ann")
        for _ in range(3):
            space.append(Space(100 * GIB, GIB // 2))
            await told(rig, full=True)
            space.append(Space(100 * GIB, 50 * GIB))
            await told(rig, full=False)
        await rig.submit("c", "cat")
        await rig.until("c", "running", "finished", user="cat")


async def test_a_partial_measurement_of_a_home_is_enough_to_refuse(
    tmp_path: Path, space: list[Space]
) -> None:
    async with running_rig(tmp_path, policy=FLOOR) as rig:
        assert space
        for path in (rig.directories.homes, rig.directories.jobs):
            path.mkdir(exist_ok=True)
        with pytest.raises(Refused) as refused:
            await rig.submit("b", "bob")
        assert refused.value.reason is Reason.DISK_FULL
        assert "the home of bob holds 2048 MiB" in refused.value.msg


def test_countless_open_files_of_one_job_delay_nobody_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_of = disk.use_of

    def asked(run_dirs: Iterable[str], devices: Collection[int]) -> Steps[DiskUse]:
        found = list(run_dirs)
        if any(name.endswith("countless.0") for name in found):
            while True:
                yield 0
        return (yield from use_of(found, devices))

    monkeypatch.setattr(disk, "use_of", asked)
    executor = LocalExecutor(tmp_path / "run", Directories(tmp_path / "homes", tmp_path / "jobs"))
    whose = ["countless.0", "other.0", Home("ann")]
    for _ in range(2):
        found = asyncio.run(executor.disk_use(whose))
        assert found.keys() <= {"other.0", Home("ann")}
    assert "other.0" in asyncio.run(_told_of(executor, whose))


async def _told_of(executor: LocalExecutor, whose: list[str | Home]) -> set[str | Home]:
    seen: set[str | Home] = set()

    async def look() -> bool:
        seen.update(await executor.disk_use(whose))
        return seen >= {"other.0", Home("ann")}

    await until(look, what="the others")
    return seen
