"""Sums of held and used amounts, and the spans that are not added up yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, delete, func, select, text, update

from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.accounting.spans import HeldSums, LedgerSpan, UsageAccount
from mlp_hub.domain.resources import Pairs
from mlp_hub.domain.workload.ledger import HELD, OF_JOBS, RequestPhase
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.tables import ledger_span, resource_request
from mlp_hub.store.tables import usage_total as t

KEYS = ("grain", "period", *UsageAccount._fields)
GONE = "{name} (deleted)"
"""Contract: how a deleted tenant is kept; no other has such a name."""
_LOW = 2**20
_SUMS = [
    part for name in HeldSums._fields for part in (func.sum(t.c[name] // _LOW), func.sum(t.c[name] % _LOW))
]
"""Two sums of each column: one alone of a large site and a year would not fit the database's numbers."""
_HELD = [p.value for p in sorted(HELD)]
_TRIED = RequestPhase.TRIED.value
_ATTEMPT = case((resource_request.c.applier == OF_JOBS, resource_request.c.id))
_MEASURED = ("cpu_used", "ram_used", "ran_from", "cpu_reported", "ram_reported")
_BRIEF = ("name", "run")
"""Contract: grains of details, which are kept for a while."""


class Accounting(Repo):
    """The rows of `usage_total` and `ledger_span`. Days and months are numbers since 1970."""

    __slots__ = ()

    def spans(self, most: int) -> tuple[list[LedgerSpan], int]:
        """Return the oldest spans that are not added up, and the number of the last one."""
        rows = self._c.execute(select(ledger_span).order_by(ledger_span.c.id).limit(most)).all()
        return [_span_of(row) for row in rows], rows[-1].id if rows else 0

    def spans_of(self, tenant: str | None, user: str | None) -> list[LedgerSpan]:
        """Return all spans that are not added up, of a tenant or a user only."""
        return [
            _span_of(row)
            for row in self._c.execute(select(ledger_span).where(*_of(ledger_span, tenant, user)))
        ]

    def added_up(self, last: int) -> None:
        """Remove the spans up to this number."""
        self._c.execute(delete(ledger_span).where(ledger_span.c.id <= last))

    def held_now(self, now: float, tenant: str | None = None, user: str | None = None) -> list[LedgerSpan]:
        """Return what is held at `now` as spans that end there; of a tenant or a user only."""
        r = resource_request
        query = select(
            r, r.c.since.label("begins"), _until(now).label("ends"), _ATTEMPT.label("attempt")
        ).where(_counts(now), *_of(r, tenant, user))
        return [_span_of(row) for row in self._c.execute(query)]

    def cut_held(self, at: float) -> None:
        """Store what is held, and was before a moment, as spans that end there; the rest of it counts later."""
        r, until = resource_request, _until(at)
        columns = ("applier", "tenant", "user", "holder", "cpu", "gpu", "ram", "rom", "kinds", "counted")
        values = {
            **{name: r.c[name] for name in columns},
            "shares": case((and_(r.c.gpu > 0, r.c.kinds.is_(None)), r.c.shares)),
            "attempt": _ATTEMPT,
            "begins": r.c.since,
            "ends": until,
        }
        self._c.execute(
            ledger_span.insert().from_select(list(values), select(*values.values()).where(_counts(at)))
        )
        self._c.execute(update(r).where(_counts(at)).values(counted=until))

    def take_as_measured(self) -> None:
        """Mark all use whose source is unknown as measured."""
        for name in ("cpu", "ram"):
            unknown, reported = t.c[f"{name}_unknown"], ledger_span.c[f"{name}_reported"]
            self._c.execute(update(t).where(unknown > 0).values({unknown: 0}))
            measured = ledger_span.c[f"{name}_used"].is_not(None)
            self._c.execute(update(ledger_span).where(measured, reported.is_(None)).values({reported: False}))

    def add(self, sums: Mapping[tuple[str, int, UsageAccount], HeldSums]) -> None:
        """Add to the stored sums."""
        insert = self._insert(t)
        grown = {name: t.c[name] + insert.excluded[name] for name in HeldSums._fields}
        statement = insert.on_conflict_do_update(index_elements=list(KEYS), set_=grown)
        rows = [
            {"grain": grain, "period": period, **account._asdict(), **held._asdict()}
            for (grain, period, account), held in sums.items()
        ]
        if rows:
            self._c.execute(statement, rows)

    def add_span(self, span: LedgerSpan) -> None:
        """Store a span of an owner that the ledger does not have."""
        values = {name: getattr(span, name) for name in span.__slots__}
        self._c.execute(ledger_span.insert().values(**{**values, "kinds": codec.pairs_text(span.kinds)}))

    def sums(
        self,
        grain: str,
        since: int,
        until: int,
        by: Collection[str],
        *,
        where: Mapping[str, str],
        but: Collection[str] = (),
        periods: bool = True,
    ) -> list[tuple[int, dict[str, str], HeldSums]]:
        """Return the sums of each period from `since` on and before `until`, by some fields of accounts.

        Kinds of work in `but` do not count. Without `periods` only storage, whose price depends on the month, is split by
        them: all else has the first period.
        """
        names = [name for name in UsageAccount._fields if name in by]
        period = t.c.period if periods else case((t.c.rom > 0, t.c.period), else_=since)
        keys = [period.label("the_period"), *(t.c[name] for name in names)]
        query = select(*keys, *_SUMS).where(
            t.c.grain == grain,
            t.c.period >= since,
            t.c.period < until,
            *(t.c[name] == value for name, value in where.items()),
            t.c.work.not_in(list(but)),
        )
        found = []
        for row in self._c.execute(query.group_by(text("the_period"), *(t.c[name] for name in names))):
            parts = [int(n) for n in row[len(keys) :]]
            held = HeldSums(*[high * _LOW + low for high, low in zip(parts[::2], parts[1::2], strict=True)])
            found.append((int(row[0]), dict(zip(names, row[1 : len(keys)], strict=True)), held))
        return found

    def first_day(self, grain: str = "day") -> int | None:
        """Return the first day that has sums of this grain."""
        found: int | None = self._c.scalar(select(func.min(t.c.period)).where(t.c.grain == grain))
        return found

    def delete_names(self, before: int) -> int:
        """Remove the sums by name and by run of days before this one; those by day stay. Return how many."""
        old = and_(t.c.grain.in_(_BRIEF), t.c.period < before)
        return int(self._c.execute(delete(t).where(old)).rowcount)

    def rename_tenant(self, name: str) -> None:
        """Keep a deleted tenant's sums apart from those of a later tenant of this name."""
        gone = GONE.format(name=name)
        self._rename(t.c.tenant == name, tenant=gone)
        self._c.execute(update(ledger_span).where(ledger_span.c.tenant == name).values(tenant=gone))

    def forget_user(self, user: str) -> None:
        """Keep the sums of a user who leaves, without the user's name and names of work."""
        self._rename(t.c.user == user, user="", name="")
        self._c.execute(update(ledger_span).where(ledger_span.c.user == user).values(user="", holder=""))

    def _rename(self, which: ColumnElement[bool], **to: str) -> None:
        sums: dict[tuple[str, int, UsageAccount], HeldSums] = {}
        for row in self._c.execute(select(t).where(which)):
            account = UsageAccount(*[getattr(row, name) for name in UsageAccount._fields])._replace(**to)
            key = (row.grain, row.period, account)
            sums[key] = sums.get(key, HeldSums()).plus(
                HeldSums(*[getattr(row, name) for name in HeldSums._fields])
            )
        self._c.execute(delete(t).where(which))
        for part in chunks(sums):
            self.add({key: sums[key] for key in part})


