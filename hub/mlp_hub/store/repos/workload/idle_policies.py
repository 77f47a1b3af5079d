"""Policies of tenants for work that is not used, a table for each kind of work."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from mlp_hub.domain.workload.idle_policy import IdleKind, IdleWorkPolicy
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import idle_job_policy, idle_server_policy


class IdleWorkPolicies(KeyedRepo[IdleWorkPolicy]):
    """Policies by tenant; a tenant without a row ends nothing."""

    __slots__ = ()

    def all(self) -> dict[str, IdleWorkPolicy]:
        """Return those of all tenants, by tenant."""
        return {one.tenant: one for one in self._list(self.rows, select(self.rows.table))}


class IdleServerPolicies(IdleWorkPolicies):
    """Policies for notebook servers."""

    __slots__ = ()
    rows = Rows(IdleWorkPolicy, idle_server_policy)


class IdleJobPolicies(IdleWorkPolicies):
    """Policies for jobs that hold GPUs."""

    __slots__ = ()
    rows = Rows(IdleWorkPolicy, idle_job_policy)


IDLE_POLICIES: Mapping[IdleKind, type[IdleWorkPolicies]] = {
    IdleKind.SERVER: IdleServerPolicies,
    IdleKind.JOB: IdleJobPolicies,
}
"""Repositories by kind of work."""
