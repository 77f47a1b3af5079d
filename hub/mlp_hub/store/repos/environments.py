"""Environments of tenants; the routes check access: all members of the tenant have it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, func, select

from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase, fold
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import environment as t


class Environments(Repo):
    """Environments of all tenants; `Tx.stored` has the use of quota by their files."""

    __slots__ = ()

    def get(self, uid: str) -> Environment | None:
        """Return one."""
        return next(iter(self._all(t.c.uid == uid)), None)

    def find(self, tenant: str, name: str) -> Environment | None:
        """Return a tenant's of this name, whatever its case."""
        return next(iter(self._all(t.c.tenant == tenant, t.c.folded == fold(name))), None)

    def of_tenant(self, tenant: str) -> list[Environment]:
        """Return all of a tenant, the oldest first."""
        return self._all(t.c.tenant == tenant)

    def ready(self, tenant: str, *, images: bool) -> list[tuple[str, str, str | None]]:
        """Return uid, name and image of those of a tenant that are ready, of images or of packages, by name; a lock is long, and none is read."""
        made_of = t.c.image.is_not(None) if images else t.c.image.is_(None)
        query = select(t.c.uid, t.c.name, t.c.image).where(
            t.c.tenant == tenant, t.c.phase == EnvironmentPhase.READY.value, made_of
        )
        return [(row.uid, row.name, row.image) for row in self._c.execute(query.order_by(t.c.folded))]

    def count(self, tenant: str) -> int:
        """Count those of a tenant."""
        return int(self._c.scalar(select(func.count()).select_from(t).where(t.c.tenant == tenant)) or 0)

    def of_files(self, files: str) -> list[Environment]:
        """Return all environments that have, or will have, the same files, the oldest first."""
        return self._all(t.c.files == files)

    def in_phases(self, phases: Collection[EnvironmentPhase]) -> list[Environment]:
        """Return all in these phases, the oldest first."""
        return self._all(t.c.phase.in_([phase.value for phase in phases]))

    def put(self, environment: Environment) -> None:
        """Store one, new or changed."""
        self._c.execute(
            self._upsert(t, ("uid",)),
            {
                "uid": environment.uid,
                "tenant": environment.tenant,
                "name": environment.name,
                "folded": environment.folded,
                "user": environment.user,
                "phase": environment.phase.value,
                "requirements": environment.requirements,
                "lock": environment.lock,
                "files": environment.files,
                "log": environment.log,
                "message": codec.message_text(environment.message),
                "made_at": environment.made_at,
                "image": environment.image,
            },
        )

    def remove(self, uid: str) -> None:
        """Forget one."""
        self._c.execute(delete(t).where(t.c.uid == uid))

    def _all(self, *conditions: ColumnElement[bool]) -> list[Environment]:
        return [_of(row) for row in self._c.execute(select(t).where(*conditions).order_by(t.c.uid))]


def _of(row: Row[Any]) -> Environment:
    return Environment(
        uid=row.uid,
        tenant=row.tenant,
        name=row.name,
        user=row.user,
        phase=EnvironmentPhase(row.phase),
        requirements=row.requirements,
        made_at=row.made_at,
        lock=row.lock,
        files=row.files,
        log=row.log,
        message=codec.message_of(row.message),
        image=row.image,
    )
