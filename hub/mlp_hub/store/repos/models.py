"""Versions of models, each with its stored data."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Any

import msgspec
from sqlalchemy import Select, delete, func, select, update

from mlp_hub.domain.stored.model import ModelFormat, ModelPhase, ModelSource, ModelStage, ModelVersion
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, within
from mlp_hub.store.repos.stored import item_of
from mlp_hub.store.tables import model as m
from mlp_hub.store.tables import stored as s

_OWN = [c.label(f"model_{c.name}") for c in m.columns if c.name != "uid"]
_ALL = select(*_OWN, s).join_from(m, s, m.c.uid == s.c.uid)


class Models(Repo):
    """Versions of all models; `Tx.stored` has the use of quota by each."""

    __slots__ = ()

    def get(self, context: TenantContext, uid: str) -> ModelVersion | None:
        """Return one."""
        return self._first(context, _ALL.where(s.c.uid == uid))

    def find(
        self, context: TenantContext, user: str, name: str, version: int | None = None
    ) -> ModelVersion | None:
        """Return a version of a model, the latest where none is said."""
        query = _ALL.where(s.c.user == user, m.c.name == name).order_by(m.c.version.desc()).limit(1)
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
        query = within(_ALL, context, s.c.user, s.c.tenant).where(s.c.user == user)
        for column, value in ((s.c.tenant, tenant), (m.c.phase, phase), (m.c.name, name), (m.c.stage, stage)):
            if value is not None:
                query = query.where(column == str(value))
        if before is not None:
            query = query.where(s.c.uid < before)
        return [_model_of(row) for row in self._c.execute(query.order_by(s.c.uid.desc()).limit(limit))]

    def in_phases(self, phases: Sequence[ModelPhase]) -> list[str]:
        """Return the uids of all in these phases, the oldest first."""
        query = select(m.c.uid).where(m.c.phase.in_([p.value for p in phases])).order_by(m.c.uid)
        return [row.uid for row in self._c.execute(query)]

    def put(self, model: ModelVersion) -> None:
        """Store a version, new or changed; its stored item must exist."""
        self._c.execute(
            self._upsert(m, ("uid",)),
            {
                "uid": model.item.uid,
                "name": model.model,
                "version": model.version,
                "phase": model.phase.value,
                "stage": model.stage.value,
                "source": dumps(msgspec.to_builtins(model.source)),
                "lineage": model.lineage,
                "format": dumps(msgspec.to_builtins(model.format)),
                "files": model.files,
                "any_files": model.any_files,
                "message": codec.message_text(model.message),
            },
        )

    def change_stage(self, user: str, name: str, old: ModelStage, new: ModelStage) -> None:
        """Move all versions of a model from a stage to another."""
        mine = select(s.c.uid).where(s.c.user == user)
        which = (m.c.name == name, m.c.stage == old.value, m.c.uid.in_(mine))
        self._c.execute(update(m).where(*which).values(stage=new.value))

    def remove(self, uid: str) -> None:
        """Forget one."""
        self._c.execute(delete(m).where(m.c.uid == uid))

    def _first(self, context: TenantContext, query: Select[Any]) -> ModelVersion | None:
        row = self._c.execute(within(query, context, s.c.user, s.c.tenant)).first()
        return None if row is None else _model_of(row)


def _model_of(row: Any) -> ModelVersion:
    return ModelVersion(
        item=item_of(row),
        model=row.model_name,
        version=row.model_version,
        phase=ModelPhase(row.model_phase),
        source=msgspec.json.decode(row.model_source, type=ModelSource),
        lineage=row.model_lineage,
        stage=ModelStage(row.model_stage),
        format=msgspec.json.decode(row.model_format, type=ModelFormat),
        files=row.model_files,
        any_files=bool(row.model_any_files),
        message=codec.message_of(row.model_message),
    )
