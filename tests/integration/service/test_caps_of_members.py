"""Caps of members: no more than that runs of one member's jobs at once, whatever is killed, and others pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mlp_api.teams import MemberCapSet
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenant_context import SYSTEM
from platform_rig import Rig, node, play
from waiting import until

LONG: dict[str, Any] = {"tenant": "red", "sim": {"DURATION": 600, "STOP": 0}}


async def red(rig: Rig, **cap: Any) -> None:
    await rig.platform.tenants.create(TenantCreate(name="red"))
    for user in ("ann", "bob"):
        await rig.platform.tenants.set_member("red", user)
    await rig.platform.member_caps.put("red", MemberCapSet(**cap), actor="lea")


async def phases(rig: Rig, user: str, *names: str) -> dict[str, str]:
    return {name: (await rig.platform.jobs.get(SYSTEM, user, name)).phase for name in names}


async def told(rig: Rig, name: str, text: str) -> bool:
    return text in str((await rig.platform.jobs.get(SYSTEM, "ann", name)).message)


def test_a_member_holds_no_more_than_the_cap_and_others_pass(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
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

    play(tmp_path, story, node(cpu=8))


def test_a_cap_that_is_set_later_stops_nothing_and_one_that_is_taken_away_lets_all_through(
    tmp_path: Path,
) -> None:
    async def story(rig: Rig) -> None:
        await red(rig, jobs=5)
        for name in ("a", "b"):
            await rig.submit(name, **LONG)
            await rig.until(name, "running")
        caps = rig.platform.member_caps
        await caps.put("red", MemberCapSet(user="ann", jobs=1), actor="lea")
        await rig.submit("c", **LONG)
        await until(lambda: told(rig, "c", "The cap of ann in red: 1 job; 2 jobs in use."))
        assert (await phases(rig, "ann", "a", "b")) == {"a": "running", "b": "running"}
        assert [c.user for c in await caps.put("red", MemberCapSet(user="ann"), actor="lea")] == [None]
        await rig.until("c", "running")
        entry = (await rig.platform.audit.entries(action="member.cap"))[0][0]
        assert (entry.object, entry.detail["before"]["jobs_at_once"]) == ("ann", 1)

    play(tmp_path, story, node(cpu=8))


def test_what_could_never_fit_says_so_and_holds_nobody_up(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await red(rig, cpu=2)
        await rig.submit("huge", cpu=1.0, workers=3, **LONG)
        await rig.submit("small", **LONG)
        await rig.until("small", "running")
        await until(lambda: told(rig, "huge", "Asks for 3 cpu; the cap of ann in red is 2 cpu."))

    play(tmp_path, story, node(cpu=8))


def test_what_may_grow_counts_with_its_most_workers(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await red(rig, cpu=4)
        await rig.submit("grows", workers="1:3", **LONG)
        await rig.until("grows", "running")
        await rig.submit("two", workers=2, **LONG)
        await until(lambda: told(rig, "two", "The cap of ann in red: 4 cpu"))
        await rig.submit("bobs", user="bob", workers=4, **LONG)
        await rig.until("bobs", "running", user="bob")

    play(tmp_path, story, node(cpu=16))


def test_a_cap_is_of_members_alone_and_goes_with_them(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await red(rig, jobs=3)
        caps = rig.platform.member_caps
        with pytest.raises(Refused) as refused:
            await caps.put("red", MemberCapSet(user="zoe", jobs=1), actor="lea")
        assert refused.value.reason is Reason.NOT_FOUND
        await caps.put("red", MemberCapSet(user="bob", jobs=1), actor="lea")
        await rig.platform.tenants.remove_member("red", "bob")
        assert [c.user for c in await caps.of_tenant("red")] == [None]
        await rig.platform.tenants.remove_member("red", "ann")
        await rig.platform.tenants.delete("red")
        assert await rig.platform.db.read(lambda tx: tx.caps.all()) == []

    play(tmp_path, story)
