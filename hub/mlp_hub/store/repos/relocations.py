"""Relocations of tenants' files, the last one of each tenant."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select

from mlp_hub.domain.tenants.relocation import UNDER_WAY, Relocation, RelocationPhase
from mlp_hub.domain.tenants.tenant import Isolation
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import relocation as r


class Relocations(Repo):
    """The relocations."""

    __slots__ = ()

    def get(self, tenant: str) -> Relocation | None:
        """Return the last one of a tenant."""
        row = self._c.execute(select(r).where(r.c.tenant == tenant)).first()
        return None if row is None else _relocation_of(row)

    def under_way(self, tenant: str) -> Relocation | None:
        """Return that of a tenant if it is not over."""
        found = self.get(tenant)
        return found if found is not None and found.under_way else None

    def all(self, tenant: str | None = None, *, under_way: bool = False) -> list[Relocation]:
        """Return all, or those that are not over, by tenant; or that of one tenant."""
        query = select(r).order_by(r.c.tenant)
        if tenant is not None:
            query = query.where(r.c.tenant == tenant)
        if under_way:
            query = query.where(r.c.phase.in_([phase.value for phase in sorted(UNDER_WAY)]))
        return [_relocation_of(row) for row in self._c.execute(query)]

    def put(self, relocation: Relocation) -> None:
        """Store one, in place of the one before."""
        values = {
            "tenant": relocation.tenant,
            "phase": relocation.phase.value,
            "old_grade": relocation.old.grade,
            "old_root": relocation.old.root,
            "new_grade": relocation.new.grade,
            "new_root": relocation.new.root,
            "asked_by": relocation.asked_by,
            "asked_at": relocation.asked_at,
            "total": relocation.total,
            "message": codec.message_text(relocation.message),
            "ended_at": relocation.ended_at,
        }
        self._c.execute(self._upsert(r, ("tenant",)), values)


def _relocation_of(row: Row[Any]) -> Relocation:
    return Relocation(
        row.tenant,
        RelocationPhase(row.phase),
        Isolation(row.old_grade, row.old_root),
        Isolation(row.new_grade, row.new_root),
        row.asked_by,
        row.asked_at,
        row.total,
        codec.message_of(row.message),
        row.ended_at,
    )
