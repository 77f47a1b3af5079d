"""What a sweep of many trials costs the service beside as many jobs: processor time of one whole platform on simulated nodes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from pathlib import Path

from mlp_api.metrics import MetricBatch, MetricPoint
from mlp_api.sweeps import SweepCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.job import FINAL, Job, Phase
from mlp_hub.domain.tenant_context import SYSTEM
from mlp_hub.service.jobs import wire
from platform_rig import FAST, Rig, node

AT_ONCE, EPOCHS = 16, 3
LONG = {"SIM_DURATION": "100000"}


def seconds_of(root: Path, count: int, *, swept: bool) -> float:
    """Return the processor seconds for so many trials, with ASHA, or for as many jobs; each reports three times and ends."""
    return asyncio.run(_measured(root / ("sweep" if swept else "jobs"), count, swept=swept))


async def _measured(root: Path, count: int, *, swept: bool) -> float:
    root.mkdir(parents=True)
    if swept:
        import optuna  # noqa: F401 - loaded once by a hub, whatever is swept afterwards
    rig = Rig(root, node(cpu=AT_ONCE, ram=1 << 20), policy=replace(FAST, check_core=False))
    await rig.start()
    try:
        begun = time.process_time()
        driven = asyncio.ensure_future(_driven(rig, count))
        if swept:
            space = {"lr": [n / count for n in range(count)]}
            shape = {"code": "x", "cpu": 1.0, "ram": 100, "env": LONG}
            await rig.platform.sweeps.create(
                SYSTEM,
                "ann",
                SweepCreate(name="s", grid=space, metric="acc", goal="max", stop="asha", **shape),
            )
        else:
            for number in range(count):
                await rig.submit(f"j{number}", env=LONG)
        await driven
        return time.process_time() - begun
    finally:
        await rig.close()


async def _driven(rig: Rig, count: int) -> None:
    """Report for each job that runs, and let it end, until all have ended. Nothing is polled: that would be measured too."""
    running: asyncio.Queue[Job | None] = asyncio.Queue()
    ended: set[str] = set()

    def hear(job: Job, before: Job | None) -> None:
        if job.phase is Phase.RUNNING and (before is None or before.phase is not job.phase):
            running.put_nowait(job)
        if job.phase in FINAL:
            ended.add(job.uid)
            if len(ended) == count:
                running.put_nowait(None)

    rig.platform.board.on_change(hear)
    reported = 0
    while (job := await running.get()) is not None:
        reported += 1
        value = (reported * 37 % 101) / 101
        points = [MetricPoint(n=n, t=float(n), v={"acc": value, "epoch": n}) for n in range(1, EPOCHS + 1)]
        batch = MetricBatch(source="0.0.a", points=points)
        with contextlib.suppress(Refused, KeyError):  # it was stopped meanwhile
            await rig.platform.metrics.append(SYSTEM, "ann", job.reference, batch)
            rig.end(wire.job_to(job))
