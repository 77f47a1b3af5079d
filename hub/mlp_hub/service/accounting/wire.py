"""Conversions of sums and prices to the wire and back."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.days import day_text, read_day, read_month
from mlp_hub.domain.accounting.prices import GIB_DAY, PriceList, PricePeriod, money, price_text, read_price
from mlp_hub.domain.accounting.spans import HeldSums
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import MILLI
from mlp_language.message import msg

_CORE_S = MILLI * MILLI
"""Given: thousandths of a core times milliseconds in a core-second."""
_GIB_S = 1024 * MILLI
"""Given: MiB times milliseconds in a GiB-second."""


def line_to(keys: Mapping[str, str], held: HeldSums, cost: Fraction | None) -> api.UsageLine:
    """Return one line. `keys` are the fields that it is split by."""
    return api.UsageLine(
        **keys,
        core_s=held.cpu / _CORE_S,
        core_used_s=held.cpu_used / _CORE_S,
        core_idle_s=held.cpu_idle / _CORE_S,
        core_unmeasured_s=max(held.cpu - held.cpu_measured, 0) / _CORE_S,
        core_reported_s=held.cpu_reported / _CORE_S,
        core_unknown_s=held.cpu_unknown / _CORE_S,
        memory_gib_s=held.ram / _GIB_S,
        memory_used_gib_s=held.ram_used / _GIB_S,
        memory_idle_gib_s=held.ram_idle / _GIB_S,
        memory_unmeasured_gib_s=max(held.ram - held.ram_measured, 0) / _GIB_S,
        memory_reported_gib_s=held.ram_reported / _GIB_S,
        memory_unknown_gib_s=held.ram_unknown / _GIB_S,
        gpu_s=held.gpu / _CORE_S,
        storage_gib_days=held.rom / GIB_DAY,
        cost=None if cost is None else money(cost),
    )


def prices_of(asked: api.Prices) -> PriceList:
    """Return a price list from the wire, in order of its periods. Raises `Invalid`."""
    periods = [_period_of(period) for period in asked.periods]
    found = PriceList(asked.currency, tuple(sorted(periods, key=lambda period: period.begins)))
    found.check()
    return found


def prices_to(prices: PriceList) -> api.Prices:
    """Return a price list for the wire."""
    return api.Prices(
        currency=prices.currency,
        periods=[
            api.PricesOfPeriod(
                begins=day_text(period.begins),
                ends=None if period.ends is None else day_text(period.ends),
                core_hour=price_text(period.cpu),
                gib_hour=price_text(period.ram),
                gib_month=price_text(period.storage),
                gpu_hour={kind: price_text(price) for kind, price in period.gpu.items()},
            )
            for period in prices.periods
        ],
    )


def day_in(text: str, of: str) -> int:
    """Return the day that a text names. Raises `Invalid`."""
    day = read_day(text)
    if day is None:
        raise Refused(
            Reason.INVALID,
            msg(
                "the value of {of} is {text}; write a date from 2000 to 2199 such as 2031-03-01",
                of=of,
                text=repr(text[:20]),
            ),
        )
    return day


def month_in(text: str) -> int:
    """Return the month that a text names. Raises `Invalid`."""
    month = read_month(text)
    if month is None:
        raise Refused(
            Reason.INVALID,
            msg("month is {text}; write a month from 2000 to 2199 such as 2031-03", text=repr(text[:20])),
        )
    return month


def _period_of(period: api.PricesOfPeriod) -> PricePeriod:
    return PricePeriod(
        day_in(period.begins, "begins"),
        None if period.ends is None else day_in(period.ends, "ends"),
        read_price(period.core_hour, "core_hour"),
        read_price(period.gib_hour, "gib_hour"),
        read_price(period.gib_month, "gib_month"),
        {kind: read_price(price, f"gpu_hour of {kind}") for kind, price in period.gpu_hour.items()},
    )
