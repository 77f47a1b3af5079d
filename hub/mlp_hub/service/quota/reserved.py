"""Capacity of the nodes kept free for tenants now: permanent reservations, and bookings for this time.

Where anything is kept free, all tenants count, whatever tenants they share with. Then the trees of
the ledger, of admissions and of displays are one tree that knows the capacity. The scheduling
core's tree always does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import Vector, vector_of
from mlp_hub.scheduler.model.types import CapacityWindow
from mlp_hub.scheduler.quota.booked_windows import BookedWindows
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.store.tx import Tx

ENDLESS = 2**61
"""Given: amount of anything that is more than there is."""


@dataclass(frozen=True, slots=True)
class KeptFree:
    """Capacity and windows that a tree has to know to keep something free."""

    capacity: Vector  # of the nodes that are up
    booked: Mapping[str, Vector]  # by tenant

    def apply_to(self, tree: QuotaTree) -> None:
        """Let a tree, charged or not, keep it free."""
        tree.set_capacity(self.capacity)
        tree.set_booked(self.booked)


def bookings(tx: Tx, now: float) -> tuple[CapacityWindow, ...]:
    """Return the windows that are not over, with the amounts that can be held.

    Their form is that of the scheduling core.
    """
    return tuple(
        CapacityWindow(w.tenant, w.start, w.end, w.in_force, w.name) for w in tx.bookings.current(now)
    )


def kept_free(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> KeptFree | None:
    """Return what is kept free now; None when nobody reserves anything and no window is open (one cheap query)."""
    if not tx.tenants.any_kept_free(now):
        return None
    capacity = vector_of(total_of(n for n in nodes if n.schedulable))
    return KeptFree(capacity, BookedWindows(bookings(tx, now)).at(now))


def capacity_of(node: NodeInfo) -> Resources:
    """Return what the node may give out, its gpus under their kind."""
    return node.allocatable.of_kind(node.gpu_kind)


def total_of(nodes: Iterable[NodeInfo]) -> Resources:
    """Return what nodes may give out together."""
    total = ZERO
    for node in nodes:
        total += capacity_of(node)
    return total


def by_quota_alone(tree: QuotaTree, dimension: str) -> QuotaTree:
    """Return a copy of a tree in which nothing of a dimension is kept free."""
    copy = tree.fork()
    if copy.reserves:
        copy.set_capacity({dimension: ENDLESS})
    return copy


def at_most(tree: QuotaTree, nodes: Sequence[NodeInfo]) -> QuotaTree:
    """Return a copy that says what could ever be held: no window is open, and nodes that are down come back."""
    copy = tree.fork()
    if copy.reserves:
        copy.set_booked({})
        copy.set_capacity(vector_of(total_of(nodes)))
    return copy
