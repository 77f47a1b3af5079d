"""Offers and answers: they name nobody of another tenant, and nobody waits for another one's many."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate
from mlp_hub.api.edge import answers
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import node, running_rig
from support.said import seen
from support.waiting import until

SECRETS = ("zelda", "mallory", "hidden", "nightly")


@pytest.mark.parametrize("limit", [None, 600])
async def test_offers_and_answers_name_nobody_of_another_tenant(tmp_path: Path, limit: int | None) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        for tenant, user in (("blue", "zelda"), ("green", "mallory"), ("red", "ann")):
            await rig.platform.tenants.create(TenantCreate(name=tenant))
            await rig.platform.users.ensure(user)
            await rig.platform.tenants.set_member(tenant, user)
        long = {"DURATION": 60}
        await rig.submit("hidden", "zelda", tenant="blue", workers=2, time_limit=limit, sim=long)
        await rig.until("hidden", "running", user="zelda")
        await rig.submit("hidden-2", "zelda", tenant="blue", workers=1, time_limit=700, sim=long)
        await rig.until("hidden-2", "running", user="zelda")
        await rig.submit("nightly", "mallory", tenant="green", workers=4, priority="high", sim=long)
        await rig.submit("mine", "ann", tenant="red", workers=1, sim=long)
        shown = []
        for workers in (1, 2, 4):
            asked = JobCreate(name="x", code="x", cpu=1, ram=100, tenant="red", workers=workers)
            shown.append(await rig.platform.jobs.offer("ann", asked))
        shown.append(await rig.platform.jobs.why(SYSTEM, "ann", "mine"))
        shown.append(await rig.platform.jobs.get(SYSTEM, "ann", "mine"))
        viewer = await rig.platform.visibility.viewer_of("ann")
        texts = [answers.encode(each, viewer=viewer).decode() for each in shown]
        assert any("a job of another team" in text for text in texts), texts
        for text in texts:
            assert not [s for s in SECRETS if s in text], text


async def test_only_the_user_with_many_requests_waits_and_others_do_not(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        for user in ("ann", "bob"):
            await rig.platform.users.ensure(user)
        await rig.submit("full", "bob", workers=4, sim={"DURATION": 60})
        await rig.until("full", "running", user="bob")
        await rig.submit("waits", "bob", workers=4)
        asked = JobCreate(name="x", code="x", cpu=1, ram=100)
        done: list[str] = []

        async def ask(user: str) -> None:
            try:
                await (
                    rig.platform.jobs.offer("ann", asked)
                    if user == "ann"
                    else rig.platform.jobs.why(SYSTEM, "bob", "waits")
                )
                done.append(user)
            except Refused as refused:
                done.append(str(refused.reason))

        turns = rig.platform.forecasts._turns

        async def waiting(user: str, count: int) -> bool:
            return len(turns._waiting.get(user, ())) == count

        async def all_refused() -> bool:
            return done.count("Conflict") == 92

        async with turns.turn("somebody"):
            flood = [asyncio.ensure_future(ask("ann")) for _ in range(100)]
            await until(lambda: waiting("ann", 8))
            other = asyncio.ensure_future(ask("bob"))
            await until(lambda: waiting("bob", 1))
            await until(all_refused)
        await asyncio.gather(*flood, other)
        answered = [user for user in done if user != "Conflict"]
        assert answered.count("ann") == 8
        assert answered.index("bob") <= 1


async def test_an_offer_says_who_would_be_stopped_for_it_and_names_ones_own_only(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        for tenant, user in (("red", "ann"), ("blue", "zelda")):
            await rig.platform.tenants.create(TenantCreate(name=tenant, cpu=2, cohort="main"))
            await rig.platform.users.ensure(user)
            await rig.platform.tenants.set_member(tenant, user)
        long = {"DURATION": 60, "STOP": 0.05}
        await rig.submit("hidden", "zelda", tenant="blue", workers=3, sim=long)
        await rig.until("hidden", "running", user="zelda")
        await rig.submit("mine", "ann", tenant="red", workers=1, priority="low", sim=long)
        await rig.until("mine", "running")
        asked = JobCreate(name="x", code="x", cpu=1, ram=100, tenant="red", priority="high", workers=2)
        offer = await rig.platform.jobs.offer("ann", asked)
        assert (offer.fits_now, offer.placement, offer.reasons) == (True, {"n1": 2}, [])
        assert offer.grace == rig.policy.grace_s
        assert [seen(m, "red", knows=("blue",)) for m in offer.gives_way] == [
            "a job of team blue is stopped for it and goes back into the queue"
        ]
        assert (await rig.platform.jobs.get(SYSTEM, "zelda", "hidden")).phase == "running"


async def test_an_offer_of_urgent_work_says_which_of_ones_own_would_be_stopped(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await rig.submit("mine", workers=3, sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("mine", "running")
        asked = JobCreate(name="x", code="x", cpu=1, ram=100, priority="high", workers=2)
        offer = await rig.platform.jobs.offer("ann", asked)
        assert (offer.fits_now, offer.placement) == (True, {"n1": 2})
        assert [str(m) for m in offer.gives_way] == [
            "job mine of ann is stopped for it and goes back into the queue"
        ]
