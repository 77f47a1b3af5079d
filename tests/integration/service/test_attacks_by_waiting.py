"""People who make age of nothing, go on where they were put out, or make looking at a job cost others their time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.why import Expected
from mlp_hub.service.forecast import service
from support.rigs.platform_rig import running_rig
from support.waiting import PATIENCE_S, until


async def refused(what: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await what
    return caught.value


async def test_a_job_does_not_grow_older_while_its_user_keeps_it_out_of_the_queue(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("blocker", workers=4, sim={"DURATION": 30})
        await rig.until("blocker", "running")
        await rig.submit("banked")
        await p.jobs.suspend(SYSTEM, "ann", "banked")
        await asyncio.sleep(0.05)
        await rig.submit("honest")
        before = await p.jobs.get(SYSTEM, "ann", "banked")
        honest = await p.jobs.get(SYSTEM, "ann", "honest")
        assert before.queued_at is not None
        assert honest.queued_at is not None
        # longer out of the queue than it was in it, which on a busy machine may be seconds
        await asyncio.sleep((honest.queued_at - before.queued_at).total_seconds() + 0.3)
        resumed = await p.jobs.resume(SYSTEM, "ann", "banked")
        assert resumed.queued_at is not None
        assert (resumed.queued_at - before.queued_at).total_seconds() >= 0.3
        assert resumed.queued_at > honest.queued_at
        assert resumed.submitted_at == before.submitted_at


async def test_a_removed_member_cannot_resume_jobs_of_the_tenant(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red"))
        await p.tenants.set_member("red", "ann")
        await rig.submit("j", tenant="red", sim={"DURATION": 30, "STOP": 0})
        await rig.until("j", "running")
        await p.jobs.suspend(SYSTEM, "ann", "j")
        await rig.until("j", "suspended")
        await p.tenants.remove_member("red", "ann")
        no = await refused(p.jobs.resume(SYSTEM, "ann", "j"))
        assert no.reason is Reason.FORBIDDEN
        assert "no longer a member" in no.msg
        assert (await p.jobs.get(SYSTEM, "ann", "j")).phase == "suspended"
        await p.tenants.set_member("red", "ann")
        await p.jobs.resume(SYSTEM, "ann", "j")
        await rig.until("j", "running")


async def test_a_share_of_a_gpu_too_small_to_count_is_refused_and_not_rounded_to_none(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        asked = JobCreate(name="crumb", code="pass", runtime="plain", gpu=0.0004)
        no = await refused(rig.platform.jobs.submit("ann", asked))
        assert no.reason is Reason.INVALID
        assert "0.001" in no.msg
        assert (await rig.platform.jobs.list(SYSTEM, "ann"))[0] == []


async def test_a_key_of_a_job_that_was_deleted_runs_nothing_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        asked = JobCreate(name="once", code="x", env={"SIM_DURATION": "0"})
        await p.jobs.submit("ann", asked, idempotency_key="k")
        await rig.until("once", "finished")
        await p.jobs.delete(SYSTEM, "ann", "once")

        async def gone() -> bool:
            return (await p.jobs.list(SYSTEM, "ann"))[0] == []

        await until(gone)
        no = await refused(p.jobs.submit("ann", asked, idempotency_key="k"))
        assert no.reason is Reason.CONFLICT
        assert "was deleted meanwhile; use a new key" in no.msg
        assert await gone()
        await p.jobs.submit("ann", asked, idempotency_key="k2")
        await rig.until("once", "finished")


async def test_viewing_waiting_jobs_triggers_no_calculation_and_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at a job that waits would otherwise cost an answer that looks ahead, for one who polls hundreds of them."""
    held = threading.Event()
    looked: list[float] = []

    def slowly(core: Core, now: float, _past: object) -> tuple[dict[str, Expected], dict[str, object]]:
        looked.append(now)
        held.wait(20)
        return dict.fromkeys(core.state.waiting, (now + 60, "said once for all")), {}

    async def no_answer(*_: object) -> None:
        raise AssertionError("an answer was worked out for a look")

    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("blocker", workers=4, sim={"DURATION": 30})
        await rig.until("blocker", "running")
        for n in range(3):
            await rig.submit(f"w{n}", workers=4)

        async def known() -> bool:
            kept = p.admission.kept
            return kept is not None and len(kept.core.state.waiting) == 3

        await until(known)
        monkeypatch.setattr(service, "_expectations", slowly)
        monkeypatch.setattr(service.Forecasts, "explain", no_answer)
        try:
            async with asyncio.timeout(PATIENCE_S):
                seen = [await p.jobs.get(SYSTEM, "ann", f"w{n % 3}") for n in range(60)]
        finally:
            held.set()
        assert {job.expected_start for job in seen} == {None}

        async def told() -> list[bool]:
            jobs = [await p.jobs.get(SYSTEM, "ann", f"w{n}") for n in range(3)]
            return [True] if all(job.expected_start for job in jobs) else []

        await until(told)
        assert len(looked) == 1
