"""The executor is told which images jobs use most, the most used first, and again later."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.config import DAY_S
from mlp_hub.service.lifecycle import images_used
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


class Told:
    """What the executor was told, and what it answers at first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Exception, images: bool = True) -> None:
        self.of: list[tuple[list[str], int]] = []
        left = list(answers)

        async def keep(_executor: object, used: Sequence[str], epoch: int = 0) -> None:
            self.of.append((list(used), epoch))
            if left:
                raise left.pop(0)

        monkeypatch.setattr(SimulatedExecutor, "images", images)
        monkeypatch.setattr(SimulatedExecutor, "keep_images", keep)

    async def times(self, least: int) -> bool:
        """Whether it was told so often."""
        return len(self.of) >= least


def ran(rig: Rig, number: int, image: str, ago: float = 60.0) -> None:
    runtime = Runtime("ours", "Ours", "", image=image)
    spec = JobSpec(f"job-{number}", "ann", "default", "ours", Resources(1000, 0, 100), own_runtime=runtime)
    job = Job(f"{number:026d}", spec, Phase.FINISHED, Target.RUN, submitted_at=rig.clock() - ago)
    with rig.db.begin() as tx:
        assert tx.jobs.insert(job)


async def test_the_most_used_come_first_and_old_ones_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch)
    monkeypatch.setattr(images_used, "AGAIN_S", 0.01)

    async with running_rig(tmp_path) as rig:

        async def heard(*used: str) -> bool:
            return (list(used), rig.platform.lease.epoch) in told.of

        for number, image in enumerate(["a:1", "b:1", "b:1"], 1):
            ran(rig, number, image)
        ran(rig, 4, "old:1", ago=7 * DAY_S + 60)
        await until(lambda: heard("b:1", "a:1"), what="the images to be told")
        for number in (5, 6):
            ran(rig, number, "a:1")
        await until(lambda: heard("a:1", "b:1"), what="the images to be told again")


async def test_those_of_environments_of_notebook_servers_count_as_those_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch)
    monkeypatch.setattr(images_used, "AGAIN_S", 0.01)

    async with running_rig(tmp_path) as rig:

        async def heard(*used: str) -> bool:
            return told.of[-1:] == [(list(used), rig.platform.lease.epoch)]

        ran(rig, 1, "a:1")
        week = 7 * DAY_S + 60
        with rig.db.begin() as tx:
            for number, image in enumerate(("b:1", "old:1", None)):
                tx.environments.put(
                    Environment(
                        f"u{number}",
                        "default",
                        f"e{number}",
                        "ann",
                        EnvironmentPhase.READY,
                        "",
                        0,
                        image=image,
                    )
                )
            for user, uid, phase, ago in (
                ("ann", "u0", RequestPhase.CONFIRMED, week),  # it runs still
                ("bob", "u0", RequestPhase.RELEASED, 60),
                ("cyd", "u1", RequestPhase.RELEASED, week),
                ("dan", "u2", RequestPhase.CONFIRMED, 60),  # of packages
            ):
                tx.ledger.put(
                    ResourceRequest(
                        f"{user}/",
                        "sp",
                        "default",
                        Resources(100),
                        phase,
                        rig.clock() - ago,
                        user=user,
                        environment=uid,
                    )
                )
        await until(lambda: heard("b:1", "a:1"), what="the images to be told")


async def test_a_cluster_that_is_away_is_told_once_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch, Unavailable(msg("nobody answers")))

    async with running_rig(tmp_path):
        await until(lambda: told.times(2), what="the images to be told again")


async def test_a_service_that_no_longer_leads_reports_no_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch, Superseded())
    monkeypatch.setattr(images_used, "AGAIN_S", 0.01)

    async with running_rig(tmp_path) as rig:
        await until(lambda: told.times(1), what="the images to be told")
        await rig.submit("quick", sim={"DURATION": 0})
        await rig.until("quick", "finished")
        assert len(told.of) == 1


async def test_an_executor_without_images_is_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(monkeypatch, images=False)

    async with running_rig(tmp_path) as rig:
        await rig.submit("quick", sim={"DURATION": 0})
        await rig.until("quick", "finished")
    assert told.of == []
