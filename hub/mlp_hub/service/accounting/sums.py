"""Sums of held and used amounts: those that are stored, and those of spans that are in no sum yet, with their prices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.days import DAY_S, first_day, month_of, months_and_days
from mlp_hub.domain.accounting.prices import Cost, PriceList, PricePeriod
from mlp_hub.domain.accounting.spans import NODES, NOTHING_HELD, PLATFORM, HeldSums, LedgerSpan, UsageAccount
from mlp_hub.domain.workload.workload import JOB
from mlp_hub.service.accounting import wire
from mlp_hub.service.accounting.rollup import CAPACITY, capacity_spans
from mlp_hub.store.tx import Tx

SPLITS = ("day", "month", *UsageAccount._fields)
"""Contract: fields by which lines may be split."""
PRICES = "accounting.prices"
"""Contract: key of the setting with the price list."""
SYSTEM_WORK = (NODES, PLATFORM)
Parts = Sequence[tuple[int, int, PricePeriod | None]]
"""Spans of days with their prices."""
PricedSum = tuple[int, int, Mapping[str, str], HeldSums, PricePeriod | None]
"""Day, month, fields of the account, sums, and prices."""


@dataclass(frozen=True, slots=True)
class UsageAsked:
    """Question: days from `since` to before `until`, split by some of `SPLITS`, of a tenant, a user, a kind of work only."""

    since: int
    until: int
    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SummedUse:
    """Sums of one line, and their cost; `cost` is None where nothing of it has a price."""

    held: HeldSums = NOTHING_HELD
    cost: Cost | None = None

    def add(self, held: HeldSums, cost: Cost | None) -> None:
        """Add sums."""
        self.held = self.held.plus(held)
        if cost is not None:
            self.cost = cost if self.cost is None else self.cost.plus(cost)

    @property
    def total(self) -> Fraction | None:
        """Return the whole cost."""
        return None if self.cost is None else self.cost.total


def parts_of(prices: PriceList | None, asked: UsageAsked) -> Parts:
    """Split the days of a question where prices change."""
    if prices is None:
        return [(asked.since, asked.until, None)]
    return list(prices.parts(asked.since, asked.until))


def stored_sums(tx: Tx, asked: UsageAsked, parts: Parts, grouped: Collection[str]) -> Iterator[PricedSum]:
    """Yield the stored sums, by some fields of accounts."""
    for since, until, price in parts:
        for grain, first, last in _grains(asked, since, until):
            for period, keys, held in tx.accounting.sums(
                grain,
                first,
                last,
                grouped,
                where=asked.where,
                but=SYSTEM_WORK,
                periods="day" in asked.by or (grain == "month" and "month" in asked.by),
            ):
                month = period if grain == "month" else month_of(period)
                yield first_day(period) if grain == "month" else period, month, keys, held, price


def live_sums(spans: Collection[LedgerSpan], parts: Parts) -> Iterator[PricedSum]:
    """Yield the sums of spans that are in no stored sum yet."""
    for since, until, price in parts:
        for day, account, held in days_of(spans, since, until):
            yield day, month_of(day), account._asdict(), held, price


def cost_of(sums: Iterator[PricedSum]) -> Cost:
    """Add up the cost of sums that are by gpu kind at least; days without a price cost nothing."""
    total = Cost()
    for _, month, keys, held, price in sums:
        if price is not None:
            total = total.plus(price.cost(held, keys["gpu_kind"], month))
    return total


def jobs_held(tx: Tx, tenant: str, since: int, now: float) -> HeldSums:
    """Return what a tenant's jobs held from a day until now, as the ledger has it."""
    asked = UsageAsked(since, int(now // DAY_S) + 1, (), {"tenant": tenant, "work": JOB})
    parts, (live, _) = parts_of(None, asked), live_spans(tx, asked, now)
    total = NOTHING_HELD
    for _, _, _, held, _ in (*stored_sums(tx, asked, parts, ()), *live_sums(live, parts)):
        total = total.plus(held)
    return total


def prices_in(tx: Tx) -> PriceList | None:
    """Return the stored price list."""
    stored = tx.settings.get(PRICES)
    return None if stored is None else wire.prices_of(msgspec.convert(stored, api.Prices))


def _grains(asked: UsageAsked, since: int, until: int) -> Sequence[tuple[str, int, int]]:
    """Return the stored sums to read for some days: whole months where that is fine enough."""
    if "name" in asked.by or "name" in asked.where:
        return [("name", low, high) for low, high in days_within_months(since, until)]
    if "day" in asked.by:
        return [("day", since, until)]
    found: list[tuple[str, int, int]] = []
    for grain, first, last in months_and_days(since, until):
        parts = [(first, last)] if grain == "month" else days_within_months(first, last)
        found += [(grain, low, high) for low, high in parts]
    return found


def days_within_months(since: int, until: int) -> Iterator[tuple[int, int]]:
    """Split days where a month begins, so that the days of a part are those of one month."""
    while since < until:
        end = min(first_day(month_of(since) + 1), until)
        yield since, end
        since = end


def live_spans(tx: Tx, asked: UsageAsked, now: float) -> tuple[list[LedgerSpan], list[LedgerSpan]]:
    """Return the spans that are in no sum yet: of work, and of nodes."""
    tenant, user = asked.where.get("tenant"), asked.where.get("user")
    spans = [*tx.accounting.spans_of(tenant, user), *tx.accounting.held_now(now, tenant, user)]
    spans += capacity_spans(tx.settings.get(CAPACITY), now)
    work: list[LedgerSpan] = []
    own: list[LedgerSpan] = []
    for span in spans:
        if span.applier in SYSTEM_WORK:
            own.append(span)
        elif all(getattr(span.account, name) == value for name, value in asked.where.items()):
            work.append(span)
    return work, own


def days_of(
    spans: Collection[LedgerSpan], since: int, until: int
) -> Sequence[tuple[int, UsageAccount, HeldSums]]:
    sums: dict[tuple[int, UsageAccount], HeldSums] = {}
    for span in spans:
        for day, account, held in span.by_day(since, until):
            sums[day, account] = sums.get((day, account), NOTHING_HELD).plus(held)
    return [(day, account, held) for (day, account), held in sums.items()]
