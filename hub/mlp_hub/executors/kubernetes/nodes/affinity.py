"""Affinity of pods to the nodes that the hub chose, by the nodes' names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NODES_MOST = 100
"""Tuning: nodes that an affinity names; for more than that the scheduler finds its own."""


def on_nodes(names: Iterable[str]) -> dict[str, Any] | None:
    """Return the affinity to these nodes; None where there are none, or too many to be named.

    The label `kubernetes.io/hostname` is a host's name, which need not be the node's. A term takes one name only, and one term
    has to hold.
    """
    chosen = sorted(set(names))
    if not 0 < len(chosen) <= NODES_MOST:
        return None
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in chosen
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
