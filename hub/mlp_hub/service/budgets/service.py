"""Use cases of budgets: set, remove and show them, notify people of levels, and stop new work where that is wished.

Where nobody has a budget, nothing is read. The cost of the stored sums is kept in memory until the accounting adds to them.
So a review reads only amounts that are held at that moment. The levels are stored in the transaction of their notices: each
level has one in a period, whatever is killed and however the clock is set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.budgets import WHOLE, BudgetPeriod, TeamBudget
from mlp_hub.domain.accounting.days import day_text
from mlp_hub.domain.accounting.prices import MILLIONTH, Cost, PriceList, price_text, shown_money
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.scheduler.model.types import Verdict
from mlp_hub.service.accounting.service import UsageService
from mlp_hub.service.accounting.sums import (
    UsageAsked,
    cost_of,
    live_spans,
    live_sums,
    parts_of,
    stored_sums,
)
from mlp_hub.service.budgets.wire import BudgetStanding, budget_of, budget_to, uncounted
from mlp_hub.service.support.people_notices import SubscribedNotices
from mlp_hub.service.tenants.places import tenants_of
from mlp_hub.store import Database, Tx
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_language.message import Arg, Message, TenantRef, msg

log = logging.getLogger(__name__)
T = TypeVar("T")
_BY_KIND = ("gpu_kind",)
_Stored = dict[tuple[str, BudgetPeriod], Cost]
"""Cost of the stored sums of a tenant in a period."""


@dataclass(frozen=True, slots=True)
class _DueLevels:
    """Levels of a tenant's budget that need a notice, and the standing for its text."""

    standing: BudgetStanding
    levels: tuple[int, ...]


async def _nobody(_: Sequence[str]) -> list[str]:
    return []


