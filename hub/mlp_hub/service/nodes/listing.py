"""Nodes: their list, their available amounts, and the holders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from mlp_api import types as api
from mlp_hub.domain.resources import ZERO, Resources, units
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.wire import holding_to
from mlp_hub.store import Database

Part = tuple[ResourceRequest, Resources]
"""Holder of a part of a node, and its amount."""


class Nodes:
    """The nodes beside the ledger's rows that take their capacity."""

    def __init__(
        self, db: Database, nodes: Callable[[], Sequence[NodeInfo]], clock: Callable[[], float]
    ) -> None:
        self._db = db
        self._nodes = nodes
        self._clock = clock

    async def list(self) -> Sequence[api.Node]:
        """Return all nodes with their holders."""
        now = self._clock()
        holders = await self._db.read(lambda tx: tx.ledger.on_nodes(now))
        parts: dict[str, list[Part]] = {}
        for request in holders:
            for name, share in request.shares:
                parts.setdefault(name, []).append((request, share))
        return [_node_to(node, parts.get(node.name, ())) for node in self._nodes()]


def _node_to(node: NodeInfo, parts: Sequence[Part]) -> api.Node:
    """Return a node with those who hold a part of it."""
    used = ZERO
    for _, share in parts:
        used += share
    return api.Node(
        name=node.name,
        up=node.ready,
        schedulable=node.schedulable,
        conditions=msgspec.convert(
            [{"kind": c.kind.value, "message": c.message} for c in node.conditions], list[api.NodeCondition]
        ),
        taints=msgspec.convert(
            [{"key": t.key, "value": t.value, "effect": t.effect.value} for t in node.taints], list[api.Taint]
        ),
        cpu=units(node.capacity.cpu),
        gpu=units(node.capacity.gpu),
        gpu_kind=node.gpu_kind,
        ram=node.capacity.ram,
        cpu_allocatable=units(node.allocatable.cpu),
        ram_allocatable=node.allocatable.ram,
        cpu_inuse=units(used.cpu),
        gpu_inuse=units(used.gpu),
        ram_inuse=used.ram,
        cpu_others=units(node.others.cpu),
        gpu_others=units(node.others.gpu),
        ram_others=node.others.ram,
        labels=dict(node.labels),
        holders=[holding_to(request, share) for request, share in parts],
    )
