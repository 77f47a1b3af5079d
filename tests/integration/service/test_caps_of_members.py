"""Caps of members: no more than that runs of one member's jobs and notebooks at once, whatever is killed, and others pass."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.teams.teams import MemberCapSet
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.asking import asked, phase_of, refusal, started
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

LONG: dict[str, Any] = {"tenant": "red", "sim": {"DURATION": 600, "STOP": 0}}


async def red(rig: Rig, **cap: Any) -> None:
    await rig.platform.tenants.create(TenantCreate(name="red"))
    for user in ("ann", "bob"):
        await rig.platform.tenants.set_member("red", user)
    await rig.platform.member_caps.set_cap("red", MemberCapSet(**cap), actor="lea")


async def phases(rig: Rig, user: str, *names: str) -> dict[str, str]:
    return {name: (await rig.platform.jobs.get(SYSTEM, user, name)).phase for name in names}


async def told(rig: Rig, name: str, text: str) -> bool:
    return text in str((await rig.platform.jobs.get(SYSTEM, "ann", name)).message)


async def test_a_member_holds_no_more_than_the_cap_and_others_pass(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=2)
        for name in ("a", "b", "c"):
            await rig.submit(name, **LONG)
        await rig.submit("bobs", user="bob", **LONG)
        await rig.until("a", "running")
        await rig.until("b", "running")
        await rig.until("bobs", "running", user="bob")
        await until(lambda: told(rig, "c", "The cap of ann in red: 2 cpu; 2 cpu in use."))
        why = await rig.platform.jobs.why(SYSTEM, "ann", "c")
        assert [r.reason for r in why.reasons] == ["WaitingForQuota"]
        assert (await phases(rig, "ann", "c"))["c"] == "queued"
        await rig.restart()  # it holds from the first cycle on
        assert (await phases(rig, "ann", "a", "b", "c")) == {"a": "running", "b": "running", "c": "queued"}
        await rig.platform.jobs.cancel(SYSTEM, "ann", "a")
        await rig.until("c", "running")


async def test_a_cap_that_is_set_later_stops_nothing_and_one_that_is_taken_away_lets_all_through(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, jobs=5)
        for name in ("a", "b"):
            await rig.submit(name, **LONG)
            await rig.until(name, "running")
        caps = rig.platform.member_caps
        await caps.set_cap("red", MemberCapSet(user="ann", jobs=1), actor="lea")
        await rig.submit("c", **LONG)
        await until(lambda: told(rig, "c", "The cap of ann in red: 1 job; 2 jobs in use."))
        assert (await phases(rig, "ann", "a", "b")) == {"a": "running", "b": "running"}
        assert [c.user for c in await caps.set_cap("red", MemberCapSet(user="ann"), actor="lea")] == [None]
        await rig.until("c", "running")
        entry = (await rig.platform.audit.entries(action="member.cap"))[0][0]
        assert (entry.object, entry.detail["before"]["jobs_at_once"]) == ("ann", 1)


async def test_a_job_that_can_never_fit_the_cap_reports_it_and_holds_nobody_up(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=2)
        await rig.submit("huge", cpu=1.0, workers=3, **LONG)
        await rig.submit("small", **LONG)
        await rig.until("small", "running")
        await until(lambda: told(rig, "huge", "Asks for 3 cpu; the cap of ann in red is 2 cpu."))


async def test_an_elastic_job_counts_with_its_maximum_number_of_workers(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await red(rig, cpu=4)
        await rig.submit("grows", workers="1:3", **LONG)
        await rig.until("grows", "running")
        await rig.submit("two", workers=2, **LONG)
        await until(lambda: told(rig, "two", "The cap of ann in red: 4 cpu"))
        await rig.submit("bobs", user="bob", workers=4, **LONG)
        await rig.until("bobs", "running", user="bob")


async def test_a_cap_is_of_members_alone_and_goes_with_them(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig, jobs=3)
        caps = rig.platform.member_caps
        with pytest.raises(Refused) as refused:
            await caps.set_cap("red", MemberCapSet(user="zoe", jobs=1), actor="lea")
        assert refused.value.reason is Reason.NOT_FOUND
        await caps.set_cap("red", MemberCapSet(user="bob", jobs=1), actor="lea")
        await rig.platform.tenants.remove_member("red", "bob")
        assert [c.user for c in await caps.of_tenant("red")] == [None]
        await rig.platform.tenants.remove_member("red", "ann")
        await rig.platform.tenants.delete("red")
        assert await rig.platform.db.read(lambda tx: tx.caps.all()) == []


ANNS: dict[str, Any] = {"user": "ann", "tenant": "red"}


async def confirmed(rig: Rig, cpu: float) -> None:
    """Start the notebook server of ann."""
    assert await started(rig, cpu=cpu, **ANNS) == "n1"
    await rig.platform.ledger.confirm(ResourceRequestKey(id="ann/", applier="sp"))


@pytest.mark.parametrize("how", ["crash", "restart"])
async def test_a_notebook_counts_in_its_owners_cap_also_after_the_hub_died(tmp_path: Path, how: str) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=3)
        await confirmed(rig, 1)
        for name in ("a", "b", "c"):
            await rig.submit(name, **LONG)
        await rig.until("a", "running")
        await rig.until("b", "running")
        await until(lambda: told(rig, "c", "The cap of ann in red: 3 cpu; 3 cpu in use."))
        why = await rig.platform.jobs.why(SYSTEM, "ann", "c")
        offer = await rig.platform.jobs.offer(
            "ann", JobCreate(name="d", code="x", cpu=1, ram=100, tenant="red")
        )
        assert str(offer.expected_because) == "The cap of ann in red: 3 cpu; 3 cpu in use."
        (used,) = [f for f in why.reasons[0].facts if f.key == "inuse"]
        assert "the notebook server of ann (1)" in str(used.who)
        if how == "crash":
            rig.crash()
            await rig.start()
        else:
            await rig.restart()
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (await phases(rig, "ann", "a", "b", "c")) == {"a": "running", "b": "running", "c": "queued"}
        await rig.platform.ledger.try_(
            ResourceRequestTry(id="ann/", applier="sp", request_type="release", tenant="red")
        )
        await rig.platform.ledger.confirm(ResourceRequestKey(id="ann/", applier="sp"))
        await rig.until("c", "running")


async def test_a_notebook_beyond_the_cap_is_refused_with_current_holdings_and_starts_when_it_fits(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=3)
        await rig.submit("a", workers=2, **LONG)
        await rig.until("a", "running")
        refused = await refusal(rig, cpu=2, **ANNS)
        assert refused.reason is Reason.WAITING_FOR_QUOTA
        assert refused.retry_after is not None
        assert str(refused.msg) == (
            "ann may hold 3 cpu in red, which is the cap there; 2 cpu in use by job a of ann (2). This request asks for 2 cpu. "
            "End a job, choose a smaller server, or ask an admin of red to raise the cap"
        )
        (waits,) = [e for e in await rig.platform.cluster_queue.entries("red") if e.kind == "server"]
        assert (waits.reason, waits.position) == ("WaitingForQuota", 1)
        assert await started(rig, user="bob", tenant="red", cpu=2) == "n1"  # others are not held back
        await rig.platform.ledger.cancel(ResourceRequestKey(id="ann/", applier="sp"))
        await confirmed(rig, 1)
        assert (rig.held("red").cpu, await phases(rig, "ann", "a")) == (5000, {"a": "running"})


async def test_a_notebook_that_waits_for_the_cap_comes_before_its_owners_jobs(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=3)
        await rig.submit("a", workers=2, **LONG)
        await rig.until("a", "running")
        await refusal(rig, cpu=2, **ANNS)
        await rig.submit("b", **LONG)  # it would fit
        await until(lambda: told(rig, "b", "The cap of ann in red"))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "a")
        await rig.until("b", "running")
        assert phase_of(rig, "ann") == "tried"
        assert rig.held("red").cpu == 3000


async def test_a_notebook_that_is_larger_than_the_cap_is_refused_for_good(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=3)
        refused = await refusal(rig, cpu=4, **ANNS)
        assert (refused.reason, refused.retry_after) == (Reason.EXCEEDS_MAX_QUOTA, None)
        assert str(refused.msg) == (
            "ann may hold 3 cpu in red, which is the cap there. This request asks for 4 cpu and can never start. "
            "Choose a smaller server, or ask an admin of red to raise the cap"
        )
        assert phase_of(rig, "ann") is None
        # one that was fine when it was asked for, and is not any more
        await rig.submit("a", workers=2, **LONG)
        await rig.until("a", "running")
        await refusal(rig, cpu=2, **ANNS)
        await rig.platform.member_caps.set_cap("red", MemberCapSet(cpu=1), actor="lea")
        refused = await refusal(rig, cpu=2, **ANNS)
        assert (refused.reason, refused.retry_after) == (Reason.EXCEEDS_MAX_QUOTA, None)
        assert "ann may hold 1 cpu in red" in str(refused.msg)
        assert phase_of(rig, "ann") == "cancelled"


async def test_a_server_whose_place_is_named_is_held_to_the_cap_too(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=3)
        await rig.submit("grows", workers="1:2", **LONG)
        await rig.until("grows", "running")
        refused = await refusal(rig, cpu=2, node="n1", **ANNS)
        assert refused.reason is Reason.WAITING_FOR_QUOTA
        assert "2 cpu in use by job grows of ann (2). This request asks for 2 cpu" in str(refused.msg)
        assert await started(rig, cpu=1, node="n1", **ANNS) == "n1"


async def test_a_cap_that_is_lowered_below_a_notebook_stops_neither_it_nor_a_job(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig, cpu=4)
        await confirmed(rig, 2)
        await rig.submit("a", **LONG)
        await rig.until("a", "running")
        await rig.platform.member_caps.set_cap("red", MemberCapSet(user="ann", cpu=1), actor="lea")
        await rig.submit("b", **LONG)
        await until(lambda: told(rig, "b", "Servers hold 2 cpu of ann's cap in red; one must stop."))
        for _ in range(3):
            await rig.platform.admission.cycle()
        assert (phase_of(rig, "ann"), rig.held("red").cpu) == ("confirmed", 3000)
        assert await phases(rig, "ann", "a", "b") == {"a": "running", "b": "queued"}


async def test_asking_for_a_notebook_and_a_job_at_once_never_exceeds_the_cap(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await red(rig, cpu=2)

        async def ask(n: int) -> None:
            one = asked(cpu=1, **ANNS)
            fields = {f: getattr(one, f) for f in one.__struct_fields__}
            with contextlib.suppress(Refused):
                await rig.platform.ledger.try_(type(one)(**{**fields, "id": f"ann/{n}"}))

        jobs = [rig.submit(f"j{n}", **LONG) for n in range(8)]
        await asyncio.gather(*[ask(n) for n in range(4)], *jobs)
        for _ in range(5):
            await rig.platform.admission.cycle()
        assert rig.held("red").cpu == 2000