class BudgetService:
    """The budgets. `hold` is told why nothing of which tenants may start. Whether the caller may is for the caller to check."""

    def __init__(
        self,
        db: Database,
        usage: UsageService,
        clock: Callable[[], float],
        notices: SubscribedNotices,
        hold: Callable[[Mapping[str, Verdict]], None],
    ) -> None:
        self._db, self._usage, self._clock, self._notices, self._hold = db, usage, clock, notices, hold
        self._budgets: dict[str, TeamBudget] = {}
        self._stored: _Stored = {}
        self._generation = 0  # of the stored sums
        self._stopped: dict[str, tuple[BudgetStanding, Verdict]] = {}
        self._one = asyncio.Lock()
        self.platform_admins: Callable[[Sequence[str]], Awaitable[list[str]]] = _nobody
        """Returns who of some users is a platform admin; may raise where the hub does not answer."""
        usage.on_prices.append(lambda: self._forget(None))
        usage.roll_up.on_added.append(self._forget)

    async def start(self) -> None:
        """Load the budgets, after any crash, and stop new work where they are spent."""
        self._usage.forget_prices()
        self._budgets = {one.tenant: one for one in await self._db.read(lambda tx: tx.budgets.all())}
        self._stopped = {}
        self._hold({})
        await self.review()

    def refusal(self, tenant: str) -> Refused | None:
        """Return why new work of a tenant is refused; None where it is not."""
        found = self._stopped.get(tenant)
        return None if found is None else _refusal(found[0])

    def check(self, tenant: str) -> None:
        """Raise `BudgetSpent` where new work of a tenant is refused."""
        if (refused := self.refusal(tenant)) is not None:
            raise refused

    async def get(self, tenant: str) -> api.BudgetState:
        """Return the budget of a tenant. Raises `NotFound`."""
        now = self._clock()
        prices = await self._usage.price_list()

        def look(tx: Tx, stored: _Stored) -> BudgetStanding:
            found = tx.budgets.get(tenant)
            if found is None:
                raise _no_budget(tenant)
            return _SpentSums(tx, stored, prices, now).standing(found)

        return budget_to(await self._read(look), now)

    async def all(self) -> list[api.BudgetState]:
        """Return the budgets of all tenants, by name."""
        now, prices = self._clock(), await self._usage.price_list()

        def look(tx: Tx, stored: _Stored) -> list[BudgetStanding]:
            sums = _SpentSums(tx, stored, prices, now)
            return [sums.standing(one) for one in tx.budgets.all()]

        return [budget_to(one, now) for one in await self._read(look)]

    async def of_user(self, user: str) -> list[api.BudgetState]:
        """Return the budgets of the teams of a user, by name; without any budget nothing is read."""
        if not self._budgets:
            return []
        now, prices = self._clock(), await self._usage.price_list()

        def look(tx: Tx, stored: _Stored) -> list[BudgetStanding]:
            sums, teams = _SpentSums(tx, stored, prices, now), tenants_of(tx, user)
            return [sums.standing(one) for one in tx.budgets.all() if one.tenant in teams]

        return [budget_to(one, now) for one in await self._read(look)]

    async def set_budget(self, tenant: str, asked: api.BudgetSet, *, actor: str) -> api.BudgetState:
        """Set the budget of a tenant. Raises `NotFound`, `Invalid`, and nothing is changed."""
        now, prices = self._clock(), await self._usage.price_list()
        currency = None if prices is None else prices.currency
        wanted = budget_of(tenant, asked, currency)
        wanted.check(currency, day_at(now))

        def work(tx: Tx) -> TeamBudget:
            if tx.tenants.get(tenant) is None:
                raise not_found("tenant", tenant)
            before = tx.budgets.get(tenant)
            new = replace(wanted, seen=None if before is None else before.seen)
            if before is not None and before.stated != new.stated:
                tx.budgets.forget_told(tenant)
                new = replace(new, seen=None)
            if new != before:
                tx.budgets.put(new)
                detail = {"before": None if before is None else _audited(before), "after": _audited(new)}
                tx.audit.add(now, actor, "budget.set", tenant, tenant=tenant, detail=detail)
            return new

        self._budgets[tenant] = await self._db.write(work)
        self._forget({tenant})
        await self.review()
        return await self.get(tenant)

    async def remove(self, tenant: str, *, actor: str) -> None:
        """Remove the budget of a tenant. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            before = tx.budgets.get(tenant)
            if before is None:
                raise _no_budget(tenant)
            tx.budgets.remove(tenant)
            detail = {"before": _audited(before), "after": None}
            tx.audit.add(self._clock(), actor, "budget.remove", tenant, tenant=tenant, detail=detail)

        await self._db.write(work)
        self._budgets.pop(tenant, None)
        self._forget({tenant})
        await self.review()

    async def review(self) -> None:
        """Look at what is spent: tell people of levels, and stop or continue new work."""
        if not self._budgets and not self._stopped:
            return
        async with self._one:
            now, prices = self._clock(), await self._usage.price_list()
            found, due = await self._read(lambda tx, stored: _look(tx, _SpentSums(tx, stored, prices, now)))
            self._budgets = {one.budget.tenant: one.budget for one in found}  # tenants are deleted too
            self._stop(found)
            await self._tell(found, due)

    # ---------------------------------------------------------- internals

    async def _read(self, look: Callable[[Tx, _Stored], T]) -> T:
        """Return what is found with the stored sums; those that are read are kept unless they changed meanwhile."""
        generation, stored = self._generation, dict(self._stored)
        found = await self._db.read(lambda tx: look(tx, stored))
        if generation == self._generation:
            self._stored = stored
        return found

    def _forget(self, tenants: Collection[str] | None) -> None:
        """Read the stored sums of these tenants again, or of all."""
        self._generation += 1
        self._stored = {
            key: cost for key, cost in self._stored.items() if tenants is not None and key[0] not in tenants
        }

    def _stop(self, found: Sequence[BudgetStanding]) -> None:
        """Hold new work of tenants back whose budget is spent."""
        before = self._stopped
        stops = {one.budget.tenant: one for one in found if one.budget.stops and one.is_spent}
        self._stopped = {}
        for tenant, one in stops.items():
            known, verdict = before.get(tenant), _verdict(one)
            same = known is not None and known[1] == verdict
            self._stopped[tenant] = (one, known[1] if known is not None and same else verdict)
        held = {tenant: verdict for tenant, (_, verdict) in self._stopped.items()}
        if held != {tenant: verdict for tenant, (_, verdict) in before.items()}:
            self._hold(held)

    async def _tell(self, found: Sequence[BudgetStanding], due: Sequence[_DueLevels]) -> None:
        admins: list[str] = []
        wanting = self._notices.wanting(NoticeKind.BUDGET) if due else []
        if wanting:
            try:
                admins = await self.platform_admins(wanting)
            except Exception as error:  # noqa: BLE001 - of the hub; nobody is told before it answers
                log.warning("people cannot be told of budgets yet; it is tried again: %s", error)
                return
        seen = {
            one.budget.tenant: (one.budget, one.period.begins)
            for one in found
            if one.period is not None and one.period.begins != one.budget.seen
        }
        if not due and not seen:
            return

        def work(tx: Tx) -> set[str]:
            users: set[str] = set()
            for one in due:
                users |= self._tell_in(tx, one, admins)
            for tenant, (looked_at, begins) in seen.items():
                budget = tx.budgets.get(tenant)
                if budget is not None and budget.stated == looked_at.stated:  # another has other periods
                    tx.budgets.put(replace(budget, seen=begins))
            return users

        self._notices.notify(await self._db.write(work))

    def _tell_in(self, tx: Tx, due: _DueLevels, admins: Sequence[str]) -> set[str]:
        """Store the notices of the highest level, and that people know of the lower ones too."""
        budget, period = due.standing.budget, due.standing.period
        stored = tx.budgets.get(budget.tenant)
        if period is None or stored is None or stored.stated != budget.stated:
            return set()
        told = tx.budgets.told(budget.tenant, period.begins)
        levels = [level for level in due.levels if level not in told]
        if not levels:
            return set()
        tx.budgets.note_told(budget.tenant, period.begins, levels)
        members = [one.user for one in tx.members.of_tenant(budget.tenant) if one.role is Role.ADMIN]
        return self._notices.asked(
            tx,
            {*members, *admins},
            (NoticeKind.BUDGET, AskedFor.BUDGET),
            budget.tenant,
            _notice(due.standing, max(levels)),
        )


class _SpentSums:
    """Spent amounts, read in one transaction; `stored` is the cost of stored sums that are known, and learns others."""

    def __init__(self, tx: Tx, stored: _Stored, prices: PriceList | None, now: float) -> None:
        self._tx, self._stored, self._prices, self._now = tx, stored, prices, now

    def standing(self, budget: TeamBudget) -> BudgetStanding:
        """Return the standing in the present period."""
        today = day_at(self._now)
        period = budget.period_at(today)
        spent = None if period is None else self._spent(budget, period)
        currency = None if self._prices is None else self._prices.currency
        return BudgetStanding(budget, period, spent, uncounted(budget, currency, today))

    def ended(self, budget: TeamBudget) -> BudgetStanding | None:
        """Return the standing at the end of the period that was looked at last; None where that is not over."""
        last = None if budget.seen is None else budget.period_at(budget.seen)
        if last is None or last.ends > day_at(self._now):
            return None
        return BudgetStanding(budget, last, self._spent(budget, last))

    def _spent(self, budget: TeamBudget, period: BudgetPeriod) -> Fraction | None:
        prices = self._prices
        if prices is None or prices.currency != budget.currency:
            return None
        asked = UsageAsked(period.begins, period.ends, (), {"tenant": budget.tenant})
        parts, key = parts_of(prices, asked), (budget.tenant, period)
        if key not in self._stored:
            self._stored[key] = cost_of(stored_sums(self._tx, asked, parts, _BY_KIND))
        live, _ = live_spans(self._tx, asked, self._now)
        return self._stored[key].plus(cost_of(live_sums(live, parts))).total


def _look(tx: Tx, sums: _SpentSums) -> tuple[list[BudgetStanding], list[_DueLevels]]:
    """Return the standing of each budget, and the levels without a notice yet; also of a period that has ended."""
    found: list[BudgetStanding] = []
    due: list[_DueLevels] = []
    for budget in tx.budgets.all():
        standing = sums.standing(budget)
        found.append(standing)
        for one in (sums.ended(budget), standing):
            if one is None or one.period is None or one.spent is None:
                continue
            told = tx.budgets.told(budget.tenant, one.period.begins)
            levels = tuple(level for level in budget.reached(one.spent) if level not in told)
            if levels:
                due.append(_DueLevels(one, levels))
    return found, due


def _amounts(one: BudgetStanding) -> dict[str, str]:
    assert one.period is not None  # noqa: S101 - looked at by the caller
    assert one.spent is not None  # noqa: S101 - the same
    return {
        "spent": shown_money(one.spent),
        "amount": price_text(one.budget.amount),
        "currency": one.budget.currency,
        "period": one.period.words,
        "day": day_text(one.period.ends),
    }


def _percent(one: BudgetStanding) -> int:
    """Return the spent part of the budget in whole percents, rounded down so that it never names a level that is not reached."""
    assert one.spent is not None  # noqa: S101 - looked at by the caller
    return int(one.spent * WHOLE * MILLIONTH / one.budget.amount)


def _notice(one: BudgetStanding, level: int) -> Message:
    said: dict[str, Arg] = {"tenant": TenantRef(one.budget.tenant), "percent": _percent(one), **_amounts(one)}
    if one.budget.stops and level >= WHOLE:
        return msg(
            "{tenant} has spent {spent} of {amount} {currency} in {period}: {percent} % of its budget. New work is refused until {day}, or until the budget is raised.",
            **said,
        )
    return msg(
        "{tenant} has spent {spent} of {amount} {currency} in {period}: {percent} % of its budget.", **said
    )


def _refusal(one: BudgetStanding) -> Refused:
    return Refused(
        Reason.BUDGET_SPENT,
        msg(
            "{tenant} has spent its budget for {period}: {spent} of {amount} {currency}. Running work continues. New work can start on {day}, or once a platform administrator raises the budget",
            tenant=TenantRef(one.budget.tenant),
            **_amounts(one),
        ),
    )


def _verdict(one: BudgetStanding) -> Verdict:
    said = _amounts(one)
    limit = msg("{amount} {currency} for {period}", **{k: said[k] for k in ("amount", "currency", "period")})
    return Verdict(
        Reason.BUDGET_SPENT,
        msg("The team's budget is spent. Starts on {day}, or when raised.", day=said["day"]),
        (Fact("budget", limit),),
    )


def _audited(budget: TeamBudget) -> dict[str, object]:
    return {
        "amount": price_text(budget.amount),
        "currency": budget.currency,
        "levels": list(budget.levels),
        "stop": budget.stops,
        "begins": None if budget.begins is None else day_text(budget.begins),
        "ends": None if budget.ends is None else day_text(budget.ends),
    }


def _no_budget(tenant: str) -> Refused:
    return Refused(
        Reason.NOT_FOUND,
        msg("team {tenant} has no budget; a platform administrator can set one", tenant=tenant),
    )
