"""Elastic jobs give up workers for others and take them back, by ending with grace and going on with another number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import Job
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.simulated.attempt import DONE
from mlp_hub.scheduler.model.types import SchedulingPolicy
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until


async def resizing(rig: Rig, *, wide: dict[str, float], other: float) -> Job:
    """Let `wide`, on all four cores, be about to shrink for `other` of three; returns it."""
    await rig.submit("wide", workers="1:4", sim=wide)
    await rig.until("wide", "running")
    await rig.submit("other", user="bob", workers=3, sim={"DURATION": other})
    return await rig.until("wide", "resizing")


async def test_an_elastic_job_shrinks_for_another_and_grows_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("wide", workers="1:4", sim={"DURATION": 600, "STOP": 0.05})
        assert len((await rig.until("wide", "running")).ranks) == 4
        await rig.submit("other", user="bob", workers=2, sim={"DURATION": 600})

        async def shrunk() -> bool:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job.phase == "running" and job.restarts == 1

        other = await rig.until("other", "running", user="bob")
        await until(shrunk)
        wide = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
        assert len(wide.ranks) == 2
        assert rig.held().cpu == 4000
        rig.end(other)
        await rig.until("other", "finished", user="bob")

        async def grown() -> Job | None:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job if job.phase == "running" and len(job.ranks) == 4 else None

        rig.end(await until(grown))
        done = await rig.until("wide", "finished")
        assert done.failure is None
        assert done.restarts == 2
        assert rig.held() == ZERO
        assert rig.executor.starts == list(dict.fromkeys(rig.executor.starts))
        told = [
            str(e.message)
            for e in await rig.platform.jobs.events(SYSTEM, "ann", "wide")
            if e.kind == "resize"
        ]
        assert told[0].startswith("Resizing from 4 to 2 workers. ")
        assert "other of bob" in told[0]
        assert told[1] == "Resizing from 2 to 4 workers. No job waits for the free room."


async def test_logs_of_ranks_stay_readable_after_the_job_gave_them_up(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        await rig.submit("wide", workers="1:4", sim={"DURATION": 30, "STOP": 0.05})
        await rig.until("wide", "running")
        await rig.submit("other", user="bob", workers=3, sim={"DURATION": 30})

        async def shrunk() -> bool:
            job = await jobs.get(SYSTEM, "ann", "wide")
            return job.phase == "running" and len(job.ranks) == 1

        await until(shrunk)
        assert (await jobs.log_chunk(SYSTEM, "ann", "wide", 3)).lines
        assert (await jobs.log_chunk(SYSTEM, "ann", "wide", 3, tail=1)).lines
        with pytest.raises(Refused) as refused:
            await jobs.log_chunk(SYSTEM, "ann", "wide", 4)
        assert refused.value.msg == "job wide has no rank 4; its ranks are 0 to 3"
        with pytest.raises(Refused) as refused:
            await jobs.log_chunk(SYSTEM, "bob", "other", 3)
        assert refused.value.msg == "job other has no rank 3; its ranks are 0 to 2"
        written = set()
        async for frame in rig.platform.watch(SYSTEM, "ann", "wide"):
            if frame["type"] == "log":
                written.add(frame["rank"])
            if frame["type"] == "synced":
                break
        assert written == {0, 1, 2, 3}


async def test_a_watcher_hears_of_ranks_that_the_job_got_later(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("other", user="bob", workers=3, sim={"DURATION": 600})
        other = await rig.until("other", "running", user="bob")
        await rig.submit("wide", workers="1:4", sim={"DURATION": 600, "STOP": 0.05})
        assert len((await rig.until("wide", "running")).ranks) == 1
        rig.end(other)
        written = set()
        async for frame in rig.platform.watch(SYSTEM, "ann", "wide"):
            if frame["type"] == "log":
                written.add(frame["rank"])
            if written == {0, 1, 2, 3}:
                break
        assert written == {0, 1, 2, 3}


async def test_a_resize_renews_no_time_limit(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        given: dict[str, float | None] = {}
        start = rig.executor.start

        async def noting(spec: LaunchSpec, epoch: int = 0) -> None:
            given[spec.attempt] = spec.time_limit
            await start(spec, epoch)

        rig.executor.start = noting
        await rig.submit("wide", workers="1:4", time_limit=10, sim={"DURATION": 600, "STOP": 0.05})
        begun = await rig.until("wide", "running")
        await asyncio.sleep(0.7)
        await rig.submit("nudge", workers=1, sim={"DURATION": 600})
        await rig.until("nudge", "running")

        async def shrunk() -> bool:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job.phase == "running" and job.restarts == 1

        await until(shrunk)
        rig.crash()
        await rig.start()
        stored = rig.platform.board.jobs[begun.uid]
        assert stored.ran_before >= 0.7
        assert stored.time_left == max(10 - stored.ran_before, 1.0)
        done = await rig.until("wide", "failed")
        assert done.failure is not None
        assert str(done.failure.message).startswith("ran longer than its time limit of 10 s, ")
        assert str(done.failure.message).endswith(" s of it before it was resized")
        # what its ranks were given, however long they took to begin and to end here
        assert given[f"{begun.uid}.0"] == 10
        assert given[f"{begun.uid}.1"] == stored.time_left < 10 - 0.5
        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "wide")
        assert rig.platform.board.jobs[again.uid].time_left == 10


async def test_a_job_of_a_fixed_number_of_workers_is_never_resized(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("fixed", workers=4, sim={"DURATION": 600})
        fixed = await rig.until("fixed", "running")
        await rig.submit("other", user="bob", sim={"DURATION": 0.1})
        await rig.platform.admission.cycle()
        rig.end(fixed)
        await rig.until("other", "finished", user="bob")
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "fixed")).restarts == 0


async def test_a_resize_that_was_decided_is_carried_out_after_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await resizing(rig, wide={"DURATION": 1.0, "STOP": 0.1}, other=0.2)
        rig.crash()
        await rig.start()
        await rig.until("other", "finished", user="bob")
        done = await rig.until("wide", "finished")
        assert done.restarts >= 1
        assert rig.held() == ZERO


@pytest.mark.parametrize("during", ["the release of holdings", "the search for leftovers"])
async def test_a_resize_during_recovery_keeps_its_new_attempt(
    tmp_path: Path, during: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        wide = await resizing(rig, wide={"DURATION": 600, "STOP": 0.05}, other=600)
        first, second = f"{wide.uid}.0", f"{wide.uid}.1"
        rig.crash()
        commit, known = rig.platform.board.commit, rig.executor.known

        async def has_stopped() -> bool:
            return (await rig.executor.observe([first]))[first].phase in DONE

        async def has_begun() -> bool:
            return second in rig.executor.starts

        async def report() -> None:
            """Look at the job as after the executor's report of the stop, until the next attempt has begun."""
            while not await has_begun():
                await rig.platform.reconciler._look(wide.uid)

        async def commit_later(fn: Any, **options: Any) -> Any:
            if fn.__qualname__.startswith("Reconciler._release_orphans"):
                await report()
            return await commit(fn, **options)

        async def known_later() -> Sequence[str]:
            await report()
            return await known()

        await rig.executor.stop(first, 0.0, await rig.executor.epoch())
        await until(has_stopped)
        if during == "the release of holdings":
            monkeypatch.setattr(rig.platform.board, "commit", commit_later)
        else:
            monkeypatch.setattr(rig.executor, "known", known_later)
        await rig.start()
        await rig.until("other", "running", user="bob")
        assert (await rig.until("wide", "running")).restarts == 1
        assert rig.held().cpu == 4000


