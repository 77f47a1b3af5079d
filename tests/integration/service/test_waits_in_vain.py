"""Jobs that can never start as things are, and those whose own quota others still have: they are told so while they wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.model.types import SchedulingPolicy
from support.rigs.asking import asked
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.said import seen
from support.waiting import until

LONG = {"DURATION": 60, "STOP": 0.05}
PATIENT = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))


async def team(rig: Rig, name: str, user: str, cpu: float, cohort: str | None = None) -> None:
    await rig.platform.tenants.create(TenantCreate(name=name, cpu=cpu, cohort=cohort))
    await rig.platform.users.ensure(user)
    await rig.platform.tenants.set_member(name, user)


async def notebook(rig: Rig, user: str, tenant: str, cpu: float) -> None:
    await rig.platform.ledger.try_(asked(user, tenant, cpu))


async def test_a_job_above_a_quota_that_was_lowered_is_told_that_it_waits_in_vain(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await team(rig, "red", "ann", 3)
        await rig.submit("busy", tenant="red", workers=1, sim=LONG)
        await rig.until("busy", "running")
        await rig.submit("wide", tenant="red", workers=3, sim={"DURATION": 0.05})
        await rig.until("wide", "queued")
        await p.tenants.update("red", TenantUpdate(cpu=2))

        async def told() -> bool:
            return (await p.jobs.get(SYSTEM, "ann", "wide")).reason == "ExceedsMaxQuota"

        await until(told)
        message = "Needs 3 cpu, red may use 2. Use --workers 2."
        assert str((await p.jobs.get(SYSTEM, "ann", "wide")).message) == message
        why = await p.jobs.why(SYSTEM, "ann", "wide")
        assert [(v.reason, str(v.message)) for v in why.reasons] == [("ExceedsMaxQuota", message)]
        (entry,) = [e for e in await p.cluster_queue.entries() if e.name == "wide"]
        assert (why.position, entry.position, (await p.jobs.get(SYSTEM, "ann", "wide")).position) == (
            None,
            None,
            None,
        )
        assert (why.expected_start, str(why.expected_because)) == (
            None,
            "it can never start under this quota",
        )
        assert why.would_start_now[0] == "--workers 1"

        async def written() -> bool:
            waits = [e.reason for e in await p.jobs.events(SYSTEM, "ann", "wide") if e.kind == "waiting"]
            return waits == ["WaitingForQuota", "ExceedsMaxQuota"]

        await until(written)
        told_last = [
            str(e.message) for e in await p.jobs.events(SYSTEM, "ann", "wide") if e.kind == "waiting"
        ][-1]
        assert told_last == message
        await p.tenants.update("red", TenantUpdate(cpu=4))
        await rig.until("wide", "finished")


async def test_a_job_that_no_node_is_large_enough_for_any_more_is_told_so(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await rig.submit("busy", workers=2, sim=LONG)
        await rig.until("busy", "running")
        await rig.submit("wide", cpu=4, sim={"DURATION": 0.05})
        await rig.until("wide", "queued")
        assert (await rig.platform.jobs.why(SYSTEM, "ann", "wide")).reasons[0].reason == "WaitingForResources"
        rig.executor.set_node(node("n2", 2))
        rig.executor.set_node(node("n1", 3))

        async def told() -> bool:
            why = await rig.platform.jobs.why(SYSTEM, "ann", "wide")
            return why.reasons[0].reason == "ExceedsMaxQuota"

        await until(told)
        why = await rig.platform.jobs.why(SYSTEM, "ann", "wide")
        assert str(why.reasons[0].message) == ("Each rank needs 4 cpu, the largest node has 3. Ask for less.")
        assert str(why.expected_because) == "it can never start with the present nodes and quotas"


async def test_quota_held_by_a_notebook_is_shown_to_waiting_and_to_oversized_jobs(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await team(rig, "red", "ann", 3)
        await notebook(rig, "ann", "red", 0.2)
        with pytest.raises(Refused) as refused:
            await rig.submit("large", tenant="red", workers=20)
        assert (refused.value.reason, refused.value.msg) == (
            Reason.EXCEEDS_MAX_QUOTA,
            "Needs 20 cpu, red may use 3. Use --workers 3.",
        )
        await rig.submit("wide", tenant="red", workers=3)

        async def told() -> str:
            return str((await p.jobs.get(SYSTEM, "ann", "wide")).message) or ""

        way = "Servers hold the rest. Use --workers 2 or --cpu 0.9."
        assert await until(told) == f"Needs 3 cpu, 2.8 free. {way}"
        why = await p.jobs.why(SYSTEM, "ann", "wide")
        assert str(why.expected_because) == "servers hold the rest; use --workers 2 or --cpu 0.9"
        assert {f.key: str(f.who) for f in why.reasons[0].facts}["held"] == "the notebook server of ann"


async def test_a_job_whose_quota_is_lent_to_protected_work_shows_when_it_returns(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node("n1", 4), policy=PATIENT) as rig:
        p = rig.platform
        await team(rig, "red", "ann", 2, "main")
        await team(rig, "blue", "bob", 2, "main")
        await rig.submit("lent", tenant="red", workers=4, sim=LONG)
        lent = await rig.until("lent", "running")
        await rig.submit("own", "bob", tenant="blue", workers=1)

        async def told() -> str:
            return str((await p.jobs.get(SYSTEM, "bob", "own")).message) or ""

        assert (await until(told)).startswith("Needs 1 cpu, 0 free. Takes back its own quota from red at ")
        why = await p.jobs.why(SYSTEM, "bob", "own")
        assert why.expected_start is not None
        assert lent.started_at is not None
        # its 60 min count from its admission, whenever its ranks came up and whenever it is asked
        assert lent.submitted_at <= why.expected_start - timedelta(hours=1) <= lent.started_at
        assert seen(why.expected_because, "blue", knows=("red",)) == (
            "the scheduler stops a job of team red for it then; nothing is stopped before it has run for 60 min"
        )
