"""A node as the cluster describes it, without what pods take of it, and without what changes all the time and matters to nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.kubernetes.nodes.amounts import NodeAmount, amount_of
from mlp_hub.executors.kubernetes.nodes.devices import device_of, kind_of
from mlp_hub.executors.kubernetes.nodes.faults import Toleration, conditions_of, taints_of
from mlp_hub.executors.nodes import Condition, NodeInfo, Taint
from mlp_hub.kubernetes.kinds import Object, labels_of, name_of

_SHORT = {
    "topology.kubernetes.io/zone": "zone",
    "topology.kubernetes.io/region": "region",
    "topology.kubernetes.io/rack": "rack",
    "mlp-hub/rack": "rack",
}
"""Given: labels that tell where a node is, by the short names that `--topology` has, where a node has no label of that name."""


@dataclass(frozen=True, slots=True)
class Description:
    """All that the hub goes by of a node; two of them are equal where nothing that matters has changed.

    `device` is the resource that its GPUs are.
    """

    name: str
    allocatable: NodeAmount
    capacity: Resources
    device: str | None
    kind: str | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    conditions: tuple[Condition, ...]
    cpu_overcommit: float = 1.0

    def less(self, staying: NodeAmount, passing: NodeAmount) -> NodeInfo:
        """Return the node less what pods of others take, those that stay as long as the node does and those that may go."""
        ever = self.allocatable.plus(staying, -1)
        at_most = self._given_out(ever)
        now = self._given_out(ever.plus(passing, -1))
        return NodeInfo(
            self.name,
            now,
            self.capacity,
            self.kind,
            self.labels,
            self.taints,
            self.conditions,
            others=at_most - now,
        )

    def _given_out(self, amount: NodeAmount) -> Resources:
        found = amount.resources_of(self.device, self.kind)
        return found.but(cpu=int(found.cpu * self.cpu_overcommit))


def describe(node: Object, tolerated: Iterable[Toleration] = (), cpu_overcommit: float = 1.0) -> Description:
    """Describe a node for a hub whose pods all tolerate these taints.

    The hub gives out `cpu_overcommit` CPU for each core.
    """
    status, labels = node.get("status") or {}, labels_of(node)
    capacity, allocatable = amount_of(status.get("capacity")), amount_of(status.get("allocatable"))
    device = device_of(dict(capacity.devices))
    kind = None if device is None else kind_of(device, labels)
    return Description(
        name_of(node),
        allocatable,
        capacity.resources_of(device, kind),
        device,
        kind,
        {short: labels[long] for long, short in _SHORT.items() if long in labels} | dict(labels),
        taints_of(node, tolerated),
        conditions_of(node),
        cpu_overcommit,
    )
