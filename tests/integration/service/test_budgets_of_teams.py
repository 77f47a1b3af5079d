"""Budgets of teams: people are told once, new work stops and continues, and costs are those of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp.rendering import costs
from mlp_api.jobs.jobs import JobCreate
from mlp_api.localized import writer
from mlp_api.platform.accounting import BudgetSet, Prices, PricesOfPeriod
from mlp_api.platform.notices import NotificationsSet
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate
from mlp_hub.api.edge.answers import STRANGER
from mlp_hub.cli.commands.budgets import line
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_language.render import ENGLISH
from support.rigs.asking import asked, phase_of
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

LONG: dict[str, Any] = {"tenant": "red", "sim": {"DURATION": 600, "STOP": 0}}
NOON = datetime(2031, 3, 10, 12, tzinfo=UTC).timestamp()
DAY_S = 86_400.0


async def red(rig: Rig, *, at: float | None = NOON) -> None:
    """Make two teams with an admin each, prices, and people who want to be told."""
    rig.stands_at = at
    await red_prices(rig)
    for team, admin in (("red", "lea"), ("blue", "leo")):
        await rig.platform.tenants.create(TenantCreate(name=team))
        await rig.platform.tenants.set_member(team, admin, Role.ADMIN)
    await rig.platform.tenants.set_member("red", "ann")
    for user in ("lea", "leo", "ann", "root"):
        choices = NotificationsSet(browser=["budget"], quiet=None, timezone="UTC", channels=[])
        await rig.platform.notices.store_choices(user, choices, user)
    rig.platform.budgets.platform_admins = roots


async def red_prices(rig: Rig) -> None:
    """Have a core-hour cost one euro."""
    listed = Prices(currency="EUR", periods=[PricesOfPeriod(begins="2020-01-01", core_hour="1")])
    await rig.platform.accounting.set_prices(listed, actor="root")


async def roots(names: Any) -> list[str]:
    return [name for name in names if name == "root"]


async def spend(rig: Rig, euros: float, *, name: str = "x", tenant: str = "red") -> None:
    """Have a team hold as many core-hours as these in the hour before now."""
    now = rig.clock()
    amount = Resources(cpu=round(euros * 1000))
    row = ResourceRequest(
        f"{name}{tenant}", "dm", tenant, amount, RequestPhase.CONFIRMED, now, holder=name, user="ann"
    )
    db = rig.db
    clock, db.clock = db.clock, lambda: now - 3600
    await db.write(lambda tx: tx.ledger.put(row))
    db.clock = lambda: now
    await db.write(lambda tx: tx.ledger.put(row))
    await db.write(lambda tx: tx.ledger.forget("dm", row.id))
    db.clock = clock


async def told(rig: Rig, user: str) -> list[str]:
    found = await rig.platform.db.read(lambda tx: tx.notices.after(user, 0, 100, None))
    return [str(one.text) for one in found if one.kind == "budget"]


async def counts(rig: Rig) -> list[int]:
    return [len(await told(rig, user)) for user in ("lea", "root", "leo", "ann")]


async def test_admins_are_told_once_for_each_level_and_nobody_else(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig)
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="10"), actor="root")
        await spend(rig, 7.9)
        await rig.platform.budgets.review()
        assert await counts(rig) == [0, 0, 0, 0]
        await spend(rig, 0.1, name="y")
        for _ in range(3):
            await rig.platform.budgets.review()
        assert await counts(rig) == [1, 1, 0, 0]
        assert "8.00 of 10 EUR in 2031-03: 80 % of its budget" in (await told(rig, "lea"))[0]
        await rig.platform.accounting.roll_up.roll_up()  # from spans to sums: the same
        await rig.platform.budgets.review()
        await rig.restart()
        rig.platform.budgets.platform_admins = roots
        await rig.platform.budgets.review()
        assert await counts(rig) == [1, 1, 0, 0]
        await spend(rig, 5, name="z")
        await rig.platform.budgets.review()
        assert await counts(rig) == [2, 2, 0, 0]
        found = await rig.platform.budgets.get("red")
        assert (found.spent, found.percent, found.reached) == ("13.000000", 130.0, [80, 100])
        assert found.forecast == "42.421053"  # 13 in 9.5 of 31 days


async def test_a_clock_that_is_set_repeats_no_notice_and_loses_none(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig)
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="10"), actor="root")
        await spend(rig, 8)
        await rig.platform.budgets.review()
        for days in (40, 4000, 0, -70, 0):
            rig.stands_at = NOON + days * DAY_S
            await rig.platform.budgets.review()
        assert await counts(rig) == [1, 1, 0, 0]
        await spend(rig, 2, name="y")
        rig.stands_at = NOON + 30 * DAY_S  # nobody looked before the month was over
        await rig.platform.budgets.review()
        await rig.platform.budgets.review()
        assert await counts(rig) == [2, 2, 0, 0]
        assert "10.00 of 10 EUR in 2031-03" in (await told(rig, "lea"))[1]
        await spend(rig, 9, name="z")
        await rig.platform.budgets.review()
        assert "2031-04" in (await told(rig, "lea"))[2]


async def test_nobody_is_told_until_the_hub_answers_who_the_admins_are(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await red(rig)

        async def away(_: Any) -> list[str]:
            raise OSError("the hub is away")

        rig.platform.budgets.platform_admins = away
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="1"), actor="root")
        await spend(rig, 2)
        await rig.platform.budgets.review()
        assert await counts(rig) == [0, 0, 0, 0]
        rig.platform.budgets.platform_admins = roots
        await rig.platform.budgets.review()
        assert await counts(rig) == [1, 1, 0, 0]


async def test_a_spent_budget_stops_new_work_and_a_higher_one_continues_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=2)) as rig:
        await red(rig, at=None)
        p = rig.platform
        for name in ("runs", "fills", "waits"):
            await rig.submit(name, user="ann", **LONG)
        await rig.until("runs", "running", user="ann")
        await rig.until("fills", "running", user="ann")
        await p.budgets.set_budget("red", BudgetSet(amount="1", stop=True), actor="root")
        await spend(rig, 2)
        await p.budgets.review()
        with pytest.raises(Refused) as refused:
            await rig.submit("new", user="ann", **LONG)
        assert refused.value.reason is Reason.BUDGET_SPENT
        assert "Running work continues" in refused.value.msg
        assert "platform administrator raises" in refused.value.msg
        with pytest.raises(Refused) as refused:
            await p.jobs.preview("ann", JobCreate(name="new", code="x", tenant="red"))
        assert refused.value.reason is Reason.BUDGET_SPENT
        await p.jobs.cancel(SYSTEM, "ann", "fills")
        await rig.until("fills", "cancelled", user="ann")

        async def waits_for_budget() -> bool:
            why = await p.jobs.why(SYSTEM, "ann", "waits")
            return [one.reason for one in why.reasons] == ["BudgetSpent"]

        await until(waits_for_budget)
        assert (await p.jobs.get(SYSTEM, "ann", "runs")).phase == "running"
        for kind in ("jl", "dm"):  # a notebook server as any other
            with pytest.raises(Refused) as refused:
                await p.ledger.try_(
                    ResourceRequestTry(
                        id="s1",
                        applier=kind,
                        tenant="red",
                        request_type="request",
                        cpu=0.5,
                        ram=64,
                        user="ann",
                    )
                )
            assert refused.value.reason is Reason.BUDGET_SPENT
        await rig.submit("theirs", user="leo", tenant="blue", sim={"DURATION": 0.05})
        await rig.restart()
        p = rig.platform
        await until(lambda: _queued(rig, "waits"))
        with pytest.raises(Refused):
            await rig.submit("new", user="ann", **LONG)
        await p.budgets.set_budget("red", BudgetSet(amount="100", stop=True), actor="root")
        await rig.until("waits", "running", user="ann")
        await rig.submit("new", user="ann", **LONG)


async def _queued(rig: Rig, name: str) -> bool:
    return (await rig.platform.jobs.get(SYSTEM, "ann", name)).phase == "queued"


async def test_without_the_stop_work_continues_and_a_removed_budget_holds_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig, at=None)
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="1"), actor="root")
        await spend(rig, 2)
        await rig.platform.budgets.review()
        await rig.submit("a", user="ann", **LONG)
        await rig.until("a", "running", user="ann")
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="1", stop=True), actor="root")
        with pytest.raises(Refused):
            await rig.submit("b", user="ann", **LONG)
        await rig.platform.budgets.remove("red", actor="root")
        await rig.submit("b", user="ann", **LONG)
        await rig.until("b", "running", user="ann")
        with pytest.raises(Refused) as refused:
            await rig.platform.budgets.remove("red", actor="root")
        assert refused.value.reason is Reason.NOT_FOUND


async def test_a_price_list_that_goes_or_changes_its_currency_stops_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig, at=None)
        await rig.platform.budgets.set_budget("red", BudgetSet(amount="1", stop=True), actor="root")
        await spend(rig, 2)
        await rig.platform.budgets.review()
        await rig.platform.accounting.remove_prices(actor="root")
        await rig.platform.budgets.review()
        await rig.submit("a", user="ann", **LONG)
        found = await rig.platform.budgets.get("red")
        assert (found.spent, found.percent, found.stopped) == (None, None, False)


async def test_a_budget_that_counts_nothing_says_what_is_missing_and_where_to_set_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig)
        service = rig.platform
        await service.budgets.set_budget("red", BudgetSet(amount="10"), actor="root")
        later = BudgetSet(amount="10", begins="2031-04-01", ends="2031-05-01")
        await service.budgets.set_budget("blue", later, actor="root")

        async def said(tenant: str) -> str:
            found = await service.budgets.get(tenant)
            assert (found.uncounted is None) is (found.spent is not None)
            shown = msgspec.to_builtins(found, enc_hook=writer(ENGLISH, STRANGER))
            for text in (line(shown), costs.budget(shown)):
                assert "?" not in text
                assert str(shown["uncounted"] or "") in text
            return str(shown["uncounted"])

        assert await said("red") == "None"
        assert await said("blue") == "Nothing is counted yet: the budget begins on 2031-04-01."
        dollars = Prices(currency="USD", periods=[PricesOfPeriod(begins="2020-01-01", core_hour="1")])
        await service.accounting.set_prices(dollars, actor="root")
        assert await said("red") == (
            "Nothing is counted: the budget is in EUR, and the price list in USD. "
            "A platform administrator sets the budget again with mlp-hub budget set red AMOUNT."
        )
        await service.accounting.remove_prices(actor="root")
        assert await said("red") == (
            "Nothing is counted: this hub has no price list. "
            "A platform administrator sets one with mlp-hub prices put FILE."
        )
        rig.stands_at = datetime(2031, 6, 1, tzinfo=UTC).timestamp()
        await red_prices(rig)
        assert "the budget ended on 2031-05-01" in await said("blue")


async def test_a_review_without_budgets_reads_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        rig.platform.budgets._db = None  # type: ignore[assignment]  # which fails whoever reads
        await rig.platform.budgets.review()


async def test_a_review_reads_stored_sums_only_of_teams_whose_sums_changed(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig)
        budgets = rig.platform.budgets
        for team in ("red", "blue"):
            await budgets.set_budget(team, BudgetSet(amount="10"), actor="root")
        assert {tenant for tenant, _ in budgets._stored} == {"red", "blue"}
        await spend(rig, 2)
        await rig.platform.accounting.roll_up.roll_up()
        assert {tenant for tenant, _ in budgets._stored} == {"blue"}
        assert (await budgets.get("red")).spent == "2.000000"


async def test_a_run_costs_what_the_ledger_was_charged_for_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig)
        await rig.submit("a", user="ann", cpu=2.0, **LONG)
        await rig.until("a", "running", user="ann")
        rig.stands_at = NOON + 1800
        cost = await rig.platform.jobs.cost(SYSTEM, "ann", "a")
        assert (cost.currency, cost.cost, cost.per_hour, cost.final) == ("EUR", "1.000000", "2.000000", False)
        await rig.platform.accounting.roll_up.roll_up()
        await rig.platform.jobs.cancel(SYSTEM, "ann", "a")
        await rig.until("a", "cancelled", user="ann")
        rig.stands_at = NOON + 7200
        await rig.platform.accounting.roll_up.roll_up()
        cost = await rig.platform.jobs.cost(SYSTEM, "ann", "a")
        assert (cost.cost, cost.per_hour, cost.final) == ("1.000000", None, True)
        again = await rig.submit("a", user="ann", cpu=1.0, **LONG)  # the next run of the name is another one
        assert again.run == 2
        await rig.until("a", "running", user="ann")
        rig.stands_at = NOON + 9000
        assert (await rig.platform.jobs.cost(SYSTEM, "ann", "a@1")).cost == "1.000000"
        assert (await rig.platform.jobs.cost(SYSTEM, "ann", "a")).cost == "0.500000"
        offer = await rig.platform.jobs.offer(
            "ann", JobCreate(name="b", code="x", tenant="red", cpu=0.5, workers=2, time_limit=1800)
        )
        assert offer.cost is not None
        assert (offer.cost.per_hour, offer.cost.at_most) == ("1.000000", "0.500000")
        await rig.platform.accounting.remove_prices(actor="root")
        assert (await rig.platform.jobs.cost(SYSTEM, "ann", "a")).cost is None
        offer = await rig.platform.jobs.offer("ann", JobCreate(name="b", code="x", tenant="red"))
        assert offer.cost is None


async def test_an_elastic_job_costs_each_of_its_sizes(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await red(rig)
        await rig.submit("wide", user="ann", workers="1:4", **LONG)
        await rig.until("wide", "running", user="ann")
        rig.stands_at = NOON + 1
        assert (await rig.platform.jobs.cost(SYSTEM, "ann", "wide")).per_hour == "4.000000"
        offer = await rig.platform.jobs.offer(
            "ann", JobCreate(name="b", code="x", tenant="red", workers="1:3")
        )
        assert offer.cost is not None
        assert (offer.cost.per_hour, offer.cost.per_hour_most, offer.cost.at_most) == (
            "1.000000",
            "3.000000",
            None,
        )
        rig.stands_at = NOON + 3600
        await rig.submit("other", user="leo", tenant="blue", workers=2, sim=LONG["sim"])
        await rig.until("other", "running", user="leo")
        await rig.until("wide", "running", user="ann")
        rig.stands_at = NOON + 7200
        cost = await rig.platform.jobs.cost(SYSTEM, "ann", "wide")
        assert (cost.cost, cost.per_hour) == ("6.000000", "2.000000")


async def test_a_pending_server_waits_with_the_reason_and_a_held_one_is_renewed(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=2)) as rig:
        await red(rig, at=None)
        p = rig.platform
        mine = asked(user="ann", tenant="red")
        assert await p.ledger.try_(mine) is not None
        await p.ledger.confirm(ResourceRequestKey(id=mine.id, applier=mine.applier))
        await rig.submit("runs", user="ann", **LONG)
        await rig.until("runs", "running", user="ann")
        await p.tenants.set_member("red", "lea")
        with pytest.raises(Refused) as refused:
            await p.ledger.try_(asked(user="lea", tenant="red"))
        assert refused.value.reason is Reason.WAITING_FOR_RESOURCES
        await p.budgets.set_budget("red", BudgetSet(amount="1", stop=True), actor="root")
        await spend(rig, 2)
        await p.budgets.review()
        again = await p.ledger.try_(mine)
        assert again is not None
        assert again.held
        with pytest.raises(Refused) as refused:
            await p.ledger.try_(asked(user="lea", tenant="red"))
        assert refused.value.reason is Reason.BUDGET_SPENT
        await p.jobs.cancel(SYSTEM, "ann", "runs")
        await rig.until("runs", "cancelled", user="ann")
        assert phase_of(rig, "lea") == "pending"
        await p.budgets.remove("red", actor="root")
        await until(lambda: _holds(rig, "lea"))


async def _holds(rig: Rig, user: str) -> bool:
    return phase_of(rig, user) == "tried"
