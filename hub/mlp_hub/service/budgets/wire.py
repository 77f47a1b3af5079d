"""Conversions of budgets to the wire and back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mlp_api.localized import Text
from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.budgets import MOST_AMOUNT, WHOLE, BudgetPeriod, TeamBudget, forecast
from mlp_hub.domain.accounting.days import DAY_S, day_text
from mlp_hub.domain.accounting.prices import MILLIONTH, money, price_text, read_price
from mlp_hub.service.accounting.wire import day_in
from mlp_language.message import Message, msg


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """Spent part of a budget in its present period; `spent` is None where nothing has a cost in its currency.

    `uncounted` says then what is missing, and where it is set.
    """

    budget: TeamBudget
    period: BudgetPeriod | None
    spent: Fraction | None
    uncounted: Message | None = None

    @property
    def is_spent(self) -> bool:
        """Whether the whole budget is spent."""
        return self.spent is not None and self.budget.is_spent(self.spent)


def uncounted(budget: TeamBudget, currency: str | None, today: int) -> Message | None:
    """Return why nothing is counted against a budget; `currency` is that of the price list, None without one. None: all is."""
    if currency is None:
        return msg(
            "Nothing is counted: this hub has no price list. A platform administrator sets one with {command}.",
            command="mlp-hub prices put FILE",
        )
    if currency != budget.currency:
        return msg(
            "Nothing is counted: the budget is in {given}, and the price list in {currency}. A platform administrator sets the budget again with {command}.",
            given=budget.currency,
            currency=currency,
            command=f"mlp-hub budget set {budget.tenant} AMOUNT",
        )
    if budget.begins is not None and today < budget.begins:
        return msg("Nothing is counted yet: the budget begins on {day}.", day=day_text(budget.begins))
    if budget.ends is not None and today >= budget.ends:
        return msg(
            "Nothing is counted: the budget ended on {day}. A platform administrator sets another one with {command}.",
            day=day_text(budget.ends),
            command=f"mlp-hub budget set {budget.tenant} AMOUNT",
        )
    return None


def budget_of(tenant: str, asked: api.BudgetSet, currency: str | None) -> TeamBudget:
    """Return a budget from the wire, not checked; without its own currency it has that of the price list. Raises `Invalid`."""
    return TeamBudget(
        tenant,
        read_price(asked.amount, "amount", MOST_AMOUNT),
        asked.currency or currency or "",
        tuple(sorted(asked.levels)),
        asked.stop,
        None if asked.begins is None else day_in(asked.begins, "begins"),
        None if asked.ends is None else day_in(asked.ends, "ends"),
    )


def budget_to(found: BudgetStanding, now: float) -> api.BudgetState:
    """Return a budget for the wire."""
    budget, period, spent = found.budget, found.period, found.spent
    by_then = None
    if period is not None and spent is not None:
        by_then = forecast(spent, period, Fraction(int(now), DAY_S))
    return api.BudgetState(
        tenant=budget.tenant,
        amount=price_text(budget.amount),
        currency=budget.currency,
        levels=list(budget.levels),
        stop=budget.stops,
        begins=None if budget.begins is None else day_text(budget.begins),
        ends=None if budget.ends is None else day_text(budget.ends),
        since=None if period is None else day_text(period.begins),
        until=None if period is None else day_text(period.ends),
        spent=None if spent is None else money(spent),
        percent=None if spent is None else int(spent * WHOLE * MILLIONTH * 10 / budget.amount) / 10,
        forecast=None if by_then is None else money(by_then),
        reached=[] if spent is None else list(budget.reached(spent)),
        stopped=budget.stops and found.is_spent,
        uncounted=None if found.uncounted is None else Text(found.uncounted),
    )
