"""Output that an attempt could not keep is in the timeline once, however it ended, and whoever was killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import Job
from mlp_hub import sandbox
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.logs import losses
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk.rules import MIB
from mlp_hub.service.lifecycle import next_action
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.reconciler import Reconciler
from mlp_hub.service.metrics.service import MetricsService
from support import no_files
from support.executors.executor_lab import ROOT
from support.executors.small_disk import KINDS, small_disk
from support.rigs import disk_rig
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

LOST = 46
LASTS = {"DURATION": 600, "STOP": 0.02, "LOST": LOST}
CUTS: dict[str, tuple[type, str]] = {
    "": (Reconciler, ""),
    "in the timeline": (Reconciler, "_add_steps"),
    "killed": (FencedEffects, "kill"),
    "forgotten": (FencedEffects, "forget"),
    "swept": (MetricsService, "store_spooled"),
}
"""Steps of an end, after which the service is killed."""


class Death:
    """Kills the platform of a rig once an act of it is done, the first time that it is."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
        self.rig, self.armed, self.dead = rig, False, False
        owner, name = CUTS[cut]
        if not name:
            return
        act: Callable[..., Awaitable[Any]] = getattr(owner, name)

        async def act_and_die(*args: Any) -> Any:
            result = await act(*args)
            if self.armed:
                self.armed, self.dead = False, True
                rig.crash()
                await asyncio.get_running_loop().create_future()  # cancelled with all else
            return result

        monkeypatch.setattr(owner, name, act_and_die)

    async def job(self, *phases: str, restarts: int = 0) -> Job:
        """Return the job once it is in one of the phases, in that attempt; the next service is started where one died."""

        async def look() -> Job | None:
            if self.dead:
                self.dead = False
                await self.rig.start()
            job = await self.rig.platform.jobs.get(SYSTEM, "ann", "j")
            return job if job.phase in phases and job.restarts == restarts else None

        found: Job = await until(look, what=f"the job to be {' or '.join(phases)}")
        return found


async def starts(rig: Rig, death: Death, **fields: Any) -> Job:
    """Return a job that runs, has lost lines, and has reported points that nobody delivered: they change the job as it ends."""
    await rig.submit("j", **{"sim": LASTS, **fields})
    job = await death.job("running")
    metrics = rig.workspace("ann", "j") / "metrics"
    lines = [f'{{"n": {n}, "t": {n}.0, "v": {{"step": {n}, "progress": {n}}}}}\n' for n in range(1, LOST + 1)]
    await asyncio.to_thread((metrics / "0.0.a.jsonl").write_text, '{"lost":3}\n' + "".join(lines))
    death.armed = True
    return job


async def finishes(rig: Rig, death: Death) -> Job:
    rig.end(await starts(rig, death))
    return await death.job("finished")


async def fails(rig: Rig, death: Death) -> Job:
    rig.end(await starts(rig, death, sim={**LASTS, "EXIT": 3}))
    return await death.job("failed")


async def is_retried(rig: Rig, death: Death) -> Job:
    rig.end(await starts(rig, death, retries=1, sim={**LASTS, "EXIT": 3}))
    return await death.job("running", restarts=1)


async def runs_out_of_time(rig: Rig, death: Death) -> Job:
    await starts(rig, death, time_limit=1)
    return await death.job("failed")


async def is_cancelled(rig: Rig, death: Death) -> Job:
    await starts(rig, death)
    await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
    return await death.job("cancelled")


async def is_suspended(rig: Rig, death: Death) -> Job:
    await starts(rig, death)
    await rig.platform.jobs.suspend(SYSTEM, "ann", "j")
    return await death.job("suspended", restarts=1)


async def is_suspended_and_hears_nothing(rig: Rig, death: Death) -> Job:
    await starts(rig, death, sim={**LASTS, "DEAF": 1})
    await rig.platform.jobs.suspend(SYSTEM, "ann", "j")
    return await death.job("suspended", restarts=1)


async def is_preempted(rig: Rig, death: Death) -> Job:
    await starts(rig, death, workers=4, priority="low")
    await rig.submit("urgent", "bob", workers=4, priority="high", sim={"DURATION": 600})
    return await death.job("queued", restarts=1)


async def is_resized(rig: Rig, death: Death) -> Job:
    await starts(rig, death, workers="1:4")
    await rig.submit("other", "bob", workers=2, sim={"DURATION": 600})
    return await death.job("running", restarts=1)


async def loses_its_node(rig: Rig, death: Death) -> Job:
    rig.executor.set_node(node("n2", 4))
    job = await starts(rig, death)
    rig.executor.lose_node(job.ranks[0].node)
    return await death.job("running", restarts=1)


async def ends_while_nobody_looks(rig: Rig, death: Death) -> Job:
    job = await starts(rig, death)
    rig.crash()
    rig.end(job)
    await rig.start()
    return await death.job("finished")


