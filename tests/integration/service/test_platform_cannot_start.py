"""An attempt that can never start ends its job at once; one that may start later is tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_hub.domain.resources import ZERO
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.runtimes import CannotStart
from platform_rig import Rig


def outcome(root: Path, error: Exception, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Return how often a start that raises the error was tried, and cause and message of the job's failure."""
    tries = 0

    async def start(_: LaunchSpec) -> None:
        nonlocal tries
        tries += 1
        raise error

    async def go() -> tuple[int, str, str]:
        rig = Rig(root)
        monkeypatch.setattr(rig.executor, "start", start)
        await rig.start()
        try:
            await rig.submit("digits", retries=3)
            job = await rig.until("digits", "failed")
            assert job.failure is not None
            assert rig.held() == ZERO
            return tries, job.failure.cause, job.failure.message
        finally:
            await rig.close()

    return asyncio.run(go())


def test_what_can_never_start_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = CannotStart("there is no file train.py in the home directory")
    message = "cannot be started: there is no file train.py in the home directory"
    assert outcome(tmp_path, error, monkeypatch) == (1, "start-failed", message)


def test_an_error_that_may_pass_is_tried_five_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError("the node does not answer")
    message = "could not be started in 5 tries: the node does not answer"
    assert outcome(tmp_path, error, monkeypatch) == (5, "start-failed", message)
