"""What an admission is checked against once more, in the transaction that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.job import Job
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.model import Admit
from mlp_hub.service.claims import node_use, set_aside
from mlp_hub.service.quota import Quotas
from mlp_hub.service.shares import shares_of
from mlp_hub.store.tx import Tx


class Room:
    """Quotas and nodes as the ledger has them inside the writing transaction; shrinks with each admission.

    The core has decided on a snapshot; meanwhile a notebook server may have been quicker or a quota lowered. What is
    set aside for claims counts as taken.
    """

    def __init__(self, tx: Tx, nodes: Sequence[NodeInfo], now: float) -> None:
        claims = set_aside(tx.ledger.claims(now))
        self._quotas = Quotas(tx, now, nodes, claims)
        self._free: dict[str, Resources] = {n.name: n.capacity for n in nodes if n.up}
        self._kinds: Mapping[str, str | None] = {n.name: n.gpu_kind for n in nodes}
        for node, amount in node_use(tx, now, claims).items():
            if node in self._free:
                self._free[node] -= amount

    def take(self, job: Job, admit: Admit) -> bool:
        """Take what the job needs; False, and nothing taken, when it does not fit."""
        if not self._quotas.fits(job.spec.tenant, admit.amount):
            return False
        shares = self.shares(job, admit)
        if not all(n in self._free and _fits(amount, self._free[n]) for n, amount in shares):
            return False
        self._quotas.take(job.spec.tenant, admit.amount)
        for node, amount in shares:
            self._free[node] -= amount
        return True

    def shares(self, job: Job, admit: Admit) -> tuple[tuple[str, Resources], ...]:
        """Return what the job takes of each node."""
        return shares_of(job.spec.per_worker, admit.placement, self._kinds)


def _fits(amount: Resources, free: Resources) -> bool:
    """Whether the amount fits, looking only at what it asks for; a node's gpus are all of one kind."""
    return all(v <= have for (_, v), (_, have) in zip(amount.items(), free.items(), strict=True) if v)