def _until(at: float) -> ColumnElement[float]:
    r = resource_request
    return case((and_(r.c.phase == _TRIED, r.c.expires_at < at), r.c.expires_at), else_=at)


def _counts(at: float) -> ColumnElement[bool]:
    """Return the condition under which a row has held something that no span has, before a moment."""
    r = resource_request
    begins = func.coalesce(r.c.counted, r.c.since)
    return and_(r.c.kind == "request", r.c.phase.in_(_HELD), begins < _until(at))


def _of(table: Any, tenant: str | None, user: str | None) -> Sequence[ColumnElement[bool]]:
    conditions: Iterable[tuple[Any, str | None]] = ((table.c.tenant, tenant), (table.c.user, user))
    return [column == value for column, value in conditions if value is not None]


def _span_of(row: Row[Any]) -> LedgerSpan:
    kinds = codec.pairs_of(row.kinds)
    if row.gpu and not kinds and row.shares is not None:
        kinds = _kinds_of(row.shares)
    measured = {name: getattr(row, name, None) for name in _MEASURED}
    return LedgerSpan(
        row.applier,
        row.tenant,
        row.user,
        row.holder,
        row.cpu,
        row.gpu,
        row.ram,
        row.rom,
        kinds,
        row.begins,
        row.ends,
        row.counted,
        attempt=row.attempt,
        **measured,
    )


def _kinds_of(shares: str) -> Pairs:
    found: dict[str, int] = {}
    for _, amount in codec.shares_of(shares):
        for kind, gpu in amount.kinds:
            found[kind] = found.get(kind, 0) + gpu
    return tuple(sorted(found.items()))


def day_at(time: float) -> int:
    """Return the day of a moment."""
    return int(time // DAY_S)
