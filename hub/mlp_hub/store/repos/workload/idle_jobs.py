"""Policies for jobs that hold GPUs without use, and times of the last notices to admins of tenants."""

from __future__ import annotations

from sqlalchemy import select

from mlp_hub.domain.jobs.idle_gpus import IdleJobPolicy
from mlp_hub.store.records import IdleTold
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import idle_job_policy as p
from mlp_hub.store.tables import idle_told as t


class IdleJobPolicies(KeyedRepo[IdleJobPolicy]):
    """Policies by tenant; a tenant without a row ends no job."""

    __slots__ = ()
    rows = Rows(IdleJobPolicy, p)

    def all(self) -> list[IdleJobPolicy]:
        """Return those of all tenants."""
        return self._list(self.rows, select(p))


class IdleTolds(KeyedRepo[IdleTold]):
    """Times of the last notices by tenant."""

    __slots__ = ()
    rows = Rows(IdleTold, t)

    def all(self) -> list[IdleTold]:
        """Return those of all tenants that ever had one."""
        return self._list(self.rows, select(t))
