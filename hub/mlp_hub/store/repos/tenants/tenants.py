"""Tenants, members and users."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, Select, bindparam, exists, func, or_, select, text, update

from mlp_hub.domain.errors import not_found
from mlp_hub.domain.tenants.tenant import (
    DEDICATED,
    NUMBERS_GIVEN,
    Lowering,
    Member,
    Tenant,
    User,
)
from mlp_hub.store import codec
from mlp_hub.store.repos.base import KeyedRepo, Repo, chunks
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import booking as b
from mlp_hub.store.tables import member as m
from mlp_hub.store.tables import setting
from mlp_hub.store.tables import tenant as t
from mlp_hub.store.tables import user as u

_lowering = codec.with_message(Lowering)
TENANTS = Rows(
    Tenant,
    t,
    beside=("created_at",),
    embedded={"quota": ""},
    packed="settings",
    converted={"lowered": _lowering, "description": codec.PRINTABLE},
)
_configured = TENANTS.without("idle_since", "lowered")
_users = Rows(User, u, beside=("created_at",))
_GET = select(t).where(t.c.name == bindparam("name"))
_ALL = select(t).order_by(t.c.name)
_DEDICATED = _ALL.where(t.c.isolation == DEDICATED)
_MADE: dict[tuple[Any, ...], Tenant] = {}
_MOST_MADE = 8192
_GET_USER = select(u).where(u.c.name == bindparam("name"))
_KNOWN_USERS = select(u.c.name).where(u.c.name.in_(bindparam("names", expanding=True)))
_child = t.alias("child")
_below = select(t.c.name).where(t.c.name == bindparam("top")).cte("below", recursive=True)
_below = _below.union(
    select(_child.c.name).where(_child.c.parent == _below.c.name)
)  # which ends in a circle too
_WITH_ALL_BELOW = select(t.c.name, t.c.parent).where(t.c.name.in_(select(_below.c.name))).order_by(t.c.name)
_STANDING = select(t, exists().where(_child.c.parent == t.c.name).label("is_parent")).where(
    t.c.name == bindparam("name")
)
_TOPS = select(t).where(t.c.cohort == bindparam("cohort"), t.c.parent.is_(None)).order_by(t.c.name)
_BELOW = select(t).where(t.c.parent.in_(bindparam("parents", expanding=True))).order_by(t.c.name)
_KEPT_FREE = select(
    or_(
        exists().where(t.c.reserved.is_not(None)),
        exists().where(b.c.ends_at > bindparam("now"), b.c.starts_at <= bindparam("now")),
    )
)
_REVISION = "tenants.revision"
_GET_REVISION = select(setting.c.value).where(setting.c.key == _REVISION)

_GIVEN = select(setting.c.value).where(setting.c.key == NUMBERS_GIVEN)


def _tenant_of(row: Row[Any]) -> Tenant:
    """Return the tenant of a row; results are kept for equal rows.

    After a change of one tenant all are read again.
    """
    key = tuple(row)
    known = _MADE.get(key)
    if known is None:
        if len(_MADE) >= _MOST_MADE:
            _MADE.clear()
        known = _MADE[key] = TENANTS.of(row)
    return known


def _missing(rows: int) -> Any:
    """Return the query for the pairs of (user, tenant) that are not stored; each costs one index look-up."""
    given = ", ".join(f"(:f0_{i}, :f1_{i})" for i in range(rows))
    return text(
        f'SELECT g.column1 AS "user", g.column2 AS tenant FROM (VALUES {given}) AS g WHERE NOT EXISTS'  # noqa: S608 - numbers alone
        ' (SELECT 1 FROM member WHERE member.tenant = g.column2 AND member."user" = g.column1)'
    )


class Tenants(Repo):
    """The owners of quota."""

    __slots__ = ()

    def revision(self) -> str | None:
        """Return what names the present state of all tenants: another one after each change, and never one twice.

        It is a part of the transaction, so that what was made of the tenants can be kept for as long as it is the same:
        a change that is rolled back takes its revision with it.
        """
        return self._c.scalar(_GET_REVISION)

    def _changed(self) -> None:
        values = {"key": _REVISION, "value": f'"{secrets.token_hex(8)}"'}
        self._c.execute(self._upsert(setting, ("key",)), values)

    def get(self, name: str) -> Tenant | None:
        """Return the tenant of this name."""
        return self._one(TENANTS, _GET, {"name": name})

    def all(self) -> list[Tenant]:
        """Return all tenants by name."""
        return [_tenant_of(row) for row in self._c.execute(_ALL)]

    def dedicated(self) -> list[Tenant]:
        """Return the tenants whose files should have their own root, by name."""
        return self._found(_DEDICATED)

    def made_at(self, name: str) -> float:
        """Return when a tenant was made. Raises `NotFound`."""
        found = self._c.scalar(select(t.c.created_at).where(t.c.name == name))
        if found is None:
            raise not_found("tenant", name)
        return float(found)

    def names(self) -> set[str]:
        """Return the names of all tenants."""
        return set(self._c.scalars(select(t.c.name)))

    def children(self, name: str) -> list[str]:
        """Return the names of the tenants directly below this one."""
        return [*self._c.scalars(select(t.c.name).where(t.c.parent == name).order_by(t.c.name))]

    def parents_below(self, name: str) -> dict[str, str | None]:
        """Return all tenants below this one, however deep, with their parents."""
        found = self._c.execute(_WITH_ALL_BELOW, {"top": name})
        return {row.name: row.parent for row in found if row.name != name}

    def is_cohort(self, name: str) -> bool:
        """Whether any tenant is in a cohort of this name."""
        return bool(self._c.scalar(select(exists().where(t.c.cohort == name))))

    def any_kept_free(self, now: float) -> bool:
        """Whether any tenant reserves capacity, or has a booked window that is open at `now`."""
        return bool(self._c.scalar(_KEPT_FREE, {"now": now}))

    def with_parenthood(self, name: str) -> tuple[Tenant, bool] | None:
        """Return the tenant of this name, and whether it is the parent of others."""
        row = self._c.execute(_STANDING, {"name": name}).first()
        return None if row is None else (TENANTS.of(row), bool(row.is_parent))

    def tree(self, tenant: Tenant) -> list[Tenant]:
        """Return all tenants that share with this one: those below its topmost parent, or below that one's cohort.

        The cost follows their number and the depth of the tree, not the number of all tenants. ValueError for
        parents in a circle or an unknown one, which the database holds only if somebody wrote it by hand.
        """
        top = tenant
        seen = {top.name}
        while top.parent is not None:
            above = self.get(top.parent)
            if above is None or above.name in seen:
                raise ValueError(f"the parents of {tenant.name} do not end: {top.name} is below {top.parent}")
            seen.add(above.name)
            top = above
        level = [top] if top.cohort is None else self._found(_TOPS, cohort=top.cohort)
        found = list(level)
        while level:
            level = self._found(_BELOW, parents=[each.name for each in level])
            found += level
        return found

    def _found(self, query: Select[Any], **asked: str | list[str]) -> list[Tenant]:
        return self._list(TENANTS, query, asked)

    def insert(self, tenant: Tenant, now: float) -> bool:
        """Store a new tenant; False when there is one of that name."""
        values = _configured(tenant) | {"created_at": now}
        insert = self._insert(t).values(values).on_conflict_do_nothing(index_elements=["name"])
        new = self._c.execute(insert.returning(t.c.name)).first() is not None
        if new:
            self._changed()
        return new

    def set_idle(self, name: str, since: float | None, lowered: Lowering | None) -> None:
        """Store since when a tenant is idle, and what of its guarantee holds therefore."""
        values = {"idle_since": since, "lowered": None if lowered is None else _lowering[0](lowered)}
        self._changed()
        self._c.execute(update(t).where(t.c.name == name).values(values))

    def update(self, tenant: Tenant) -> bool:
        """Store how a tenant is configured; False when there is none of that name."""
        values = _configured(tenant)
        self._changed()
        return bool(self._c.execute(update(t).where(t.c.name == tenant.name).values(values)).rowcount)

    def remove(self, name: str) -> bool:
        """Remove a tenant with its members; False when there is none of that name."""
        self._changed()
        return bool(self._delete(t, t.c.name == name))


class Members(KeyedRepo[Member]):
    """Places of users by tenant and user; a user in no tenant belongs to `default`, which is not stored."""

    __slots__ = ()
    rows = Rows(Member, m)

    def missing(self, places: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return those of these (user, tenant) where the user has no place in the tenant."""
        return {(row.user, row.tenant) for rows in self._in_lots(_missing, places) for row in rows}

    def of_tenant(self, tenant: str) -> list[Member]:
        """Return the members of a tenant by name."""
        query = select(m).where(m.c.tenant == tenant).order_by(m.c.user)
        return self._list(self.rows, query)

    def of_user(self, user: str) -> list[Member]:
        """Return the places of a user, by tenant."""
        query = select(m).where(m.c.user == user).order_by(m.c.tenant)
        return self._list(self.rows, query)

    def of_users(self, users: Collection[str]) -> list[Member]:
        """Return the places of these users, by tenant."""
        query = select(m).where(m.c.user.in_(bindparam("users", expanding=True))).order_by(m.c.tenant)
        rows = [row for part in chunks(users) for row in self._c.execute(query, {"users": part})]
        return [self.rows.of(row) for row in rows]

    def all(self) -> list[Member]:
        """Return all places, by tenant and user."""
        query = select(m).order_by(m.c.tenant, m.c.user)
        return self._list(self.rows, query)

    def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Return the number of stored members of each tenant that has any, or of this one."""
        query = select(m.c.tenant, func.count().label("n")).group_by(m.c.tenant)
        if tenant is not None:
            query = query.where(m.c.tenant == tenant)
        return {row.tenant: row.n for row in self._c.execute(query)}


class Users(Repo):
    """The people the service has met. A row stays for ever, so that no number (uid) is given twice."""

    __slots__ = ()

    def get(self, name: str) -> User | None:
        """Return the user of this name."""
        return self._one(_users, _GET_USER, {"name": name})

    def of_names(self, names: Collection[str]) -> list[User]:
        """Return those of these users that are known."""
        query = select(u).where(u.c.name.in_(bindparam("names", expanding=True)))
        rows = [row for part in chunks(names) for row in self._c.execute(query, {"names": part})]
        return [_users.of(row) for row in rows]

    def count_without_tenant(self) -> int:
        """Return how many users are in no tenant."""
        homeless = select(func.count()).where(~exists().where(m.c.user == u.c.name)).select_from(u)
        return int(self._c.scalar(homeless) or 0)

    def without_tenant(self) -> list[str]:
        """Return the names of those who are in no tenant, in order."""
        return [
            *self._c.scalars(select(u.c.name).where(~exists().where(m.c.user == u.c.name)).order_by(u.c.name))
        ]

    def ensure(self, name: str, now: float) -> User:
        """Return the user, made with the next number if new."""
        known = self.get(name)
        if known is not None:
            return known
        given = self._c.scalar(_GIVEN)
        number = max(int(self._c.scalar(select(func.max(u.c.number))) or 0), int(given or 0)) + 1
        new = User(name, number)
        self._insert_row(_users, new, created_at=now)
        return new

    def ensure_all(self, names: Collection[str], now: float) -> None:
        """Make users of those of these names that are new."""
        known: set[str] = set()
        for part in chunks(names):
            known.update(self._c.scalars(_KNOWN_USERS, {"names": part}))
        for name in names:
            if name not in known:
                self.ensure(name, now)

    def set_default_tenant(self, name: str, tenant: str) -> None:
        """Store which tenant the user's work belongs to when none is named."""
        self._c.execute(update(u).where(u.c.name == name).values(default_tenant=tenant))

    def set_language(self, name: str, language: str) -> None:
        """Store the language that the user chose."""
        self._c.execute(update(u).where(u.c.name == name).values(language=language))
