"""What a sweep of many trials costs the service beside as many jobs: processor time of one whole platform on simulated nodes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from mlp_api.metrics import MetricBatch, MetricPoint
from mlp_api.sweeps import SweepCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.job import FINAL, Phase
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
    rig = Rig(root, node(cpu=AT_ONCE, ram=1 << 20), policy=replace(FAST, check_core=False))
    await rig.start()
    try:
        begun = time.process_time()
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
        await _driven(rig, count)
        return time.process_time() - begun
    finally:
        await rig.close()


async def _driven(rig: Rig, count: int) -> None:
    """Report for each job that runs, and let it end, until all have ended."""
    seen: set[str] = set()
    ended: set[str] = set()
    rig.platform.board.on_change(lambda job, _: ended.add(job.uid) if job.phase in FINAL else None)
    while len(ended) < count:
        running = [
            j for uid, j in rig.platform.board.jobs.items() if j.phase is Phase.RUNNING and uid not in seen
        ]
        for job in running:
            seen.add(job.uid)
            value = (len(seen) * 37 % 101) / 101
            points = [
                MetricPoint(n=n, t=float(n), v={"acc": value, "epoch": n}) for n in range(1, EPOCHS + 1)
            ]
            try:
                await rig.platform.metrics.append(
                    SYSTEM, "ann", job.reference, MetricBatch(source="0.0.a", points=points)
                )
                rig.end(wire.job_to(job))
            except (Refused, KeyError):
                continue  # it was stopped meanwhile
        await asyncio.sleep(0.005)
