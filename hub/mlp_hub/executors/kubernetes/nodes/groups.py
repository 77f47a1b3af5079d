"""Groups of nodes that the cluster could grow by: those that are not there yet are told as nodes that are absent.

A group is told by a ConfigMap in the hub's namespace with the label `mlp-hub/node-group`, whose value is the group's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.kubernetes.nodes.amounts import amount_of
from mlp_hub.executors.kubernetes.nodes.devices import USUAL
from mlp_hub.executors.nodes import Condition, ConditionKind, NodeInfo, kind_name
from mlp_hub.kubernetes.kinds import Object, labels_of
from mlp_hub.scheduler.nodes.states import GROUP

MOST = 1000
"""Limit of kubernetes: nodes of one node group."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Group of at most `most` nodes, each with this amount; `label` and `value` are its nodes' label."""

    name: str
    label: str
    value: str
    most: int
    amount: Resources
    kind: str | None = None

    def absent(self, nodes: Iterable[Mapping[str, str]]) -> Iterator[NodeInfo]:
        """Yield those that could be added beside the nodes that have these labels."""
        there = sum(labels.get(self.label) == self.value for labels in nodes)
        why = Condition(ConditionKind.ABSENT, f"group {self.name} has {there} of at most {self.most} nodes")
        labels = {self.label: self.value, GROUP: self.name}
        for number in range(1, self.most - there + 1):
            name = f"{self.name}+{number}"
            yield NodeInfo(name, self.amount, self.amount, self.kind, labels, conditions=(why,))


def group_of(found: Object) -> NodeGroup:
    """Read a group; raises `ValueError` that says what is wrong and what would be right.

    Its data are `most`, `nodes: LABEL=VALUE`, which its nodes have, and what a node has: `cpu`, `memory`, `gpu`, `gpu-kind`.
    """
    data: Mapping[str, str] = found.get("data") or {}
    name, most = labels_of(found)[GROUP], data.get("most", "")
    label, equals, value = data.get("nodes", "").partition("=")
    if not equals:
        raise ValueError("nodes is the label that its nodes have, such as pool=a100")
    if not most.isdigit() or int(most) > MOST:
        raise ValueError(f"most is {most!r}; it is the number of nodes that it may have, {MOST} at most")
    gpus, kind = data.get("gpu", "0"), kind_name(data.get("gpu-kind", "")) or None
    amount = amount_of({**data, USUAL: gpus}).resources_of(USUAL, kind)  # whichever: they are counted only
    if not amount.cpu or not amount.ram:
        raise ValueError("cpu and memory are what a node of it has, such as 64 and 512Gi")
    return NodeGroup(name, label, value, int(most), amount, kind if amount.gpu else None)
