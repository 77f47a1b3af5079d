"""What a person sees of a job that runs as pods: when it came to which stage, and what its ranks use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk.rules import MIB
from mlp_hub.service.platform import Platform
from mlp_hub.store.database import Database
from support import waiting
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab, until
from support.rigs.platform_rig import FAST

PODS = ["created", "bound", "pulled"]
USES = """
import os, time
held = bytearray(os.urandom(1 << 20)) * 60
print("holds it", flush=True)
until = time.time() + 600
while time.time() < until and not os.path.exists("/workspace/enough"):
    sum(range(100_000))
"""


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


async def test_ranks_tell_what_they_use_while_they_run_and_all_of_it_in_the_end(lab: KubeLab) -> None:
    async with lab.executing() as executor:
        spec = lab.spec(USES, workers=2, per_worker=Resources(cpu=500, ram=256))
        began = time.time()
        await executor.start(spec)

        async def used() -> Observation | None:
            seen = (await executor.observe([spec.attempt]))[spec.attempt]
            known = seen.ranks and all((r.cpu or 0) > 0 and (r.ram or 0) >= 60 for r in seen.ranks)
            return seen if known and seen.stages.first_line is not None else None

        seen = await waiting.until(used, what="each rank to say what it uses")
        assert all(60 <= (rank.ram or 0) < 256 and rank.cpu_mean is None for rank in seen.ranks)
        assert seen.started_at is not None
        s = seen.stages
        order = [began - 1, s.created, s.bound, s.pulled, seen.started_at, s.first_line]
        assert order == sorted(order), order
        # who comes later finds the same, from what the cluster and the volume keep
        another = lab.executor()
        try:
            again = (await another.observe([spec.attempt]))[spec.attempt].stages
            assert again.first_line == s.first_line
            for stage in PODS:
                assert abs((getattr(again, stage) or 0) - (getattr(s, stage) or 0)) <= 1.0
        finally:
            await another.close()
        (lab.directories.at(spec.of_run) / "enough").touch()
        over = await until(executor, spec.attempt, AttemptPhase.SUCCEEDED)
        assert [(rank.state, rank.cpu, rank.ram) for rank in over.ranks] == [("finished", None, None)] * 2
        for rank in over.ranks:
            assert 0 < (rank.ram_mean or 0) <= (rank.ram_peak or 0)
            assert 60 <= (rank.ram_peak or 0) <= 256
            assert 0 < (rank.cpu_mean or 0) <= (rank.cpu_peak or 0)
        left = [path.name for path in (lab.directories.at(spec.of_run) / "log").glob("*.use")]
        assert left == []


async def test_ranks_of_mpi_tell_it_too(lab: KubeLab) -> None:
    async with lab.executing() as executor:
        spec = lab.spec(USES, runtime="mpi", workers=2, per_worker=Resources(cpu=500, ram=256))
        await executor.start(spec)

        async def used() -> Observation | None:
            seen = (await executor.observe([spec.attempt]))[spec.attempt]
            return seen if seen.ranks and all((r.ram or 0) >= 60 for r in seen.ranks) else None

        seen = await waiting.until(used, what="each rank to say what it uses")
        assert None not in (seen.stages.created, seen.stages.bound, seen.stages.pulled)
        (lab.directories.at(spec.of_run) / "enough").touch()
        over = await until(executor, spec.attempt, AttemptPhase.SUCCEEDED)
        assert all((rank.ram_peak or 0) >= 60 for rank in over.ranks)


async def test_stages_outlive_the_pods_and_the_service(lab: KubeLab) -> None:
    """From the queue to the first line, as REST tells it, of two attempts; then the pods are gone and the service is another."""

    db = Database(str(lab.directories.jobs.parent / "mlp.sqlite"))
    db.create_schema()
    executor = lab.executor()
    policy = replace(FAST, grace_s=5.0, first_uid=300_000)
    platform = Platform(db, executor, time.time, policy, alone=True)
    await platform.start()
    try:
        code = "import os, time\nprint('here', flush=True)\nos.path.exists('/workspace/enough') or time.sleep(600)"
        asked = JobCreate(name="a", code=code, cpu=0.1, ram=128)
        await platform.jobs.submit("ann", asked)

        async def written(number: int) -> list[str] | None:
            told = await platform.jobs.attempts(SYSTEM, "ann", "a")
            names = [stage.stage for stage in told[-1].stages]
            return names if told[-1].attempt == number and names[-1] == "first-line" else None

        whole = ["queued", "admitted", *PODS, "started", "first-line"]
        assert await waiting.until(lambda: written(1), what="its first line") == whole
        job = await platform.jobs.get(SYSTEM, "ann", "a")
        await platform.jobs.suspend(SYSTEM, "ann", "a")
        await waiting.until(lambda: _is(platform, "suspended"), what="it to be suspended")
        next(iter(lab.directories.jobs.glob("ann/*"))).joinpath("enough").touch()
        await platform.jobs.resume(SYSTEM, "ann", "a")
        await waiting.until(lambda: _is(platform, "finished"), what="it to be finished")
        await waiting.until(lambda: _nothing(lab), what="its pods to be gone")
        before = await platform.jobs.attempts(SYSTEM, "ann", "a")
        await platform.stop()
        platform = Platform(db, executor, time.time, policy, alone=True)
        await platform.start()
        told = await platform.jobs.attempts(SYSTEM, "ann", "a")
        assert told == before
        assert [(a.attempt, a.ended) for a in told] == [(1, "suspended"), (2, "ended")]
        assert [[s.stage for s in a.stages] for a in told] == [whole, whole]
        assert all((s.seconds or 0) >= 0 for a in told for s in a.stages)
        started = next(s.time for s in told[0].stages if s.stage == "started")
        assert started == job.started_at
    finally:
        await platform.stop()
        await executor.close()
        await asyncio.to_thread(db.close)


async def test_a_job_whose_pod_fills_the_volume_is_stopped_at_its_bound(lab: KubeLab) -> None:
    """Directories on the volume are measured as on one machine; what processes write is not known here."""

    db = Database(str(lab.directories.jobs.parent / "mlp.sqlite"))
    db.create_schema()
    executor = lab.executor()
    policy = replace(FAST, grace_s=5.0, first_uid=300_000, disk=DiskPolicy(job=20 * MIB))
    platform = Platform(db, executor, time.time, policy, alone=True)
    await platform.start()
    try:
        code = "import time\nopen('/workspace/ckpt/big', 'wb').write(bytes(40 << 20))\ntime.sleep(600)"
        await platform.jobs.submit("ann", JobCreate(name="a", code=code, cpu=0.1, ram=256))
        await waiting.until(lambda: _is(platform, "failed"), what="it to be stopped")
        job = await platform.jobs.get(SYSTEM, "ann", "a")
        assert job.reason == "disk"
    finally:
        await platform.stop()
        await executor.close()
        await asyncio.to_thread(db.close)


async def _is(platform: Platform, phase: str) -> bool:
    return (await platform.jobs.get(SYSTEM, "ann", "a")).phase == phase


async def _nothing(lab: KubeLab) -> bool:
    return not await asyncio.to_thread(lab.left)
