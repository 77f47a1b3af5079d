"""What a sweep of many trials costs the service beside as many jobs: processor time of the process that is the service, over REST."""

from __future__ import annotations

from typing import Any

import psutil

from bench_common import Context
from support.hubs.live_hub import LiveHub, tenant_use
from support.waiting import wait_for

PATIENCE_S = 1200.0
PROGRAM = """
import os
import mlp
for epoch in range(1, 4):
    mlp.report(epoch=epoch, acc=(os.getpid() * 37 + epoch) % 101)
"""
SHAPE: dict[str, Any] = {"code": PROGRAM, "cpu": 0.25, "ram": 128, "priority": "normal"}


def seconds_of_jobs(context: Context, count: int) -> float:
    """Return the processor seconds that the service takes for so many jobs, each submitted by a request; each reports three times."""
    hub, before = context.hub, _spent(context.hub)
    for number in range(count):
        hub.ok("POST", "/users/bench/jobs", "bench", {"name": f"cost-{number}", **SHAPE})
    wait_for(
        lambda: not tenant_use(hub)["cpu"] and hub.job("bench", f"cost-{count - 1}")["phase"] == "finished",
        PATIENCE_S,
        message=f"for {count} jobs to end",
        every=1.0,
    )
    return _spent(hub) - before


def seconds_of_trials(context: Context, count: int) -> float:
    """Return the same for a sweep of so many trials, with ASHA, asked for by one request."""
    hub, before = context.hub, _spent(context.hub)
    asked = {
        "name": "cost",
        "grid": {"lr": [n / count for n in range(count)]},
        "metric": "acc",
        "goal": "max",
        "stop": "asha",
        **SHAPE,
    }
    hub.ok("POST", "/users/bench/sweeps", "bench", asked)

    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = hub.ok("GET", "/users/bench/sweeps/cost", "bench")
        return found if found["state"] != "running" else None

    found = wait_for(over, PATIENCE_S, message=f"for a sweep of {count} trials to end", every=1.0)
    if found["state"] != "finished":
        raise RuntimeError(f"the sweep ended as {found['state']}: {found['message']}")
    return _spent(hub) - before


def _spent(hub: LiveHub) -> float:
    times = psutil.Process(hub.pid("service")).cpu_times()
    return float(times.user + times.system)
