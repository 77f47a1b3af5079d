"""Times of the last notices to admins of tenants about idle work."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.store.records import IdleTold
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import idle_told as t


class IdleTolds(KeyedRepo[IdleTold]):
    """Times of the last notices by tenant."""

    __slots__ = ()
    rows = Rows(IdleTold, t)

    def all(self) -> list[IdleTold]:
        """Return those of all tenants that ever had one."""
        return self._list(self.rows, select(t))
