"""Budgets of teams: an amount of money for each month, or for one period, with levels for notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mlp_hub.domain.accounting.days import day_text, first_day, month_of, month_text
from mlp_hub.domain.accounting.prices import MILLIONTH, price_text
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

DEFAULT_LEVELS = (80, 100)
"""Contract: percentages of a budget at which notices are sent, where nobody chose others."""
MOST_LEVEL = 1000
"""Safety: the highest percentage of a level: finds typing errors."""
MOST_LEVELS = 10
"""Safety: levels of one budget: bounds notices and rows."""
MOST_AMOUNT = 10**9
"""Safety: the largest budget in units of the currency: finds typing errors, and fits the database's numbers."""
MOST_PERIOD = 3700
"""Safety: days of one period: bounds the time of a question to the accounting."""
WHOLE = 100
"""Given: the percentage of the whole budget."""


@dataclass(frozen=True, slots=True)
class BudgetPeriod:
    """Days from `begins` to before `ends` in which an amount may be spent."""

    begins: int
    ends: int

    @property
    def words(self) -> str:
        """Return the month as 2031-03, or the first and the last day."""
        month = month_of(self.begins)
        if (self.begins, self.ends) == (first_day(month), first_day(month + 1)):
            return month_text(month)
        return f"{day_text(self.begins)} .. {day_text(self.ends - 1)}"


@dataclass(frozen=True, slots=True)
class TeamBudget:
    """Budget of a tenant in millionths of a currency.

    It is for each month, or for the days from `begins` to before `ends`. `levels` are percentages in order. `stops`: nothing
    new starts once it is spent. `seen` is the first day of the period that was looked at last.
    """

    tenant: str
    amount: int
    currency: str
    levels: tuple[int, ...] = DEFAULT_LEVELS
    stops: bool = False
    begins: int | None = None
    ends: int | None = None
    seen: int | None = None

    def period_at(self, day: int) -> BudgetPeriod | None:
        """Return the period of a day; None where the budget is for other days."""
        if self.begins is None or self.ends is None:
            month = month_of(day)
            return BudgetPeriod(first_day(month), first_day(month + 1))
        return BudgetPeriod(self.begins, self.ends) if self.begins <= day < self.ends else None

    def reached(self, spent: Fraction) -> tuple[int, ...]:
        """Return the levels that an amount in units of the currency has reached, compared exactly."""
        return tuple(level for level in self.levels if spent * WHOLE * MILLIONTH >= level * self.amount)

    def is_spent(self, spent: Fraction) -> bool:
        """Whether the whole budget is spent."""
        return spent * MILLIONTH >= self.amount

    @property
    def stated(self) -> tuple[object, ...]:
        """Return the parts that make it another budget, which has its own notices."""
        return (self.amount, self.currency, self.begins, self.ends)

    def check(self, currency: str | None, today: int) -> None:
        """Raise `Invalid` for a budget that makes no sense; `currency` is that of the price list, None without one."""
        if currency is None:
            raise _refused(msg("there is no price list, so nothing has a cost; set one before a budget"))
        if self.currency != currency:
            raise _refused(
                msg(
                    "the budget is in {given}, and the price list in {currency}; give it in {currency}",
                    given=repr(self.currency),
                    currency=currency,
                )
            )
        if not 0 < self.amount <= MOST_AMOUNT * MILLIONTH:
            raise _refused(
                msg(
                    "the budget is {amount}; give more than 0 and {most} at most, or remove the budget",
                    amount=price_text(self.amount),
                    most=MOST_AMOUNT,
                )
            )
        _check_levels(self.levels)
        self._check_period(today)

    def _check_period(self, today: int) -> None:
        if (self.begins is None) != (self.ends is None):
            raise _refused(msg("a period needs `begins` and `ends`; give both, or neither for each month"))
        if self.begins is None or self.ends is None:
            return
        if self.ends <= self.begins:
            raise _refused(
                msg(
                    "the period ends on {ends}, which is not after {begins}; give a later day",
                    begins=day_text(self.begins),
                    ends=day_text(self.ends),
                )
            )
        if self.ends <= today:
            raise _refused(
                msg("the period ended on {ends}; give one that has not ended", ends=day_text(self.ends))
            )
        if self.ends - self.begins > MOST_PERIOD:
            raise _refused(
                msg(
                    "the period has {n} days; give {most} at most",
                    n=self.ends - self.begins,
                    most=MOST_PERIOD,
                )
            )


def _check_levels(levels: Sequence[int]) -> None:
    if len(levels) > MOST_LEVELS:
        raise _refused(msg("the budget has {n} levels; give {most} at most", n=len(levels), most=MOST_LEVELS))
    for level in levels:
        if not 1 <= level <= MOST_LEVEL:
            raise _refused(msg("the level {n} is not from 1 to {most} percent", n=level, most=MOST_LEVEL))
    if len(set(levels)) < len(levels):
        raise _refused(msg("a level is given twice; give each level once"))


def forecast(spent: Fraction, period: BudgetPeriod, now_day: Fraction) -> Fraction | None:
    """Return what is spent at the period's end if spending continues at this rate; None in its first day."""
    elapsed = min(now_day, Fraction(period.ends)) - period.begins
    if elapsed < 1:
        return None
    return spent * (period.ends - period.begins) / elapsed


def _refused(message: Message) -> Refused:
    return Refused(Reason.INVALID, message)