WAYS = [
    finishes,
    fails,
    is_retried,
    runs_out_of_time,
    is_cancelled,
    is_suspended,
    is_suspended_and_hears_nothing,
    is_preempted,
    is_resized,
    loses_its_node,
    ends_while_nobody_looks,
]


async def of_attempts(rig: Rig) -> list[list[str]]:
    """Return the kinds of the steps of each attempt."""
    attempts: list[list[str]] = []
    for event in await rig.platform.jobs.events(SYSTEM, "ann", "j"):
        if event.kind == "starting":
            attempts.append([])
        if attempts:
            attempts[-1].append(event.kind)
    return attempts


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_in_whatever_way_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Rig, Death], Awaitable[Job]], cut: str
) -> None:
    monkeypatch.setattr(next_action, "KILL_MARGIN_S", 0.2)
    async with running_rig(tmp_path) as rig:
        await way(rig, Death(rig, monkeypatch, cut))
        first, *_ = await of_attempts(rig)
        told = [kind for kind in first if kind in ("output-lost", "metrics-lost")]
        assert sorted(told) == ["metrics-lost", "output-lost"], first
        assert first[-1] not in told, "the end comes last"


async def test_an_attempt_that_never_started_has_lost_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        rig.executor.failing_starts = 100
        await rig.submit("j", sim=LASTS)
        await rig.until("j", "failed")
        (only,) = await of_attempts(rig)
        assert "output-lost" not in only


async def test_each_attempt_reports_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_rig(tmp_path) as rig:
        death = Death(rig, monkeypatch, "")
        await is_suspended(rig, death)
        await rig.platform.jobs.resume(SYSTEM, "ann", "j")
        await death.job("running", restarts=1)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await death.job("cancelled", restarts=1)
        assert [kinds.count("output-lost") for kinds in await of_attempts(rig)] == [1, 1]


async def test_many_that_are_stopped_at_once_report_each_their_own(tmp_path: Path) -> None:
    names = [f"j{n}" for n in range(12)]
    async with running_rig(tmp_path, node("n1", 12)) as rig:
        for name in names:
            await rig.submit(name, sim=LASTS)
        for name in names:
            await rig.until(name, "running")
        await asyncio.gather(*(rig.platform.jobs.suspend(SYSTEM, "ann", name) for name in names))
        for name in names:
            await rig.until(name, "suspended")
            kinds = [event.kind for event in await rig.platform.jobs.events(SYSTEM, "ann", name)]
            assert kinds.count("output-lost") == 1


PRINTS = """
import os, time
with open("/workspace/metrics/0.0.a.jsonl", "w") as spool:
    spool.write('{"lost":0}\\n{"n": 1, "t": 1.0, "v": {"progress": 7}}\\n')
print("up", flush=True)
while not os.path.exists("/workspace/ckpt/go"): time.sleep(0.005)
for n in range(46): print(n, "x" * 500, flush=True)
os.unlink("/workspace/ckpt/go")
time.sleep(600)
"""


@pytest.mark.skipif(not ROOT, reason="only root may mount")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_frozen_shim_could_not_write_as_its_job_was_suspended(tmp_path: Path, kind: str) -> None:
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    with small_disk(tmp_path / "disk", 256, kind) as disk:
        async with disk_rig.running_rig(disk, DiskPolicy(floor=MIB)) as rig:
            await rig.go("j", PRINTS)
            job = await rig.platform.jobs.get(SYSTEM, "ann", "j")
            run_dir, go = disk.root / "jobs-run" / f"{job.uid}.0", rig.workspace("ann", "j") / "ckpt" / "go"
            log = rig.workspace("ann", "j") / "log" / "rank-0.log"

            async def is_up() -> bool:
                return b" up" in await asyncio.to_thread(log.read_bytes)

            await until(is_up, what="the first line")
            shim = files.read_json(str(run_dir), "claim")
            assert shim is not None
            os.kill(shim["pid"], signal.SIGSTOP)
            await rig.platform.jobs.suspend(SYSTEM, "ann", "j")

            async def is_asked() -> bool:
                return await asyncio.to_thread((run_dir / "stop.json").exists)

            await until(is_asked, what="the request to end")
            no_files.ignore()
            await rig.platform.stop()
            await asyncio.to_thread(disk.fill)
            await asyncio.to_thread(go.touch)

            async def has_printed() -> bool:
                return not await asyncio.to_thread(go.exists)

            await until(has_printed, what="its lines")
            os.kill(shim["pid"], signal.SIGCONT)

            async def has_lost() -> int:
                return await asyncio.to_thread(losses.count_of, str(run_dir))

            await until(has_lost, what="lines to be lost")
            await asyncio.to_thread(disk.free)
            rig.platform = rig.make()
            await rig.start()
            await rig.until("j", "suspended")
            (first,) = await of_attempts(rig)
            assert first[-2:] == ["asked-to-end", "suspended"]
            assert first.count("output-lost") == 1
