"""Tenants of one cohort borrow each other's idle quota, and get their own back when they need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, node, running_rig
from support.said import seen as read

LONG = {"DURATION": 60, "STOP": 0.1}


async def two_teams(rig: Rig, *, red: dict | None = None, blue: dict | None = None) -> None:
    """Make red (ann's) and blue (bob's), four cores each, in one cohort."""
    for name, user, more in (("red", "ann", red), ("blue", "bob", blue)):
        asked = TenantCreate(name=name, cpu=4, cohort="main", **(more or {}))
        await rig.platform.tenants.create(asked)
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(name, user)


async def told(rig: Rig, user: str, name: str, kind: str) -> list[str]:
    return [str(e.message) for e in await rig.platform.jobs.events(SYSTEM, user, name) if e.kind == kind]


async def test_borrowed_quota_is_reclaimed_from_the_cheapest_job_which_requeues_with_its_age(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await two_teams(rig)
        await rig.submit("older", workers=4, sim=LONG)
        await rig.until("older", "running")
        cheap = await rig.submit("cheap", workers=4, sim=LONG)  # borrows all of blue's quota
        await rig.until("cheap", "running")
        seen = {t.name: t for t in await rig.platform.tenants.list()}
        assert (seen["red"].borrowed, seen["blue"].lent) == ({"cpu": 4.0}, {"cpu": 4.0})
        assert (seen["red"].free, seen["blue"].free) == ({"cpu": 0.0}, {"cpu": 0.0})

        await rig.submit("own", user="bob", workers=2, sim={"DURATION": 0.3})
        await rig.until("cheap", "preempting", "queued")
        await rig.until("own", "running", "finished", user="bob")
        back = await rig.until("cheap", "queued", "admitted", "starting", "running")
        assert back.queued_at == cheap.queued_at
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "older")).restarts == 0
        assert await told(rig, "ann", "cheap", "preempted") == [
            "Stopped for job own of bob: blue takes back what red borrowed."
        ]
        (why_stopped,) = [
            d
            for d in await rig.platform.decisions.decisions_of(SYSTEM, "ann", "cheap")
            if d.kind == "preempted"
        ]
        # the decision tells what the timeline tells, and goes on where that ends
        assert str(why_stopped.summary).startswith(
            f"{(await told(rig, 'ann', 'cheap', 'preempted'))[0]} It was "
        )
        assert "It was chosen over 1 other job. That loses " in str(why_stopped.summary)
        assert await told(rig, "ann", "cheap", "requeued") == [
            "back in the queue with its age kept: the other job gets its resources"
        ]
        (started,) = await rig.platform.decisions.decisions_of(SYSTEM, "bob", "own")
        assert read(started.summary, "blue").endswith("; room was made by the end of a job of another team")
        assert [str(m) for m in started.changed] == ["it was submitted"]
        waits = await told(rig, "bob", "own", "waiting")
        assert waits[0] == ("first in its queue: Waits for the end of job cheap of ann, stopped for it.")

        await rig.until("own", "finished", user="bob")
        again = await rig.until("cheap", "running")  # nobody needs it any more: borrowed again
        assert again.restarts == 1
        for name in ("older", "cheap"):
            await rig.platform.jobs.cancel(SYSTEM, "ann", name)
            await rig.until(name, "cancelled")
        assert (rig.held("red"), rig.held("blue")) == (ZERO, ZERO)


async def test_nobody_borrows_from_a_tenant_that_lends_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await two_teams(rig, blue={"lending_limit": {"cpu": 0}})
        await rig.submit("inside", workers=4, sim=LONG)
        await rig.until("inside", "running")
        with pytest.raises(Refused, match="Needs 8 cpu, red may use 4"):
            await rig.submit("more", workers=8)
        await rig.submit("second", workers=1, sim=LONG)
        await rig.submit("theirs", user="bob", workers=4, sim={"DURATION": 0.2})
        await rig.until("theirs", "finished", user="bob")
        second = await rig.platform.jobs.get(SYSTEM, "ann", "second")
        assert (second.phase, second.reason) == ("queued", "WaitingForQuota")


async def test_nothing_inside_its_own_quota_is_ever_taken_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await two_teams(rig)
        await rig.submit("mine", workers=4, sim=LONG)
        await rig.submit("theirs", user="bob", workers=4, sim=LONG)
        await rig.until("mine", "running")
        await rig.until("theirs", "running", user="bob")
        await rig.submit("more", user="bob", workers=4, sim=LONG)
        await rig.platform.admission.cycle()
        more = await rig.platform.jobs.get(SYSTEM, "bob", "more")
        assert (more.phase, more.reason) == ("queued", "WaitingForQuota")
        mine = await rig.platform.jobs.get(SYSTEM, "ann", "mine")
        assert (mine.phase, mine.restarts) == ("running", 0)


async def test_a_lower_quota_stops_nothing_and_the_preview_says_who_could_be_stopped_and_until_when(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await two_teams(rig)
        for name, limit in (("one", 600), ("two", 1200)):  # one after the other: the later has less to lose
            await rig.submit(name, workers=2, sim=LONG, time_limit=limit)
            await rig.until(name, "running")
        await rig.submit("theirs", user="bob", workers=4, sim=LONG)
        await rig.until("theirs", "running", user="bob")
        await rig.submit("third", workers=1, sim=LONG)
        await rig.until("third", "queued")

        alone = await rig.platform.previews.preview_update("red", TenantUpdate(cpu=1))
        assert [(o.tenant, o.dimension, o.inuse, o.above) for o in alone.over] == [("red", "cpu", 4.0, 3.0)]
        assert [w.name for w in alone.waiting] == ["third"]
        assert alone.stopped == []
        assert str(alone.back_inside_because) == "job two of ann ends by then at the latest"
        assert [str(n.text) for n in alone.notes] == [
            "4 cpu in use, 3 cpu above the new quota",
            "2 running jobs continue; the change stops nothing, and nothing new starts until enough is given back",
            "1 waiting job would start later: job third of ann in 20 min instead of in 10 min",
            "1 job would still wait for quota: third. Of third: Needs 1 cpu, 0 free. "
            "Starts when jobs of red end.",
        ]
        before = await rig.platform.tenants.get("red")
        assert before.cpu == 4.0, "a preview changes nothing"
        more = await rig.platform.previews.preview_update("red", TenantUpdate(cpu=5, cohort="main"))
        assert [str(n.text) for n in more.notes] == ["1 waiting job could start: third"]

        await rig.platform.tenants.update("red", TenantUpdate(cpu=1, cohort="main"))
        await rig.platform.admission.cycle()
        assert {(await rig.platform.jobs.get(SYSTEM, "ann", n)).phase for n in ("one", "two")} == {"running"}

        # blue is given what red had: with a job that waits for its own, red's borrowed work is what would go
        asked = TenantUpdate(cpu=7, cohort="main")
        await rig.submit("big", user="bob", workers=2, sim=LONG)
        found = await rig.platform.previews.preview_update("blue", asked)
        assert [(s.name, s.tenant, s.for_name) for s in found.stopped] == [("two", "red", "big")]
