"""Network of a tenant's jobs: the tenant's value, or the hub's setting if it has none."""

from __future__ import annotations

from mlp_hub.store.database import Database


class Networks:
    """Remembers it of each tenant until told that tenants have changed: it is asked at every start of an attempt."""

    def __init__(self, db: Database, job_network: str) -> None:
        self._db = db
        self._job_network = job_network
        self._known: dict[str, str] = {}

    async def network_of(self, tenant: str) -> str:
        """Return the network that jobs of the tenant have."""
        known = self._known
        if tenant not in known:
            found = await self._db.read(lambda tx: tx.tenants.get(tenant))
            # into what was forgotten meanwhile, if it was
            known[tenant] = (found.network if found else None) or self._job_network
        return known[tenant]

    def forget(self) -> None:
        """Read again from now on: some tenants have changed."""
        self._known = {}
