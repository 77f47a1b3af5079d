"""Accounts of tenants: their makers, their one tenant, and the valid ones of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.service_account import ServiceAccount, ServiceToken
from mlp_hub.domain.tenants.tenant import Member, Role, no_such_tenant
from mlp_hub.service.tenants.syncing import LOCAL
from mlp_hub.store import Database, Tx
from mlp_language.message import msg


class ServiceAccounts:
    """Keeps them. The hub's half, a user without a password and its tokens, is the caller's."""

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock

    async def free(self, user: str, tenant: str) -> None:
        """Return where this tenant may have an account of this name; raise Refused where it is there, or was another's.

        A name belongs to the tenant that had it first, for the files of its user stay.
        """
        known = await self._db.read(lambda tx: tx.service_accounts.get(user))
        if known is None or (known.ended and known.tenant == tenant):
            return
        if known.tenant == tenant:
            text = msg(
                "an account {name} of {tenant} already exists; another token of it: mlp token rotate {name} --tenant {tenant}",
                name=known.name,
                tenant=tenant,
            )
            raise Refused(Reason.CONFLICT, text)
        raise Refused(Reason.CONFLICT, msg("the name {name} is taken; choose another one", name=known.name))

    async def add(self, user: str, tenant: str, *, actor: str) -> ServiceAccount:
        """Make one, a member of this tenant whose work goes there. Raises `NotFound`."""
        account = ServiceAccount(user, tenant, actor, self._clock())

        def work(tx: Tx) -> None:
            if tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            tx.users.ensure(user, self._clock())
            tx.users.set_default_tenant(user, tenant)
            tx.members.put(Member(tenant, user, Role.MEMBER, LOCAL))
            tx.service_accounts.put(account)
            self._note(tx, actor, "service_account.create", account)

        await self._db.write(work)
        return account

    async def get(self, user: str, tenant: str) -> ServiceAccount:
        """Return one of a tenant's. Raises `NotFound`, for another tenant's too."""
        found = await self._db.read(lambda tx: tx.service_accounts.get(user))
        if found is None or found.ended or found.tenant != tenant:
            raise not_found("service account", user)
        return found

    async def of_tenant(self, tenant: str) -> Sequence[ServiceAccount]:
        """Return a tenant's, by name."""
        return await self._db.read(lambda tx: tx.service_accounts.of_tenant(tenant))

    async def taken(self, user: str) -> Mapping[str, float | None]:
        """Return which tokens of an account are taken, by the hub's id, and until when where they were rotated out."""
        found = await self._db.read(lambda tx: tx.service_accounts.tokens(user))
        return {one.id: one.until for one in found if one.until is None or one.until > self._clock()}

    async def check_place(self, account: ServiceAccount) -> None:
        """Raise Refused where an account was taken out of its tenant: no token of it would be taken."""
        if not await self._db.read(lambda tx: _is_in_place(tx, account)):
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "{name} is no longer a member of {tenant}, so its tokens are not valid; end it, then make it again",
                    name=account.user,
                    tenant=account.tenant,
                ),
            )

    async def took(
        self,
        account: ServiceAccount,
        token: str,
        *,
        old_until: float | None,
        actor: str,
        detail: Mapping[str, object],
    ) -> None:
        """Note a new token and who asked for it, together; with `old_until` the others are refused from then on."""

        def work(tx: Tx) -> None:
            if old_until is not None:
                tx.service_accounts.rotate_out(account.user, old_until)
                self._note(tx, actor, "service_account.rotate", account)
            tx.service_accounts.add_token(ServiceToken(token, account.user))
            self._note(tx, actor, "user.token", account, detail)

        await self._db.write(work)

    async def end(self, account: ServiceAccount, *, actor: str) -> None:
        """Take none of its tokens any more, from now on."""

        def work(tx: Tx) -> None:
            tx.service_accounts.put(replace(account, ended=True))
            tx.service_accounts.drop_tokens(account.user)
            self._note(tx, actor, "service_account.end", account)

        await self._db.write(work)

    async def stands(self, user: str, token: str) -> bool:
        """Tell whether this token of an account is taken: not rotated out, of an account that is there and in its tenant."""

        def look(tx: Tx) -> bool:
            account, found = tx.service_accounts.get(user), tx.service_accounts.token(user, token)
            if account is None or account.ended or found is None:
                return False
            if found.until is not None and found.until <= self._clock():
                return False
            return _is_in_place(tx, account)

        return await self._db.read(look)

    def _note(
        self,
        tx: Tx,
        actor: str,
        action: str,
        account: ServiceAccount,
        detail: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        tx.audit.add(self._clock(), actor, action, account.user, tenant=account.tenant, detail=detail)


def _is_in_place(tx: Tx, account: ServiceAccount) -> bool:
    return [m.tenant for m in tx.members.of_user(account.user)] == [account.tenant]
