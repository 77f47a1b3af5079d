"""A name has runs: the next one when the latest has ended, each with its own directory, log, points and token."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import Job, JobCreate
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


async def refused(what: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await what
    return caught.value


def active(rig: Rig, name: str, user: str = "ann") -> list[int]:
    """Return the runs of a name that have not ended, by the database."""
    jobs, _ = rig.db.read_now(lambda tx: tx.jobs.page(SYSTEM, user=user, name=name))
    return [j.run for j in jobs if j.phase not in FINAL]


async def test_a_name_whose_run_has_ended_makes_the_next_run_and_the_earlier_stay(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        for run in (1, 2, 3):
            made = await rig.submit("lr-0.001", sim={"DURATION": 0.1})
            assert (made.name, made.run) == ("lr-0.001", run)
            await rig.until("lr-0.001", "finished")
        found, _ = await jobs.list(SYSTEM, "ann")
        assert [(j.name, j.run) for j in found] == [("lr-0.001", 3), ("lr-0.001", 2), ("lr-0.001", 1)]
        assert (await jobs.get(SYSTEM, "ann", "lr-0.001")).run == 3
        assert (await jobs.get(SYSTEM, "ann", "lr-0.001@2")).run == 2
        assert (await jobs.why(SYSTEM, "ann", "lr-0.001@2")).run == 2
        assert (await refused(jobs.get(SYSTEM, "ann", "lr-0.001@4"))).msg == "job lr-0.001@4 does not exist"
        for run, directory in ((1, "lr-0.001"), (2, "lr-0.001@2")):
            assert (rig.directories.jobs / "ann" / directory / "log").is_dir()
            assert rig.workspace("ann", "lr-0.001", run).name == directory


async def test_names_that_differ_in_capitals_are_different_jobs(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        made = [await rig.submit(name) for name in ("Big_run", "big_run", "big-run")]
        assert [j.run for j in made] == [1, 1, 1]
        directories = {rig.workspace("ann", j.name, j.run).name.casefold() for j in made}
        assert len(directories) == 3


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "with keys"])
@pytest.mark.parametrize("earlier", [0, 2])
async def test_twenty_who_submit_one_name_at_once_make_one_run(
    tmp_path: Path, earlier: int, *, keys: bool
) -> None:
    async with running_rig(tmp_path) as rig:
        for _ in range(earlier):
            await rig.submit("j", sim={"DURATION": 0.01})
            await rig.until("j", "finished")
        asked = JobCreate(name="j", code="x", cpu=1.0, ram=100, env={"SIM_DURATION": "60"})
        done = await asyncio.gather(
            *(
                rig.platform.jobs.submit("ann", asked, idempotency_key=f"k{n}" if keys else None)
                for n in range(20)
            ),
            return_exceptions=True,
        )
        made = [d for d in done if isinstance(d, Job)]
        others = [d for d in done if isinstance(d, Refused)]
        assert [m.run for m in made] == [earlier + 1]
        assert len(others) == 19
        assert {o.reason for o in others} == {Reason.CONFLICT}
        assert all(o.msg.startswith(f"j run {earlier + 1} has not ended") for o in others)
        assert active(rig, "j") == [earlier + 1]


async def test_one_key_means_one_run_also_when_that_has_ended_and_another_came(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        asked = JobCreate(name="j", code="x", cpu=1.0, ram=100, env={"SIM_DURATION": "0.01"})
        first = await jobs.submit("ann", asked, idempotency_key="k")
        await rig.until("j", "finished")
        assert (await jobs.submit("ann", asked, idempotency_key="k")).uid == first.uid
        second = await jobs.submit("ann", asked, idempotency_key="other")
        assert second.run == 2
        assert (await jobs.submit("ann", asked, idempotency_key="k")).uid == first.uid
        await rig.until("j", "finished")
        replaced = JobCreate(name="j", code="x", cpu=1.0, ram=100, env=asked.env, replace=True)
        assert (await refused(jobs.submit("ann", replaced, idempotency_key="k"))).reason is Reason.CONFLICT
        assert {j.run for j in (await jobs.list(SYSTEM, "ann"))[0]} == {1, 2}
        made = await asyncio.gather(*(jobs.submit("ann", replaced, idempotency_key="once") for _ in range(5)))
        assert {m.run for m in made} == {3}


async def test_replace_deletes_the_ended_runs_with_their_files_and_counts_on(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for _ in range(2):
            await rig.submit("j", sim={"DURATION": 0.01})
            await rig.until("j", "finished")
        await rig.submit("other", sim={"DURATION": 0.01})
        await rig.until("other", "finished")
        made = await rig.submit("j", replace=True, sim={"DURATION": 60})
        assert made.run == 3

        async def gone() -> bool:
            return [j.run for j in (await rig.platform.jobs.list(SYSTEM, "ann", name="j"))[0]] == [3]

        await until(gone)
        assert sorted(p.name for p in (rig.directories.jobs / "ann").iterdir()) == ["j@3", "other"]
        error = await refused(rig.submit("j", replace=True))
        assert error.msg.startswith("j run 3 has not ended")
        assert active(rig, "j") == [3]


async def test_a_run_that_is_told_to_end_for_good_leaves_its_name_to_the_next(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        first = await rig.submit("j", sim={"DURATION": 60, "STOP": 0.5})
        await rig.until("j", "running")
        await jobs.cancel(SYSTEM, "ann", "j")
        second = await jobs.resubmit(SYSTEM, "ann", "j")
        assert second.run == 2
        assert (await jobs.get(SYSTEM, "ann", "j@1")).phase == "cancelling"
        assert (await jobs.get(SYSTEM, "ann", "j")).uid == second.uid
        await rig.until("j@1", "cancelled")
        await rig.until("j@2", "running")
        assert (await jobs.get(SYSTEM, "ann", "j@1")).uid == first.uid
        await jobs.delete(SYSTEM, "ann", "j@1")
        assert (await refused(jobs.delete(SYSTEM, "ann", "j"))).reason is Reason.WRONG_STATE


async def test_a_suspended_run_keeps_its_name(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 60})
        await rig.until("j", "running")
        await rig.platform.jobs.suspend(SYSTEM, "ann", "j")
        await rig.until("j", "suspended")
        assert (await refused(rig.submit("j"))).msg.startswith("j run 1 has not ended, it is suspended")


async def test_logs_points_and_files_are_those_of_the_run_that_is_meant(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        points = [MetricPoint(n=n, t=time.time(), v={"loss": 1.0}) for n in (1, 2)]
        await p.metrics.append(SYSTEM, "ann", "j", MetricBatch(source="0.0.a", points=points))
        rig.end(job)
        await rig.until("j", "finished")
        await rig.submit("j", sim={"DURATION": 0.01})
        await rig.until("j@2", "finished")
        await p.jobs.delete(SYSTEM, "ann", "j@2")

        async def gone() -> bool:
            return (await p.jobs.get(SYSTEM, "ann", "j")).run == 1

        await until(gone)
        assert not (rig.directories.jobs / "ann/j@2").exists()
        chunk = await p.jobs.log_chunk(SYSTEM, "ann", "j@1", 0)
        assert [line.text for line in chunk.lines][-1] == "simulated rank 0 ended"
        seen: list[dict[str, Any]] = [f async for f in p.watch(SYSTEM, "ann", "j@1")]
        assert sum(len(f["points"]) for f in seen if f["type"] == "metrics") == 2


async def test_a_watcher_of_a_run_is_not_shown_the_next_one(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 0.2})
        frames = [f async for f in rig.platform.watch(SYSTEM, "ann", "j")]
        await rig.submit("j", sim={"DURATION": 60})
        again = [f async for f in rig.platform.watch(SYSTEM, "ann", "j@1")]
        for seen in (frames, again):
            assert {f["job"].run for f in seen if f["type"] == "job"} == {1}
            assert seen[-1]["type"] == "end"


async def test_a_token_is_of_its_run_alone(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        given = []
        start = rig.executor.start

        async def spy(spec: Any, epoch: int) -> None:
            given.append(spec.env)
            await start(spec, epoch)

        rig.executor.start = spy  # type: ignore[method-assign]
        await rig.submit("j", sim={"DURATION": 60, "STOP": 0.5})
        await rig.until("j", "running")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.submit("j", sim={"DURATION": 60})
        await rig.until("j@2", "running")
        shas = [hashlib.sha256(env["MLP_JOB_TOKEN"].encode()).hexdigest() for env in given]
        found = [await rig.platform.jobs.job_of_token(sha) for sha in shas]
        assert [env["MLP_RUN"] for env in given] == ["1", "2"]
        assert found[1] is not None
        assert found[1][:2] == ("ann", "j@2")
        assert found[0] is None or found[0][:2] == ("ann", "j@1")


async def test_runs_are_counted_on_after_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 0.01})
        await rig.until("j", "finished")
        await rig.submit("j", sim={"DURATION": 60})
        rig.crash()
        await rig.start()
        assert (await refused(rig.submit("j"))).msg.startswith("j run 2 has not ended")
        await rig.until("j@2", "running")


async def test_a_what_if_of_the_past_runs_every_run_of_a_name(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from mlp_api.platform.whatif import WhatIfHistory, WhatIfWindow

    async with running_rig(tmp_path) as rig:
        for _ in range(3):
            await rig.submit("j", sim={"DURATION": 0.01})
            await rig.until("j", "finished")
        since = datetime.fromtimestamp(time.time() - 600, UTC)
        _, recording = await rig.platform.whatif.recording(WhatIfHistory(history=WhatIfWindow(since=since)))
        assert sorted(j.full_name for j in recording.jobs) == ["ann/j", "ann/j@2", "ann/j@3"]
        await rig.submit("j", sim={"DURATION": 60})
        await rig.until("j", "running")
        _, present = await rig.platform.whatif.recording("now")
        assert [(j.full_name, j.told_by) for j in present.jobs] == [("ann/j@4", "like")]
