"""Answers about held and used amounts and their cost; the price list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.days import (
    day_text,
    first_day,
    month_of,
    month_text,
    months_and_days,
    read_month,
)
from mlp_hub.domain.accounting.prices import Cost, PriceList, PricePeriod
from mlp_hub.domain.accounting.spans import NODES, NOTHING_HELD, PLATFORM, HeldSums, LedgerSpan, UsageAccount
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.accounting import wire
from mlp_hub.service.accounting.rollup import CAPACITY, NAMES_DAYS, RollUp, capacity_spans
from mlp_hub.service.support.units import when
from mlp_hub.store.database import Database
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

SPLITS = ("day", "month", *UsageAccount._fields)
"""Contract: fields by which lines may be split."""
MOST_DAYS = 3700
"""Safety: days that one question may span: bounds its time."""
MOST_LINES = 200_000
"""Safety: lines that one question may add up: bounds memory."""
AUDITED_KINDS = 20
"""Safety: gpu kinds whose prices are in an entry of the audit log: bounds its size."""
PRICES = "accounting.prices"
"""Contract: key of the setting with the price list."""
SYSTEM_WORK = (NODES, PLATFORM)


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


Key = tuple[str, ...]
"""Values of the fields that a line is split by."""


@dataclass(frozen=True, slots=True)
class UsageFound:
    """Answer as sums: lines in order of their keys, the nodes' own sums, and the prices."""

    asked: UsageAsked
    now: float
    lines: Sequence[tuple[Key, SummedUse]]
    nodes: Mapping[str, HeldSums]
    prices: PriceList | None
    recorded: int | None

    @property
    def total(self) -> SummedUse:
        """Return the sum of all lines."""
        total = SummedUse()
        for _, line in self.lines:
            total.add(line.held, line.cost)
        return total


