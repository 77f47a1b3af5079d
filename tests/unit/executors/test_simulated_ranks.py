"""What becomes of simulated ranks that others, or a stop, took along."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from support.executors.executor_lab import ROOM
from support.executors.executors import simulated_attempt


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[SimulatedExecutor]:
    executor = SimulatedExecutor([NodeInfo("here", ROOM, ROOM)], time.time, Directories(root, root))
    yield executor
    await executor.close()


async def until(executor: SimulatedExecutor, phase: AttemptPhase) -> Observation:
    changed = asyncio.Event()
    executor.on_change(lambda _: changed.set())
    while True:
        changed.clear()
        seen = (await executor.observe(["a.0"]))["a.0"]
        if seen.phase is phase:
            return seen
        executor.tick()  # what is due by now, and a timer for the rest
        await changed.wait()


async def test_ranks_that_another_took_along_are_stopped(tmp_path: Path) -> None:
    async with running(tmp_path) as executor:
        spec = simulated_attempt("a.0", {"SIM_DURATION": "0.05", "SIM_EXIT": "3"}, workers=2)
        await executor.start(spec)
        seen = await until(executor, AttemptPhase.FAILED)
        assert [(r.state, r.exit_code, r.signal) for r in seen.ranks] == [
            ("failed", 3, None),
            ("stopped", None, 15),
        ]


async def test_an_attempt_stopped_before_its_ranks_ran_never_started(tmp_path: Path) -> None:
    async with running(tmp_path) as executor:
        spec = simulated_attempt("a.0", {"SIM_START": "0.05", "SIM_DURATION": "600"})
        await executor.start(spec)
        await executor.stop(spec.attempt, 0.0)
        seen = await until(executor, AttemptPhase.STOPPED)
        await asyncio.sleep(0.1)  # until they would have run
        assert (await executor.observe([spec.attempt]))[spec.attempt] == seen
        assert (seen.started_at, [(r.state, r.signal) for r in seen.ranks]) == (None, [("stopped", None)])
