"""Rows of the ledger and the sums over them. The rules (what may move where) are in `quota.ledger`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.workload.ledger import HELD, OF_JOBS, RequestPhase, ResourceRequest
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import environment, ledger_span
from mlp_hub.store.tables import resource_request as t

REQUESTS = Rows(ResourceRequest, t, embedded={"amount": ""}, beside=("since", "counted"))
_HELD = [p.value for p in sorted(HELD)]
_TRIED = RequestPhase.TRIED.value
_PENDING = RequestPhase.PENDING.value
_PASSING = [_PENDING, _TRIED, RequestPhase.RELEASING.value]
_LASTING = [RequestPhase.CONFIRMED.value, RequestPhase.RELEASING.value]
_ENDED = [p.value for p in RequestPhase if p not in HELD and p is not RequestPhase.PENDING]


def _holds(now: float | BindParameter[float]) -> ColumnElement[bool]:
    """Return the condition under which a row counts as in use: a try whose time is over does not."""
    return and_(
        t.c.kind == "request",
        t.c.phase.in_(_HELD),
        or_(t.c.phase != _TRIED, t.c.expires_at.is_(None), t.c.expires_at > now),
    )


# built once: in a transaction that takes resources, building a statement costs more than running it
_NOW: BindParameter[float] = bindparam("now")
_GET = select(t).where(t.c.applier == bindparam("applier"), t.c.id == bindparam("id"))
_NAMED = func.count(t.c.kinds) + func.count(t.c.amounts)
_HAS_NAMES = or_(t.c.kinds.is_not(None), t.c.amounts.is_not(None))
_IN_USE = select(func.sum(t.c.cpu), func.sum(t.c.gpu), func.sum(t.c.ram), func.sum(t.c.rom), _NAMED).where(
    _holds(_NOW), t.c.tenant == bindparam("tenant")
)
_IN_USE_NAMED = select(t.c.kinds, t.c.amounts).where(
    _holds(_NOW), t.c.tenant == bindparam("tenant"), _HAS_NAMES
)
_AMONG = t.c.tenant.in_(bindparam("names", expanding=True))
_SUMS = (
    select(
        t.c.tenant,
        func.sum(t.c.cpu),
        func.sum(t.c.gpu),
        func.sum(t.c.ram),
        func.sum(t.c.rom),
        _NAMED,
    )
    .where(_holds(_NOW))
    .group_by(t.c.tenant)
)
_SUMS_OF = _SUMS.where(_AMONG)
_BY_NAME = select(t.c.tenant, t.c.kinds, t.c.amounts).where(_holds(_NOW), _HAS_NAMES)
_BY_NAME_OF = _BY_NAME.where(_AMONG)
_NODE_USE = (
    select(t.c.shares, func.count().label("rows"))
    .where(_holds(_NOW), t.c.shares.is_not(None), t.c.applier.not_in(bindparam("but", expanding=True)))
    .group_by(t.c.shares)
)
"""Many jobs take the same of the same node: equal rows are read once."""

_WAITING = select(t).where(t.c.phase == _PENDING, t.c.expires_at > _NOW).order_by(t.c.created_at, t.c.id)

_RELEASE = (
    update(t)
    .where(
        t.c.applier == bindparam("of"),
        t.c.id == bindparam("the_id"),
        t.c.kind == "request",
        or_(*(t.c.phase == p for p in _LASTING)),
    )
    .values(phase=RequestPhase.RELEASED.value, expires_at=None, last="release")
)

_AT: BindParameter[float] = bindparam("at", type_=Double)
_UNTIL = case((and_(t.c.phase == _TRIED, t.c.expires_at < _AT), t.c.expires_at), else_=_AT)
"""Moment at which a row's span ends: a try whose time is over held until then and no longer."""
_SPAN = {
    **{
        name: t.c[name]
        for name in ("applier", "tenant", "user", "holder", "cpu", "gpu", "ram", "rom", "kinds", "counted")
    },
    "shares": case((and_(t.c.gpu > 0, t.c.kinds.is_(None)), t.c.shares)),
    "attempt": case((t.c.applier == OF_JOBS, t.c.id)),
    "begins": t.c.since,
    "ends": _UNTIL,
    "cpu_used": bindparam("cpu_used", type_=BigInteger),
    "ram_used": bindparam("ram_used", type_=BigInteger),
    "ran_from": bindparam("ran_from", type_=Double),
    "cpu_reported": bindparam("cpu_reported", type_=Boolean),
    "ram_reported": bindparam("ram_reported", type_=Boolean),
}
_KNOWN = select(t.c.applier, t.c.id).where(t.c.id.in_(bindparam("ids", expanding=True)), t.c.phase.in_(_HELD))
NOTICED_S = 10.0
"""Tuning: seconds within which a change of the clock is noticed; work of these seconds keeps its beginning."""


