"""Holders, and borrowers above their nominal quota; computed again only for tenants with changed holdings."""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.scheduler.quota.tree import QuotaTree

Place = tuple[str, str]  # root of a quota tree, and a dimension


class Borrowers:
    """The tenants that hold something, and those that borrow, by tree and dimension; brought up to date when asked for."""

    def __init__(self) -> None:
        self._of: dict[Place, dict[str, bool]] = {}  # who holds something there, and whether it borrows
        self._places: dict[str, tuple[Place, ...]] = {}  # of each tenant that holds something
        self._changed: dict[str, None] = {}

    def changed(self, tenant: str) -> None:
        """Note that what a tenant holds has changed."""
        self._changed[tenant] = None

    def all_changed(self, tenants: Iterable[str]) -> None:
        """Forget all: quotas, or the trees, have changed."""
        self._of, self._places = {}, {}
        self._changed = dict.fromkeys(tenants)

    def borrowers_of(self, quotas: QuotaTree, root: str, dimension: str) -> list[str]:
        """Return by name who borrows of a dimension in a tree."""
        self._look(quotas)
        return sorted(t for t, borrows in self._of.get((root, dimension), {}).items() if borrows)

    def holders(self, quotas: QuotaTree, root: str, dimension: str) -> list[str]:
        """Return by name who holds something of a dimension in a tree."""
        self._look(quotas)
        return sorted(self._of.get((root, dimension), ()))

    def _look(self, quotas: QuotaTree) -> None:
        for tenant in self._changed:
            for place in self._places.pop(tenant, ()):
                del self._of[place][tenant]
            if tenant in quotas:
                self._enter(quotas, tenant)
        self._changed = {}

    def _enter(self, quotas: QuotaTree, tenant: str) -> None:
        root = quotas.root(tenant)
        used = [d for d, amount in quotas.used(tenant).items() if amount]
        if used:
            self._places[tenant] = tuple((root, d) for d in used)
        for dimension in used:
            self._of.setdefault((root, dimension), {})[tenant] = quotas.borrows(tenant, (dimension,))

    def fork(self) -> Borrowers:
        """Return an independent copy."""
        other = Borrowers()
        other._of = {place: dict(tenants) for place, tenants in self._of.items()}
        other._places, other._changed = dict(self._places), dict(self._changed)
        return other
