"""A notebook server gets its tenant's own quota back from those who borrowed it, by the rules of jobs."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api import types as api
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import ZERO
from mlp_hub.scheduler.model import SchedulingPolicy
from platform_rig import FAST, Rig, node, play, until

LONG = {"DURATION": 60, "STOP": 0.1}
SLOW = replace(FAST, grace_s=30.0)


async def teams(rig: Rig, **more: Any) -> None:
    """Make red (ann's) and blue (bob's), four cores each, in one cohort; red's job borrows all that blue has."""
    for name, user in (("red", "ann"), ("blue", "bob")):
        await rig.platform.tenants.create(TenantCreate(name=name, cpu=4, cohort="main", **more))
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(name, user)


async def lent_out(rig: Rig, **sim: Any) -> None:
    await teams(rig)
    await rig.submit("inside", workers=4, sim=LONG)
    await rig.submit("lent", workers=4, sim={**LONG, **sim})
    for name in ("inside", "lent"):
        await rig.until(name, "running")


def asked(user: str = "bob", tenant: str = "blue", cpu: float = 1, **more: Any) -> api.ResourceRequestTry:
    return api.ResourceRequestTry(
        id=f"{user}/",
        applier="sp",
        request_type="request",
        tenant=tenant,
        cpu=cpu,
        ram=512,
        user=user,
        holder=f"{user}'s notebook",
        **more,
    )


async def started(rig: Rig, **which: Any) -> str | None:
    """Try once; return the node that it got, None while room is being made."""
    row = await taken(rig, asked(**which))
    if row is None:
        return None
    assert row.phase is RequestPhase.TRIED
    return row.node


async def taken(rig: Rig, one: api.ResourceRequestTry) -> ResourceRequest | None:
    """Try; return the row, None while room is being made; any other refusal is raised."""
    try:
        return await rig.platform.ledger.try_(one)
    except Refused as refused:
        if refused.reason is not Reason.WAITING_FOR_PREEMPTED or refused.retry_after is None:
            raise
        return None


