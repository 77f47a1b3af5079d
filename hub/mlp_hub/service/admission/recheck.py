"""The last check of an admission, in the transaction that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import placed
from mlp_hub.scheduler.model.types import Admit
from mlp_hub.service.quota.accounting import Quotas
from mlp_hub.service.quota.node_shares import Shares, shares_of
from mlp_hub.store.tx import Tx


class LedgerCheck:
    """Quotas and nodes as the ledger has them inside the writing transaction; shrinks with each admission.

    The core has decided on a snapshot; meanwhile another applier may have been quicker or a quota lowered.
    """

    def __init__(self, tx: Tx, nodes: Sequence[NodeInfo], now: float) -> None:
        self._quotas = Quotas(tx, now, nodes)
        self._nodes = {n.name: n for n in nodes}
        self._used = dict(tx.ledger.node_use(now))
        self._kinds: Mapping[str, str | None] = {n.name: n.gpu_kind for n in nodes}

    def reserve_ranks(self, tenant: str, each: Resources, admit: Admit) -> Shares | None:
        """Take what ranks of `each` need, and return what of each node; None, and nothing taken, when it does not fit."""
        if not self._quotas.fits(tenant, admit.amount):
            return None
        shares = shares_of(each, admit.placement, self._kinds)
        if not all(self._has_room(tenant, name, amount) for name, amount in shares):
            return None
        self._quotas.charge_amount(tenant, admit.amount)
        for name, amount in shares:
            self._used[name] = self._used.get(name, ZERO) + amount
        return shares

    def _has_room(self, tenant: str, name: str, amount: Resources) -> bool:
        node = self._nodes.get(name)
        if node is None or not node.takes(tenant):
            return False
        return _fits(amount, node.allocatable - self._used.get(name, ZERO))


def _fits(amount: Resources, free: Resources) -> bool:
    """Return whether the amount fits, in the dimensions that it asks for; a node's gpus are all of one kind."""
    return all(v <= free.part(d) for d, v in placed(amount) if v)
