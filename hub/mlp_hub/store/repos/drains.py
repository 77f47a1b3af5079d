"""Nodes that were taken out of service."""

from __future__ import annotations

from sqlalchemy import delete, select

from mlp_hub.domain.workload.drain import NodeDrain
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import node_drain as t


class DrainedNodes(Repo):
    """The drained nodes."""

    __slots__ = ()

    def all(self) -> list[NodeDrain]:
        """Return all, by name."""
        rows = self._c.execute(select(t).order_by(t.c.node))
        return [NodeDrain(r.node, r.reason, r.actor, r.since, r.evict) for r in rows]

    def put(self, drain: NodeDrain) -> None:
        """Store that a node is drained, or why and how from now on."""
        values = {
            "node": drain.node,
            "reason": drain.reason,
            "actor": drain.actor,
            "since": drain.since,
            "evict": drain.evict,
        }
        self._c.execute(self._upsert(t, ("node",)), values)

    def remove(self, node: str) -> bool:
        """Store that a node is in service; False where it was."""
        return bool(self._c.execute(delete(t).where(t.c.node == node)).rowcount)
