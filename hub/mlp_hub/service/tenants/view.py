"""Tenants with their use, as the API shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlp_api import types as api
from mlp_api.localized import Text
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Tenant
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.accounting import Quotas, tree_of
from mlp_hub.service.quota.lending import Share, kinds_in, shares_in
from mlp_hub.service.quota.reserved import kept_free
from mlp_hub.service.tenants import wire
from mlp_hub.store.tx import Tx
from mlp_language.message import Message


class TenantView:
    """View of tenants; the parameters are those of `TenantService`."""

    def __init__(
        self,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        job_network: str,
        moved: Callable[[str], int],
    ) -> None:
        self._clock, self._nodes = clock, nodes
        self._job_network, self._moved = job_network, moved

    def all(self, tx: Tx) -> Sequence[api.Tenant]:
        """Return all tenants by name."""
        stored = tx.tenants.all()
        now = self._clock()
        in_use = tx.ledger.in_use_by_tenant(now)
        kept = kept_free(tx, self._nodes(), now)
        kinds = kinds_in(stored, () if kept is None else kept.booked.values())
        shares = shares_in(tree_of(stored, in_use, kept), stored, kinds)
        return self._shown(tx, stored, in_use, shares)

    def one(self, tx: Tx, tenant: Tenant, notes: Sequence[Message] = ()) -> api.Tenant:
        """Return one tenant, with notes on a change of it."""
        quotas, name = Quotas(tx, self._clock(), self._nodes()), tenant.name
        used = tx.ledger.in_use(name, self._clock())
        shown = self._shown(tx, [tenant], {name: used}, {name: quotas.share(name)})[0]
        shown.notes.extend(map(Text, notes))
        return shown

    def _shown(
        self,
        tx: Tx,
        tenants: Sequence[Tenant],
        in_use: Mapping[str, Resources],
        shares: Mapping[str, Share],
    ) -> Sequence[api.Tenant]:
        # of one tenant nothing is read of the others, of which there may be thousands
        only = tenants[0].name if len(tenants) == 1 else None
        counts, members = tx.jobs.counts(only, replicas=False), tx.members.counts(only)
        moves = {move.tenant: move for move in tx.relocations.all(only)}
        shown = []
        for tenant in tenants:
            running, waiting = counts.get(tenant.name, (0, 0))
            n = members.get(tenant.name, 0)
            if tenant.name == DEFAULT_TENANT:
                n += tx.users.count_without_tenant()
            shown.append(
                wire.tenant_to(
                    tenant,
                    in_use.get(tenant.name, ZERO),
                    share=shares[tenant.name],
                    members=n,
                    running=running,
                    waiting=waiting,
                    job_network=self._job_network,
                    move=wire.move_to(moves.get(tenant.name), self._moved(tenant.name)),
                )
            )
        return shown
