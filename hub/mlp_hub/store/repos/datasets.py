"""Datasets, each with its stored data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, Select, delete, select

from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase, ObjectSource
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, within
from mlp_hub.store.repos.stored import item_of
from mlp_hub.store.tables import dataset as d
from mlp_hub.store.tables import stored as s

_ALL = select(d.c.phase, d.c.progress, d.c.message, d.c.source, s).join_from(d, s, d.c.uid == s.c.uid)


class Datasets(Repo):
    """Table of datasets; `Tx.stored` has the use of quota by each."""

    __slots__ = ()

    def get(self, context: TenantContext, uid: str) -> Dataset | None:
        """Return one."""
        return self._first(context, _ALL.where(s.c.uid == uid))

    def find(self, context: TenantContext, user: str, name: str) -> Dataset | None:
        """Return the one of this name."""
        return self._first(context, _ALL.where(s.c.user == user, s.c.name == name))

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
        query = within(_ALL, context, s.c.user, s.c.tenant)
        query = query.where(s.c.user == user, s.c.name > after)
        if tenant is not None:
            query = query.where(s.c.tenant == tenant)
        if phase is not None:
            query = query.where(d.c.phase == phase.value)
        return [_dataset_of(row) for row in self._c.execute(query.order_by(s.c.name).limit(limit))]

    def in_phases(self, context: TenantContext, phases: Sequence[DatasetPhase]) -> list[Dataset]:
        """Return all in these phases, the oldest first."""
        query = within(_ALL, context, s.c.user, s.c.tenant)
        query = query.where(d.c.phase.in_([p.value for p in phases])).order_by(s.c.uid)
        return [_dataset_of(row) for row in self._c.execute(query)]

    def put(self, dataset: Dataset) -> None:
        """Store a dataset, new or changed; its stored item must exist."""
        values: dict[str, Any] = {"uid": dataset.item.uid, "phase": dataset.phase.value}
        values |= {"progress": dataset.progress, "message": codec.message_text(dataset.message)}
        values["source"] = None if dataset.source is None else codec.dumps(asdict(dataset.source))
        self._c.execute(self._upsert(d, ("uid",)), values)

    def remove(self, uid: str) -> None:
        """Forget one."""
        self._c.execute(delete(d).where(d.c.uid == uid))

    def _first(self, context: TenantContext, query: Select[Any]) -> Dataset | None:
        row = self._c.execute(within(query, context, s.c.user, s.c.tenant)).first()
        return None if row is None else _dataset_of(row)


def _dataset_of(row: Row[Any]) -> Dataset:
    phase = DatasetPhase(row.phase)
    source = None if row.source is None else ObjectSource(**codec.load_object(row.source))
    return Dataset(item_of(row), phase, row.progress, codec.message_of(row.message), source)
