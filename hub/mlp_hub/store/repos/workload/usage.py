"""Use by tenants over time."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from mlp_hub.store.records import DecayedUsage, UsageSample
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import usage as u
from mlp_hub.store.tables import usage_sample as s

_usages = Rows(DecayedUsage, u, beside=("account",))
_samples = Rows(UsageSample, s, beside=("tenant",), embedded={"amount": ""}, omitted=("kinds",))


class Usages(Repo):
    """Use by tenants over time."""

    __slots__ = ()

    def all(self) -> dict[str, DecayedUsage]:
        """Return the decayed usage of each account that has any: of a tenant, or of a member as TENANT/USER."""
        return {r.account: _usages.of(r) for r in self._c.execute(select(u))}

    def put_many(self, values: Mapping[str, DecayedUsage]) -> None:
        """Store the decayed usage of many accounts in one statement."""
        if values:
            rows = [{"account": account, **_usages.row(value)} for account, value in values.items()]
            self._c.execute(self._upsert(u, ("account",)), rows)

    def sample(self, samples: Mapping[str, UsageSample]) -> None:
        """Store what tenants hold now, for their curves over time."""
        rows = [{"tenant": tenant, **_samples.row(sample)} for tenant, sample in samples.items()]
        self._insert_all(s, rows, ("tenant", "time"), replaces=True)

    def history(self, tenant: str, since: float = 0, limit: int = 2000) -> list[UsageSample]:
        """Return the last `limit` samples of a tenant taken after `since`, in order of time."""
        query = select(s).where(s.c.tenant == tenant, s.c.time > since).order_by(s.c.time.desc()).limit(limit)
        return self._list(_samples, query)[::-1]

    def delete_before(self, before: float) -> int:
        """Delete samples taken before, and members who held nothing since; return how many samples."""
        self._delete(u, u.c.as_of < before, u.c.account.contains("/"))
        return self._delete(s, s.c.time < before)

    def remove(self, tenant: str) -> None:
        """Forget a tenant that was deleted: another one of its name starts from nothing."""
        of_members = u.c.account.startswith(f"{tenant}/", autoescape=True)
        self._delete(u, (u.c.account == tenant) | of_members)
        self._delete(s, s.c.tenant == tenant)
