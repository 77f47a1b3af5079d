"""The executor of simulated nodes keeps the same contract as the one of real sandboxes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from executor_contract import ExecutorContract
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Executor, LaunchSpec, NodeInfo
from mlp_hub.executors.simulated import SimulatedExecutor

ROOM = Resources(cpu=64_000, ram=64_000)
PROGRAMS = {
    "succeeds": {"SIM_DURATION": "0.05"},
    "fails": {"SIM_DURATION": "0.05", "SIM_EXIT": "3"},
    "dies": {"SIM_DURATION": "0.05", "SIM_SIGNAL": "9"},
    "lasts": {"SIM_DURATION": "600"},
    "late": {"SIM_START": "0.05", "SIM_DURATION": "600"},
}


class TestSimulatedExecutor(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = tmp_path
        self.count = 0

    def make_executor(self) -> Executor:
        return SimulatedExecutor(
            [NodeInfo("here", ROOM, ROOM)], time.time, journal=self.place / "journal.jsonl"
        )

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        self.count += 1
        workers = more.setdefault("workers", 1)
        fields: dict[str, Any] = {
            "attempt": f"job{self.count}.0",
            "job": f"job{self.count}",
            "user": "ann",
            "uid": None,
            "tenant": "default",
            "runtime": "plain",
            "ps": 0,
            "per_worker": Resources(cpu=1000, ram=512),
            "placement": ("here",) * workers,
            "home": "/nowhere",
            "workspace": f"/nowhere/job{self.count}",
            "entry": None,
            "code": "",
            "args": (),
            "env": PROGRAMS[kind],
        }
        return LaunchSpec(**{**fields, **more})

    def test_ranks_that_another_took_along_are_stopped(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("fails", workers=2)
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert [(r.state, r.exit_code, r.signal) for r in seen.ranks] == [
                ("failed", 3, None),
                ("stopped", None, 15),
            ]

        self.execute(test)

    def test_what_was_stopped_before_its_ranks_ran_never_started(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("late")
            await executor.start(spec)
            await executor.stop(spec.attempt, 0.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            await asyncio.sleep(0.1)  # until they would have run
            assert (await executor.observe([spec.attempt]))[spec.attempt] == seen
            assert (seen.started_at, [(r.state, r.signal) for r in seen.ranks]) == (None, [("stopped", None)])

        self.execute(test)
