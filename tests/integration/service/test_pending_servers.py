"""A notebook server is a workload like a job: it waits in one order, takes back its tenant's own, and is told why it waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.model.types import SchedulingPolicy, Verdict
from mlp_hub.service.state.bus import QUEUE_TOPIC
from mlp_language.message import msg
from support.rigs.asking import (
    LONG,
    SLOW,
    lent_out,
    phase_of,
    refusal,
    running,
    server,
    started,
    taken,
    teams,
)
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until


async def test_a_server_that_fits_is_admitted_by_a_cycle_and_holds_until_its_try_expires(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        before = rig.platform.admission.cycles
        assert await started(rig) == "n1"
        assert 1 <= rig.platform.admission.cycles - before <= 3
        assert await started(rig) == "n1"  # the same one
        assert rig.held("blue").cpu == 1000
        rig.ahead = 121
        await rig.platform.ledger.expire_requests()
        assert (phase_of(rig), rig.held("blue")) == ("expired", ZERO)


async def test_a_notebook_takes_back_what_its_tenant_lent_and_waits_for_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        asking = asyncio.ensure_future(started(rig))
        await rig.until("lent", "preempting")
        assert phase_of(rig) == "pending"
        assert await asking == "n1"
        assert await running(rig, "inside", "lent") == ["inside"]
        assert [
            str(e.message)
            for e in await rig.platform.jobs.events(SYSTEM, "ann", "lent")
            if e.kind == "preempted"
        ][:1] == ["Stopped for the notebook server of bob: blue takes back what red borrowed."]
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (4000, 1000)
        await rig.platform.admission.cycle()
        assert rig.platform.admission.kept is not None
        assert (rig.platform.admission.kept.pending, rig.platform.admission.kept.promised) == ({}, {})


async def test_only_as_many_are_stopped_as_it_needs_and_the_cheapest(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        await rig.submit("inside", workers=4, sim=LONG)
        await rig.until("inside", "running")
        for name in ("one", "two", "three", "four"):
            await rig.submit(name, workers=1, sim=LONG)
            await rig.until(name, "running")
        assert await until(lambda: started(rig, cpu=2), what="room for the notebook") == "n1"
        left = await running(rig, "inside", "one", "two", "three", "four")
        assert len(left) == 3
        assert "inside" in left


async def test_nodes_full_of_borrowed_work_give_way_to_a_notebook_inside_its_quota(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=5)) as rig:
        await teams(rig)
        await rig.submit("lent", workers=5, sim=LONG)  # all there is, one core of it beyond red's own
        await rig.until("lent", "running")
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "lent")).phase == "queued"


async def test_a_notebook_beyond_its_own_quota_never_takes_anything_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        await rig.platform.tenants.update("blue", TenantUpdate(cpu=1, cohort="main"))
        refused = await refusal(rig, cpu=2)
        assert refused.reason is Reason.WAITING_FOR_QUOTA
        assert phase_of(rig) == "pending"
        assert await running(rig, "inside", "lent") == ["inside", "lent"]


async def test_nobody_is_stopped_for_a_notebook_that_could_not_start_all_the_same(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16, ram=6900)) as rig:
        await teams(rig, ram=7000)
        for i in range(
            2
        ):  # blue's own servers fill the node: 200 MiB are left, and red's jobs would give 300
            held = server(i, cpu=0.1, ram=3000)
            await rig.platform.ledger.try_(held)
        await rig.submit("inside", workers=4, ram=100, sim=LONG)
        await rig.submit("lent", workers=3, ram=100, sim=LONG)
        for name in ("inside", "lent"):
            await rig.until(name, "running")
        refused = await refusal(rig, cpu=2)
        assert refused.reason in (Reason.WAITING_FOR_RESOURCES, Reason.WAITING_FOR_QUOTA)
        assert await running(rig, "inside", "lent") == ["inside", "lent"]


async def test_a_job_is_not_stopped_before_its_minimum_runtime(tmp_path: Path) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))

    async with running_rig(tmp_path, node(cpu=16), policy=policy) as rig:
        await lent_out(rig)
        refused = await refusal(rig)
        assert refused.reason is Reason.WAITING_FOR_QUOTA
        assert refused.retry_after is not None
        assert 3000 < refused.retry_after < 3700
        assert "may_stop" in {fact.key for fact in refused.facts}
        assert await running(rig, "inside", "lent") == ["inside", "lent"]
        rig.ahead = 3601
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"


async def test_freed_capacity_goes_only_to_the_server_it_was_freed_for(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        asking = asyncio.ensure_future(started(rig, cpu=4))  # all of the quota of blue
        await rig.until("lent", "preempting")
        asking.cancel()  # its owner does not listen any more, and has not given it up
        await rig.until("lent", "queued")
        assert await until(lambda: held(rig, "blue", 4000))
        other = await refusal(rig, user="ann", tenant="red", cpu=1)
        assert other.reason is Reason.WAITING_FOR_QUOTA
        await rig.submit("third", user="ann", workers=1, sim=LONG)
        await rig.submit("own", user="bob", workers=1, sim=LONG)
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "third")).phase == "queued"
        assert (await rig.platform.jobs.get(SYSTEM, "bob", "own")).phase == "queued"
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "lent")).phase == "queued"
        assert await started(rig, cpu=4) == "n1"
        assert rig.held("blue").cpu == 4000


async def test_room_that_nobody_takes_up_serves_others_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        assert await started(rig, cpu=4) == "n1"
        await rig.until("lent", "queued")
        rig.ahead = 3600
        await rig.until("lent", "running")  # borrowed again
        await rig.platform.ledger.expire_requests()
        assert (phase_of(rig), rig.held("blue")) == ("expired", ZERO)


async def test_a_pending_server_that_nobody_asks_for_any_more_expires_and_nobody_is_stopped_for_it(
    tmp_path: Path,
) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=600))

    async def forgotten(rig: Rig) -> bool:
        await rig.platform.admission.cycle()
        kept = rig.platform.admission.kept
        return kept is not None and not kept.pending

    async with running_rig(tmp_path, node(cpu=16), policy=policy) as rig:
        await lent_out(rig)
        await refusal(rig)
        rig.ahead = 590  # its place is lost, and nobody was ripe before
        await until(lambda: forgotten(rig), what="the core to forget it")
        rig.ahead = 700
        for _ in range(3):
            await rig.platform.admission.cycle()
        await rig.platform.ledger.expire_requests()
        assert (phase_of(rig), rig.held("blue")) == ("expired", ZERO)
        assert await running(rig, "inside", "lent") == ["inside", "lent"]


async def test_a_server_that_is_cancelled_leaves_nothing_reserved(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig, STOP=0.5)
        asking = asyncio.ensure_future(refusal(rig, cpu=4))
        await rig.until("lent", "preempting")
        await rig.platform.ledger.cancel(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert phase_of(rig) == "cancelled"
        await asking
        await rig.until("lent", "running")
        with pytest.raises(Refused, match="is cancelled and cannot be confirmed"):
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))


async def test_a_pending_server_is_not_confirmed_before_it_holds(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16), policy=SLOW) as rig:
        await lent_out(rig, STOP=30)
        assert await started(rig) is None
        with pytest.raises(Refused, match="is pending and cannot be confirmed; try it again"):
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert rig.held("blue") == ZERO


@pytest.mark.parametrize("name", ["maxmin", "fifo", "priority", "finish"])
async def test_it_is_so_under_every_policy_and_before_the_tenants_own_waiting_jobs(
    tmp_path: Path, name: str
) -> None:
    async with running_rig(
        tmp_path, node(cpu=16), policy=replace(FAST, scheduling=SchedulingPolicy(name=name))
    ) as rig:
        await lent_out(rig)
        await rig.submit("ours", user="bob", workers=8, sim=LONG)  # more than blue has of its own
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert await running(rig, "inside", "lent") == ["inside"]


async def test_an_elastic_job_gives_workers_before_any_job_is_stopped(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        await rig.submit("wide", workers="1:8", sim={"DURATION": 60, "STOP": 0.05})
        assert len((await rig.until("wide", "running")).ranks) == 8
        assert await until(lambda: started(rig, cpu=2), what="room for the notebook") == "n1"
        wide = await rig.until("wide", "running")
        assert len(wide.ranks) == 6
        told = [
            str(e.message)
            for e in await rig.platform.jobs.events(SYSTEM, "ann", "wide")
            if e.kind == "resize"
        ]
        assert "Gives 2 workers to the notebook server of bob and keeps 6." in told[0]
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (6000, 2000)


async def test_a_pending_server_is_in_the_queue_with_its_reason_and_in_no_list_of_jobs(
    tmp_path: Path,
) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))

    async with running_rig(tmp_path, node(cpu=16), policy=policy) as rig:
        await lent_out(rig)
        await refusal(rig)
        await rig.submit("own", user="bob", workers=4, sim=LONG)
        told = await rig.platform.previews.preview_update("blue", TenantUpdate(cpu=4, cohort="main"))
        assert [w.name for w in told.waiting] == ["own"]
        asked, own = await rig.platform.cluster_queue.entries("blue")
        assert (own.kind, own.name, own.run, own.position, own.facts) == ("job", "own", 1, 2, [])
        assert (asked.kind, asked.user, asked.name, asked.run) == ("server", "bob", "", 0)
        assert (asked.phase, asked.reason, asked.position) == ("queued", "WaitingForQuota", 1)
        assert (asked.cpu, asked.ram, asked.priority) == (1.0, 512, "normal")
        assert {(f.key, f.dimension): f.number for f in asked.facts}["asked", "cpu"] == 1
        assert asked.expected_because
        everywhere = [(e.kind, e.name) for e in await rig.platform.cluster_queue.entries()]
        assert everywhere == [("job", "inside"), ("job", "lent"), ("server", ""), ("job", "own")]
        assert await rig.platform.cluster_queue.entries("default") == []
        why = await rig.platform.jobs.why(SYSTEM, "bob", "own")
        assert why.reasons[0].reason in ("WaitingForQuota", "Reserved")


async def test_watchers_of_the_queue_see_a_waiting_server_and_its_end(tmp_path: Path) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))

    async with running_rig(tmp_path, node(cpu=16), policy=policy) as rig:

        async def in_queue() -> list[str | None]:
            return [e.reason for e in await rig.platform.cluster_queue.entries("blue")]

        await lent_out(rig)
        with rig.platform.bus.subscribe(QUEUE_TOPIC, limit=1) as hints:
            await refusal(rig)
            while await in_queue() != ["WaitingForQuota"]:
                await anext(hints)
            await rig.platform.ledger.cancel(api.ResourceRequestKey(id="bob/", applier="sp"))
            while await in_queue():
                await anext(hints)


@pytest.mark.parametrize("holder", ["job", "server"])
async def test_a_server_and_a_job_wait_in_one_order_in_which_who_holds_more_comes_last(
    tmp_path: Path, holder: str
) -> None:
    async with running_rig(tmp_path, node(cpu=3)) as rig:
        for name, user in (("red", "ann"), ("blue", "bob"), ("green", "ann")):
            await rig.platform.tenants.create(TenantCreate(name=name, cpu=3))
            await rig.platform.users.ensure(user)
            await rig.platform.tenants.set_member(name, user)
        if holder == "job":
            await rig.submit("held", tenant="red", workers=1, sim=LONG)
            await rig.until("held", "running")
        else:
            assert await taken(rig, server(0)) is not None
        for name in ("one", "two"):
            await rig.submit(name, tenant="green", workers=1, sim=LONG)
            await rig.until(name, "running")
        await rig.submit("wants", tenant="red", workers=1, sim=LONG)
        await rig.until("wants", "queued")
        assert (await refusal(rig)).reason is Reason.WAITING_FOR_RESOURCES
        await rig.platform.jobs.cancel(SYSTEM, "ann", "one")
        if holder == "job":
            await until(lambda: held(rig, "blue", 1000), what="the server")
            assert (await rig.platform.jobs.get(SYSTEM, "ann", "wants")).phase == "queued"
        else:
            await rig.until("wants", "running")
            assert phase_of(rig) == "pending"


async def test_jobs_of_a_tenant_queue_behind_its_waiting_server(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        rig.platform.admission.hold(Verdict(Reason.DISK_FULL, msg("until both have asked")))
        await rig.submit("own", user="bob", workers=4, priority="high", sim=LONG)
        held_back = await refusal(rig, cpu=4)
        assert held_back.reason is Reason.DISK_FULL
        rig.platform.admission.hold(None)
        await until(lambda: held(rig, "blue", 4000), what="room for the server")
        assert phase_of(rig) == "tried"
        assert (await rig.platform.jobs.get(SYSTEM, "bob", "own")).phase == "queued"


async def test_the_refusal_of_a_pending_server_is_the_cores_verdict(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        for user in ("ann", "bob"):
            await rig.submit("busy", user=user, workers=4, sim=LONG)
            await rig.until("busy", "running", user=user)
        refused = await refusal(rig)
        kept = rig.platform.admission.kept
        assert kept is not None
        verdict = kept.core.verdicts(["sp/bob/"], rig.clock())["sp/bob/"].verdict
        assert (refused.reason, refused.message, refused.facts) == (
            verdict.reason,
            verdict.headline,
            verdict.facts,
        )
        assert {(f.key, f.dimension): f.number for f in refused.facts}["asked", "cpu"] == 1
        assert refused.retry_after is not None
        first = rig.db.read_now(lambda tx: tx.ledger.pending(rig.clock()))
        rig.ahead = 60
        await refusal(rig)
        (again,) = rig.db.read_now(lambda tx: tx.ledger.pending(rig.clock()))
        assert [r.created_at for r in first] == [again.created_at]  # it keeps its place
        await rig.platform.jobs.cancel(SYSTEM, "bob", "busy")
        assert await until(lambda: held(rig, "blue", 1000))


async def test_a_server_does_not_wait_for_room_that_is_kept_for_a_job_ahead(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=16))
        await rig.platform.users.ensure("ann")
        await rig.platform.tenants.set_member("red", "ann")
        await rig.submit("some", tenant="red", workers=2, sim=LONG)
        await rig.until("some", "running")
        await rig.submit("wide", tenant="red", workers=4, sim=LONG)
        await rig.until("wide", "queued")
        assert await started(rig, user="bob", tenant="default") == "n1"


async def held(rig: Rig, tenant: str, cpu: int) -> bool:
    return rig.held(tenant).cpu == cpu
