"""Policies for idle notebook servers, and their countdowns."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.domain.workload.idle_servers import IdleServer, IdleServerPolicy
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import idle_server as s
from mlp_hub.store.tables import idle_server_policy as p


class IdlePolicies(KeyedRepo[IdleServerPolicy]):
    """Policies by tenant; a tenant without a row ends no idle servers."""

    __slots__ = ()
    rows = Rows(IdleServerPolicy, p)

    def all(self) -> list[IdleServerPolicy]:
        """Return those of all tenants."""
        return self._list(self.rows, select(p))


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
