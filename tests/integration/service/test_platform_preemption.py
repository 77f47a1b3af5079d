"""Urgent work stops work of lower priority, which goes back into the queue and comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mlp_api.types import TenantCreate
from mlp_hub.api.edge import answers
from mlp_hub.domain.jobs.job import Target
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


async def test_an_urgent_job_stops_a_lesser_one_which_starts_again_afterwards(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        low = await rig.submit("low", workers=4, priority="low", sim={"DURATION": 600, "STOP": 0.1})
        await rig.until("low", "running")
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 600})
        waiting = await rig.until("low", "preempting", "queued")
        assert waiting.restarts in (0, 1)
        urgent = await rig.until("urgent", "running")
        assert rig.held().cpu == 3000
        assert (await rig.until("low", "queued")).queued_at == low.queued_at
        rig.end(urgent)
        await rig.until("urgent", "finished")
        rig.end(await rig.until("low", "running"))
        again = await rig.until("low", "finished")
        assert again.restarts == 1
        assert rig.held() == ZERO
        told = await rig.platform.jobs.events(SYSTEM, "ann", "low")
        stopped = next(e for e in told if e.kind == "preempted")
        assert str(stopped.message) == ("Stopped for job urgent of ann: its priority is higher.")
        kinds = [e.kind for e in await rig.platform.jobs.events(SYSTEM, "ann", "urgent")]
        assert kinds[:2] == ["submitted", "waiting"]
        why = [e for e in await rig.platform.jobs.events(SYSTEM, "ann", "urgent") if e.kind == "waiting"]
        assert str(why[0].message) == (
            "first in its queue: Waits for the end of job low of ann, stopped for it."
        )
        assert [e.reason for e in why] == ["WaitingForPreempted"]


async def test_a_preempted_job_shows_its_beneficiary_and_the_kept_checkpoint(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("low", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("low", "running")
        assert (await rig.platform.jobs.why(SYSTEM, "ann", "low")).stopped is None
        ckpt = rig.workspace("ann", "low", 1) / "ckpt"
        ckpt.mkdir(parents=True, exist_ok=True)
        (ckpt / "weights").write_text("w")
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 60})
        await rig.until("low", "queued")
        why = await rig.platform.jobs.why(SYSTEM, "ann", "low")
        assert why.stopped is not None
        assert why.stopped.kind == "preempted"
        assert str(why.stopped.message).startswith("Stopped for job urgent of ann")
        assert why.stopped.checkpoint_at is not None
        assert "checkpoint" in str(why.stopped.kept)
        await rig.platform.jobs.suspend(SYSTEM, "ann", "low")
        await rig.until("low", "suspended")
        assert (await rig.platform.jobs.why(SYSTEM, "ann", "low")).stopped == why.stopped
        frames = [f async for f in _until_synced(rig, "low")]
        assert [f["why"].stopped for f in frames if f["type"] == "why"] == [why.stopped]
        await rig.platform.jobs.suspend(SYSTEM, "ann", "urgent")
        await rig.until("urgent", "suspended")
        own = (await rig.platform.jobs.why(SYSTEM, "ann", "urgent")).stopped
        assert own is not None
        assert (own.kind, str(own.message), own.checkpoint_at) == ("suspended", "suspended by its user", None)
        assert str(own.kept).startswith("it left no checkpoint")


async def test_a_job_that_runs_again_is_told_why_its_last_attempt_was_stopped(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("low", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("low", "running")
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 60})
        await rig.until("urgent", "running")
        await rig.platform.jobs.suspend(SYSTEM, "ann", "urgent")
        await rig.until("low", "running")
        stopped = (await rig.platform.jobs.why(SYSTEM, "ann", "low")).stopped
        assert stopped is not None
        assert (stopped.kind, stopped.checkpoint_at) == ("preempted", None)
        assert str(stopped.message).startswith("Stopped for job urgent of ann")
        assert str(stopped.kept) == ""  # what is there may be of the attempt that runs


async def test_a_job_preempted_for_another_tenant_shows_no_names_from_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for name in ("red", "blue"):
            await rig.platform.tenants.create(TenantCreate(name=name, cpu=2, cohort="main"))
        await rig.platform.tenants.set_member("red", "ann", "member")
        await rig.platform.tenants.set_member("blue", "zoe", "member")
        await rig.submit("lent", tenant="red", workers=4, sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("lent", "running")
        await rig.submit("secret-work", "zoe", tenant="blue", workers=2, sim={"DURATION": 60})
        await rig.until("lent", "queued")
        why = await rig.platform.jobs.why(SYSTEM, "ann", "lent")
        assert why.stopped is not None
        told = answers.encode(why, viewer=await rig.platform.visibility.viewer_of("ann")).decode()
        assert "a job of team blue" in told
        assert "zoe" not in told
        assert "secret-work" not in told


async def _until_synced(rig: Rig, name: str) -> AsyncIterator[dict[str, Any]]:
    async for frame in rig.platform.watch(SYSTEM, "ann", name):
        if frame["type"] == "synced":
            return
        yield frame


async def test_equal_work_is_never_stopped(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("first", workers=4, sim={"DURATION": 600})
        running = await rig.until("first", "running")
        await rig.submit("second", workers=4, sim={"DURATION": 0.1})
        await rig.platform.admission.cycle()
        rig.end(running)
        done = await rig.until("second", "finished")
        first = await rig.until("first", "finished")
        assert (first.restarts, done.restarts) == (0, 0)


async def test_nobody_escapes_by_stopping_and_resuming_before_being_asked_to_leave(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        low = await rig.submit("low", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("low", "running")
        look_at = rig.platform.reconciler.look_at
        rig.platform.reconciler.look_at = (  # the turn that would stop it comes late
            lambda u, delay=0.0: None if u == low.uid else look_at(u, delay)
        )
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 0.2})

        async def told() -> bool:
            return rig.platform.board.jobs[low.uid].target is Target.PREEMPT

        await until(told)
        await rig.platform.jobs.suspend(SYSTEM, "ann", "low")
        await rig.platform.jobs.resume(SYSTEM, "ann", "low")
        rig.platform.reconciler.look_at = look_at
        look_at(low.uid)
        await rig.until("urgent", "finished")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "low")
        await rig.until("low", "cancelled")
        assert rig.held() == ZERO
