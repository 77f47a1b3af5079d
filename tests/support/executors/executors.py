"""Executors under the contract of all executors, created for each test."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import Code, Executor, LaunchSpec
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.executors.workspace import Home, JobRun
from support.executors.executor_lab import PROGRAMS, ROOM, Lab


class UnderTest(Protocol):
    """An executor's own half of the contract's tests."""

    def make_executor(self) -> Executor:
        """Return an executor; called again it must be as after a restart of the hub, on the same state."""
        ...

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        """Return a new attempt of one of these kinds, `more` being fields of its `LaunchSpec`.

        `succeeds` (and writes two lines or more), `fails` (rank 0 with exit status 3), `dies` (rank 0 of signal 9),
        `lasts` (until stopped), `stays` (writes a line, and does not end when it is asked to).
        """
        ...

    def an_act(self, executor: Executor, epoch: int) -> AbstractContextManager[None]:
        """Have something under way that was begun under this epoch, for as long as one is inside."""
        ...

    def put_at_home(self, user: str, path: str, text: str) -> None:
        """Leave a file as a user's program would; blocks."""
        ...

    def put_in_run(self, of: JobRun, path: str, text: str) -> None:
        """Leave a file as a program of the run would; blocks."""
        ...


class _Mounted:
    """Executor whose files are on this machine, fenced by locks on them."""

    directories: Directories
    fence: Fence

    def an_act(self, executor: Executor, epoch: int) -> AbstractContextManager[None]:
        fence: Fence = executor._fence  # type: ignore[attr-defined]
        return fence.acting(epoch)

    def put_at_home(self, user: str, path: str, text: str) -> None:
        self._put(self.directories.at(Home(user)) / path, text)

    def put_in_run(self, of: JobRun, path: str, text: str) -> None:
        self._put(self.directories.at(of) / path, text)

    @staticmethod
    def _put(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class _Local(_Mounted):
    def __init__(self, request: pytest.FixtureRequest, lab: str = "lab") -> None:
        self.lab: Lab = request.getfixturevalue(lab)
        self.directories = self.lab.directories

    def make_executor(self) -> Executor:
        return self.lab.executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        return self.lab.spec(PROGRAMS[kind], **more)


class _Simulated(_Mounted):
    SCRIPTS: Mapping[str, Mapping[str, str]] = {
        "succeeds": {"SIM_DURATION": "0.05"},
        "fails": {"SIM_DURATION": "0.05", "SIM_EXIT": "3"},
        "dies": {"SIM_DURATION": "0.05", "SIM_SIGNAL": "9"},
        "lasts": {"SIM_DURATION": "600"},
        "stays": {"SIM_DURATION": "600", "SIM_STOP": "600"},
    }

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.place: Path = request.getfixturevalue("tmp_path")
        self.directories = Directories(self.place / "homes", self.place / "jobs")
        self.count = 0

    def make_executor(self) -> Executor:
        journal = self.place / "journal.jsonl"
        here = [NodeInfo("here", ROOM, ROOM)]
        return SimulatedExecutor(here, time.time, self.directories, journal=journal, makes_directories=True)

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        self.count += 1
        attempt = more.pop("attempt", f"job{self.count}.0")
        return simulated_attempt(attempt, self.SCRIPTS[kind], **more)


def simulated_attempt(attempt: str, env: Mapping[str, str], **more: Any) -> LaunchSpec:
    """Return an attempt of this script on the node `here`, or as said."""
    workers, ps = more.setdefault("workers", 1), more.setdefault("ps", 0)
    runtime = more.pop("runtime", "plain")  # one of the platform's by its name
    fields: dict[str, Any] = {
        "attempt": attempt,
        "job": attempt.partition(".")[0],
        "run": 1,
        "user": "ann",
        "uid": None,
        "tenant": "default",
        "runtime": BUILT_IN[runtime] if isinstance(runtime, str) else runtime,
        "per_worker": Resources(cpu=1000, ram=512),
        "placement": ("here",) * (workers + ps),
        "program": Code(""),
        "args": (),
        "env": env,
    }
    return LaunchSpec(**{**fields, **more})


EXECUTORS: Mapping[str, Callable[[pytest.FixtureRequest], UnderTest]] = {
    "local": _Local,
    "local without sandboxes": partial(_Local, lab="open_lab"),
    "simulated": _Simulated,
}
