"""Helpers for tests of sweeps: start one, report for its trials, wait for its state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from mlp_api.jobs.jobs import Job
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.jobs.sweeps import Sweep, SweepCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig
from support.waiting import until

LONG = {"SIM_DURATION": "600"}


async def sweep(rig: Rig, name: str = "s", **asked: Any) -> Sweep:
    """Start a sweep of ann's whose trials run until they are ended."""
    shape = {"code": "x", "cpu": 1.0, "ram": 100, "env": LONG}
    return await rig.platform.sweeps.create(SYSTEM, "ann", SweepCreate(name=name, **{**shape, **asked}))


async def once(rig: Rig, when: Callable[[Sweep], bool], what: str, name: str = "s") -> Sweep:
    """Return the sweep once it is so."""

    async def look() -> Sweep | None:
        found = await rig.platform.sweeps.get(SYSTEM, "ann", name)
        return found if when(found) else None

    found: Sweep = await until(look, what=f"sweep {name}: {what}")
    return found


async def over(rig: Rig, name: str = "s") -> Sweep:
    """Return the sweep once it has ended."""
    return await once(rig, lambda s: s.state in {"finished", "failed", "cancelled"}, "to end", name)


async def job(rig: Rig, name: str, *phases: str) -> Job:
    """Return the job of a trial once it is there, and in one of the phases."""

    async def look() -> Job | None:
        with contextlib.suppress(Refused):
            found = await rig.platform.jobs.get(SYSTEM, "ann", name)
            return found if found.phase in phases else None
        return None

    found: Job = await until(look, what=f"trial {name} to be {' or '.join(phases)}")
    return found


async def report(
    rig: Rig, trial: str, first: int, *values: float, metric: str = "acc", progress: int = 0
) -> None:
    """Report values of a trial that runs, the first of them with this number."""
    told = {"progress": progress} if progress else {}
    points = [
        MetricPoint(n=n, t=float(n), v={metric: value, "epoch": n, **told})
        for n, value in enumerate(values, first)
    ]
    await job(rig, trial, "running")
    await rig.platform.metrics.append(SYSTEM, "ann", trial, MetricBatch(source="0.0.a", points=points))


async def finish(rig: Rig, trial: str) -> None:
    """Let a trial that runs end well."""
    rig.end(await job(rig, trial, "running"))
    await job(rig, trial, "finished")
