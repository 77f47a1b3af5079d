"""Datasets, each with its stored data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.repos.base import OwnedRepo
from mlp_hub.store.repos.owned.stored import ITEMS
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import dataset as d
from mlp_hub.store.tables import stored as s


class Datasets(OwnedRepo[Dataset]):
    """Table of datasets; `Tx.stored` has the use of quota by each, and a dataset is stored after its stored item."""

    __slots__ = ()
    rows = Rows(Dataset, d, computed={"uid": "item.uid"}, given=("item",))
    found_in = select(d.c.phase, d.c.progress, d.c.message, d.c.source, s).join_from(d, s, d.c.uid == s.c.uid)
    owners = s

    def find(self, context: TenantContext, user: str, name: str) -> Dataset | None:
        """Return the one of this name."""
        return self._first(context, self._of_user(user, (s.c.name, name)))

    def page(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        phase: DatasetPhase | None = None,
        after: str = "",
        limit: int,
    ) -> list[Dataset]:
        """Return a user's by name, those behind `after`."""
        query = self._of_user(user, (s.c.tenant, tenant), (d.c.phase, phase))
        return self._listed(context, query.where(s.c.name > after).order_by(s.c.name).limit(limit))

    def in_phases(self, context: TenantContext, phases: Sequence[DatasetPhase]) -> list[Dataset]:
        """Return all in these phases, the oldest first."""
        query = self.found_in.where(d.c.phase.in_([p.value for p in phases]))
        return self._listed(context, query.order_by(s.c.uid))

    def _value(self, row: Any) -> Dataset:
        return self.rows.of(row, item=ITEMS.of(row))  # type: ignore[no-any-return]