async def test_a_job_that_is_being_resized_can_be_cancelled_and_gives_all_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await resizing(rig, wide={"DURATION": 30, "STOP": 0.15}, other=0.1)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "wide")
        await rig.until("wide", "cancelled")
        await rig.until("other", "finished", user="bob")
        assert rig.held() == ZERO


async def test_a_job_is_not_resized_before_its_minimum_runtime(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=replace(FAST, scheduling=SchedulingPolicy(min_run_s=0.6)))
    await rig.start()
    await rig.submit("wide", workers="1:4", sim={"DURATION": 3.0})
    await rig.until("wide", "running")
    await rig.submit("other", user="bob", workers=2, sim={"DURATION": 0.3})
    await rig.until("other", "finished", user="bob")
    wide = {e.kind: e.time for e in reversed(await rig.platform.jobs.events(SYSTEM, "ann", "wide"))}
    other = {e.kind: e.time for e in reversed(await rig.platform.jobs.events(SYSTEM, "bob", "other"))}
    # by the hub's own clock, and from the admission on; a time on the wire may be off by a microsecond
    assert wide["resize"] - wide["admitted"] >= timedelta(seconds=0.6) - timedelta(microseconds=2)
    assert wide["resize"] <= wide["resized"] <= other["admitted"]
    assert other["waiting"] <= other["admitted"]  # before the resize too, unless this machine was late
    await rig.close()


