"""Requests of tenants for more quota, and of people for places in tenants."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import delete, func, select, update

from mlp_hub.domain.tenants.requests import AskedPlace, AskedQuota, AskPhase
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import join_request as j
from mlp_hub.store.tables import quota_request as q

_amounts = msgspec.json.Decoder(tuple[tuple[str, int], ...])


class TeamRequests(Repo):
    """All of both kinds."""

    __slots__ = ()

    def insert(self, asked: AskedQuota) -> None:
        """Store a new request for quota."""
        self._c.execute(q.insert().values(**_row(asked)))

    def get(self, tenant: str, uid: str) -> AskedQuota | None:
        """Return a tenant's request for quota."""
        row = self._c.execute(select(q).where(q.c.tenant == tenant, q.c.uid == uid)).first()
        return None if row is None else _asked(row)

    def of_tenant(self, tenant: str, most: int) -> list[AskedQuota]:
        """Return the newest of a tenant, the newest first."""
        query = select(q).where(q.c.tenant == tenant).order_by(q.c.uid.desc()).limit(most)
        return [_asked(row) for row in self._c.execute(query)]

    def open_ones(self, most: int) -> list[AskedQuota]:
        """Return those of all tenants that nobody has decided on, the oldest first."""
        query = select(q).where(q.c.phase == AskPhase.OPEN.value).order_by(q.c.uid).limit(most)
        return [_asked(row) for row in self._c.execute(query)]

    def update(self, asked: AskedQuota) -> None:
        """Store what was decided."""
        self._c.execute(update(q).where(q.c.uid == asked.uid).values(**_row(asked)))

    def trim(self, tenant: str, keep: int) -> None:
        """Forget all but the newest of a tenant."""
        last = self._c.scalar(
            select(q.c.uid).where(q.c.tenant == tenant).order_by(q.c.uid.desc()).offset(keep).limit(1)
        )
        if last is not None:
            self._c.execute(delete(q).where(q.c.tenant == tenant, q.c.uid <= last))

    def ask_place(self, asked: AskedPlace) -> bool:
        """Store a request for a place; False where that person has asked there already."""
        row = {"tenant": asked.tenant, "user": asked.user, "asked_at": asked.asked_at, "note": asked.note}
        return self._c.execute(self._insert_new(j, ("tenant", "user")), row).first() is not None

    def place(self, tenant: str, user: str) -> AskedPlace | None:
        """Return a person's request for a place in a tenant."""
        row = self._c.execute(select(j).where(j.c.tenant == tenant, j.c.user == user)).first()
        return None if row is None else _place(row)

    def places_in(self, tenant: str, most: int) -> list[AskedPlace]:
        """Return who asks for a place in a tenant, who has waited longest first."""
        query = select(j).where(j.c.tenant == tenant).order_by(j.c.asked_at, j.c.user).limit(most)
        return [_place(row) for row in self._c.execute(query)]

    def places_of(self, user: str) -> list[AskedPlace]:
        """Return where a person asks for a place."""
        query = select(j).where(j.c.user == user).order_by(j.c.tenant)
        return [_place(row) for row in self._c.execute(query)]

    def count_in(self, tenant: str) -> int:
        """Count who asks for a place in a tenant."""
        return int(self._c.scalar(select(func.count()).select_from(j).where(j.c.tenant == tenant)) or 0)

    def forget_place(self, tenant: str, user: str) -> bool:
        """Forget a request for a place; False where there is none."""
        return bool(self._c.execute(delete(j).where(j.c.tenant == tenant, j.c.user == user)).rowcount)

    def forget_person(self, user: str) -> None:
        """Forget all requests of a person for places."""
        self._c.execute(delete(j).where(j.c.user == user))


def _row(asked: AskedQuota) -> dict[str, Any]:
    return {
        "uid": asked.uid,
        "tenant": asked.tenant,
        "user": asked.user,
        "asked_at": asked.asked_at,
        "amounts": codec.dumps(asked.amounts),
        "reason": asked.reason,
        "phase": asked.phase.value,
        "decided_by": asked.decided_by,
        "decided_at": asked.decided_at,
        "word": asked.word,
    }


def _asked(row: Any) -> AskedQuota:
    return AskedQuota(
        row.uid,
        row.tenant,
        row.user,
        row.asked_at,
        _amounts.decode(row.amounts),
        row.reason,
        AskPhase(row.phase),
        row.decided_by,
        row.decided_at,
        row.word,
    )


def _place(row: Any) -> AskedPlace:
    return AskedPlace(row.tenant, row.user, row.asked_at, row.note)
