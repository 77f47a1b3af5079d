"""Ways into apps, their keys and browsers that opened them, and what was asked of them."""

from __future__ import annotations

from sqlalchemy import select, update

from mlp_hub.domain.apps.app_gate import AppKey, AppVisit
from mlp_hub.domain.apps.app_usage import AppUse, StoredUse
from mlp_hub.store.repos.base import KeyedRepo, Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import app_key as k
from mlp_hub.store.tables import app_use as u
from mlp_hub.store.tables import app_visit as v

_keys = Rows(AppKey, k, beside=("sha256",))
_visits = Rows(AppVisit, v, beside=("sha256",))


class AppGateRepo(Repo):
    """All of them go with their app."""

    __slots__ = ()

    def add_key(self, key: AppKey, sha256: str) -> None:
        """Store a new key."""
        self._insert_row(_keys, key, sha256=sha256)

    def keys(self, app: str) -> list[AppKey]:
        """Return an app's, by name."""
        return self._list(_keys, select(k).where(k.c.app == app).order_by(k.c.name))

    def key_of(self, sha256: str) -> AppKey | None:
        """Return the key with this SHA-256 (hex)."""
        return self._one(_keys, select(k).where(k.c.sha256 == sha256))

    def drop_key(self, app: str, name: str) -> AppKey | None:
        """Forget a key of an app; return it, None where there was none."""
        found = self._one(_keys, select(k).where(k.c.app == app, k.c.name == name))
        if found is not None:
            self._delete(k, k.c.id == found.id)
        return found

    def used(self, key: str, now: float) -> None:
        """Note when a key was used last."""
        self._c.execute(update(k).where(k.c.id == key).values(used_at=now))

    def add_visit(self, sha256: str, visit: AppVisit) -> None:
        """Store a code, or a cookie."""
        self._insert_row(_visits, visit, sha256=sha256)

    def visit(self, sha256: str, *, is_code: bool) -> AppVisit | None:
        """Return what a code or a cookie stands for, also when it is over."""
        return self._one(_visits, select(v).where(v.c.sha256 == sha256, v.c.is_code.is_(is_code)))

    def drop_visit(self, sha256: str) -> bool:
        """Forget one; whether it was there."""
        return bool(self._delete(v, v.c.sha256 == sha256))

    def delete_expired(self, now: float) -> int:
        """Delete the visits that are over; return their number."""
        return self._delete(v, v.c.expires_at <= now)


class AppUses(KeyedRepo[StoredUse]):
    """Requests to an `app` by its uid, or to all apps of a `tenant`, the former ones included.

    An app's goes with it, a tenant's with the tenant.
    """

    __slots__ = ()
    rows = Rows(StoredUse, u, beside=("kind", "name"))

    def of_tenants(self) -> dict[str, AppUse]:
        """Return all that was counted of each tenant."""
        found = self._c.execute(select(u).where(u.c.kind == "tenant"))
        return {row.name: self.rows.of(row).total for row in found}
