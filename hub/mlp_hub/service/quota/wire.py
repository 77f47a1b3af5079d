"""Holders and their amounts, in their wire form."""

from __future__ import annotations

from mlp_api import types as api
from mlp_api.localized import Text
from mlp_hub.domain.resources import Resources, units
from mlp_hub.domain.workload.ledger import OF_JOBS, ResourceRequest, replica_in
from mlp_hub.service.quota.refusals import holder_of
from mlp_hub.service.support.units import when


def holding_to(request: ResourceRequest, amount: Resources | None = None) -> api.Holding:
    """Return who holds how much; `amount` in place of the whole, where only a part counts (a node's)."""
    a = request.amount if amount is None else amount
    replica = replica_in(request)
    return api.Holding(
        holder=Text(holder_of(request)),
        job=request.holder if request.applier == OF_JOBS and " " not in request.holder else None,
        user=request.user,
        applier=request.applier,
        cpu=units(a.cpu),
        gpu=units(a.gpu),
        ram=a.ram,
        rom=a.rom,
        amounts=dict(a.amounts),
        since=when(request.created_at),
        app=None if replica is None else replica[0],
        replica=None if replica is None else replica[1],
    )
