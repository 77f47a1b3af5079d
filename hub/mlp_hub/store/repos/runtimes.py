"""Runtimes that tenants registered."""

from __future__ import annotations

from sqlalchemy import delete, func, select, update

from mlp_hub.store import codec
from mlp_hub.store.records import StoredRuntime
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import runtime as t


class Runtimes(Repo):
    """The tenants' runtimes."""

    __slots__ = ()

    def all(self) -> list[StoredRuntime]:
        """Return those of all tenants."""
        return [codec.runtime_of(row) for row in self._c.execute(select(t).order_by(t.c.tenant, t.c.name))]

    def of_tenant(self, tenant: str) -> list[StoredRuntime]:
        """Return those of one tenant by name."""
        found = select(t).where(t.c.tenant == tenant).order_by(t.c.name)
        return [codec.runtime_of(row) for row in self._c.execute(found)]

    def get(self, tenant: str, name: str) -> StoredRuntime | None:
        """Return one; None when there is none of that name."""
        row = self._c.execute(select(t).where(t.c.tenant == tenant, t.c.name == name)).first()
        return None if row is None else codec.runtime_of(row)

    def count(self, tenant: str) -> int:
        """Count those of a tenant."""
        return int(self._c.scalar(select(func.count()).where(t.c.tenant == tenant)) or 0)

    def put(self, stored: StoredRuntime) -> None:
        """Store one, in place of the one of its name."""
        row = codec.runtime_row(stored)
        if self._c.execute(self._insert_new(t, ("tenant", "name")), row).first() is None:
            self._c.execute(
                update(t).where(t.c.tenant == row["tenant"], t.c.name == row["name"]).values(**row)
            )

    def remove(self, tenant: str, name: str) -> None:
        """Remove one."""
        self._c.execute(delete(t).where(t.c.tenant == tenant, t.c.name == name))
