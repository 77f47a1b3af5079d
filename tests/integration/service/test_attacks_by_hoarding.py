"""One user who submits more than there is memory and time for: the platform stays small, and others get what they ask for."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.state import board
from support.rigs.platform_rig import FAST, Rig, node, running_rig

MIB = 2**20
FEW = replace(FAST, open_bytes_max=4 * MIB, open_kinds_max=5)


async def submit(rig: Rig, user: str, name: str, **fields: Any) -> str:
    """Submit a job that can only wait; return what came of it."""
    asked = {"code": "pass", "cpu": 4.0, "ram": 100, **fields}
    try:
        await rig.platform.jobs.submit(user, JobCreate(name=name, **asked))
    except Refused as refused:
        return refused.reason.value
    return "taken"


async def busy(rig: Rig) -> None:
    """Let one job hold all that there is."""
    await rig.submit("runs", "rita", cpu=4.0, sim={"DURATION": 600})
    await rig.until("runs", "running", user="rita")


async def test_the_memory_of_long_programs_is_limited_also_after_a_restart(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=FEW) as rig:
        await busy(rig)
        big = "#" + "x" * MIB
        lot = (submit(rig, "bob", f"fat-{n}", code=big) for n in range(30))
        assert Counter(await asyncio.gather(*lot)) == {"taken": 3, Reason.CONFLICT: 27}
        assert await submit(rig, "ann", "mine", code=big) == "taken"
        await rig.restart()
        assert await submit(rig, "bob", "one-more", code=big) == Reason.CONFLICT
        with pytest.raises(Refused, match=r"the limit is [\d.]+ MiB"):
            await rig.platform.jobs.preview("bob", JobCreate(name="one-more", code=big, cpu=4.0, ram=100))
        mine, _ = await rig.platform.jobs.list(SYSTEM, "bob")
        await rig.platform.jobs.cancel(SYSTEM, "bob", mine[0].name)
        await rig.until(mine[0].name, "cancelled", user="bob")
        assert await submit(rig, "bob", "one-more", code=big) == "taken"


async def test_jobs_that_all_differ_are_few_and_equal_ones_as_many_as_one_likes(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=FEW) as rig:
        await busy(rig)
        lot = (submit(rig, "bob", f"odd-{n}", ram=100 + n) for n in range(40))
        assert Counter(await asyncio.gather(*lot)) == {"taken": 5, Reason.CONFLICT: 35}
        known = (await rig.platform.jobs.list(SYSTEM, "bob"))[0][0].ram
        equal = (submit(rig, "bob", f"same-{n}", ram=known) for n in range(40))
        assert set(await asyncio.gather(*equal)) == {"taken"}
        with pytest.raises(Refused, match="5 different sizes"):
            await rig.platform.jobs.preview("bob", JobCreate(name="odd", code="pass", cpu=4.0, ram=4000))
        assert await submit(rig, "ann", "mine", ram=999) == "taken"
        # who only stops them still has them, and would have all back at once
        mine, _ = await rig.platform.jobs.list(SYSTEM, "bob", limit=1000)
        for job in mine:
            await rig.platform.jobs.suspend(SYSTEM, "bob", job.name)
        assert await submit(rig, "bob", "odd", ram=5000) == Reason.CONFLICT


async def test_a_list_of_long_programs_comes_in_pages_that_miss_none(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await busy(rig)
        for n in range(12):
            assert await submit(rig, "bob", f"fat-{n}", code=f"#{n}" + "x" * MIB) == "taken"
        seen: list[str] = []
        cursor = None
        while True:
            page, cursor = await rig.platform.jobs.list(SYSTEM, "bob", limit=1000, cursor=cursor)
            assert 0 < sum(len(j.code or "") for j in page) <= 4 * MIB
            seen += [j.name for j in page]
            if cursor is None:
                break
        assert seen == [f"fat-{n}" for n in reversed(range(12))]


async def test_stopping_and_starting_a_job_forever_fills_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "MOST_EVENTS", 100)
    monkeypatch.setattr(board, "MOST_DECISIONS", 20)

    async with running_rig(tmp_path, node()) as rig:
        await rig.submit("flip", cpu=1.0, sim={"DURATION": 600, "STOP": 0})
        await rig.until("flip", "running")
        jobs, uid = rig.platform.jobs, (await rig.platform.jobs.get(SYSTEM, "ann", "flip")).uid

        def kept() -> tuple[int, int]:
            return rig.db.read_now(
                lambda tx: (
                    len(tx.decisions.last_of_job(uid, 10_000)),
                    len(tx.events.since(uid, limit=100_000)),
                )
            )

        for _ in range(80):
            await jobs.suspend(SYSTEM, "ann", "flip")
            await rig.until("flip", "suspended")
            await jobs.resume(SYSTEM, "ann", "flip")
            await rig.until("flip", "running")
        decisions, events = kept()
        assert 20 <= decisions < 60
        assert 100 <= events <= 200
