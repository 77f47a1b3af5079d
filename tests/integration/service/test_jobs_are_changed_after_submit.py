"""Jobs that are changed after they were submitted: who may, what the scheduler and the executor make of it, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobUpdate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Phase
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

WHOLE: dict[str, Any] = {"workers": 4, "tenant": "red", "sim": {"DURATION": 600, "STOP": 0}}


async def red(rig: Rig) -> None:
    await rig.platform.tenants.create(TenantCreate(name="red"))
    for user, role in (("ann", "member"), ("bob", "member"), ("lea", "admin")):
        await rig.platform.tenants.set_member("red", user, role)
    await rig.platform.tenants.create(TenantCreate(name="blue"))
    await rig.platform.tenants.set_member("blue", "leo", "admin")


async def update(rig: Rig, actor: str, name: str, /, user: str = "ann", **changes: Any) -> Any:
    return await rig.platform.jobs.update(SYSTEM, user, name, JobUpdate(**changes), actor=actor)


async def refused(rig: Rig, actor: str, name: str, /, **changes: Any) -> Refused:
    with pytest.raises(Refused) as found:
        await update(rig, actor, name, **changes)
    return found.value


async def test_a_teams_admin_raises_a_priority_and_the_next_cycle_goes_by_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        await rig.submit("runs", priority="high", **WHOLE)
        await rig.until("runs", "running")
        await rig.submit("older", **WHOLE)
        await rig.submit("later", user="bob", **WHOLE)
        changed = await update(rig, "lea", "later", user="bob", priority="high", time_limit=900)
        assert (changed.priority, changed.time_limit) == ("high", 900)
        await rig.restart()  # it is kept
        await rig.platform.jobs.cancel(SYSTEM, "ann", "runs")
        await rig.until("later", "running", user="bob")
        last = (await rig.platform.jobs.events(SYSTEM, "bob", "later"))[1:]
        said = [str(e.message) for e in last if e.kind == "changed"]
        assert said == [
            "lea changed its priority: normal, now high",
            "lea changed its time limit: none, now 900 s",
        ]
        entry = (await rig.platform.audit.entries(action="job.update"))[0][0]
        assert (entry.actor, entry.object, entry.tenant) == ("lea", "later", "red")
        assert entry.detail["after"] == {"priority": "high", "time_limit": 900}


@pytest.mark.parametrize("order", ["priority", "fifo"])
async def test_a_job_put_first_starts_first_and_can_be_put_back(tmp_path: Path, order: str) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        await rig.platform.tenants.update("red", TenantCreate(name="red", queue_order=order))
        await rig.submit("runs", **WHOLE)
        await rig.until("runs", "running")
        for name in ("a", "b", "c"):
            await rig.submit(name, **WHOLE)
        await update(rig, "lea", "b", place="first")
        await update(rig, "lea", "c", place="first")

        async def places() -> list[str] | None:
            entries = await rig.platform.cluster_queue.entries("red")
            waiting = sorted((e for e in entries if e.position), key=lambda e: e.position or 0)
            return [e.name for e in waiting] if len(waiting) == 3 else None

        async def are(*names: str) -> bool:
            return await places() == list(names)

        await until(lambda: are("c", "b", "a"))
        assert (await update(rig, "lea", "c", place="own")).put_first is False
        await until(lambda: are("b", "a", "c"))
        await rig.restart()
        await rig.platform.jobs.cancel(SYSTEM, "ann", "runs")
        await rig.until("b", "running")


async def test_the_owner_asks_for_less_and_an_admin_of_another_team_for_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        await rig.submit("runs", **WHOLE)
        await rig.until("runs", "running")
        await rig.submit("waits", priority="normal", **WHOLE)
        lower = await update(rig, "ann", "waits", priority="low", time_limit=60)
        assert (lower.priority, lower.time_limit) == ("low", 60)
        no = await refused(rig, "ann", "waits", priority="normal")
        assert no.reason is Reason.FORBIDDEN
        assert "you may lower the priority" in no.msg
        assert (await refused(rig, "ann", "waits", place="first")).reason is Reason.FORBIDDEN
        assert (await refused(rig, "leo", "waits", place="first")).reason is Reason.FORBIDDEN
        assert (await refused(rig, "leo", "runs", priority="high")).reason is Reason.FORBIDDEN
        assert (await refused(rig, "ann", "runs", time_limit=60)).reason is Reason.WRONG_STATE
        assert (await refused(rig, "ann", "runs", priority="low")).reason is Reason.WRONG_STATE
        assert (await refused(rig, "lea", "runs", place="first")).reason is Reason.WRONG_STATE
        assert (await refused(rig, "lea", "waits", priority="urgent")).reason is Reason.INVALID
        assert (await refused(rig, "lea", "waits")).reason is Reason.INVALID
        assert (await update(rig, "ann", "waits", time_limit=None)).time_limit is None
        await rig.platform.jobs.cancel(SYSTEM, "ann", "waits")
        no = await refused(rig, "lea", "waits", priority="high")
        assert no.reason is Reason.WRONG_STATE
        assert "waits is cancelled and cannot be changed any more" in no.msg


async def test_a_job_that_runs_gets_another_time_limit_also_across_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig)
        await rig.submit("long", time_limit=3000, **WHOLE)
        job = await rig.until("long", "running")
        attempt = f"{job.uid}.0"

        async def limit_is(seconds: float) -> bool:
            return rig.executor._attempts[attempt].time_limit == seconds

        await update(rig, "lea", "long", time_limit=5000)
        await until(lambda: limit_is(5000))
        rig.crash()  # as if it was stored, and nobody lived to tell the executor
        rig.executor._attempts[attempt] = replace(rig.executor._attempts[attempt], time_limit=3000)
        await rig.start()
        await until(lambda: limit_is(5000))
        rig.ahead = 100.0
        no = await refused(rig, "lea", "long", time_limit=50)
        assert "has already run for 1" in no.msg
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "long")).phase == Phase.RUNNING.value


async def test_where_all_tenants_wait_in_one_line_no_team_orders_it(tmp_path: Path) -> None:
    policy = replace(FAST, scheduling=replace(FAST.scheduling, name="fifo"))

    async with running_rig(tmp_path, policy=policy) as rig:
        await red(rig)
        await rig.submit("runs", **WHOLE)
        await rig.submit("waits", **WHOLE)
        no = await refused(rig, "lea", "waits", place="first")
        assert "one queue" in no.msg
