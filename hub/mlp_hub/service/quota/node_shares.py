"""Shares of a placed gang on each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.workload.ledger import ResourceRequest

Shares = tuple[tuple[str, Resources], ...]


def shares_of(per_worker: Resources, placement: Sequence[str], kinds: Mapping[str, str | None]) -> Shares:
    """Return what a placed gang takes of each node, gpus under the node's kind."""
    shares: dict[str, Resources] = {}
    for node in placement:
        amount = per_worker.of_kind(kinds.get(node))
        shares[node] = shares[node] + amount if node in shares else amount
    return tuple(sorted(shares.items()))


def total_of(shares: Shares) -> Resources:
    """Return all of it together."""
    total = ZERO
    for _, amount in shares:
        total += amount
    return total


def kinds_in(request: ResourceRequest) -> dict[str, str | None]:
    """Return the kind of GPU of each node that a request takes something of, where it takes GPUs."""
    return {node: amount.kinds[0][0] if amount.kinds else None for node, amount in request.shares}
