"""Sums as CSV with the columns of FOCUS, the open format of bills, that programs of finance departments read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from mlp_hub.domain.accounting.days import day_text, first_day, read_day, read_month
from mlp_hub.domain.accounting.prices import CORE_HOUR, GIB_DAY, GIB_HOUR, METERS, money
from mlp_hub.domain.accounting.spans import STORAGE, HeldSums
from mlp_hub.service.accounting.service import UsageFound
from mlp_hub.service.accounting.sums import SummedUse
from mlp_hub.service.support.csv_text import csv_bytes

VERSION = "1.2"
"""Contract: version of FOCUS whose columns these are."""
PROVIDER = "MLP Hub"
COLUMNS = (
    "BilledCost",
    "BillingAccountId",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "EffectiveCost",
    "ListCost",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SubAccountId",
    "SubAccountName",
    "x_User",
    "x_UsedQuantity",
    "x_IdleQuantity",
    "x_ReportedQuantity",
    "x_UnknownSourceQuantity",
)
"""Contract: the columns; those that begin with `x_` are our own, as the format has it. The last two are the parts of the used and idle
quantity that are known by jobs' own reports alone, and of which it is unknown whether they are."""
_UNITS = {"cpu": "Core-Hours", "ram": "GiB-Hours", "gpu": "GPU-Hours", "storage": "GiB-Days"}
_PARTS = 4
"""Given: columns of use of a meter: used, idle, and the sources of both."""
LOT = 2000
"""Tuning: lines of the file that are made at a time: memory, for the cost of each lot."""


def focus_lines(found: UsageFound) -> Iterator[bytes]:
    """Yield the file in lots of lines: a line for each meter of each line of the answer."""
    yield csv_bytes([COLUMNS])
    rows: list[Sequence[str]] = []
    for key, line in found.lines:
        rows += _rows(found, dict(zip(found.asked.by, key, strict=True)), line)
        if len(rows) >= LOT:
            yield csv_bytes(rows)
            rows = []
    if rows:
        yield csv_bytes(rows)


def _rows(found: UsageFound, keys: dict[str, str], line: SummedUse) -> list[Sequence[str]]:
    begin, end = _period(found, keys)
    currency = "" if found.prices is None else found.prices.currency
    tenant, user, work = keys.get("tenant", ""), keys.get("user", ""), keys.get("work", "")
    name, kind = keys.get("name", ""), keys.get("gpu_kind", "")
    rows: list[Sequence[str]] = []
    for meter in METERS:
        quantity, *parts = _quantities(meter, line.held)
        if not quantity:
            continue
        cost = money(line.cost.part(meter)) if line.cost is not None else "0"
        sku = f"{meter}:{kind}" if meter == "gpu" and kind else meter
        rows.append(
            (
                cost,
                PROVIDER,
                currency,
                end,
                begin,
                "Usage",
                " ".join(part for part in (work, name, sku) if part),
                end,
                begin,
                money(quantity),
                _UNITS[meter],
                cost,
                cost,
                PROVIDER,
                PROVIDER,
                "/".join(part for part in (tenant, user, work, name) if part),
                name,
                work,
                "Storage" if meter == STORAGE else "Compute",
                PROVIDER,
                sku,
                tenant,
                tenant,
                user,
                *(money(part) for part in parts),
                *([""] * (_PARTS - len(parts))),
            )
        )
    return rows


def _quantities(meter: str, held: HeldSums) -> list[Fraction]:
    """Return the held quantity of a meter in its unit. If its use is measured, the values of the columns of use follow."""
    if meter == "cpu":
        values = (held.cpu, held.cpu_used, held.cpu_idle, held.cpu_reported, held.cpu_unknown)
        return [Fraction(value, CORE_HOUR) for value in values]
    if meter == "ram":
        values = (held.ram, held.ram_used, held.ram_idle, held.ram_reported, held.ram_unknown)
        return [Fraction(value, GIB_HOUR) for value in values]
    return [Fraction(held.gpu, CORE_HOUR) if meter == "gpu" else Fraction(held.rom, GIB_DAY)]


def _period(found: UsageFound, keys: dict[str, str]) -> tuple[str, str]:
    since, until = found.asked.since, found.asked.until
    if "day" in keys:
        since = read_day(keys["day"]) or since
        until = since + 1
    elif "month" in keys and (month := read_month(keys["month"])) is not None:
        since, until = max(since, first_day(month)), min(until, first_day(month + 1))
    return f"{day_text(since)}T00:00:00Z", f"{day_text(until)}T00:00:00Z"
