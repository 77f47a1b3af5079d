"""Relocations of tenants' files, the last one of each tenant."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.domain.tenants.relocation import UNDER_WAY, Relocation
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import relocation as r


class Relocations(KeyedRepo[Relocation]):
    """The last relocation of each tenant, by its name; a new one replaces the one before."""

    __slots__ = ()
    rows = Rows(Relocation, r, embedded={"old": "old_", "new": "new_"})

    def under_way(self, tenant: str) -> Relocation | None:
        """Return that of a tenant if it is not over."""
        found = self.get(tenant)
        return found if found is not None and found.under_way else None

    def all(self, tenant: str | None = None, *, under_way: bool = False) -> list[Relocation]:
        """Return all, or those that are not over, by tenant; or that of one tenant."""
        query = select(r).order_by(r.c.tenant)
        if tenant is not None:
            query = query.where(r.c.tenant == tenant)
        if under_way:
            query = query.where(r.c.phase.in_([phase.value for phase in sorted(UNDER_WAY)]))
        return self._list(self.rows, query)
