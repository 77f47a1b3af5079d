"""Events reported to the core since its last cycle that can be the reason for a start now.

They are references; the module that reports them puts them into words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.workload.workload import JOB
from mlp_hub.scheduler.model.types import Node, PendingWorkload, TenantQueue


class NodeNews(StrEnum):
    """Event of a node."""

    NEW = "new"
    BACK = "back"
    CHANGED = "changed"


@dataclass(slots=True)
class News:
    """Jobs that ended, nodes that came or have other amounts, tenants whose limits are others. Not `complete` before a core's first cycle."""

    complete: bool = True
    ended: dict[str, PendingWorkload] = field(default_factory=dict)
    nodes: dict[str, NodeNews] = field(default_factory=dict)
    tenants: dict[str, None] = field(default_factory=dict)

    def note_end(self, job: PendingWorkload) -> None:
        """Note that a job ended; a request that leaves has its room, and counts with non-jobs from then on."""
        if job.kind == JOB:
            self.ended[job.uid] = job

    def note_node(self, before: Node | None, now: Node) -> None:
        """Note that a node is new, came back or has other amounts; use by non-jobs is not news."""
        if before is None:
            self.nodes[now.name] = NodeNews.NEW
        elif now.up and not before.up:
            self.nodes[now.name] = NodeNews.BACK
        elif before.capacity != now.capacity:
            self.nodes[now.name] = NodeNews.CHANGED

    def note_tenant(self, before: TenantQueue, now: TenantQueue) -> None:
        """Note that a tenant's limits, or its place in the tree, are others."""
        if before is not now and _limits(before) != _limits(now):
            self.tenants[now.name] = None


def _limits(t: TenantQueue) -> tuple[object, ...]:
    return t.quota, t.borrowing_limit, t.lending_limit, t.reserved, t.cohort, t.parent
