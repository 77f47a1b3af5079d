"""Money in words: costs of jobs, budgets, and columns whose parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from mlp.language import say


def money(text: object) -> str:
    """Write an amount with two decimals, or with as many as its first two digits need."""
    value = Decimal(str(text))
    for decimals in (2, 3, 4, 5, 6):
        if not value or abs(value).scaleb(decimals) >= 10:
            return str(_rounded(value, decimals))
    return str(_rounded(value, 6))


def column(values: Sequence[Decimal], total: Decimal) -> tuple[list[str], str]:
    """Write the values of a column, and their total, with two decimals or, where these do not add up, with three.

    What is then left goes to the values that rounding down made the smallest, a thousandth each.
    """
    two = [_rounded(value, 2) for value in values]
    if sum(two) == _rounded(total, 2):
        return [str(value) for value in two], str(_rounded(total, 2))
    unit, whole = Decimal("0.001"), _rounded(total, 3)
    parts = [value.quantize(unit, ROUND_FLOOR) for value in values]
    left = int((whole - sum(parts)) / unit)
    if 0 <= left <= len(parts):
        for at in sorted(range(len(parts)), key=lambda at: (parts[at] - values[at], at))[:left]:
            parts[at] += unit
    else:  # the lines are only a part of the total
        parts = [_rounded(value, 3) for value in values]
    return [str(value) for value in parts], str(whole)


def offered(cost: Any) -> str:
    """Write the cost of an offered job; empty without a price list."""
    if not cost:
        return ""
    least, most, currency = money(cost["per_hour"]), money(cost["per_hour_most"]), str(cost["currency"])
    hour = say("about {amount} {currency} an hour", amount=most, currency=currency)
    if least != most:
        hour = say("about {least} to {most} {currency} an hour", least=least, most=most, currency=currency)
    if cost.get("at_most") is None:
        return say("Cost: {hour}.", hour=hour)
    return say(
        "Cost: {hour}; at most {most} {currency} to its time limit.",
        hour=hour,
        most=money(cost["at_most"]),
        currency=currency,
    )


def of_run(cost: Any) -> str:
    """Write the cost of a run; empty where that is not known."""
    if not cost or cost.get("cost") is None:
        return ""
    amount, currency = money(cost["cost"]), str(cost["currency"])
    if cost.get("final"):
        return say("Cost: {amount} {currency} in all.", amount=amount, currency=currency)
    if cost.get("per_hour") is None:
        return say("Cost: {amount} {currency} so far.", amount=amount, currency=currency)
    return say(
        "Cost: {amount} {currency} so far; now {hour} {currency} an hour.",
        amount=amount,
        currency=currency,
        hour=money(cost["per_hour"]),
    )


def budget(found: Any) -> str:
    """Write the spent part of a budget; if nothing is counted, what is missing for that."""
    if found.get("spent") is None:
        return say(
            "Budget of {tenant}: {amount} {currency}. {why}",
            tenant=str(found["tenant"]),
            amount=str(found["amount"]),
            currency=str(found["currency"]),
            why=str(found.get("uncounted") or ""),
        ).rstrip()
    line = say(
        "Budget of {tenant} from {since} to before {until}: {spent} of {amount} {currency} spent ({percent} %).",
        tenant=str(found["tenant"]),
        since=str(found["since"]),
        until=str(found["until"]),
        spent=money(found["spent"]),
        amount=str(found["amount"]),
        currency=str(found["currency"]),
        percent=f"{found['percent']:g}",
    )
    if found.get("stopped"):
        return line + " " + say("New work is refused until then.")
    if found.get("forecast") is not None:
        return line + " " + say("At this rate {amount} by its end.", amount=money(found["forecast"]))
    return line


def _rounded(value: Decimal, decimals: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
