"""Requests to apps, and to all apps of a tenant."""

from __future__ import annotations

import msgspec
from sqlalchemy import delete, select

from mlp_hub.domain.apps.app_usage import AppUse, StoredUse
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import app_use as u

_use = msgspec.json.Decoder(AppUse)


class AppUses(Repo):
    """An app's goes with it, a tenant's with the tenant: it has what its former apps were asked too."""

    __slots__ = ()

    def get(self, kind: str, name: str) -> StoredUse | None:
        """Return what is stored of an `app` by its uid, or of a `tenant`."""
        row = self._c.execute(select(u).where(u.c.kind == kind, u.c.name == name)).first()
        if row is None:
            return None
        before = None if row.before is None else _use.decode(row.before)
        return StoredUse(row.run, _use.decode(row.counted), before)

    def of_tenants(self) -> dict[str, AppUse]:
        """Return all that was counted of each tenant."""
        found = {}
        for row in self._c.execute(select(u).where(u.c.kind == "tenant")):
            before = None if row.before is None else _use.decode(row.before)
            found[row.name] = StoredUse(row.run, _use.decode(row.counted), before).total
        return found

    def put(self, kind: str, name: str, use: StoredUse) -> None:
        """Store it, new or changed."""
        self._c.execute(
            self._upsert(u, ("kind", "name")),
            {
                "kind": kind,
                "name": name,
                "run": use.run,
                "counted": codec.dumps(use.counted),
                "before": None if use.before is None else codec.dumps(use.before),
            },
        )

    def remove(self, kind: str, name: str) -> None:
        """Forget it."""
        self._c.execute(delete(u).where(u.c.kind == kind, u.c.name == name))
