"""Files name the jobs on GPUs from their start to their end, also where the service dies in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.executors.local import executor as local
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.local.node import Gpu
from mlp_hub.executors.nodes import NodeInfo
from support.executors.executor_lab import ENDED, PROGRAMS, ROOM, Lab, until

GPU = Resources(cpu=1000, ram=512, gpu=1000)


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], LocalExecutor]:
    """Executors, one after the other, of a machine whose driver lists two devices; this one may have none."""
    monkeypatch.setattr(local, "gpus", lambda: (Gpu(5, "h100"), Gpu(2, "h100")))
    lab = Lab(tmp_path)
    room = NodeInfo("here", ROOM.but(gpu=2000), ROOM.but(gpu=2000))
    return lambda: lab.executor(gpu_jobs=tmp_path / "dcgm", nodes=(room,))


def found(place: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (place / "dcgm").iterdir()}


def test_a_job_is_named_while_it_runs_and_a_new_service_knows_it(
    tmp_path: Path, executor: Callable[[], LocalExecutor]
) -> None:
    lab = Lab(tmp_path)
    long = lab.spec(PROGRAMS["lasts"], job="digits", run=3, per_worker=GPU)
    short = lab.spec(PROGRAMS["succeeds"], user="bob", job="nets", per_worker=GPU)
    without = lab.spec(PROGRAMS["lasts"], job="none")

    async def first() -> None:
        one = executor()
        await one.open()
        assert found(tmp_path) == {}
        for spec in (long, short, without):
            await one.start(spec)
        assert found(tmp_path)["0"] == "ann/digits@3\n"
        await until(one, short.attempt, ENDED)
        assert found(tmp_path) == {"0": "ann/digits@3\n"}
        await one.close()

    async def second() -> None:
        two = executor()
        await two.open()
        assert found(tmp_path) == {"0": "ann/digits@3\n"}
        await two.stop(long.attempt, 0.0)
        await two.stop(without.attempt, 0.0)
        await until(two, long.attempt, ENDED)
        assert found(tmp_path) == {}
        await until(two, without.attempt, ENDED)
        await two.close()

    asyncio.run(first())
    # what a kill in the middle leaves: a file too few, and one of a job that ended meanwhile
    (tmp_path / "dcgm" / "0").unlink()
    (tmp_path / "dcgm" / "1").write_text("bob/nets@1\n")
    asyncio.run(second())


def test_a_service_that_takes_over_writes_what_the_other_one_started(
    tmp_path: Path, executor: Callable[[], LocalExecutor]
) -> None:
    lab = Lab(tmp_path)
    spec = lab.spec(PROGRAMS["lasts"], job="digits", per_worker=GPU)

    async def go() -> None:
        leads, stands_by = executor(), executor()
        await stands_by.open()
        await leads.fence(1, 1.0)
        await leads.start(spec, 1)
        (tmp_path / "dcgm" / "0").unlink()
        await stands_by.fence(2, 1.0)
        assert found(tmp_path) == {"0": "ann/digits@1\n"}
        await stands_by.stop(spec.attempt, 0.0, 2)
        await until(stands_by, spec.attempt, ENDED)
        assert found(tmp_path) == {}
        await stands_by.forget(spec.attempt, 2)
        await leads.close()
        await stands_by.close()

    asyncio.run(go())


def test_a_directory_that_cannot_be_written_stops_no_job(
    tmp_path: Path, executor: Callable[[], LocalExecutor]
) -> None:
    (tmp_path / "dcgm").write_text("a file")
    spec = Lab(tmp_path).spec(PROGRAMS["succeeds"], per_worker=GPU)

    async def go() -> None:
        one = executor()
        await one.start(spec)
        assert (await until(one, spec.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
        await one.close()

    asyncio.run(go())
