"""Secrets of tenants and users, sealed."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.domain.tenants.secret import SealedSecret
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import secret as t


class Secrets(KeyedRepo[SealedSecret]):
    """The secrets by tenant, user and name; exactly one of tenant and user names whose each is."""

    __slots__ = ()
    rows = Rows(SealedSecret, t)

    def secrets_of(self, tenant: str, user: str) -> list[SealedSecret]:
        """Return all of a tenant or a user, by name."""
        query = select(t).where(t.c.tenant == tenant, t.c.user == user).order_by(t.c.name)
        return self._list(self.rows, query)

    def remove_all(self, tenant: str, user: str) -> None:
        """Forget all of a tenant or a user."""
        self._delete(t, t.c.tenant == tenant, t.c.user == user)
