"""Prices with dates, and the cost of exact sums by them.

Costs are fractions, so that the parts of a bill add up to its total; they are rounded where they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from mlp_hub.domain.accounting.days import DAY_S, day_text, days_in
from mlp_hub.domain.accounting.spans import BLOCK, HeldSums
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import MILLI
from mlp_language.message import Message, msg

MILLIONTH = 10**6
"""Given: parts of a unit of currency in which prices are whole numbers."""
MOST = 1_000_000
"""Safety: the highest price of one unit: finds typing errors."""
ANY_KIND = "*"
"""Contract: the gpu kind of a price that is for all kinds without their own."""
CORE_HOUR = MILLI * MILLI * 3600
"""Given: thousandths of a core times milliseconds in a core-hour."""
GIB_HOUR = 1024 * MILLI * 3600
"""Given: MiB times milliseconds in a GiB-hour."""
GIB_DAY = 2**30 // BLOCK * DAY_S
"""Given: blocks times seconds in a GiB-day."""
METERS = ("cpu", "ram", "gpu", "storage")
"""Priced amounts: core-hours, GiB-hours of memory, GPU-hours, GiB-months of storage."""
MONTHS = 4 * 7 * 29 * 3 * 5 * 31
"""Given: the smallest number that the days of every month divide."""
UNITS = {
    "cpu": CORE_HOUR * MILLIONTH,
    "ram": GIB_HOUR * MILLIONTH,
    "gpu": CORE_HOUR * MILLIONTH,
    "storage": GIB_DAY * MONTHS * MILLIONTH,
}
_NUMBER = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?|([+-]?)\.(\d+)", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


class Cost(NamedTuple):
    """Cost by meter, as whole numbers whose units are `UNITS` of the currency's; so sums are exact and quick."""

    cpu: int = 0
    ram: int = 0
    gpu: int = 0
    storage: int = 0

    def plus(self, other: Cost) -> Cost:
        """Return the sum."""
        return Cost(
            self.cpu + other.cpu, self.ram + other.ram, self.gpu + other.gpu, self.storage + other.storage
        )

    def part(self, meter: str) -> Fraction:
        """Return the cost of a meter in units of the currency."""
        return Fraction(getattr(self, meter), UNITS[meter])

    @property
    def total(self) -> Fraction:
        """Return the whole cost in units of the currency."""
        return sum((self.part(meter) for meter in METERS), Fraction())


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """Prices from the day `begins` to before the day `ends`, in millionths; without an end they hold on."""

    begins: int
    ends: int | None
    cpu: int
    ram: int
    storage: int
    gpu: Mapping[str, int] = field(default_factory=dict)

    def cost(self, held: HeldSums, gpu_kind: str, month: int) -> Cost:
        """Return the cost of sums of one gpu kind in one month; of storage only the month matters."""
        gpu = self.gpu.get(gpu_kind, self.gpu.get(ANY_KIND, 0))
        storage = held.rom * self.storage
        return Cost(
            held.cpu * self.cpu,
            held.ram * self.ram,
            held.gpu * gpu,
            storage * (MONTHS // days_in(month)) if storage else 0,
        )


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices in a currency; its periods follow each other without gaps."""

    currency: str
    periods: tuple[PricePeriod, ...]

    def parts(self, since: int, until: int) -> Iterator[tuple[int, int, PricePeriod | None]]:
        """Split days where prices change; days before the first period have none."""
        at = since
        for period in self.periods:
            if at < period.begins:
                if min(period.begins, until) > at:
                    yield at, min(period.begins, until), None
                at = max(at, period.begins)
            end = until if period.ends is None else min(period.ends, until)
            if at < end:
                yield at, end, period
                at = end
        if at < until:
            yield at, until, None

    def check(self) -> None:
        """Raise `Invalid` for gaps, overlaps and periods without a day."""
        if not _CURRENCY.fullmatch(self.currency):
            raise _refused(
                msg("the currency is {name}; write its three letters, such as EUR", name=repr(self.currency))
            )
        if not self.periods:
            raise _refused(msg("the price list has no period; give one at least"))
        before: PricePeriod | None = None
        for period in self.periods:
            if period.ends is not None and period.ends <= period.begins:
                raise _refused(
                    msg(
                        "the period from {begins} ends on {ends}, which is not after its begin; its last day is the one before `ends`",
                        begins=day_text(period.begins),
                        ends=day_text(period.ends),
                    )
                )
            if before is not None:
                _check_follows(before, period)
            before = period


def _check_follows(before: PricePeriod, period: PricePeriod) -> None:
    begins = day_text(period.begins)
    if before.ends is None:
        raise _refused(
            msg(
                "the period from {first} has no end, and another one begins on {begins}; end the first one on that day",
                first=day_text(before.begins),
                begins=begins,
            )
        )
    if before.ends == period.begins:
        return
    ends = day_text(before.ends)
    if before.ends < period.begins:
        raise _refused(
            msg(
                "no price from {ends} to {begins}; let the period end where the next one begins",
                ends=ends,
                begins=begins,
            )
        )
    raise _refused(
        msg(
            "two prices from {begins} to {ends}; let the period end where the next one begins",
            ends=ends,
            begins=begins,
        )
    )


def read_price(text: str, of: str, most: int = MOST) -> int:
    """Return the millionths of a price such as 0.042. Raises `Invalid` with the name of its field, `of`, as it is written."""
    found = _NUMBER.fullmatch(text) if len(text) <= 40 else None
    if found is None:
        raise _refused(
            msg("the value of {of} is {text}; write a number such as 0.042", of=of, text=repr(text[:40]))
        )
    sign, whole, part = found[1] or found[4] or "", found[2] or "0", found[3] or found[5] or ""
    if len(part.rstrip("0")) > 6:
        raise _refused(msg("the value of {of} is {text}; give 6 decimals at most", of=of, text=text))
    value = int(whole) * MILLIONTH + int(part[:6].ljust(6, "0"))
    if sign == "-" and value:
        raise _refused(msg("the value of {of} is {text}; give 0 or more", of=of, text=text))
    if value > most * MILLIONTH:
        raise _refused(msg("the value of {of} is {text}; give {most} at most", of=of, text=text, most=most))
    return value


def price_text(value: int) -> str:
    """Write a price without needless zeroes."""
    whole, part = divmod(value, MILLIONTH)
    return f"{whole}.{part:06}".rstrip("0").rstrip(".") if part else str(whole)


def money(value: Fraction, decimals: int = 6) -> str:
    """Write an amount of money, rounded half up."""
    scale = 10**decimals
    rounded = (value * scale * 2 + 1) // 2
    sign, rounded = ("-", -rounded) if rounded < 0 else ("", rounded)
    whole, part = divmod(rounded, scale)
    return f"{sign}{whole}.{part:0{decimals}}"


def shown_money(value: Fraction) -> str:
    """Write an amount of money with two decimals, or with as many as its first two digits need."""
    for decimals in (2, 3, 4, 5):
        if abs(value) * 10**decimals >= 10 or not value:
            return money(value, decimals)
    return money(value)


def column_decimals(values: Sequence[Fraction], total: Fraction) -> int:
    """Return with how many decimals rounded values add up to their rounded total: 2, else 3."""
    if _scaled(total, 2) == sum(_scaled(value, 2) for value in values):
        return 2
    return 3


def shown_column(values: Sequence[Fraction], total: Fraction) -> tuple[list[str], str]:
    """Write the values of a column, and their total, so that the written ones add up.

    They have two decimals, or three where two do not add up. What is left then goes to the values that rounding made the
    smallest or the largest, by at most one thousandth each.
    """
    decimals = column_decimals(values, total)
    scale, whole = 10**decimals, _scaled(total, decimals)
    parts = [int(value * scale // 1) for value in values]
    rests = sorted(range(len(values)), key=lambda at: (parts[at] - values[at] * scale, at))
    if decimals == 2:
        parts = [_scaled(value, decimals) for value in values]
    elif 0 <= (left := whole - sum(parts)) <= len(values):
        for at in rests[:left]:
            parts[at] += 1
    return [money(Fraction(part, scale), decimals) for part in parts], money(total, decimals)


def _scaled(value: Fraction, decimals: int) -> int:
    return int((value * 10**decimals * 2 + 1) // 2)


def _refused(message: Message) -> Refused:
    return Refused(Reason.INVALID, message)