class UsageService:
    """Use cases of the accounting. Whether the caller may ask about a tenant or a user is for the caller to check."""

    def __init__(
        self, db: Database, nodes: Callable[[], Sequence[NodeInfo]], clock: Callable[[], float]
    ) -> None:
        self._db, self._clock = db, clock
        self.roll_up = RollUp(db, nodes, clock)

    async def find(self, asked: UsageAsked, *, nodes: bool = False) -> UsageFound:
        """Return sums; `nodes`: also those of the nodes."""
        now = self._clock()
        _check(asked, day_at(now))
        return await self._db.read(lambda tx: _find(tx, asked, now, nodes=nodes))

    async def lines(
        self, asked: UsageAsked, *, limit: int, start: int = 0, nodes: bool = False
    ) -> api.UsageLines:
        """Return a page of lines, from line number `start` on."""
        return to_wire(await self.find(asked, nodes=nodes), limit, start)

    async def prices(self) -> api.Prices:
        """Return the price list. Raises `NotFound` where there is none."""
        found = await self._db.read(prices_in)
        if found is None:
            raise Refused(Reason.NOT_FOUND, msg("there is no price list; an administrator can set one"))
        return wire.prices_to(found)

    async def set_prices(self, asked: api.Prices, *, actor: str) -> api.Prices:
        """Replace the price list. Raises `Invalid`, and nothing is changed."""
        told = wire.prices_to(wire.prices_of(asked))

        def work(tx: Tx) -> None:
            before = tx.settings.get(PRICES)
            tx.settings.put(PRICES, msgspec.to_builtins(told))
            last = told.periods[-1]
            detail = {
                "currency": told.currency,
                "periods": len(told.periods),
                "new": before is None,
                "begins": last.begins,
                "core_hour": last.core_hour,
                "gib_hour": last.gib_hour,
                "gib_month": last.gib_month,
                "gpu_hour": dict(list(last.gpu_hour.items())[:AUDITED_KINDS]),
            }
            tx.audit.add(self._clock(), actor, "prices.set", "prices", detail=detail)

        await self._db.write(work)
        return told

    async def remove_prices(self, *, actor: str) -> None:
        """Remove the price list; costs are not shown any more. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            if tx.settings.get(PRICES) is None:
                raise Refused(Reason.NOT_FOUND, msg("there is no price list"))
            tx.settings.drop(PRICES)
            tx.audit.add(self._clock(), actor, "prices.remove", "prices", detail={})

        await self._db.write(work)


def asked_of(
    *,
    now: float,
    since: str | None,
    until: str | None,
    month: str | None,
    by: str,
    where: Mapping[str, str | None],
) -> UsageAsked:
    """Return a question from texts. The span is a month, or days; without any the last 30 days. Raises `Invalid`."""
    splits = tuple(dict.fromkeys(part for part in by.split(",") if part))
    if unknown := [part for part in splits if part not in SPLITS]:
        raise _invalid(
            msg(
                "lines cannot be split by {name}; choose of {names}", name=repr(unknown[0][:40]), names=SPLITS
            )
        )
    given = {name: value for name, value in where.items() if value is not None}
    if month is not None:
        if since is not None or until is not None:
            raise _invalid(msg("give a month, or since and until, and not both"))
        number = read_month(month)
        if number is None:
            raise _invalid(
                msg("month is {text}; write a month from 2000 to 2199 such as 2031-03", text=repr(month[:20]))
            )
        return UsageAsked(first_day(number), first_day(number + 1), splits, given)
    last = day_at(now) + 1 if until is None else wire.day_in(until, "until")
    first = last - 30 if since is None else wire.day_in(since, "since")
    return UsageAsked(first, last, splits, given)


def _check(asked: UsageAsked, today: int) -> None:
    if asked.until <= asked.since:
        raise _invalid(
            msg(
                "until is {until}, which is not after {since}; give a later day",
                until=day_text(asked.until),
                since=day_text(asked.since),
            )
        )
    if asked.until - asked.since > MOST_DAYS:
        raise _invalid(
            msg(
                "from {since} to {until} are {n} days; ask for {most} at most",
                since=day_text(asked.since),
                until=day_text(asked.until),
                n=asked.until - asked.since,
                most=MOST_DAYS,
            )
        )
    if "name" in asked.by and asked.since < today - NAMES_DAYS:
        raise _invalid(
            msg(
                "names of work are kept for {n} days; ask from {since} on, or leave `name` out",
                n=NAMES_DAYS,
                since=day_text(today - NAMES_DAYS),
            )
        )


def prices_in(tx: Tx) -> PriceList | None:
    """Return the stored price list."""
    stored = tx.settings.get(PRICES)
    return None if stored is None else wire.prices_of(msgspec.convert(stored, api.Prices))


def _find(tx: Tx, asked: UsageAsked, now: float, *, nodes: bool) -> UsageFound:
    prices = prices_in(tx)
    parts: list[tuple[int, int, PricePeriod | None]] = [(asked.since, asked.until, None)]
    if prices is not None:
        parts = list(prices.parts(asked.since, asked.until))
    grouped = {
        *(["gpu_kind"] if prices is not None else []),
        *(name for name in asked.by if name in UsageAccount._fields),
    }
    lines: dict[Key, SummedUse] = {}

    def add(day: int, month: int, keys: Mapping[str, str], held: HeldSums, price: PricePeriod | None) -> None:
        key = tuple(
            day_text(day) if name == "day" else month_text(month) if name == "month" else keys[name]
            for name in asked.by
        )
        cost = None if price is None else price.cost(held, keys["gpu_kind"], month)
        line = lines.get(key)
        if line is None:
            line = lines[key] = SummedUse()
        line.add(held, cost)
        if len(lines) > MOST_LINES:
            raise _invalid(
                msg("the answer has more than {n} lines; ask for fewer days, or split less", n=MOST_LINES)
            )

    live, own = _live(tx, asked, now)
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
                add(first_day(period) if grain == "month" else period, month, keys, held, price)
        for day, account, held in _days_of(live, since, until):
            add(day, month_of(day), account._asdict(), held, price)
    return UsageFound(
        asked,
        now,
        sorted(lines.items()),
        _of_nodes(tx, asked, own) if nodes else {},
        prices,
        tx.accounting.first_day(),
    )


def _grains(asked: UsageAsked, since: int, until: int) -> Sequence[tuple[str, int, int]]:
    """Return the stored sums to read for some days: whole months where that is fine enough."""
    if "name" in asked.by or "name" in asked.where:
        return [("name", low, high) for low, high in _within_months(since, until)]
    if "day" in asked.by:
        return [("day", since, until)]
    found: list[tuple[str, int, int]] = []
    for grain, first, last in months_and_days(since, until):
        parts = [(first, last)] if grain == "month" else _within_months(first, last)
        found += [(grain, low, high) for low, high in parts]
    return found


def _within_months(since: int, until: int) -> Iterator[tuple[int, int]]:
    """Split days where a month begins, so that the days of a part are those of one month."""
    while since < until:
        end = min(first_day(month_of(since) + 1), until)
        yield since, end
        since = end


def _live(tx: Tx, asked: UsageAsked, now: float) -> tuple[list[LedgerSpan], list[LedgerSpan]]:
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


def _days_of(
    spans: Collection[LedgerSpan], since: int, until: int
) -> Sequence[tuple[int, UsageAccount, HeldSums]]:
    sums: dict[tuple[int, UsageAccount], HeldSums] = {}
    for span in spans:
        for day, account, held in span.by_day(since, until):
            sums[day, account] = sums.get((day, account), NOTHING_HELD).plus(held)
    return [(day, account, held) for (day, account), held in sums.items()]


def _of_nodes(tx: Tx, asked: UsageAsked, own: Collection[LedgerSpan]) -> dict[str, HeldSums]:
    """Return the sums of the nodes and of their systems."""
    found = dict.fromkeys(SYSTEM_WORK, NOTHING_HELD)
    for work in SYSTEM_WORK:
        for grain, first, last in months_and_days(asked.since, asked.until):
            for _, _, held in tx.accounting.sums(grain, first, last, (), where={"work": work}):
                found[work] = found[work].plus(held)
    for _, account, held in _days_of(own, asked.since, asked.until):
        found[account.work] = found[account.work].plus(held)
    return found


def to_wire(found: UsageFound, limit: int, start: int) -> api.UsageLines:
    """Return a page of an answer."""
    asked, total = found.asked, found.total
    page = found.lines[start : start + limit]
    nodes = free = platform = None
    if found.nodes:
        have, held = found.nodes[NODES], total.held
        nodes = wire.line_to({}, have, None)
        platform = wire.line_to({}, found.nodes[PLATFORM], None)
        if not asked.where:
            rest = HeldSums(
                max(have.cpu - held.cpu, 0), max(have.gpu - held.gpu, 0), max(have.ram - held.ram, 0)
            )
            free = wire.line_to({}, rest, None)
    prices = found.prices
    return api.UsageLines(
        since=day_text(asked.since),
        until=day_text(asked.until),
        at=when(found.now),
        currency=None if prices is None else prices.currency,
        priced_since=None if prices is None else day_text(prices.periods[0].begins),
        names_since=day_text(day_at(found.now) - NAMES_DAYS),
        recorded_since=None if found.recorded is None else day_text(found.recorded),
        total=wire.line_to({}, total.held, total.total),
        nodes=nodes,
        free=free,
        platform=platform,
        lines=[
            wire.line_to(dict(zip(asked.by, key, strict=True)), line.held, line.total) for key, line in page
        ],
        next=str(start + limit) if start + limit < len(found.lines) else None,
    )


def _invalid(message: Message) -> Refused:
    return Refused(Reason.INVALID, message)
