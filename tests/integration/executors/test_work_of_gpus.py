"""Real attempts are seen to work, or not, by their processors and by what the driver of the GPUs tells."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp_hub.domain.jobs.idle_gpus import WORKS_CORES, works
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptWork, LaunchSpec
from mlp_hub.executors.local import executor as local
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.local.node import Gpu
from mlp_hub.executors.nodes import NodeInfo
from support.executors.driver import Driver
from support.executors.executor_lab import PROGRAMS, ROOM, Lab
from support.waiting import until

GPU = Resources(cpu=1000, ram=512, gpu=1000)
BURNS = "while True: pass"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The library of a driver with two devices, in the place of the one that this machine lacks."""
    driver = Driver({5: 0, 2: 0})
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.setattr(local, "gpus", lambda: (Gpu(5, "h100"), Gpu(2, "h100")))
    return driver


@asynccontextmanager
async def executor(root: Path) -> AsyncIterator[SimpleNamespace]:
    lab = Lab(root)
    room = NodeInfo("here", ROOM.but(gpu=2000), ROOM.but(gpu=2000))
    one = lab.executor(nodes=(room,))
    started: list[str] = []

    async def start(program: str, **more: object) -> LaunchSpec:
        spec = lab.spec(program, **{"per_worker": GPU, **more})  # type: ignore[arg-type]
        await one.start(spec)
        started.append(spec.attempt)
        return spec

    try:
        yield SimpleNamespace(lab=lab, one=one, start=start)
    finally:
        for attempt in started:
            await one.forget(attempt)
        await one.close()


async def seen(one: LocalExecutor, spec: LaunchSpec, wanted: bool | None) -> AttemptWork:
    """Return the work of an attempt once it is as it should be."""

    async def look() -> AttemptWork | None:
        work = (await one.work_of([spec.attempt])).get(spec.attempt)
        return work if work is not None and works(work.gpu, work.cores) is wanted else None

    found: AttemptWork = await until(look, what=f"its work to be {wanted}")
    return found


async def test_a_program_that_waits_does_nothing_and_one_that_computes_works(
    tmp_path: Path, driver: Driver
) -> None:
    async with executor(tmp_path) as at:
        waits, burns = await at.start(PROGRAMS["lasts"]), await at.start(BURNS)
        assert (await seen(at.one, waits, wanted=False)).gpu == 0
        busy = await seen(at.one, burns, wanted=True)
        assert busy.cores is not None
        assert busy.cores >= WORKS_CORES
        assert busy.gpu == 0, "its device did nothing: a job that loads data"


async def test_only_the_job_of_a_device_works_when_its_engines_do(tmp_path: Path, driver: Driver) -> None:
    async with executor(tmp_path) as at:
        first, second = await at.start(PROGRAMS["lasts"]), await at.start(PROGRAMS["lasts"])
        driver.percent[2] = 3
        assert await seen(at.one, second, wanted=True)
        assert await seen(at.one, first, wanted=False)
        driver.percent[2] = 0
        driver.encoder[5] = 40
        assert (await seen(at.one, first, wanted=True)).gpu == 0.4


async def test_a_burst_between_two_looks_is_seen(tmp_path: Path, driver: Driver) -> None:
    async with executor(tmp_path) as at:
        spec = await at.start(PROGRAMS["lasts"])
        await seen(at.one, spec, wanted=False)
        driver.burst(5, 80)
        assert (await at.one.work_of([spec.attempt]))[spec.attempt].gpu == 0.8
        assert (await at.one.work_of([spec.attempt]))[spec.attempt].gpu == 0


async def test_of_a_shared_device_each_job_works_while_one_does(tmp_path: Path, driver: Driver) -> None:
    async with executor(tmp_path) as at:
        half = GPU.but(gpu=500)
        both = [await at.start(PROGRAMS["lasts"], per_worker=half) for _ in range(2)]
        driver.percent[5] = 90
        for spec in both:
            await seen(at.one, spec, wanted=True)


async def test_measures_that_the_driver_lacks_are_not_known(tmp_path: Path, driver: Driver) -> None:
    async with executor(tmp_path) as at:
        spec = await at.start(PROGRAMS["lasts"])
        await seen(at.one, spec, wanted=False)
        driver.sliced.add(5)  # MIG
        assert (await at.one.work_of([spec.attempt]))[spec.attempt].gpu is None
        driver.sliced.clear()
        driver.broken = True
        assert (await at.one.work_of([spec.attempt]))[spec.attempt].gpu is None
        assert await at.one.work_of(["nobody.0"]) == {}


async def test_a_driver_that_hangs_holds_nothing_else_up(tmp_path: Path, driver: Driver) -> None:
    async with executor(tmp_path) as at:
        spec = await at.start(PROGRAMS["lasts"])
        await seen(at.one, spec, wanted=False)
        driver.hangs = threading.Event()
        first = asyncio.ensure_future(at.one.work_of([spec.attempt]))
        try:
            await asyncio.to_thread(driver.reached.wait, 60)
            with pytest.raises(TimeoutError):
                await at.one.work_of([spec.attempt])
            assert spec.attempt in await at.one.observe([spec.attempt])
            assert spec.attempt in await at.one.disk_use([spec.attempt])
        finally:
            driver.hangs.set()
        assert spec.attempt in await first


async def test_the_use_of_a_device_in_slices_is_not_known_and_not_zero(
    driver: Driver, tmp_path: Path
) -> None:
    driver.sliced.add(2)
    async with executor(tmp_path) as at:
        (use,) = await at.one.node_use()
        assert {gpu.index: gpu.utilization for gpu in use.gpus} == {5: 0.0, 2: None}
