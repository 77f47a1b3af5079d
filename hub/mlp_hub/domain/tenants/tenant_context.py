"""On whose behalf objects that users own are read: one value for each request, made by the gatekeeper, that every query of them takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TenantContext:
    """Owners of the objects that a caller can reach: jobs, sweeps, datasets, models and apps.

    They are those of `user`, and those of everybody in `tenants`; None: in all tenants. Only this
    bounds the results of a query, so an object that a handler forgets to check is not in the result.
    """

    user: str
    tenants: frozenset[str] | None = frozenset()

    def sees(self, user: str, tenant: str) -> bool:
        """Whether an object of this user in this tenant is within."""
        return self.tenants is None or user == self.user or tenant in self.tenants

    def and_of(self, tenants: Iterable[str]) -> TenantContext:
        """Return this context extended by all of these tenants."""
        return self if self.tenants is None else TenantContext(self.user, self.tenants.union(tenants))


NOBODY = TenantContext("")
"""Of who was not asked for a name: nothing is within."""
SYSTEM = TenantContext("", None)
"""The platform's own, of workers and commands, which act for nobody. No request has it, whoever asks."""
