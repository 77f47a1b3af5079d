"""Answers about held and used amounts and their cost; the price list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mlp_api.jobs import jobs as jobs_api
from mlp_api.platform import accounting as api
from mlp_hub.domain.accounting.days import (
    day_text,
    first_day,
    month_text,
    months_and_days,
)
from mlp_hub.domain.accounting.prices import PriceList, PricePeriod
from mlp_hub.domain.accounting.spans import NODES, NOTHING_HELD, PLATFORM, HeldSums, LedgerSpan, UsageAccount
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs.job import Job, JobSpec
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.accounting import costs, wire
from mlp_hub.service.accounting.rollup import NAMES_DAYS, RollUp
from mlp_hub.service.accounting.sums import (
    PRICES,
    SPLITS,
    SYSTEM_WORK,
    SummedUse,
    UsageAsked,
    days_of,
    live_spans,
    live_sums,
    parts_of,
    prices_in,
    stored_sums,
)
from mlp_hub.service.support.units import when
from mlp_hub.store.database import Database
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

MOST_DAYS = 3700
"""Safety: days that one question may span: bounds its time."""
MOST_LINES = 200_000
"""Safety: lines that one question may add up: bounds memory."""
AUDITED_KINDS = 20
"""Safety: gpu kinds whose prices are in an entry of the audit log: bounds its size."""
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

    @property
    def held_by_nobody(self) -> HeldSums:
        """Return what the nodes could give out beyond the sum of all lines."""
        have, held = self.nodes[NODES], self.total.held
        return HeldSums(max(have.cpu - held.cpu, 0), max(have.gpu - held.gpu, 0), max(have.ram - held.ram, 0))


class UsageService:
    """Use cases of the accounting. Whether the caller may ask about a tenant or a user is for the caller to check."""

    def __init__(
        self,
        db: Database,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        *,
        measures: bool = True,
    ) -> None:
        """`measures`: the executor measures the use of all work itself."""
        self._db, self._nodes, self._clock = db, nodes, clock
        self.roll_up = RollUp(db, nodes, clock, measures=measures)
        self._prices: tuple[PriceList | None] | None = None
        self.on_prices: list[Callable[[], None]] = []
        """Called when the price list has changed."""

    def forget_prices(self) -> None:
        """Read the price list again: another service may have changed it."""
        self._prices = None
        for changed in self.on_prices:
            changed()

    async def price_list(self) -> PriceList | None:
        """Return the price list, which is read once."""
        if self._prices is None:
            self._prices = (await self._db.read(prices_in),)
        return self._prices[0]

    async def cost_of_shape(self, spec: JobSpec) -> jobs_api.OfferedCost | None:
        """Return what a job would cost in an hour and at most; None without prices for today."""
        prices = await self.price_list()
        return None if prices is None else costs.offered(prices, spec, self._nodes(), day_at(self._clock()))

    async def cost_of_job(self, job: Job) -> jobs_api.JobCost:
        """Return the cost of a run until now, from the amounts that the ledger was charged for it."""
        prices, now = await self.price_list(), self._clock()
        if prices is None:
            return costs.UNKNOWN
        return await self._db.read(lambda tx: costs.of_job(tx, job, prices, now))

    async def find(self, asked: UsageAsked, *, nodes: bool = False) -> UsageFound:
        """Return sums; `nodes`: also those of the nodes."""
        now = self._clock()
        _check(asked, day_at(now))
        return await self._db.read(lambda tx: _find(tx, asked, now, nodes=nodes))

    async def check_tenant(self, name: str) -> None:
        """Raise `NotFound` if the team does not exist."""
        if name != DEFAULT_TENANT and await self._db.read(lambda tx: tx.tenants.get(name)) is None:
            raise not_found("tenant", name)

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
        self.forget_prices()
        return told

    async def remove_prices(self, *, actor: str) -> None:
        """Remove the price list; costs are not shown any more. Raises `NotFound`."""

        def work(tx: Tx) -> None:
            if tx.settings.get(PRICES) is None:
                raise Refused(Reason.NOT_FOUND, msg("there is no price list"))
            tx.settings.drop(PRICES)
            tx.audit.add(self._clock(), actor, "prices.remove", "prices", detail={})

        await self._db.write(work)
        self.forget_prices()


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
        number = wire.month_in(month)
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


def _find(tx: Tx, asked: UsageAsked, now: float, *, nodes: bool) -> UsageFound:
    prices = prices_in(tx)
    parts = parts_of(prices, asked)
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

    live, own = live_spans(tx, asked, now)
    for day, month, keys, held, price in stored_sums(tx, asked, parts, grouped):
        add(day, month, keys, held, price)
    for day, month, keys, held, price in live_sums(live, parts):
        add(day, month, keys, held, price)
    return UsageFound(
        asked,
        now,
        sorted(lines.items()),
        _of_nodes(tx, asked, own) if nodes else {},
        prices,
        tx.accounting.first_day(),
    )


def _of_nodes(tx: Tx, asked: UsageAsked, own: Collection[LedgerSpan]) -> dict[str, HeldSums]:
    """Return the sums of the nodes and of their systems."""
    found = dict.fromkeys(SYSTEM_WORK, NOTHING_HELD)
    for work in SYSTEM_WORK:
        for grain, first, last in months_and_days(asked.since, asked.until):
            for _, _, held in tx.accounting.sums(grain, first, last, (), where={"work": work}):
                found[work] = found[work].plus(held)
    for _, account, held in days_of(own, asked.since, asked.until):
        found[account.work] = found[account.work].plus(held)
    return found


def to_wire(found: UsageFound, limit: int, start: int) -> api.UsageLines:
    """Return a page of an answer."""
    asked, total = found.asked, found.total
    page = found.lines[start : start + limit]
    nodes = free = platform = None
    if found.nodes:
        nodes = wire.line_to({}, found.nodes[NODES], None)
        platform = wire.line_to({}, found.nodes[PLATFORM], None)
        if not asked.where:
            free = wire.line_to({}, found.held_by_nobody, None)
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
