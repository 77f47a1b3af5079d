"""Nodes less the pods of others there; after each change only the changed part is computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlp_hub.executors.kubernetes.nodes.amounts import NONE, NodeAmount
from mlp_hub.executors.kubernetes.nodes.description import Description
from mlp_hub.executors.kubernetes.nodes.groups import NodeGroup
from mlp_hub.executors.kubernetes.nodes.requests import Use
from mlp_hub.executors.nodes import NodeInfo


class NodeTable:
    """Nodes by name, in the order of their names, so that it is the same after a restart.

    Pods can be seen before their node, and stay when it goes: the cluster reports both in no certain
    order.
    """

    def __init__(self) -> None:
        self._described: dict[str, Description] = {}
        self._taken: dict[
            str, tuple[NodeAmount, NodeAmount, int]
        ] = {}  # by staying and passing pods, and their number
        self._made: dict[str, NodeInfo] = {}
        self._groups: dict[str, NodeGroup] = {}
        self._dirty: set[str] = set()
        self._groups_changed = False
        self._view: tuple[NodeInfo, ...] = ()

    @property
    def view(self) -> Sequence[NodeInfo]:
        """All nodes as of the last `renew`."""
        return self._view

    def node_is(self, name: str, now: Description | None) -> None:
        """Tell what a node is now, None where there is none of that name any more."""
        if now is None:
            self._described.pop(name, None)
        else:
            self._described[name] = now
        self._dirty.add(name)

    def pod_is(self, before: Use | None, now: Use | None) -> None:
        """Tell what a pod of others takes now, and what it took before."""
        for use, sign in ((before, -1), (now, 1)):
            if use is not None:
                self._take(use, sign)
                self._dirty.add(use.node)

    def group_is(self, name: str, now: NodeGroup | None) -> None:
        """Set the present state of a group that could grow, by its name; None where it can grow no more."""
        if now is None:
            self._groups.pop(name, None)
        else:
            self._groups[name] = now
        self._groups_changed = True

    def _take(self, use: Use, sign: int) -> None:
        staying, passing, pods = self._taken.get(use.node, (NONE, NONE, 0))
        if use.stays:
            staying = staying.plus(use.amount, sign)
        else:
            passing = passing.plus(use.amount, sign)
        if pods + sign:
            self._taken[use.node] = staying, passing, pods + sign
        else:
            del self._taken[use.node]

    def renew(self) -> bool:
        """Apply the changes since the last call; return whether any node has changed."""
        dirty, self._dirty = self._dirty, set()
        made, changed, joined = self._made, self._groups_changed, False
        self._groups_changed = False
        for name in dirty:
            described, before = self._described.get(name), made.get(name)
            if described is None:
                if before is not None:
                    del made[name]
                    changed = True
                continue
            staying, passing, _ = self._taken.get(name, (NONE, NONE, 0))
            now = described.less(staying, passing)
            if now != before:
                made[name] = now
                changed, joined = True, joined or before is None
        if joined:
            self._made = {name: made[name] for name in sorted(made)}
        if changed:
            before_all, self._view = self._view, (*self._made.values(), *self._absent())
            changed = self._view != before_all
        return changed

    def _absent(self) -> Iterator[NodeInfo]:
        for name in sorted(self._groups):
            yield from self._groups[name].absent(node.labels for node in self._made.values())