def _cut_in(phases: Sequence[str]) -> Any:
    """Return the statement that stores as a span what a row has held until now; nothing unless it is in one of these phases."""
    return ledger_span.insert().from_select(
        list(_SPAN),
        select(*_SPAN.values()).where(
            t.c.applier == bindparam("of"),
            t.c.id == bindparam("the_id"),
            t.c.kind == "request",
            or_(*(t.c.phase == p for p in phases)),
            func.coalesce(t.c.counted, t.c.since) < _UNTIL,
        ),
    )


_CUT, _CUT_LASTING = _cut_in(_HELD), _cut_in(_LASTING)


class MeasuredUse(NamedTuple):
    """Measured means of an attempt: thousandths of a core, MiB, and since when it ran.

    `cpu_reported`, `ram_reported`: known by the job's own report alone, at least for a rank of it.
    """

    cpu: int
    ram: int
    ran_from: float
    cpu_reported: bool = False
    ram_reported: bool = False


@cache
def _held_by(*columns: str) -> Select[Any]:
    chosen = [t.c[name] == bindparam(name) for name in columns]
    return select(t).where(_holds(_NOW), *chosen).order_by(t.c.created_at, t.c.applier, t.c.id)


class Requests(Repo):
    """Resource requests of all appliers; in-use is always summed up again, never stored.

    Each change of a held amount also stores the span that ends with it, for the accounting; `clock` gives its end.
    """

    __slots__ = ("_clock",)

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        super().__init__(connection)
        self._clock = clock

    def get(self, applier: str, request_id: str) -> ResourceRequest | None:
        """Return the request of this key."""
        return self._one(REQUESTS, _GET, {"applier": applier, "id": request_id})

    def put(self, request: ResourceRequest, used: MeasuredUse | None = None) -> None:
        """Store a request, new or changed; `used` is what was measured of an attempt that ends."""
        now = self._clock()
        self._cut([(request.applier, request.id)], now, [used])
        self._store(REQUESTS, request, since=now, counted=None)

    def put_many(self, requests: Sequence[ResourceRequest]) -> None:
        """Store requests, new or changed, each once."""
        now = self._clock()
        known: list[tuple[str, str]] = []
        for part in chunks([r.id for r in requests]):
            known += [
                (row.applier, row.id)
                for row in self._c.execute(_KNOWN, {"ids": part})  # most are new, and have held nothing
            ]
        self._cut(known, now)
        self._insert_all(
            t,
            [{**REQUESTS.row(r), "since": now, "counted": None} for r in requests],
            ("applier", "id"),
            replaces=True,
        )

    def release_many(self, applier: str, ids: Sequence[str], used: Sequence[MeasuredUse | None] = ()) -> None:
        """Mark those of these requests that are confirmed or being released as released, in one statement.

        `used`: what was measured of each.
        """
        if ids:
            self._cut([(applier, i) for i in dict.fromkeys(ids)], self._clock(), used, _CUT_LASTING)
            self._many(_RELEASE, [{"of": applier, "the_id": i} for i in ids])

    def forget(self, applier: str, request_id: str) -> None:
        """Remove a request; its held amounts count until now."""
        self._cut([(applier, request_id)], self._clock())
        self._delete(t, t.c.applier == applier, t.c.id == request_id)

    def _cut(
        self,
        keys: Sequence[tuple[str, str]],
        now: float,
        used: Sequence[MeasuredUse | None] = (),
        statement: Any = _CUT,
    ) -> None:
        """Store what these rows have held until now as spans: a row that goes on holding then begins at `now`."""
        if not keys:
            return
        measured = used or [None] * len(keys)
        self._many(
            statement,
            [
                {
                    "of": of,
                    "the_id": the_id,
                    "at": now,
                    "cpu_used": None if use is None else use.cpu,
                    "ram_used": None if use is None else use.ram,
                    "ran_from": None if use is None else use.ran_from,
                    "cpu_reported": None if use is None else use.cpu_reported,
                    "ram_reported": None if use is None else use.ram_reported,
                }
                for (of, the_id), use in zip(keys, measured, strict=True)
            ],
        )

    def in_use(self, tenant: str, now: float) -> Resources:
        """Sum up what the tenant holds at `now`, gpu kinds and counted dimensions included."""
        asked = {"tenant": tenant, "now": now}
        cpu, gpu, ram, rom, named = self._c.execute(_IN_USE, asked).one()
        total = Resources(int(cpu or 0), int(gpu or 0), int(ram or 0), int(rom or 0))
        if named:
            for kinds, amounts in self._c.execute(_IN_USE_NAMED, asked):
                total += Resources(kinds=codec.pairs_of(kinds), amounts=codec.pairs_of(amounts))
        return total

    def in_use_by_tenant(self, now: float, names: Iterable[str] | None = None) -> dict[str, Resources]:
        """Sum up what each tenant that holds anything holds at `now`; `names`: of these tenants only."""
        asked: dict[str, Any] = {"now": now}
        sums, by_name = _SUMS, _BY_NAME
        if names is not None:
            asked["names"] = list(names)
            sums, by_name = _SUMS_OF, _BY_NAME_OF
        found: dict[str, Resources] = {}
        any_named = False
        for name, cpu, gpu, ram, rom, named in self._c.execute(sums, asked):
            found[name] = Resources(int(cpu), int(gpu), int(ram), int(rom))
            any_named = any_named or bool(named)
        if any_named:
            for name, kinds, amounts in self._c.execute(by_name, asked):
                found[name] += Resources(kinds=codec.pairs_of(kinds), amounts=codec.pairs_of(amounts))
        return found

    def held(
        self, now: float, *, tenant: str | None = None, applier: str | None = None
    ) -> list[ResourceRequest]:
        """Return the requests that count as in use at `now`, the oldest first."""
        wanted = {"tenant": tenant, "applier": applier}
        given = {name: value for name, value in wanted.items() if value is not None}
        return self._list(REQUESTS, _held_by(*given), {"now": now, **given})

    def pending(self, now: float) -> list[ResourceRequest]:
        """Return the requests that wait to be admitted at `now`, the oldest first. They hold nothing."""
        return self._list(REQUESTS, _WAITING, {"now": now})

    def in_environment(self, uid: str, tenant: str, now: float) -> list[ResourceRequest]:
        """Return the requests of a tenant's notebook servers that have this environment at `now`, or wait to have it, the oldest first."""
        waits = and_(t.c.phase == _PENDING, t.c.expires_at > now)
        query = select(t).where(t.c.tenant == tenant, t.c.environment == uid, or_(_holds(now), waits))
        return self._list(REQUESTS, query.order_by(t.c.created_at, t.c.id))

    def images(self, since: float) -> Counter[str]:
        """Count, by image, notebook servers whose environment is of one: those that run, and those that were started since then."""
        query = (
            select(environment.c.image, func.count())
            .join_from(t, environment, t.c.environment == environment.c.uid)
            .where(environment.c.image.is_not(None), or_(t.c.created_at >= since, t.c.phase.in_(_LASTING)))
            .group_by(environment.c.image)
        )
        return Counter({row[0]: int(row[1]) for row in self._c.execute(query)})

    def on_nodes(self, now: float) -> list[ResourceRequest]:
        """Return the held requests that take the capacity of any node."""
        query = select(t).where(_holds(now), t.c.shares.is_not(None)).order_by(t.c.created_at)
        return self._list(REQUESTS, query)

    def node_use(self, now: float, *, but: Iterable[str] = ()) -> dict[str, Resources]:
        """Sum up what is taken of each node at `now`, by holders of all appliers except those in `but`."""
        used: dict[str, Resources] = {}
        for text, rows in self._c.execute(_NODE_USE, {"now": now, "but": list(but)}):
            for node, amount in codec.shares_of(text):
                used[node] = used.get(node, ZERO) + amount * rows
        return used

    def tried_releases(self, applier: str, tenant: str, now: float) -> Resources:
        """Sum up the anonymous releases that were tried and may still be confirmed."""
        total = ZERO
        query = select(t).where(
            t.c.kind == "release",
            t.c.phase == _TRIED,
            or_(t.c.expires_at.is_(None), t.c.expires_at > now),
            t.c.applier == applier,
            t.c.tenant == tenant,
        )
        for request in self._list(REQUESTS, query):
            total += request.amount
        return total

    def expired(self, now: float) -> list[ResourceRequest]:
        """Return the pending requests and the tries (of requests and of releases) whose time is over at `now`."""
        query = select(t).where(t.c.phase.in_(_PASSING), t.c.expires_at <= now)
        return self._list(REQUESTS, query)

    def put_off(self, by: float) -> int:
        """Move the expiry of pending requests and tries by `by` seconds; return their number.

        The clock was set by so much: the beginnings of what is held move too, so that its duration stays.
        """
        now = self._clock()
        before = t.c.since <= now - by if by > 0 else or_(t.c.since > now, t.c.since <= now - NOTICED_S)
        shifted = {"since": t.c.since + by, "counted": t.c.counted + by}
        self._c.execute(update(t).where(t.c.phase.in_(_HELD), before).values(shifted))
        passing = t.c.phase.in_(_PASSING) & t.c.expires_at.is_not(None)
        return int(self._c.execute(update(t).where(passing).values(expires_at=t.c.expires_at + by)).rowcount)

    def purge(self, before: float) -> int:
        """Remove rows that hold nothing and were made before; return how many. Held ones always stay."""
        return self._delete(t, t.c.phase.in_(_ENDED), t.c.created_at < before)
