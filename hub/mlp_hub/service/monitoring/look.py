"""Look at the database for metrics: amounts of tenants and nodes, and what is behind. One transaction, now and then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.accounting import tree_of
from mlp_hub.service.quota.lending import Share, kinds_in, shares_in
from mlp_hub.service.quota.reserved import kept_free
from mlp_hub.store.tx import Tx


@dataclass(frozen=True, slots=True)
class DatabaseLook:
    """Result of a look at the time `at`, in seconds since the epoch."""

    at: float
    tenants: Sequence[Tenant] = ()
    held: Mapping[str, Resources] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    node_held: Mapping[str, Resources] = field(default_factory=dict)
    apps: Mapping[str, AppUse] = field(default_factory=dict)
    notices_behind: int = 0
    notices_since: float | None = None


def look_at(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> DatabaseLook:
    """Return the amounts of all tenants and nodes, and what is behind; `now` is in seconds since the epoch."""
    tenants = tx.tenants.all()
    held = tx.ledger.in_use_by_tenant(now)
    kept = kept_free(tx, nodes, now)
    kinds = kinds_in(tenants, () if kept is None else kept.booked.values())
    behind, since = tx.notices.behind()
    return DatabaseLook(
        at=now,
        tenants=tenants,
        held=held,
        shares=shares_in(tree_of(tenants, held, kept), tenants, kinds),
        node_held=tx.ledger.node_use(now),
        apps=tx.app_uses.of_tenants(),
        notices_behind=behind,
        notices_since=since,
    )
