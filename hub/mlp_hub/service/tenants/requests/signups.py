"""Which tenant a person applied for when they signed up; kept until they are approved.

An application gives nothing by itself: anybody may name any tenant, also one that does not exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from mlp_hub.domain.errors import Refused
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.store import Database


class Applications:
    """Open applications, one a user."""

    def __init__(self, db: Database, tenants: TenantService) -> None:
        self._db = db
        self._tenants = tenants

    async def apply(self, user: str, tenant: str) -> None:
        """Note that the user wants to join the tenant; a new application replaces an older one."""
        await self._db.write(lambda tx: tx.settings.put(_key(user), tenant))

    async def tenant_of(self, user: str) -> str | None:
        """Return the tenant that the user applied for, if any."""
        return await self._db.read(lambda tx: tx.settings.get(_key(user))) or None

    async def tenants_of(self, users: Collection[str]) -> dict[str, str]:
        """Map those of these users who applied for a tenant to that tenant."""
        if not users:
            return {}
        keys = {_key(user): user for user in users}
        found = await self._db.read(lambda tx: tx.settings.get_all(keys))
        return {keys[key]: tenant for key, tenant in found.items() if tenant}

    async def accept(self, user: str, *, actor: str) -> None:
        """Make the user a member of the tenant applied for and forget the application.

        A tenant that does not exist (any more) is passed over: the account is let in all the same.
        """
        tenant = await self.tenant_of(user)
        if tenant is None:
            return
        try:
            await self._tenants.get(tenant)
        except Refused:
            pass
        else:
            await self._tenants.set_member(tenant, user, actor=actor)
        await self.forget(user)

    async def forget(self, user: str) -> None:
        """Forget the user's application, if there is one."""
        await self._db.write(lambda tx: tx.settings.put(_key(user), ""))


def _key(user: str) -> str:
    # keys are short, user names need not be
    return "applied-" + hashlib.blake2b(user.encode(), digest_size=24).hexdigest()
