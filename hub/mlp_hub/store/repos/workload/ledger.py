"""Rows of the ledger and the sums over them. The rules (what may move where) are in `quota.ledger`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    update,
)

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.workload.ledger import HELD, RequestPhase, ResourceRequest
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import environment
from mlp_hub.store.tables import resource_request as t

REQUESTS = Rows(ResourceRequest, t, embedded={"amount": ""})
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


@cache
def _held_by(*columns: str) -> Select[Any]:
    chosen = [t.c[name] == bindparam(name) for name in columns]
    return select(t).where(_holds(_NOW), *chosen).order_by(t.c.created_at, t.c.applier, t.c.id)


class Requests(Repo):
    """Resource requests of all appliers; in-use is always summed up again, never stored."""

    __slots__ = ()

    def get(self, applier: str, request_id: str) -> ResourceRequest | None:
        """Return the request of this key."""
        return self._one(REQUESTS, _GET, {"applier": applier, "id": request_id})

    def put(self, request: ResourceRequest) -> None:
        """Store a request, new or changed."""
        self._store(REQUESTS, request)

    def put_many(self, requests: Sequence[ResourceRequest]) -> None:
        """Store requests, new or changed, each once."""
        self._insert_all(t, [REQUESTS.row(r) for r in requests], ("applier", "id"), replaces=True)

    def release_many(self, applier: str, ids: Sequence[str]) -> None:
        """Mark those of these requests that are confirmed or being released as released, in one statement."""
        if ids:
            self._many(_RELEASE, [{"of": applier, "the_id": i} for i in ids])

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
        """Move the expiry of pending requests and tries by `by` seconds; return their number."""
        passing = t.c.phase.in_(_PASSING) & t.c.expires_at.is_not(None)
        return int(self._c.execute(update(t).where(passing).values(expires_at=t.c.expires_at + by)).rowcount)

    def purge(self, before: float) -> int:
        """Remove rows that hold nothing and were made before; return how many. Held ones always stay."""
        return self._delete(t, t.c.phase.in_(_ENDED), t.c.created_at < before)
