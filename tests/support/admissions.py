"""Admissions of jobs as a cycle stores them: checked once more in the transaction, then held."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.domain.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.model import Admit
from mlp_hub.service.room import Room
from mlp_hub.store import Tx


def admit(room: Room, tx: Tx, uid: str, tenant: str, amount: Resources, now: float, node: str = "n") -> bool:
    """Hold what a job of one rank takes of a node, if there is room for it; return whether there is."""
    job = Job(uid, JobSpec(uid, "u", tenant, "plain", amount), Phase.QUEUED, Target.RUN, 0.0)
    decision = Admit(uid, (node,), 1, amount)
    if not room.take(job, decision):
        return False
    shares = room.shares(job, decision)
    tx.ledger.put(ResourceRequest(uid, "jm", tenant, amount, RequestPhase.CONFIRMED, now, shares=shares))
    return True


def admit_one(
    tx: Tx, nodes: Sequence[NodeInfo], uid: str, tenant: str, amount: Resources, now: float, node: str = "n"
) -> bool:
    """Do what `admit` does for the only job of a transaction."""
    return admit(Room(tx, nodes, now), tx, uid, tenant, amount, now, node)
