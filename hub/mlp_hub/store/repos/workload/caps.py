"""Caps of members of tenants."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from mlp_hub.domain.workload.caps import Cap, CapOfMember
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import member_cap as t


class Caps(KeyedRepo[CapOfMember]):
    """The caps by tenant and user; most tenants have none."""

    __slots__ = ()
    rows = Rows(CapOfMember, t, embedded={"cap": ""})

    def all(self) -> list[CapOfMember]:
        """Return those of all tenants."""
        return self._list(self.rows, select(t))

    def of_tenant(self, tenant: str) -> list[CapOfMember]:
        """Return those of a tenant, the one of everybody first, then by name."""
        return self._list(self.rows, select(t).where(t.c.tenant == tenant).order_by(t.c.user))

    def put(self, value: CapOfMember, **beside: Any) -> None:
        """Store a cap instead of the previous one; one without limits is only removed."""
        if value.cap == Cap():
            self.remove(value.tenant, value.user)
        else:
            super().put(value, **beside)
