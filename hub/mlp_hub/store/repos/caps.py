"""Caps of members of tenants."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, select

from mlp_hub.domain.workload.caps import Cap, CapOfMember
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import member_cap as t


class Caps(Repo):
    """All of them; most tenants have none."""

    __slots__ = ()

    def all(self) -> list[CapOfMember]:
        """Return those of all tenants."""
        return [_cap(row) for row in self._c.execute(select(t))]

    def of_tenant(self, tenant: str) -> list[CapOfMember]:
        """Return those of a tenant, the one of everybody first, then by name."""
        return [
            _cap(row) for row in self._c.execute(select(t).where(t.c.tenant == tenant).order_by(t.c.user))
        ]

    def put(self, of: CapOfMember) -> None:
        """Store a cap instead of the previous one; one without limits is only removed."""
        self.remove(of.tenant, of.user)
        if of.cap != Cap():
            cap = of.cap
            self._c.execute(
                t.insert().values(tenant=of.tenant, user=of.user, cpu=cap.cpu, gpu=cap.gpu, jobs=cap.jobs)
            )

    def remove(self, tenant: str, user: str) -> None:
        """Forget one."""
        self._c.execute(delete(t).where(t.c.tenant == tenant, t.c.user == user))


def _cap(row: Any) -> CapOfMember:
    return CapOfMember(row.tenant, row.user, Cap(row.cpu, row.gpu, row.jobs))
