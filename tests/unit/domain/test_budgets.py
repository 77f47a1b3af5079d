"""Budgets are compared exactly, their periods are those of the calendar, and bad ones are refused in words."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from mlp_hub.domain.accounting.budgets import BudgetPeriod, TeamBudget, forecast
from mlp_hub.domain.accounting.days import day_of
from mlp_hub.domain.accounting.prices import MILLIONTH, shown_column, shown_money
from mlp_hub.domain.errors import Reason, Refused

TODAY = day_of(2031, 3, 10)
ONE = TeamBudget("red", 500 * MILLIONTH, "EUR")


def test_a_level_is_reached_exactly_at_its_part() -> None:
    assert ONE.reached(Fraction(400) - Fraction(1, 10**12)) == ()
    assert ONE.reached(Fraction(400)) == (80,)
    assert ONE.reached(Fraction(500)) == (80, 100)
    assert not ONE.is_spent(Fraction(500) - Fraction(1, 10**12))
    assert ONE.is_spent(Fraction(500))


def test_a_budget_without_a_period_is_for_each_month() -> None:
    assert ONE.period_at(TODAY) == BudgetPeriod(day_of(2031, 3, 1), day_of(2031, 4, 1))
    assert ONE.period_at(day_of(2028, 2, 29)) == BudgetPeriod(day_of(2028, 2, 1), day_of(2028, 3, 1))
    own = replace(ONE, begins=day_of(2031, 3, 5), ends=day_of(2031, 6, 1))
    assert own.period_at(day_of(2031, 3, 4)) is None
    assert own.period_at(day_of(2031, 6, 1)) is None
    found = own.period_at(TODAY)
    assert found is not None
    assert found.words == "2031-03-05 .. 2031-05-31"
    assert BudgetPeriod(day_of(2031, 3, 1), day_of(2031, 4, 1)).words == "2031-03"


def test_a_forecast_goes_on_as_until_now_and_begins_after_a_day() -> None:
    period = BudgetPeriod(day_of(2031, 3, 1), day_of(2031, 4, 1))
    assert forecast(Fraction(10), period, Fraction(period.begins) + Fraction(1, 2)) is None
    assert forecast(Fraction(10), period, Fraction(period.begins + 5)) == 62
    assert forecast(Fraction(10), period, Fraction(period.ends + 5)) == 10


@pytest.mark.parametrize(
    ("changed", "currency", "words"),
    [
        ({}, None, "no price list"),
        ({"currency": "USD"}, "EUR", "give it in EUR"),
        ({"amount": 0}, "EUR", "more than 0"),
        ({"amount": 10**9 * MILLIONTH + 1}, "EUR", "at most"),
        ({"levels": (0,)}, "EUR", "level 0"),
        ({"levels": (-5,)}, "EUR", "level -5"),
        ({"levels": (1001,)}, "EUR", "level 1001"),
        ({"levels": (80, 80)}, "EUR", "twice"),
        ({"levels": tuple(range(1, 12))}, "EUR", "11 levels"),
        ({"begins": TODAY}, "EUR", "give both"),
        ({"ends": TODAY}, "EUR", "give both"),
        ({"begins": TODAY, "ends": TODAY}, "EUR", "not after"),
        ({"begins": TODAY - 9, "ends": TODAY}, "EUR", "has not ended"),
        ({"begins": TODAY, "ends": TODAY + 3701}, "EUR", "3701 days"),
    ],
)
def test_a_bad_budget_is_refused_in_words(
    changed: dict[str, object], currency: str | None, words: str
) -> None:
    with pytest.raises(Refused) as refused:
        replace(ONE, **changed).check(currency, TODAY)  # type: ignore[arg-type]
    assert refused.value.reason is Reason.INVALID
    assert words in refused.value.msg


def test_no_levels_tell_nobody() -> None:
    quiet = replace(ONE, levels=())
    quiet.check("EUR", TODAY)
    assert quiet.reached(Fraction(10**6)) == ()


def test_written_parts_add_up_to_the_written_total() -> None:
    assert shown_column([Fraction(7, 1000)] * 2, Fraction(14, 1000)) == (["0.007", "0.007"], "0.014")
    assert shown_column([Fraction(1, 4), Fraction(1, 2)], Fraction(3, 4)) == (["0.25", "0.50"], "0.75")
    assert shown_column([], Fraction()) == ([], "0.00")
    chance = random.Random(7)
    for _ in range(300):
        values = [Fraction(chance.randrange(10**6), 7**4) for _ in range(chance.randrange(1, 40))]
        parts, total = shown_column(values, sum(values, Fraction()))
        assert sum(map(Fraction, parts)) == Fraction(total)
        assert all(
            abs(Fraction(part) - value) < Fraction(1, 100) for part, value in zip(parts, values, strict=True)
        )


def test_little_money_keeps_two_digits() -> None:
    texts = [shown_money(Fraction(n)) for n in ("0", "0.42", "12.345", "0.0421", "0.00042")]
    assert texts == ["0.00", "0.42", "12.35", "0.042", "0.00042"]
