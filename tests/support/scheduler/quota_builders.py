"""Short words for quota trees of cpu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree

Row = tuple[int, int | None, int | None, int, bool]


def tenant(
    name: str, cpu: int | None = None, borrow: int | None = None, lend: int | None = None, **more: Any
) -> TenantQueue:
    return TenantQueue(
        name,
        Quota(cpu=cpu),
        borrowing_limit=None if borrow is None else Quota(cpu=borrow),
        lending_limit=None if lend is None else Quota(cpu=lend),
        **more,
    )


def tree_of(*tenants: TenantQueue, **held: int) -> QuotaTree:
    tree = QuotaTree(tenants)
    for name, cpu in held.items():
        tree.charge(name, {"cpu": cpu})
    return tree


def table(tree: QuotaTree) -> Mapping[str, Row]:
    """Tell of each tenant: used, available, limit, guaranteed, whether it borrows."""
    return {
        name: (
            tree.used(name).get("cpu", 0),
            tree.available(name, "cpu"),
            tree.limit(name, "cpu"),
            tree.guaranteed(name, "cpu"),
            tree.borrows(name, ["cpu"]),
        )
        for name in tree
    }


TWO_GROUPS = (
    tenant("left", cohort="all"),
    tenant("right", cohort="all"),
    tenant("a", 6, parent="left"),
    tenant("b", 4, parent="left"),
    tenant("c", 6, parent="right"),
    tenant("d", 4, parent="right"),
    tenant("e", parent="right"),
    tenant("alone", 4),
)
"""Two groups that lend to each other, with a tenant without a limit in one, and a tenant by itself."""
