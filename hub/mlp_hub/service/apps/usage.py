"""Requests to apps: reported by the gateway every few seconds, stored, and shown with newer counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlp_hub.domain.apps.app_usage import AppUse, StoredUse, merged_report, together
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx

Told = tuple[str, str, str, AppUse]
"""Report of use: whether of an `app` or a `tenant`, which one, by which process, its count."""


class KeptUsage:
    """Store of the counts; `busy` gets the uid of an app that scales and its number of requests in progress."""

    def __init__(self, db: Database, busy: Callable[[str, float], None]) -> None:
        self._db = db
        self._busy = busy

    async def store_report(self, counted: Sequence[Told], under_way: Sequence[tuple[str, float]]) -> None:
        """Store counts; a repeated report counts once, and counts of deleted apps and tenants are dropped."""

        def work(tx: Tx) -> set[str]:
            for kind, name, run, use in counted:
                if _is_there(tx, kind, name):
                    tx.app_uses.put(
                        merged_report(tx.app_uses.get(kind, name), run, use), kind=kind, name=name
                    )
            found = (tx.apps.get(SYSTEM, uid) for uid, _ in under_way)
            return {app.uid for app in found if app is not None and app.spec.scales}

        scaling = await self._db.write(work)
        for uid, number in under_way:
            if uid in scaling:
                self._busy(uid, number)

    async def usage_of(self, kind: str, name: str) -> StoredUse | None:
        """Return what is kept of an app by its uid, or of a tenant."""
        return await self._db.read(lambda tx: tx.app_uses.get(kind, name))


def with_live(stored: StoredUse | None, run: str, live: AppUse) -> AppUse:
    """Return all that was asked, where the process that counts tells its own part itself."""
    others = None if stored is None else stored.without(run)
    return live if others is None else together(others, live)


def _is_there(tx: Tx, kind: str, name: str) -> bool:
    if kind == "app":
        return tx.apps.get(SYSTEM, name) is not None
    return name == DEFAULT_TENANT or tx.tenants.get(name) is not None
