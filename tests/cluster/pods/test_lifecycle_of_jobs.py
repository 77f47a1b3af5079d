"""What a platform does to jobs while they run, with real pods: preemption with grace, suspending, resizing, trying again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import Job
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.nodes import NodeInfo
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab
from support.rigs.platform_rig import FAST, Rig
from support.waiting import PATIENCE_S, until

POLICY = replace(FAST, grace_s=10.0, first_uid=300_000)
ROOM = Resources(cpu=400, ram=4096)

SAVES = """
import os, signal, sys, time
def end(*_):
    print("saving", flush=True)
    time.sleep(0.3)
    print("saved", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
print("one of", os.environ["MLP_WORLD_SIZE"], flush=True)
while not os.path.exists("/workspace/go"):
    time.sleep(0.05)
"""
"""A program that heeds its grace, and ends well once it is told to by a file."""


class PodRig(Rig):
    """A platform whose jobs are pods of a lab's; its node has room for four ranks."""

    def __init__(self, root: Path, lab: KubeLab) -> None:
        super().__init__(root, policy=POLICY)
        self.lab = lab
        lab.nodes = (NodeInfo(lab.nodes[0].name, ROOM, ROOM),)
        self.directories = lab.directories
        self.executor: Any = lab.executor()
        self.platform = self.make()

    async def submit(self, name: str, user: str = "ann", **fields: Any) -> Job:
        return await super().submit(
            name, user, **{"code": SAVES, "cpu": 0.1, "ram": 128, "runtime": "plain", **fields}
        )

    async def go_on(self, name: str, user: str = "ann") -> None:
        """Have a running job end well."""
        await asyncio.to_thread((self.workspace(user, name) / "go").write_text, "")

    async def texts(self, name: str, rank: int = 0, user: str = "ann") -> list[str]:
        found = await self.platform.jobs.log_chunk(SYSTEM, user, name, rank)
        return [line.text for line in found.lines]

    async def all_run(self, name: str, ranks: int, user: str = "ann") -> Job:
        async def look() -> Job | None:
            job = await self.platform.jobs.get(SYSTEM, user, name)
            states = [rank.state for rank in job.ranks]
            if job.phase != "running" or states != ["running"] * ranks:
                return None
            # a container runs before its program can heed a signal
            told = [await self.texts(name, rank, user) for rank in range(ranks)]
            return job if all(texts and texts[-1].startswith("one of") for texts in told) else None

        found: Job = await until(look, what=f"{ranks} ranks of {name} to run", every=0.1)
        return found


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


@asynccontextmanager
async def running_rig(lab: KubeLab, tmp_path: Path) -> AsyncIterator[PodRig]:
    root = tmp_path / "service"
    root.mkdir()
    rig = PodRig(root, lab)
    await rig.start()
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield rig
        assert rig.held() == ZERO
        await until(lambda: asyncio.to_thread(lambda: not lab("get", "pods", "-o", "name")), every=0.3)
    finally:
        await rig.close()


async def test_a_preempted_job_has_its_grace_and_comes_back(lab: KubeLab, tmp_path: Path) -> None:
    async with running_rig(lab, tmp_path) as rig:
        await rig.submit("low", workers=3, priority="low")
        await rig.all_run("low", 3)
        await rig.submit("urgent", workers=2, priority="high", code="print('went')")
        await rig.until("urgent", "finished")
        assert await rig.texts("urgent") == ["went"]
        low = await rig.all_run("low", 3)
        assert low.restarts == 1
        for rank in range(3):
            assert (await rig.texts("low", rank))[:3] == ["one of 3", "saving", "saved"]
        await rig.go_on("low")
        assert (await rig.until("low", "finished")).failure is None


async def test_a_job_is_suspended_and_resumed(lab: KubeLab, tmp_path: Path) -> None:
    async with running_rig(lab, tmp_path) as rig:
        await rig.submit("job", workers=2)
        await rig.all_run("job", 2)
        await rig.platform.jobs.suspend(SYSTEM, "ann", "job")
        await rig.until("job", "suspended")
        assert rig.held() == ZERO
        assert await rig.texts("job", 1) == ["one of 2", "saving", "saved"]
        await rig.platform.jobs.resume(SYSTEM, "ann", "job")
        await rig.all_run("job", 2)
        await rig.go_on("job")
        assert (await rig.until("job", "finished")).failure is None


@pytest.mark.whole
async def test_an_elastic_job_gives_up_workers_for_another_and_takes_them_back(
    lab: KubeLab, tmp_path: Path
) -> None:
    async with running_rig(lab, tmp_path) as rig:
        await rig.submit("wide", workers="1:4")
        await rig.all_run("wide", 4)
        await rig.submit("other", user="bob", workers=2)
        await rig.all_run("other", 2, user="bob")
        await rig.all_run("wide", 2)
        await rig.go_on("other", user="bob")
        await rig.until("other", "finished", user="bob")
        assert (await rig.all_run("wide", 4)).restarts == 2
        said = await rig.texts("wide")
        assert [text for text in said if text.startswith("one of")] == ["one of 4", "one of 2", "one of 4"]
        await rig.go_on("wide")
        assert (await rig.until("wide", "finished")).failure is None


@pytest.mark.whole
async def test_a_job_that_failed_is_tried_again(lab: KubeLab, tmp_path: Path) -> None:
    code = "import os,sys\nif not os.path.exists('/workspace/tried'):\n open('/workspace/tried','w'); sys.exit(3)\nprint('ok')"

    async with running_rig(lab, tmp_path) as rig:
        await rig.submit("job", retries=1, code=code)
        done = await rig.until("job", "finished", "failed")
        assert (done.phase, done.restarts) == ("finished", 1)
        assert await rig.texts("job") == ["ok"]
