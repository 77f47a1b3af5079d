"""What ranks of a tenant's jobs run in: runtimes that it registered, and its environments.

The routes check access: all members of the tenant have it.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, select

from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase, fold
from mlp_hub.store.records import StoredRuntime
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import environment as t
from mlp_hub.store.tables import runtime as r


class Runtimes(KeyedRepo[StoredRuntime]):
    """The tenants' runtimes by tenant and name."""

    __slots__ = ()
    rows = Rows(
        StoredRuntime,
        r,
        columns={"runtime": "definition"},
        computed={
            "tenant": "runtime.tenant",
            "name": "runtime.name",
            "state": "runtime.state.value",
        },
    )

    def all(self) -> list[StoredRuntime]:
        """Return those of all tenants."""
        return self._list(self.rows, select(r).order_by(r.c.tenant, r.c.name))

    def of_tenant(self, tenant: str) -> list[StoredRuntime]:
        """Return those of one tenant by name."""
        return self._list(self.rows, select(r).where(r.c.tenant == tenant).order_by(r.c.name))

    def count(self, tenant: str) -> int:
        """Count those of a tenant."""
        return self._count(r, r.c.tenant == tenant)


class Environments(KeyedRepo[Environment]):
    """Environments of all tenants; `Tx.stored` has the use of quota by their files."""

    __slots__ = ()
    rows = Rows(Environment, t, computed={"folded": "folded"})

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
        return self._count(t, t.c.tenant == tenant)

    def of_files(self, files: str) -> list[Environment]:
        """Return all environments that have, or will have, the same files, the oldest first."""
        return self._all(t.c.files == files)

    def in_phases(self, phases: Collection[EnvironmentPhase]) -> list[Environment]:
        """Return all in these phases, the oldest first."""
        return self._all(t.c.phase.in_([phase.value for phase in phases]))

    def _all(self, *conditions: ColumnElement[bool]) -> list[Environment]:
        return self._list(self.rows, select(t).where(*conditions).order_by(t.c.uid))
