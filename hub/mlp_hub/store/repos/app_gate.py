"""Ways into apps: their keys, and browsers that opened them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, select, update

from mlp_hub.domain.apps.app_gate import AppKey, AppVisit
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import app_key as k
from mlp_hub.store.tables import app_visit as v


class AppGateRepo(Repo):
    """All of them go with their app."""

    __slots__ = ()

    def add_key(self, key: AppKey, sha256: str) -> None:
        """Store a new key."""
        values = {"id": key.id, "app": key.app, "name": key.name, "made_by": key.made_by}
        self._c.execute(k.insert(), {**values, "sha256": sha256, "made_at": key.made_at, "used_at": None})

    def keys(self, app: str) -> list[AppKey]:
        """Return an app's, by name."""
        return [_key_of(row) for row in self._c.execute(select(k).where(k.c.app == app).order_by(k.c.name))]

    def key_of(self, sha256: str) -> AppKey | None:
        """Return the key with this SHA-256 (hex)."""
        row = self._c.execute(select(k).where(k.c.sha256 == sha256)).first()
        return None if row is None else _key_of(row)

    def drop_key(self, app: str, name: str) -> AppKey | None:
        """Forget a key of an app; return it, None where there was none."""
        row = self._c.execute(select(k).where(k.c.app == app, k.c.name == name)).first()
        if row is None:
            return None
        self._c.execute(delete(k).where(k.c.id == row.id))
        return _key_of(row)

    def used(self, key: str, now: float) -> None:
        """Note when a key was used last."""
        self._c.execute(update(k).where(k.c.id == key).values(used_at=now))

    def add_visit(self, sha256: str, visit: AppVisit) -> None:
        """Store a code, or a cookie."""
        values = {"app": visit.app, "is_code": visit.is_code, "masked": visit.masked}
        self._c.execute(v.insert(), {"sha256": sha256, **values, "expires_at": visit.expires_at})

    def visit(self, sha256: str, *, is_code: bool) -> AppVisit | None:
        """Return what a code or a cookie stands for, also when it is over."""
        row = self._c.execute(select(v).where(v.c.sha256 == sha256, v.c.is_code.is_(is_code))).first()
        return None if row is None else AppVisit(row.app, row.is_code, row.masked, row.expires_at)

    def drop_visit(self, sha256: str) -> bool:
        """Forget one; whether it was there."""
        return bool(self._c.execute(delete(v).where(v.c.sha256 == sha256)).rowcount)

    def delete_expired(self, now: float) -> int:
        """Forget the visits that are over; return how many."""
        return int(self._c.execute(delete(v).where(v.c.expires_at <= now)).rowcount)


def _key_of(row: Row[Any]) -> AppKey:
    return AppKey(row.id, row.app, row.name, row.made_by, row.made_at, row.used_at)
