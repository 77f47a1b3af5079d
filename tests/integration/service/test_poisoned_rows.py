"""A job about which nothing can be stored holds up nobody but itself."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until

POISON = "CREATE TRIGGER poison BEFORE {act} ON job WHEN NEW.name = 'bad' AND {when} BEGIN SELECT RAISE(ABORT, 'poisoned row'); END"
LONG = replace(FAST, backoff_s=0.2, backoff_max_s=60.0)


async def poison(rig: Rig, when: str, act: str = "UPDATE") -> None:
    """Have the database refuse what is written of the job `bad`."""
    await rig.db.write(lambda tx: tx.connection.execute(text(POISON.format(act=act, when=when))))


async def heal(rig: Rig) -> None:
    await rig.db.write(lambda tx: tx.connection.execute(text("DROP TRIGGER poison")))


def about(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if words in r.getMessage()]


async def test_others_are_admitted_beside_a_job_that_cannot_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async with running_rig(tmp_path, policy=LONG) as rig:
        await poison(rig, "OLD.phase = 'queued'")
        names = [*(f"j{i}" for i in range(9)), "bad", *(f"k{i}" for i in range(9))]
        await asyncio.gather(*(rig.submit(name, cpu=0.1, sim={"DURATION": 0.05}) for name in names))
        for name in names:
            if name != "bad":
                await rig.until(name, "finished")
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "bad")).phase == "queued"
        said = "what was decided about job bad of ann could not be stored"

        async def three() -> bool:
            return len(about(caplog, said)) >= 3

        await until(three)
        waits = [m.rpartition("for ")[2] for m in about(caplog, said)]
        assert waits[:3] == ["0.2 s", "0.4 s", "0.8 s"]  # each time it is left alone for longer
        assert rig.held().cpu == 0
        await rig.platform.jobs.why(SYSTEM, "ann", "bad")  # whoever asks gets an answer
        await heal(rig)
        await rig.until("bad", "finished")
        assert len(rig.executor.starts) == len(set(rig.executor.starts)) == len(names)


async def test_a_job_that_cannot_be_stopped_for_another_continues_and_the_next_one_gives_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async with running_rig(tmp_path, node(cpu=2), policy=LONG) as rig:
        await rig.submit("good", priority="low", sim={"DURATION": 600})
        await rig.until("good", "running")
        await asyncio.sleep(0.3)  # it has more to lose
        await rig.submit("bad", priority="low", sim={"DURATION": 600})
        await rig.until("bad", "running")
        await poison(rig, "NEW.target = 'preempt'")
        await rig.submit("urgent", priority="high", sim={"DURATION": 0.1})
        await rig.until("urgent", "finished")
        assert about(caplog, "what was decided about job bad of ann could not be stored")
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "bad")).phase == "running"
        await heal(rig)


async def test_others_end_beside_a_job_whose_end_cannot_be_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async with running_rig(tmp_path, policy=LONG) as rig:
        await poison(rig, "NEW.phase IN ('finishing', 'finished')")
        names = [*(f"j{i}" for i in range(9)), "bad"]
        await asyncio.gather(*(rig.submit(name, cpu=0.1, sim={"DURATION": 0.3}) for name in names))
        for name in names[:-1]:
            await rig.until(name, "finished")

        async def told() -> list[str]:
            return about(caplog, "job bad of ann")

        await until(told)
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "bad")).phase == "running"
        assert rig.held().cpu == 100  # only what it holds itself
        await heal(rig)
        await rig.until("bad", "finished")
        assert rig.held().cpu == 0


async def test_others_are_taken_in_beside_a_job_that_cannot_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async with running_rig(tmp_path, policy=LONG) as rig:
        await poison(rig, "1", act="INSERT")
        names = [*(f"j{i}" for i in range(20)), "bad", *(f"k{i}" for i in range(20))]
        answers = await asyncio.gather(
            *(rig.submit(name, cpu=0.1, sim={"DURATION": 0.01}) for name in names), return_exceptions=True
        )
        failed = [(name, a) for name, a in zip(names, answers, strict=True) if isinstance(a, BaseException)]
        assert [name for name, _ in failed] == ["bad"]
        assert isinstance(failed[0][1], Unavailable)
        assert about(caplog, "job bad of ann could not be stored")
        for name in names:
            if name != "bad":
                await rig.until(name, "finished")
        await heal(rig)
        await rig.submit("bad", sim={"DURATION": 0.01})
        await rig.until("bad", "finished")
