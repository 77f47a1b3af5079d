"""Accounts of tenants, and their tokens."""

from __future__ import annotations

from sqlalchemy import or_, select, update

from mlp_hub.domain.tenants.service_account import ServiceAccount, ServiceToken
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import service_account as a
from mlp_hub.store.tables import service_token as t

NOBODY = ""
"""Value instead of a tenant: the data of a removed one belongs to nobody."""
_tokens = Rows(ServiceToken, t, columns={"id": "token"})


class ServiceAccountsRepo(KeyedRepo[ServiceAccount]):
    """Which tenant an account is of, also of those that were ended, and which of its tokens are taken until when."""

    __slots__ = ()
    rows = Rows(ServiceAccount, a)

    def of_tenant(self, tenant: str) -> list[ServiceAccount]:
        """Return those of a tenant that were not ended, by name."""
        query = select(a).where(a.c.tenant == tenant, a.c.ended.is_(False)).order_by(a.c.user)
        return self._list(self.rows, query)

    def leave_behind(self, tenant: str) -> list[ServiceAccount]:
        """End those of a tenant that is no more, and keep their names from one of its name; return which were not ended yet."""
        left = self.of_tenant(tenant)
        self._delete(t, t.c.user.in_(select(a.c.user).where(a.c.tenant == tenant)))
        self._c.execute(update(a).where(a.c.tenant == tenant).values(tenant=NOBODY, ended=True))
        return left

    def token(self, user: str, token: str) -> ServiceToken | None:
        """Return a token of an account."""
        return self._one(_tokens, select(t).where(t.c.token == token, t.c.user == user))

    def tokens(self, user: str) -> list[ServiceToken]:
        """Return the tokens of an account that were noted, also those that were rotated out."""
        return self._list(_tokens, select(t).where(t.c.user == user))

    def add_token(self, token: ServiceToken) -> None:
        """Store a new one; the hub gives ids again."""
        self._store(_tokens, token)

    def rotate_out(self, user: str, until: float) -> int:
        """Have all tokens of an account refused from then on, at the latest; return of how many that changes anything."""
        later = or_(t.c.until.is_(None), t.c.until > until)
        query = update(t).where(t.c.user == user, later).values(until=until)
        return int(self._c.execute(query).rowcount)

    def drop_tokens(self, user: str) -> None:
        """Forget all tokens of an account: none is taken any more."""
        self._delete(t, t.c.user == user)

    def drop_token(self, token: str) -> None:
        """Forget one."""
        self._delete(t, t.c.token == token)
