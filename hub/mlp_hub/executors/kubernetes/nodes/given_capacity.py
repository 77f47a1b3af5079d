"""Amounts to give out where the hub may not read nodes: an administrator names them, and the cluster chooses the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.amounts import NONE
from mlp_hub.executors.kubernetes.nodes.description import describe
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes.kinds import NODES, Object

NAME = "capacity"
"""Contract: name of the one node that stands for all."""


def node(at: Installation) -> Object:
    """Return a node as the cluster would have it, with all amounts."""
    ready = {"type": "Ready", "status": "True"}
    amounts = dict(at.capacity)
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return NODES.named(NAME, spec={}, status=status)


class GivenCapacity:
    """Nodes of `ClusterNodes`, for a hub that cannot read any: one, which never changes."""

    trouble: MessageError | None = None

    def __init__(self, at: Installation) -> None:
        described = describe(node(at), at.tolerations, at.cpu_overcommit)
        self._view = (described.less(NONE, NONE),)
        self._device = described.device

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def nodes(self) -> Sequence[NodeInfo]:
        """Return the node."""
        return self._view

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Call nobody: the node does not change."""

    def device(self, _name: str) -> str | None:
        """Return the resource that its GPUs are; None where it has none."""
        return self._device
