"""Accounts of tenants, and their tokens."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, or_, select, update

from mlp_hub.domain.tenants.service_account import ServiceAccount, ServiceToken
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import service_account as a
from mlp_hub.store.tables import service_token as t

NOBODY = ""
"""Value instead of a tenant: the data of a removed one belongs to nobody."""


class ServiceAccountsRepo(Repo):
    """Which tenant an account is of, and which of its tokens are taken until when."""

    __slots__ = ()

    def get(self, user: str) -> ServiceAccount | None:
        """Return an account, also one that was ended."""
        row = self._c.execute(select(a).where(a.c.user == user)).first()
        return None if row is None else _account_of(row)

    def of_tenant(self, tenant: str) -> list[ServiceAccount]:
        """Return those of a tenant that were not ended, by name."""
        query = select(a).where(a.c.tenant == tenant, a.c.ended.is_(False)).order_by(a.c.user)
        return [_account_of(row) for row in self._c.execute(query)]

    def put(self, account: ServiceAccount) -> None:
        """Store one, new or changed."""
        self._c.execute(delete(a).where(a.c.user == account.user))
        values = {"user": account.user, "tenant": account.tenant, "made_by": account.made_by}
        self._c.execute(a.insert(), {**values, "made_at": account.made_at, "ended": account.ended})

    def leave_behind(self, tenant: str) -> list[ServiceAccount]:
        """End those of a tenant that is no more, and keep their names from one of its name; return which were not ended yet."""
        left = self.of_tenant(tenant)
        of_it = select(a.c.user).where(a.c.tenant == tenant)
        self._c.execute(delete(t).where(t.c.user.in_(of_it)))
        self._c.execute(update(a).where(a.c.tenant == tenant).values(tenant=NOBODY, ended=True))
        return left

    def token(self, user: str, token: str) -> ServiceToken | None:
        """Return a token of an account."""
        row = self._c.execute(select(t).where(t.c.token == token, t.c.user == user)).first()
        return None if row is None else ServiceToken(row.token, row.user, row.until)

    def tokens(self, user: str) -> list[ServiceToken]:
        """Return the tokens of an account that were noted, also those that were rotated out."""
        return [
            ServiceToken(r.token, r.user, r.until) for r in self._c.execute(select(t).where(t.c.user == user))
        ]

    def add_token(self, token: ServiceToken) -> None:
        """Store a new one; the hub gives ids again."""
        self._c.execute(delete(t).where(t.c.token == token.id))
        self._c.execute(t.insert(), {"token": token.id, "user": token.user, "until": token.until})

    def rotate_out(self, user: str, until: float) -> int:
        """Have all tokens of an account refused from then on, at the latest; return of how many that changes anything."""
        later = or_(t.c.until.is_(None), t.c.until > until)
        query = update(t).where(t.c.user == user, later).values(until=until)
        return int(self._c.execute(query).rowcount)

    def drop_tokens(self, user: str) -> None:
        """Forget all tokens of an account: none is taken any more."""
        self._c.execute(delete(t).where(t.c.user == user))

    def drop_token(self, token: str) -> None:
        """Forget one."""
        self._c.execute(delete(t).where(t.c.token == token))


def _account_of(row: Row[Any]) -> ServiceAccount:
    return ServiceAccount(row.user, row.tenant, row.made_by, row.made_at, row.ended)
