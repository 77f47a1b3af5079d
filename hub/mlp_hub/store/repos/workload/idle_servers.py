"""Countdowns of idle notebook servers."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.domain.workload.idle_servers import IdleServer
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import idle_server as s


class IdleCountdowns(KeyedRepo[IdleServer]):
    """Countdowns by user and server."""

    __slots__ = ()
    rows = Rows(IdleServer, s)

    def all(self) -> list[IdleServer]:
        """Return all of them: there are none of teams without a policy."""
        return self._list(self.rows, select(s))

    def remove_person(self, user: str) -> None:
        """Forget all servers of a person."""
        self._delete(s, s.c.user == user)
