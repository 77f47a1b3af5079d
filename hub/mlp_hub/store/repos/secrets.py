"""Secrets of tenants and users, sealed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, select

from mlp_hub.domain.tenants.secret import SealedSecret
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import secret as t


class Secrets(Repo):
    """The secrets; exactly one of tenant and user names whose each is."""

    __slots__ = ()

    def get(self, tenant: str, user: str, name: str) -> SealedSecret | None:
        """Return one."""
        row = self._c.execute(
            select(t).where(t.c.tenant == tenant, t.c.user == user, t.c.name == name)
        ).first()
        return None if row is None else _of(row)

    def secrets_of(self, tenant: str, user: str) -> list[SealedSecret]:
        """Return all of a tenant or a user, by name."""
        query = select(t).where(t.c.tenant == tenant, t.c.user == user).order_by(t.c.name)
        return [_of(row) for row in self._c.execute(query)]

    def put(self, secret: SealedSecret) -> None:
        """Store one, new or changed."""
        values = {
            "tenant": secret.tenant,
            "user": secret.user,
            "name": secret.name,
            "keys": codec.dumps(secret.keys),
            "sealed": secret.sealed,
            "changed_at": secret.changed_at,
            "changed_by": secret.changed_by,
        }
        self._c.execute(self._upsert(t, ("tenant", "user", "name")), values)

    def remove(self, tenant: str, user: str, name: str) -> bool:
        """Forget one; return whether there was one."""
        gone = self._c.execute(delete(t).where(t.c.tenant == tenant, t.c.user == user, t.c.name == name))
        return bool(gone.rowcount)

    def remove_all(self, tenant: str, user: str) -> None:
        """Forget all of a tenant or a user."""
        self._c.execute(delete(t).where(t.c.tenant == tenant, t.c.user == user))


def _of(row: Row[Any]) -> SealedSecret:
    keys = tuple(codec.loads(row.keys))
    return SealedSecret(row.tenant, row.user, row.name, keys, row.sealed, row.changed_at, row.changed_by)
