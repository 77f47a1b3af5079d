"""Decayed use of tenants and their members, by which fair shares order them, and when it is stored."""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.scheduler.fairness.members import SEPARATOR, usage_of_members
from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.scheduler.policy import ORDERS
from mlp_hub.service.admission.snapshot import Remembered
from mlp_hub.store.database import Database
from mlp_hub.store.records import DecayedUsage

STORE_EVERY_S = 10.0
"""Tuning: seconds between two times that the decayed usage is stored: sooner with less, cheaper with more."""


class FairUsage:
    """The meter of use, which is the core's own while there is one. `changed`: it is not stored as it is now."""

    def __init__(self, half_life_s: float) -> None:
        self.meter = UsageMeter(half_life_s)
        self.changed = False
        self._stored_at = 0.0

    async def load(self, db: Database, now: float) -> None:
        """Read what is stored."""
        for account, usage in (await db.read(lambda tx: tx.usage.all())).items():
            self.meter.load(account, usage.value, usage.as_of)
        self._stored_at = now

    def value(self, tenant: str, now: float) -> float:
        """Return the use of a tenant."""
        return self.meter.value(tenant, now)

    def of_tenant(self, tenant: Tenant, now: float) -> Remembered:
        """Return the use of a tenant, and of its members if they take turns in its queue."""
        take_turns = ORDERS[tenant.queue_order].by_members
        members = usage_of_members(self.meter, tenant.name, now) if take_turns else ()
        return self.value(tenant.name, now), members

    def rows(self, tenants: Iterable[Tenant], now: float) -> dict[str, DecayedUsage]:
        """Return what there is to store of these tenants."""
        names = {tenant.name for tenant in tenants}
        accounts = [a for a in self.meter.accounts() if a.partition(SEPARATOR)[0] in names]
        values = {account: self.meter.value(account, now) for account in accounts}
        return {name: DecayedUsage(value, now) for name, value in values.items() if value > 0}

    def due_at(self) -> float | None:
        """Return the time at which to store it; None if the stored value is the present one."""
        return self._stored_at + STORE_EVERY_S if self.changed else None

    def note_stored(self, now: float) -> None:
        """Note that it was stored."""
        self._stored_at, self.changed = now, False
