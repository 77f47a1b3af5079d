"""Admissions of jobs as a cycle stores them: checked once more in the transaction, then held."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import Admit
from mlp_hub.service.admission.recheck import LedgerCheck
from mlp_hub.store import Tx


def admit(
    room: LedgerCheck, tx: Tx, uid: str, tenant: str, amount: Resources, now: float, node: str = "n"
) -> bool:
    """Hold what a job of one rank takes of a node, if there is room for it; return whether there is."""
    shares = room.reserve_ranks(tenant, amount, Admit(uid, (node,), 1, amount))
    if shares is None:
        return False
    tx.ledger.put(ResourceRequest(uid, "jm", tenant, amount, RequestPhase.CONFIRMED, now, shares=shares))
    return True


def admit_one(
    tx: Tx, nodes: Sequence[NodeInfo], uid: str, tenant: str, amount: Resources, now: float, node: str = "n"
) -> bool:
    """Do what `admit` does for the only job of a transaction."""
    return admit(LedgerCheck(tx, nodes, now), tx, uid, tenant, amount, now, node)
