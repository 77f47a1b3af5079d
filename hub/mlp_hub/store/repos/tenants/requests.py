"""Requests of tenants for more quota, and of people for places in tenants."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from mlp_hub.domain.tenants.requests import AskedPlace, AskedQuota, AskPhase
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import join_request as j
from mlp_hub.store.tables import quota_request as q

_quotas = Rows(AskedQuota, q)
_places = Rows(AskedPlace, j)


class TeamRequests(Repo):
    """All of both kinds."""

    __slots__ = ()

    def insert(self, asked: AskedQuota) -> None:
        """Store a new request for quota."""
        self._insert_row(_quotas, asked)

    def get(self, tenant: str, uid: str) -> AskedQuota | None:
        """Return a tenant's request for quota."""
        return self._one(_quotas, select(q).where(q.c.tenant == tenant, q.c.uid == uid))

    def of_tenant(self, tenant: str, most: int) -> list[AskedQuota]:
        """Return the newest of a tenant, the newest first."""
        query = select(q).where(q.c.tenant == tenant).order_by(q.c.uid.desc()).limit(most)
        return self._list(_quotas, query)

    def open_ones(self, most: int) -> list[AskedQuota]:
        """Return those of all tenants that nobody has decided on, the oldest first."""
        query = select(q).where(q.c.phase == AskPhase.OPEN.value).order_by(q.c.uid).limit(most)
        return self._list(_quotas, query)

    def update(self, asked: AskedQuota) -> None:
        """Store what was decided."""
        self._c.execute(update(q).where(q.c.uid == asked.uid).values(**_quotas.row(asked)))

    def trim(self, tenant: str, keep: int) -> None:
        """Forget all but the newest of a tenant."""
        last = self._c.scalar(
            select(q.c.uid).where(q.c.tenant == tenant).order_by(q.c.uid.desc()).offset(keep).limit(1)
        )
        if last is not None:
            self._c.execute(delete(q).where(q.c.tenant == tenant, q.c.uid <= last))

    def ask_place(self, asked: AskedPlace) -> bool:
        """Store a request for a place; False where that person has asked there already."""
        return self._insert_if_new(_places, asked)

    def place(self, tenant: str, user: str) -> AskedPlace | None:
        """Return a person's request for a place in a tenant."""
        return self._one(_places, select(j).where(j.c.tenant == tenant, j.c.user == user))

    def places_in(self, tenant: str, most: int) -> list[AskedPlace]:
        """Return who asks for a place in a tenant, who has waited longest first."""
        query = select(j).where(j.c.tenant == tenant).order_by(j.c.asked_at, j.c.user).limit(most)
        return self._list(_places, query)

    def places_of(self, user: str) -> list[AskedPlace]:
        """Return where a person asks for a place."""
        return self._list(_places, select(j).where(j.c.user == user).order_by(j.c.tenant))

    def count_in(self, tenant: str) -> int:
        """Count who asks for a place in a tenant."""
        return self._count(j, j.c.tenant == tenant)

    def forget_place(self, tenant: str, user: str) -> bool:
        """Forget a request for a place; False where there is none."""
        return bool(self._delete(j, j.c.tenant == tenant, j.c.user == user))

    def forget_person(self, user: str) -> None:
        """Forget all requests of a person for places."""
        self._delete(j, j.c.user == user)