async def refusal(rig: Rig, **which: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await rig.platform.ledger.try_(asked(**which))
    return caught.value


def phase_of(rig: Rig, user: str = "bob") -> str | None:
    row = rig.db.read_now(lambda tx: tx.ledger.get("sp", f"{user}/"))
    return None if row is None else row.phase.value


async def running(rig: Rig, *names: str) -> list[str]:
    return [n for n in names if (await rig.platform.jobs.get("ann", n)).phase == "running"]


def test_a_notebook_takes_back_what_its_tenant_lent_and_is_told_to_wait_for_it(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        first = await refusal(rig)
        assert first.reason is Reason.WAITING_FOR_PREEMPTED
        assert "blue takes back what it lent" in first.msg
        assert phase_of(rig) == "claimed"
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert await running(rig, "inside", "lent") == ["inside"]
        assert [e.message for e in await rig.platform.jobs.events("ann", "lent") if e.kind == "preempted"][
            :1
        ] == [
            "stopped to make room for a notebook server of tenant blue: blue takes back what red had "
            "borrowed; it keeps its place in the queue by age"
        ]
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (4000, 1000)
        assert rig.platform.admission.kept is not None
        assert rig.platform.admission.kept.claims == {}

    play(tmp_path, story, node(cpu=16))


def test_only_as_many_are_stopped_as_it_needs_and_the_cheapest(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
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

    play(tmp_path, story, node(cpu=16))


def test_nodes_full_of_borrowed_work_give_way_to_a_notebook_inside_its_quota(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await teams(rig)
        await rig.submit("lent", workers=5, sim=LONG)  # all there is, one core of it beyond red's own
        await rig.until("lent", "running")
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert (await rig.platform.jobs.get("ann", "lent")).phase == "queued"

    play(tmp_path, story, node(cpu=5))


def test_a_notebook_beyond_its_own_quota_never_takes_anything_back(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        await rig.platform.tenants.update("blue", TenantUpdate(cpu=1, cohort="main"))
        refused = await refusal(rig, cpu=2)
        assert refused.reason in (Reason.WAITING_FOR_QUOTA, Reason.EXCEEDS_MAX_QUOTA)
        assert phase_of(rig) is None
        assert await running(rig, "inside", "lent") == ["inside", "lent"]

    play(tmp_path, story, node(cpu=16))


def test_nobody_is_stopped_for_a_notebook_that_could_not_start_all_the_same(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await teams(rig, ram=7000)
        for i in range(
            2
        ):  # blue's own servers fill the node: 200 MiB are left, and red's jobs would give 300
            held = replace_id(asked(cpu=0.1), f"bob/{i}", ram=3000)
            await rig.platform.ledger.try_(held)
        await rig.submit("inside", workers=4, ram=100, sim=LONG)
        await rig.submit("lent", workers=3, ram=100, sim=LONG)
        for name in ("inside", "lent"):
            await rig.until(name, "running")
        refused = await refusal(rig, cpu=2)
        assert refused.reason in (Reason.WAITING_FOR_RESOURCES, Reason.WAITING_FOR_QUOTA)
        assert phase_of(rig) == "cancelled"  # the core was asked
        assert await running(rig, "inside", "lent") == ["inside", "lent"]

    play(tmp_path, story, node(cpu=16, ram=6900))


def replace_id(one: api.ResourceRequestTry, id_: str, ram: int) -> api.ResourceRequestTry:
    fields = {f: getattr(one, f) for f in one.__struct_fields__}
    return api.ResourceRequestTry(**{**fields, "id": id_, "ram": ram, "holder": id_})


def test_who_has_not_run_for_the_least_time_is_not_stopped_before(tmp_path: Path) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))

    async def story(rig: Rig) -> None:
        await lent_out(rig)
        refused = await refusal(rig)
        assert refused.reason is Reason.WAITING_FOR_PREEMPTED
        assert refused.retry_after is not None
        assert 3000 < refused.retry_after < 3700
        assert "have run for their least time" in refused.msg
        assert await running(rig, "inside", "lent") == ["inside", "lent"]
        rig.ahead = 3601
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"

    play(tmp_path, story, node(cpu=16), policy=policy)


def test_what_comes_free_is_there_for_the_claim_and_for_nobody_else(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        assert await started(rig, cpu=4) is None  # all of the quota of blue
        await rig.until("lent", "queued")
        # the room is free, and its owner has not asked again yet
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (4000, 0)
        other = await refusal(rig, user="ann", tenant="red", cpu=1)
        assert other.reason is Reason.WAITING_FOR_QUOTA
        await rig.submit("third", user="ann", workers=1, sim=LONG)
        await rig.submit("own", user="bob", workers=1, sim=LONG)
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (await rig.platform.jobs.get("ann", "third")).phase == "queued"
        assert (await rig.platform.jobs.get("bob", "own")).phase == "queued"
        assert (await rig.platform.jobs.get("ann", "lent")).phase == "queued"
        assert await started(rig, cpu=4) == "n1"
        assert rig.held("blue").cpu == 4000

    play(tmp_path, story, node(cpu=16))


def test_a_claim_that_nobody_takes_up_expires_and_what_was_set_aside_serves_others(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        assert await started(rig, cpu=4) is None
        await rig.until("lent", "queued")
        rig.ahead = 3600
        await rig.until("lent", "running")  # borrowed again
        await rig.platform.ledger.sweep()
        assert phase_of(rig) == "expired"
        assert rig.held("blue") == ZERO
        assert rig.db.read_now(lambda tx: tx.ledger.claims(rig.clock())) == []

    play(tmp_path, story, node(cpu=16))


def test_a_claim_that_is_cancelled_is_over_at_once(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        assert await started(rig, cpu=4) is None
        await rig.until("lent", "queued")
        await rig.platform.ledger.cancel(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert phase_of(rig) == "cancelled"
        await rig.until("lent", "running")
        with pytest.raises(Refused, match="is cancelled and cannot be confirmed"):
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))

    play(tmp_path, story, node(cpu=16))


def test_a_claim_cannot_be_confirmed_before_it_holds(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig, STOP=30)
        assert await started(rig) is None
        with pytest.raises(Refused, match="is claimed and cannot be confirmed; try it again"):
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        assert rig.held("blue") == ZERO

    play(tmp_path, story, node(cpu=16), policy=SLOW)


@pytest.mark.parametrize("how", ["crash", "restart"])
def test_a_hub_that_dies_while_room_is_made_goes_on_with_the_same_victims(tmp_path: Path, how: str) -> None:
    async def story(rig: Rig) -> None:
        await teams(rig)
        await rig.submit("inside", workers=4, sim=LONG)
        await rig.until("inside", "running")
        for name in ("one", "two"):
            await rig.submit(name, workers=2, sim={**LONG, "STOP": 0.5})
            await rig.until(name, "running")
        assert await started(rig, cpu=2) is None
        if how == "crash":
            rig.crash()
            await rig.start()
        else:
            await rig.restart()
        assert await until(lambda: started(rig, cpu=2), what="room for the notebook") == "n1"
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        for _ in range(3):
            await rig.platform.admission.cycle()
        left = await running(rig, "inside", "one", "two")
        assert len(left) == 2
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (6000, 2000)

    play(tmp_path, story, node(cpu=16), policy=replace(FAST, grace_s=5.0))


def test_a_hub_that_dies_between_the_room_and_its_taking_keeps_it(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        assert await started(rig, cpu=4) is None
        await rig.until("lent", "queued")
        rig.crash()
        await rig.start()
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (await rig.platform.jobs.get("ann", "lent")).phase == "queued"
        assert (await rig.platform.ledger.try_(asked(cpu=4))) is not None
        rig.crash()  # between the try and its confirm
        await rig.start()
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        await rig.platform.admission.cycle()
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (4000, 4000)

    play(tmp_path, story, node(cpu=16))


def test_a_claim_is_not_decided_on_what_others_held_before(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        admission = rig.platform.admission
        real, before = admission._store, admission._kept
        done = []

        async def late(kept, plan, told, now):
            if plan.claims and not done:
                # somebody takes a core of the node while the core plans on a state without it
                done.append(await rig.platform.ledger.try_(asked(user="eve", tenant="default", cpu=1)))
            return await real(kept, plan, told, now)

        admission._store = late
        assert await started(rig) is None
        assert done
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert admission._kept is not before
        assert (await rig.platform.jobs.get("ann", "inside")).restarts == 0

    play(tmp_path, story, node(cpu=16))


def test_many_claims_and_jobs_at_once_never_overcommit(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await teams(rig)
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={"DURATION": 60, "STOP": 0.05})
        for i in range(8):
            await rig.until(f"j{i}", "running")

        async def server(i: int) -> str:
            one = replace_id(asked(cpu=1), f"bob/{i}", ram=100)

            await until(lambda: taken(rig, one), what=f"room for server {i}")
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id=f"bob/{i}", applier="sp"))
            used = rig.db.read_now(lambda tx: tx.ledger.in_use_by_tenant(rig.clock()))
            assert sum(a.cpu for a in used.values()) <= 8000
            return one.id

        got = await asyncio.gather(*(server(i) for i in range(4)))
        assert len(got) == 4
        assert rig.held("blue").cpu == 4000
        assert rig.held("red").cpu <= 4000
        fifth = await refusal(rig, user="bob", cpu=1)
        assert fifth.reason is not Reason.WAITING_FOR_PREEMPTED

    play(tmp_path, story, node(cpu=16))


@pytest.mark.parametrize("seed", range(4))
def test_wherever_the_hub_is_cut_off_nothing_leaks_and_nothing_is_held_twice(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)

    def sound(rig: Rig) -> None:
        used = rig.db.read_now(lambda tx: tx.ledger.in_use_by_tenant(rig.clock()))
        assert sum(a.cpu for a in used.values()) <= 8000
        assert used.get("blue", ZERO).cpu <= 4000  # servers never borrow here: all ask within blue's own
        on_node = rig.db.read_now(lambda tx: tx.ledger.node_use(rig.clock())).get("n1", ZERO)
        assert on_node.cpu <= 9000

    async def story(rig: Rig) -> None:
        await teams(rig)
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("j7", "running")
        for _ in range(12):
            servers = [replace_id(asked(cpu=1), f"bob/{i}", ram=100) for i in range(4)]
            tries = [asyncio.ensure_future(taken(rig, s)) for s in chance.sample(servers, 3)]
            await asyncio.sleep(chance.choice((0, 0.001, 0.005, 0.02, 0.1)))
            rig.crash()
            for t in tries:
                t.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
            sound(rig)
            await rig.start()
            key = api.ResourceRequestKey(id=f"bob/{chance.randrange(4)}", applier="sp")
            try:
                await getattr(rig.platform.ledger, chance.choice(("confirm", "cancel")))(key)
            except Refused as refused:
                if refused.reason is not Reason.WRONG_STATE:
                    raise
            sound(rig)
        for i in range(4):
            one = replace_id(asked(cpu=1), f"bob/{i}", ram=100)
            await until(lambda one=one: taken(rig, one), what=one.id)
        sound(rig)
        assert rig.held("blue").cpu == 4000
        rig.ahead = 3600  # what was only tried is over; what was confirmed stays
        await rig.platform.ledger.sweep()
        held = rig.db.read_now(lambda tx: tx.ledger.held(rig.clock(), applier="sp"))
        assert {r.phase for r in held} <= {RequestPhase.CONFIRMED}
        for row in held:
            gone = api.ResourceRequestTry(id=row.id, applier="sp", request_type="release", tenant="blue")
            await rig.platform.ledger.try_(gone)
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id=row.id, applier="sp"))
        for i in range(8):
            await rig.until(f"j{i}", "running")  # all that was lent is lent again
        assert (rig.held("red").cpu, rig.held("blue")) == (8000, ZERO)

    play(tmp_path, story, node(cpu=9))


@pytest.mark.parametrize("name", ["maxmin", "fifo", "priority", "finish"])
def test_it_is_so_under_every_policy_and_before_the_tenants_own_waiting_jobs(
    tmp_path: Path, name: str
) -> None:
    async def story(rig: Rig) -> None:
        await lent_out(rig)
        await rig.submit("ours", user="bob", workers=8, sim=LONG)  # more than blue has of its own
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert await running(rig, "inside", "lent") == ["inside"]

    play(tmp_path, story, node(cpu=16), policy=replace(FAST, scheduling=SchedulingPolicy(name=name)))


def test_an_elastic_job_gives_workers_before_any_job_is_stopped(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await teams(rig)
        await rig.submit("wide", workers="1:8", sim={"DURATION": 60, "STOP": 0.05})
        assert len((await rig.until("wide", "running")).ranks) == 8
        assert await until(lambda: started(rig, cpu=2), what="room for the notebook") == "n1"
        wide = await rig.until("wide", "running")
        assert len(wide.ranks) == 6
        told = [e.message for e in await rig.platform.jobs.events("ann", "wide") if e.kind == "resize"]
        assert "gives 2 workers to a notebook server of tenant blue and goes on with 6" in told[0]
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (6000, 2000)

    play(tmp_path, story, node(cpu=16))


def test_a_claim_that_waits_for_others_to_be_ripe_is_no_job_in_any_list(tmp_path: Path) -> None:
    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=3600))

    async def story(rig: Rig) -> None:
        await lent_out(rig)
        await refusal(rig)
        await rig.submit("own", user="bob", workers=4, sim=LONG)
        told = await rig.platform.previews.of("blue", TenantUpdate(cpu=4, cohort="main"))
        assert [w.name for w in told.waiting] == ["own"]
        assert [e.name for e in await rig.platform.jobs.queue("blue")] == ["own"]
        why = await rig.platform.jobs.why("bob", "own")
        assert why.reasons[0].reason in ("WaitingForQuota", "Reserved")
        assert "have ended meanwhile" not in why.reasons[0].message

    play(tmp_path, story, node(cpu=16), policy=policy)
