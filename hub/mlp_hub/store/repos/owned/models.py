"""Versions of models, each with its stored data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select, update

from mlp_hub.domain.stored.model import ModelPhase, ModelStage, ModelVersion
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.repos.base import OwnedRepo
from mlp_hub.store.repos.owned.stored import ITEMS
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import model as m
from mlp_hub.store.tables import stored as s

_LABEL = "model_"
_OWN = [c.label(f"{_LABEL}{c.name}") for c in m.columns if c.name != "uid"]


class Models(OwnedRepo[ModelVersion]):
    """Versions of all models; `Tx.stored` has the use of quota by each, and a version is stored after its stored item."""

    __slots__ = ()
    rows = Rows(
        ModelVersion,
        m,
        columns={"model": "name"},
        computed={"uid": "item.uid"},
        given=("item",),
        label=_LABEL,
    )
    found_in = select(*_OWN, s).join_from(m, s, m.c.uid == s.c.uid)
    owners = s

    def find(
        self, context: TenantContext, user: str, name: str, version: int | None = None
    ) -> ModelVersion | None:
        """Return a version of a model, the latest where none is said."""
        query = self._of_user(user, (m.c.name, name)).order_by(m.c.version.desc()).limit(1)
        return self._first(context, query if version is None else query.where(m.c.version == version))

    def next_version(self, user: str, name: str) -> int:
        """Return the number that the next version of a model has."""
        query = select(func.max(m.c.version)).join_from(m, s, m.c.uid == s.c.uid)
        return int(self._c.execute(query.where(s.c.user == user, m.c.name == name)).scalar() or 0) + 1

    def page(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        phase: ModelPhase | None = None,
        name: str | None = None,
        stage: ModelStage | None = None,
        before: str | None = None,
        limit: int,
    ) -> list[ModelVersion]:
        """Return a user's, the newest first, those older than `before`, a uid."""
        equal = ((s.c.tenant, tenant), (m.c.phase, phase), (m.c.name, name), (m.c.stage, stage))
        return self._newest(context, self._of_user(user, *equal), before, limit)

    def in_phases(self, phases: Sequence[ModelPhase]) -> list[str]:
        """Return the uids of all in these phases, the oldest first."""
        query = select(m.c.uid).where(m.c.phase.in_([p.value for p in phases])).order_by(m.c.uid)
        return [row.uid for row in self._c.execute(query)]

    def change_stage(self, user: str, name: str, old: ModelStage, new: ModelStage) -> None:
        """Move all versions of a model from a stage to another."""
        mine = select(s.c.uid).where(s.c.user == user)
        which = (m.c.name == name, m.c.stage == old.value, m.c.uid.in_(mine))
        self._c.execute(update(m).where(*which).values(stage=new.value))

    def _value(self, row: Any) -> ModelVersion:
        return self.rows.of(row, item=ITEMS.of(row))  # type: ignore[no-any-return]
