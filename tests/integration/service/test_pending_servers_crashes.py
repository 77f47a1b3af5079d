"""While notebook servers take back what was lent, the hub dies, jobs change and nodes are lost."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_api.types import TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Target
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase
from mlp_hub.scheduler.model.types import Verdict
from mlp_language.message import msg
from support.rigs.asking import LONG, SLOW, asked, lent_out, refusal, running, server, started, taken, teams
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until


@pytest.mark.parametrize("how", ["crash", "restart"])
async def test_a_hub_that_dies_while_it_makes_room_continues_with_the_same_victims(
    tmp_path: Path, how: str
) -> None:
    async with running_rig(tmp_path, node(cpu=16), policy=replace(FAST, grace_s=5.0)) as rig:
        await teams(rig)
        await rig.submit("inside", workers=4, sim=LONG)
        await rig.until("inside", "running")
        for name in ("one", "two"):
            await rig.submit(name, workers=2, sim={**LONG, "STOP": 0.5})
            await rig.until(name, "running")
        asking = asyncio.ensure_future(started(rig, cpu=2))
        await until(lambda: _true(asked_to_end(rig)), what="somebody to be stopped")
        asking.cancel()
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


async def test_a_hub_that_dies_before_the_admission_is_told_has_it_stored(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        asking = asyncio.ensure_future(started(rig, cpu=4))
        await until(lambda: _true(rig.held("blue").cpu), what="the server to hold")
        asking.cancel()
        rig.crash()
        await rig.start()
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "lent")).phase == "queued"
        assert (await rig.platform.ledger.try_(asked(cpu=4))) is not None
        rig.crash()  # between the try and its confirm
        await rig.start()
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id="bob/", applier="sp"))
        await rig.platform.admission.cycle()
        assert (rig.held("red").cpu, rig.held("blue").cpu) == (4000, 4000)


async def test_a_server_is_not_admitted_on_outdated_holdings(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        admission = rig.platform.admission
        real, before = admission._store, admission._kept
        done = []

        async def late(kept, plan, told, now):
            if plan.admits and not done:
                # an app takes what the core has just given to the server
                app = api.ResourceRequestTry(
                    id="a", applier="am", request_type="request", tenant="blue", cpu=8
                )
                done.append(await rig.platform.ledger.try_(app))
            return await real(kept, plan, told, now)

        admission._store = late
        refused = await refusal(rig)
        assert (done[0].phase, refused.reason) == (RequestPhase.TRIED, Reason.WAITING_FOR_QUOTA)
        assert admission._kept is not before
        await rig.platform.ledger.cancel(api.ResourceRequestKey(id="a", applier="am"))
        assert await started(rig) == "n1"


async def test_many_servers_and_jobs_at_once_never_overcommit(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await teams(rig)
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={"DURATION": 60, "STOP": 0.05})
        for i in range(8):
            await rig.until(f"j{i}", "running")

        async def begun(i: int) -> str:
            one = server(i)
            await until(lambda: taken(rig, one), what=f"room for server {i}")
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id=f"bob/{i}", applier="sp"))
            used = rig.db.read_now(lambda tx: tx.ledger.in_use_by_tenant(rig.clock()))
            assert sum(a.cpu for a in used.values()) <= 8000
            return one.id

        got = await asyncio.gather(*(begun(i) for i in range(4)))
        assert len(got) == 4
        assert rig.held("blue").cpu == 4000
        assert rig.held("red").cpu <= 4000
        fifth = await refusal(rig, user="bob", cpu=1)
        assert fifth.reason is Reason.WAITING_FOR_QUOTA


async def test_a_victim_that_changed_before_it_was_stored_that_it_ends_is_asked_to_end_all_the_same(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        admission, board = rig.platform.admission, rig.platform.board
        real, changes = admission._store, []

        async def late(kept, plan, told, now):
            if not plan.preempts or changes:
                return await real(kept, plan, told, now)
            victim = board.jobs[plan.preempts[0].uid]
            changes.append(
                await rig.db.write(lambda tx: tx.jobs.update(replace(victim, message=msg("it moves"))))
            )
            stored = await real(kept, plan, told, now)
            await board.refresh(victim.uid)
            return stored

        admission._store = late
        assert await until(lambda: started(rig), what="room for the notebook") == "n1"
        assert changes
        assert await running(rig, "inside", "lent") == ["inside"]


async def test_a_server_that_counts_on_the_victim_of_a_cancelled_one_gets_its_room(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await lent_out(rig)
        admission = rig.platform.admission
        real, gone = admission._store, []

        async def late(kept, plan, told, now):
            for_whom = {p.preemptor for p in plan.preempts}
            if len(plan.admits) == 2 and len(for_whom) == 1 and not gone:
                gone.extend(for_whom)  # whose user has given it up, just as the core decides on both
                key = api.ResourceRequestKey(id=gone[0].removeprefix("sp/"), applier="sp")
                await rig.platform.ledger.cancel(key)
            return await real(kept, plan, told, now)

        admission._store = late
        admission.hold(Verdict(Reason.DISK_FULL, msg("until both have asked")))
        for i in range(2):
            with pytest.raises(Refused):
                await taken(rig, server(i))
        admission.hold(None)
        await until(lambda: _true(gone), what="a decision on both")
        (left,) = {"sp/bob/0", "sp/bob/1"} - set(gone)
        assert (await until(lambda: taken(rig, server(int(left[-1]))), what="room for the other one")).node
        assert await running(rig, "inside", "lent") == ["inside"]


async def test_a_server_whose_node_is_lost_before_its_room_is_free_gets_room_on_another(
    tmp_path: Path,
) -> None:
    async def _promised_on(rig: Rig) -> str | None:
        kept = rig.platform.admission.kept
        return None if kept is None or not kept.promised else kept.promised["sp/bob/0"].placement[0]

    async with running_rig(tmp_path, node("n1", cpu=4), node("n2", cpu=4), policy=SLOW) as rig:
        await teams(rig)
        await rig.platform.tenants.update("blue", TenantUpdate(cpu=7, cohort="main"))
        await rig.platform.tenants.update("red", TenantUpdate(cpu=1, cohort="main"))
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={**LONG, "STOP": 1})
            await rig.until(f"j{i}", "running")
        asking = asyncio.ensure_future(taken(rig, server(0)))
        lost = await until(lambda: _promised_on(rig), what="room that is promised")
        rig.executor.lose_node(lost)
        (other,) = {"n1", "n2"} - {lost}
        await asyncio.gather(asking, return_exceptions=True)
        assert (await until(lambda: taken(rig, server(0)), what="room on the other node")).node == other


@pytest.mark.parametrize("how", ["crash", "anew"])
async def test_only_one_more_is_stopped_for_one_more_while_others_are_still_stopping(
    tmp_path: Path, how: str
) -> None:
    async with running_rig(tmp_path, node(cpu=9), policy=SLOW) as rig:
        await teams(rig)
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={**LONG, "STOP": 30})
        for i in range(8):
            await rig.until(f"j{i}", "running")
        assert await asyncio.gather(*(taken(rig, server(i)) for i in range(3))) == [None] * 3
        assert len(asked_to_end(rig)) == 3
        if how == "crash":
            rig.crash()
            await rig.start()
        else:
            rig.platform.admission._forget()
        assert await taken(rig, server(3)) is None
        assert len(asked_to_end(rig)) == 4


def asked_to_end(rig: Rig) -> list[str]:
    jobs = rig.db.read_now(lambda tx: tx.jobs.active(SYSTEM))
    return [j.title for j in jobs if j.target is Target.PREEMPT]


async def _true(value: object) -> bool:
    return bool(value)


@pytest.mark.parametrize("seed", range(4))
async def test_wherever_the_hub_is_cut_off_nothing_leaks_and_nothing_is_held_twice(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)

    def sound(rig: Rig) -> None:
        used = rig.db.read_now(lambda tx: tx.ledger.in_use_by_tenant(rig.clock()))
        assert sum(a.cpu for a in used.values()) <= 8000
        assert used.get("blue", ZERO).cpu <= 4000  # servers never borrow here: all ask within blue's own
        on_node = rig.db.read_now(lambda tx: tx.ledger.node_use(rig.clock())).get("n1", ZERO)
        assert on_node.cpu <= 9000

    async with running_rig(tmp_path, node(cpu=9)) as rig:
        await teams(rig)
        for i in range(8):
            await rig.submit(f"j{i}", workers=1, sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("j7", "running")
        for _ in range(12):
            servers = [server(i) for i in range(4)]
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
            one = server(i)
            await until(lambda one=one: taken(rig, one), what=one.id)
        sound(rig)
        assert rig.held("blue").cpu == 4000
        rig.ahead = 3600  # what was only tried is over; what was confirmed stays
        await rig.platform.ledger.expire_requests()
        held = rig.db.read_now(lambda tx: tx.ledger.held(rig.clock(), applier="sp"))
        assert {r.phase for r in held} <= {RequestPhase.CONFIRMED}
        for row in held:
            gone = api.ResourceRequestTry(id=row.id, applier="sp", request_type="release", tenant="blue")
            await rig.platform.ledger.try_(gone)
            await rig.platform.ledger.confirm(api.ResourceRequestKey(id=row.id, applier="sp"))
        for i in range(8):
            await rig.until(f"j{i}", "running")  # all that was lent is lent again
        assert (rig.held("red").cpu, rig.held("blue")) == (8000, ZERO)
