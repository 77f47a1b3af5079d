"""The view that each user has of others' work, by the user's tenants."""

from __future__ import annotations

from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.service.tenants.places import tenants_of
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import Viewer

MOST_VIEWERS = 10_000
"""Safety: users whose visibility is remembered: bounds memory."""


class VisibilityService:
    """Viewers by user: they see work in their tenants by name, and know of the tenants that share with those."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._viewers: dict[str, Viewer] = {}

    async def viewer_of(self, user: str) -> Viewer:
        """Return the viewer that a user is."""
        known = self._viewers.get(user)
        if known is not None:
            return known
        before = self._viewers
        found = await self._db.read(lambda tx: _viewer(tx, user))
        if len(before) >= MOST_VIEWERS:
            before.clear()
        before[user] = found  # into what was forgotten meanwhile, if it was
        return found

    def forget(self) -> None:
        """Read again from now on: tenants or memberships have changed."""
        self._viewers = {}


def _viewer(tx: Tx, user: str) -> Viewer:
    own = tenants_of(tx, user)
    tenants = {tenant.name: tenant for tenant in tx.tenants.all()}
    roots = {_root(tenants, name) for name in own if name in tenants}
    return Viewer(own, frozenset(name for name in tenants if _root(tenants, name) in roots))


def _root(tenants: dict[str, Tenant], name: str) -> tuple[str, str]:
    """Return what a tenant shares with others: its topmost parent's cohort, or that parent."""
    tenant = tenants[name]
    while tenant.parent is not None and tenant.parent in tenants:
        tenant = tenants[tenant.parent]
    return ("tenant", tenant.name) if tenant.cohort is None else ("cohort", tenant.cohort)
