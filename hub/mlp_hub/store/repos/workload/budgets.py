"""Budgets of tenants, and their levels that have a notice."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select

from mlp_hub.domain.accounting.budgets import TeamBudget
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import budget_notice as n
from mlp_hub.store.tables import team_budget as t


class Budgets(KeyedRepo[TeamBudget]):
    """The budgets by tenant; most tenants have none."""

    __slots__ = ()
    rows = Rows(TeamBudget, t)

    def all(self) -> list[TeamBudget]:
        """Return those of all tenants, by name."""
        return self._list(self.rows, select(t).order_by(t.c.tenant))

    def told(self, tenant: str, period: int) -> set[int]:
        """Return the levels with a notice in the period that begins on this day."""
        query = select(n.c.level).where(n.c.tenant == tenant, n.c.period == period)
        return set(self._c.scalars(query))

    def note_told(self, tenant: str, period: int, levels: Iterable[int]) -> None:
        """Store that these levels have a notice now; they had none."""
        rows = [{"tenant": tenant, "period": period, "level": level} for level in levels]
        if rows:
            self._c.execute(n.insert(), rows)

    def forget_told(self, tenant: str) -> None:
        """Forget the notices of a tenant's budget, which is another one now."""
        self._c.execute(delete(n).where(n.c.tenant == tenant))