async def test_a_growth_that_its_user_stops_and_resumes_before_it_began_is_carried_out_and_holds_nothing_else(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("wide", workers="1:4", sim={"DURATION": 600, "STOP": 0.05})
        await rig.submit("other", user="bob", workers=3, sim={"DURATION": 600})
        other = await rig.until("other", "running", user="bob")
        await rig.until("wide", "running")
        assert rig.held().cpu == 4000
        look_at = rig.platform.reconciler.look_at
        uid = (await rig.platform.jobs.get(SYSTEM, "ann", "wide")).uid
        rig.platform.reconciler.look_at = (  # the turn that would stop it comes late
            lambda u, delay=0.0: None if u == uid else look_at(u, delay)
        )
        rig.end(other)
        await rig.until("other", "finished", user="bob")
        await until(lambda: _decided(rig, uid))
        await rig.platform.jobs.suspend(SYSTEM, "ann", "wide")
        await rig.platform.jobs.resume(SYSTEM, "ann", "wide")
        rig.platform.reconciler.look_at = look_at
        look_at(uid)

        async def holds_what_it_has() -> Job | None:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job if job.phase == "running" and len(job.ranks) * 1000 == rig.held().cpu else None

        wide = await until(holds_what_it_has)
        assert len(wide.ranks) == 4
        rig.end(wide)
        await rig.until("wide", "finished")
        assert rig.held() == ZERO


async def _decided(rig: Rig, uid: str) -> bool:
    return bool(rig.platform.board.jobs[uid].resize_to)


async def test_a_resize_suspended_and_resumed_halfway_continues_and_releases_everything(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        uid = (await resizing(rig, wide={"DURATION": 1.0, "STOP": 0.3}, other=0.2)).uid
        look_at = rig.platform.reconciler.look_at
        rig.platform.reconciler.look_at = lambda u, delay=0.0: None if u == uid else look_at(u, delay)
        await rig.platform.jobs.suspend(SYSTEM, "ann", "wide")
        await rig.platform.jobs.resume(SYSTEM, "ann", "wide")
        rig.platform.reconciler.look_at = look_at
        look_at(uid)
        await rig.until("other", "finished", user="bob")
        await rig.until("wide", "finished")
        assert rig.held() == ZERO


async def test_a_job_that_is_being_resized_can_be_suspended_and_gives_all_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await resizing(rig, wide={"DURATION": 30, "STOP": 0.15}, other=0.1)
        await rig.platform.jobs.suspend(SYSTEM, "ann", "wide")
        await rig.until("wide", "suspended")
        await rig.until("other", "finished", user="bob")
        assert rig.held() == ZERO
        await rig.platform.jobs.resume(SYSTEM, "ann", "wide")
        assert len((await rig.until("wide", "running")).ranks) == 4
        await rig.platform.jobs.cancel(SYSTEM, "ann", "wide")
        await rig.until("wide", "cancelled")
        assert rig.held() == ZERO


async def test_a_quota_that_is_lowered_while_a_job_is_resized_stops_nothing_and_leaks_nothing(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=4))
        await rig.platform.users.ensure("ann")
        await rig.platform.tenants.set_member("red", "ann")
        await rig.submit("other", user="bob", workers=3, sim={"DURATION": 600})
        other = await rig.until("other", "running", user="bob")
        await rig.submit("wide", tenant="red", workers="1:4", sim={"DURATION": 600, "STOP": 1})
        first = await rig.until("wide", "running")
        rig.end(other)
        await rig.until("wide", "resizing")
        await rig.platform.tenants.update("red", TenantUpdate(cpu=1))

        async def again() -> Job | None:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job if job.phase == "running" and job.restarts > first.restarts else None

        rig.end(await until(again))
        done = await rig.until("wide", "finished")
        assert done.failure is None
        assert rig.held("red") == ZERO
