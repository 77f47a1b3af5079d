"""What tests of every executor share; another one is added to `EXECUTORS` in `executors.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mlp_hub.executors.base import AttemptPhase, Executor, LaunchSpec, Observation
from support import no_files
from support.executors.executors import EXECUTORS
from support.waiting import PATIENCE_S

ENDED = (AttemptPhase.SUCCEEDED, AttemptPhase.FAILED, AttemptPhase.STOPPED, AttemptPhase.LOST)


class Contract:
    """Tests of what every executor in `EXECUTORS` promises: each runs once for each of them."""

    @pytest.fixture(autouse=True, params=EXECUTORS)
    def _under_test(self, request: pytest.FixtureRequest) -> None:
        self.under = EXECUTORS[request.param](request)

    def make_executor(self) -> Executor:
        """Return an executor; the second one is as after a restart of the hub, on the same state."""
        return self.under.make_executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        """Return a new attempt of a kind, `more` being fields of its `LaunchSpec`."""
        return self.under.attempt(kind, **more)

    @asynccontextmanager
    async def executing(self, *, epoch: int = 0) -> AsyncIterator[Executor]:
        """Hand out an executor; what is left there is removed under the epoch."""
        executor = self.make_executor()
        no_files.watch()
        try:
            await executor.open()
            yield executor
        finally:
            no_files.ignore()
            for attempt in await executor.known():
                await executor.forget(attempt, epoch)
            await executor.close()
        no_files.check()

    async def wait(self, executor: Executor, attempt: str, *phases: AttemptPhase) -> Observation:
        """Wait until the attempt is in one of the phases."""
        seen = None
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            seen = (await executor.observe([attempt]))[attempt]
            if seen.phase in phases:
                return seen
            assert seen.phase not in ENDED, f"waited for {phases}, got {seen}"
            await asyncio.sleep(0.005)
        raise AssertionError(f"waited for {phases}, got {seen}")
