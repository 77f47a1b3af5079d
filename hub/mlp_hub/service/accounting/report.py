"""Report of a month as Markdown, which a person of the finance department reads without further words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from mlp_hub.domain.accounting.days import day_text, first_day, month_of, month_text
from mlp_hub.domain.accounting.prices import (
    CORE_HOUR,
    GIB_DAY,
    GIB_HOUR,
    PricePeriod,
    money,
    price_text,
    shown_column,
)
from mlp_hub.domain.accounting.spans import NODES, PLATFORM, HeldSums
from mlp_hub.service.accounting.service import UsageFound, UsageService
from mlp_hub.service.accounting.sums import SummedUse, UsageAsked
from mlp_hub.service.accounting.wire import month_in
from mlp_hub.store.repos.workload.accounting import day_at
from mlp_language.message import Message, msg
from mlp_language.render import Reader, render

_MARKS = re.compile(
    r"[\\`\[\]<>|~&#]"  # marks wherever they are
    r"|(?<=\S)\*|\*(?=\S)"  # a star between spaces is only a star
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore inside of a word is only an underscore
    r"|(?<=www)\.|:(?=//)",  # else a viewer makes a link of it
    re.IGNORECASE,
)
"""Characters that Markdown takes as marks, in a heading or a cell. People read the text also as it is, so no other one is escaped."""
HEADS = (
    msg("core-hours"),
    msg("of which idle"),
    msg("GiB-hours of memory"),
    msg("GPU-hours"),
    msg("GiB-days of storage"),
)
SOURCES = (msg("core-hours by own report"), msg("core-hours of unknown source"))
"""Contract: heads of columns that the tables have only if there is such use."""


async def month_report(
    service: UsageService, now: float, month: str | None, tenant: str | None, reader: Reader
) -> str:
    """Return the report of a month, of one tenant or of all. Raises `Invalid`, and `NotFound` for a team that never was."""
    number = month_of(day_at(now)) - 1 if month is None else month_in(month)
    where = {} if tenant is None else {"tenant": tenant}
    since, until = first_day(number), first_day(number + 1)
    first = ("tenant",) if tenant is None else ("user",)
    by_owner = await service.find(UsageAsked(since, until, first, where), nodes=tenant is None)
    if tenant is not None and not by_owner.lines:
        await service.check_tenant(tenant)  # a team that was removed has a report of the months of its work
    by_kind = await service.find(UsageAsked(since, until, ("work", "gpu_kind"), where))
    return _ReportText(
        reader, by_owner, by_kind, tenant, month_text(number), whole=until <= day_at(now)
    ).text()


class _ReportText:
    def __init__(
        self,
        reader: Reader,
        by_owner: UsageFound,
        by_kind: UsageFound,
        tenant: str | None,
        month: str,
        *,
        whole: bool,
    ) -> None:
        self._reader, self._tenant, self._month, self._whole = reader, tenant, month, whole
        self._by_owner, self._by_kind = by_owner, by_kind

    def text(self) -> str:
        prices, total = self._by_owner.prices, self._by_owner.total
        title = msg("Use in {month}", month=self._month)
        if self._tenant is not None:
            title = msg("Use in {month} by team {team}", month=self._month, team=self._tenant)
        lines = [f"# {_plain(self._say(title))}", ""]
        if not self._whole:
            lines += [self._say(msg("This month has not ended; the amounts still grow.")), ""]
        if self._periods() and prices is not None:
            cost = f"{money(total.total or Fraction(), 2)} {prices.currency}"
            lines += [f"**{self._say(msg('Total cost: {cost}', cost=cost))}**", ""]
        else:
            lines += [
                self._say(msg("No prices are set for this month, so the report has amounts without costs.")),
                "",
            ]
        head = msg("team") if self._tenant is None else msg("member")
        lines += self._table(
            [head],
            [((key[0] or self._say(msg("former members")),), line) for key, line in self._by_owner.lines],
        )
        lines += self._sources()
        lines += [f"## {self._say(msg('By kind of work'))}", ""]
        lines += self._table([msg("work"), msg("GPU kind")], list(self._by_kind.lines))
        lines += self._prices()
        lines += self._nodes()
        lines.append(
            self._say(
                msg(
                    "Amounts are those that the quota was charged for, in UTC days, added up exactly from the ledger. A person who is in several teams counts in each for the work done there, and once in the total."
                )
            )
        )
        return "\n".join(lines) + "\n"

    def _table(self, heads: Sequence[Message], rows: Sequence[tuple[Sequence[str], SummedUse]]) -> list[str]:
        prices = self._by_owner.prices
        titles = [
            *heads,
            *HEADS,
            *(head for head, there in zip(SOURCES, self._has_sources(), strict=True) if there),
            *(
                []
                if prices is None or not self._periods()
                else [msg("cost in {currency}", currency=prices.currency)]
            ),
        ]
        lines = [
            _row(self._say(title) for title in titles),
            _row("---" if i < len(heads) else "---:" for i in range(len(titles))),
        ]
        total = SummedUse()
        for _, line in rows:
            total.add(line.held, line.cost)
        columns = self._columns([*[line for _, line in rows], total])
        for at, (keys, _) in enumerate(rows):
            lines.append(_row([*map(_plain, keys), *(column[at] for column in columns)]))
        names = [f"**{self._say(msg('total'))}**", *[""] * (len(heads) - 1)]
        lines.append(_row([*names, *(column[-1] for column in columns)]))
        return [*lines, ""]

    def _columns(self, lines: Sequence[SummedUse]) -> list[list[str]]:
        """Write the columns of lines whose last one is the total of the others, so that written amounts add up."""
        amounts = ([*_amounts(line.held), *self._of_sources(line.held)] for line in lines)
        columns = [_column(list(of)) for of in zip(*amounts, strict=True)]
        if self._periods():
            costs = _column([line.total or Fraction() for line in lines])
            columns.append(
                ["" if line.total is None else text for line, text in zip(lines, costs, strict=True)]
            )
        return columns

    def _has_sources(self) -> tuple[bool, bool]:
        held = self._by_owner.total.held
        return bool(held.cpu_reported or held.ram_reported), bool(held.cpu_unknown or held.ram_unknown)

    def _of_sources(self, held: HeldSums) -> list[Fraction]:
        """Return the columns of `SOURCES` that the tables have."""
        values = (held.cpu_reported, held.cpu_unknown)
        there = zip(values, self._has_sources(), strict=True)
        return [Fraction(value, CORE_HOUR) for value, has in there if has]

    def _sources(self) -> list[str]:
        """Write how much of the use is not measured, but reported or of an unknown source."""
        held = self._by_owner.total.held
        reported, unknown = self._has_sources()
        by_report = msg(
            "The use of {cores} core-hours and {memory} GiB-hours of memory is known by the jobs' own reports alone. These used and idle amounts can be wrong. Costs are for held amounts.",
            **_hours(held.cpu_reported, held.ram_reported),
        )
        by_nobody = msg(
            "The use of {cores} core-hours and {memory} GiB-hours of memory was recorded by an older version, which did not store whether it was measured.",
            **_hours(held.cpu_unknown, held.ram_unknown),
        )
        texts = [text for has, text in ((reported, by_report), (unknown, by_nobody)) if has]
        return [line for text in texts for line in (self._say(text), "")]

    def _periods(self) -> list[tuple[int, PricePeriod]]:
        """Return the prices that hold in the month, each with its first day; none: the month has no prices."""
        prices, asked = self._by_owner.prices, self._by_owner.asked
        parts = () if prices is None else prices.parts(asked.since, asked.until)
        return [(since, period) for since, _, period in parts if period is not None]

    def _prices(self) -> list[str]:
        if not self._periods():
            return []
        lines = [f"## {self._say(msg('Prices'))}", ""]
        titles = (msg("from"), msg("core-hour"), msg("GiB-hour"), msg("GiB-month"), msg("GPU-hour"))
        lines += [_row(map(self._say, titles)), _row(["---", *["---:"] * 3, "---"])]
        for since, period in self._periods():
            gpus = ", ".join(f"{kind} {price_text(price)}" for kind, price in sorted(period.gpu.items()))
            prices_of = [price_text(n) for n in (period.cpu, period.ram, period.storage)]
            lines.append(_row([day_text(since), *prices_of, _plain(gpus)]))
        return [*lines, ""]

    def _nodes(self) -> list[str]:
        if not self._by_owner.nodes:
            return []
        have, keep, held = (
            self._by_owner.nodes[NODES],
            self._by_owner.nodes[PLATFORM],
            self._by_owner.total.held,
        )
        lines = [f"## {self._say(msg('Nodes'))}", ""]
        titles = ("", self._say(HEADS[0]), self._say(HEADS[2]), self._say(HEADS[3]))
        lines += [_row(titles), _row(["---", *["---:"] * 3])]
        for title, amount in (
            (msg("the nodes could give out"), have),
            (msg("held by teams"), held),
            (msg("held by nobody"), self._by_owner.held_by_nobody),
            (msg("kept by the systems of the nodes"), keep),
        ):
            core, _, memory, gpu, _ = _amounts(amount)
            lines.append(_row([self._say(title), *(money(part, 2) for part in (core, memory, gpu))]))
        return [*lines, ""]

    def _say(self, message: Message) -> str:
        return render(message, self._reader)


def _hours(cpu: int, ram: int) -> dict[str, str]:
    """Write sums of cores and memory as core-hours and GiB-hours."""
    return {"cores": money(Fraction(cpu, CORE_HOUR), 2), "memory": money(Fraction(ram, GIB_HOUR), 2)}


def _amounts(held: HeldSums) -> list[Fraction]:
    return [
        Fraction(held.cpu, CORE_HOUR),
        Fraction(held.cpu_idle, CORE_HOUR),
        Fraction(held.ram, GIB_HOUR),
        Fraction(held.gpu, CORE_HOUR),
        Fraction(held.rom, GIB_DAY),
    ]


def _column(values: Sequence[Fraction]) -> list[str]:
    parts, total = shown_column(values[:-1], values[-1])
    return [*parts, total]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
