"""Where what attempts leave lies with their processes it is brought in before they are forgotten, however they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import AttemptKey
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until


class Far:
    """Makes an executor like that of a cluster, whose pods have their spools and logs with them until they are collected."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch, *, failing: int = 0) -> None:
        self.acts: list[tuple[str, str]] = []
        self._failing = failing
        self._executor = rig.executor
        real = SimulatedExecutor.forget

        async def forget(executor: SimulatedExecutor, attempt: str, epoch: int = 0) -> None:
            if attempt in executor._attempts:
                self.acts.append(("forget", attempt))
            await real(executor, attempt, epoch)

        async def collect(executor: SimulatedExecutor, attempt: AttemptKey, epoch: int = 0) -> None:
            if self._failing:
                self._failing -= 1
                raise Unavailable("the node does not answer")
            if attempt.id in executor._attempts:
                self.acts.append(("collect", attempt.id))
                path = executor.workspace.directories.at(attempt.of) / "metrics"
                await asyncio.to_thread(_put, path, attempt.id)

        monkeypatch.setattr(SimulatedExecutor, "forget", forget)
        monkeypatch.setattr(SimulatedExecutor, "collect", collect)


def _put(metrics: Path, attempt: str) -> None:
    metrics.mkdir(parents=True, exist_ok=True)
    number = attempt.rpartition(".")[2]
    (metrics / f"0.{number}.a.jsonl").write_text(f'{{"n": 1, "t": 1.0, "v": {{"attempt": {number}}}}}\n')


async def values(rig: Rig, name: str) -> list[Mapping[str, Any]]:
    uid = (await rig.platform.jobs.get(SYSTEM, "ann", name)).uid
    return [dict(p.values) async for page in rig.platform.metrics.pages(uid, 0) for p in page]


@pytest.mark.parametrize("how", ["succeeds", "fails", "cancelled", "suspended"])
async def test_it_is_collected_once_and_before_the_attempt_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with running_rig(tmp_path) as rig:
        far = Far(rig, monkeypatch)
        ends = how in ("succeeds", "fails")
        sim = {"DURATION": 0.05 if ends else 60, "EXIT": 3 if how == "fails" else 0}
        job = await rig.submit("j", sim=sim)
        await rig.until("j", "running", "finished", "failed")
        match how:
            case "cancelled":
                await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
            case "suspended":
                await rig.platform.jobs.suspend(SYSTEM, "ann", "j")
            case _:
                pass
        await rig.until("j", {"succeeds": "finished", "fails": "failed"}.get(how, how))
        assert far.acts == [("collect", f"{job.uid}.0"), ("forget", f"{job.uid}.0")]
        assert await values(rig, "j") == [{"attempt": 0}]


async def test_a_node_that_does_not_answer_is_asked_again_before_anything_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        far = Far(rig, monkeypatch, failing=3)
        await rig.submit("j", sim={"DURATION": 0.05})
        await rig.until("j", "finished")
        assert [what for what, _ in far.acts] == ["collect", "forget"]
        assert await values(rig, "j") == [{"attempt": 0}]


async def test_an_attempt_that_does_not_end_when_asked_is_collected_before_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, grace_s=0.05, lease_s=3600)) as rig:
        far = Far(rig, monkeypatch)
        monkeypatch.setattr(SimulatedExecutor, "_stop", lambda *_: None)  # it hears of no stop
        await rig.submit("j", sim={"DURATION": 600})
        await rig.until("j", "running")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelling")
        rig.ahead += 60

        async def killed() -> bool:
            return len(far.acts) == 2

        await until(killed, what="it to be killed")
        assert [what for what, _ in far.acts] == ["collect", "forget"]
        await rig.until("j", "cancelled")
        assert await values(rig, "j") == [{"attempt": 0}]
