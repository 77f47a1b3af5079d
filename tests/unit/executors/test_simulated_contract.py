"""The executor of simulated nodes keeps the same contract as the one of real sandboxes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from executor_contract import ExecutorContract
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import Executor, LaunchSpec, NodeInfo
from mlp_hub.executors.simulated import SimulatedExecutor

ROOM = Resources(cpu=64_000, ram=64_000)
PROGRAMS = {
    "succeeds": {"SIM_DURATION": "0.05"},
    "fails": {"SIM_DURATION": "0.05", "SIM_EXIT": "3"},
    "dies": {"SIM_DURATION": "0.05", "SIM_SIGNAL": "9"},
    "lasts": {"SIM_DURATION": "600"},
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
