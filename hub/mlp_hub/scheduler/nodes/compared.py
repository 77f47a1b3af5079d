"""Alternatives of a placement: the chosen nodes and the next best ones by the rule, as they were then.

They are references to the records of the index. The module that reports them computes the amounts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.node import NodeRecord
from mlp_hub.scheduler.nodes.placement import domain_label

MOST_PLACES = 4
"""Tuning: places that are named in addition to the chosen ones; a reader's attention against detail."""


class NodeChoice(NamedTuple):  # several for each admission: made in a third of a dataclass's time
    """A node that ranks got, or could have got. `taken` of them are new there; the least score is the best."""

    record: NodeRecord
    ranks: int
    taken: int
    chosen: bool
    score: tuple[float, ...] = ()

    @property
    def node(self) -> str:
        """Return its name."""
        return self.record.node.name

    def free_after(self, per_rank: Resources) -> Resources:
        """Return what is free there with the new ranks, but for storage."""
        r, n = self.record, self.taken
        return Resources(
            r.cpu - per_rank.cpu * n, sum(r.devices) - per_rank.gpu * n, r.ram - per_rank.ram * n
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Places of a gang.

    `compared`: others were looked at by the rule, and the best few are named. `alone`: there is not
    another node.
    """

    rule: str
    nodes: tuple[NodeChoice, ...]
    compared: bool = False
    alone: bool = False

    @property
    def only(self) -> bool:
        """Whether no other node had room."""
        return self.compared and all(n.chosen for n in self.nodes)


def placed(
    index: NodeIndex,
    demand: Demand,
    placement: tuple[str, ...],
    topology: str | None = None,
    taken: Mapping[str, int] | None = None,
) -> Placed:
    """Return the nodes of a placement that is about to be taken, and what the last search compared them with.

    `taken` counts the ranks on each node that are new; left out, all are.
    """
    seats = Counter(placement) if len(placement) > 1 else dict.fromkeys(placement, 1)
    fresh = seats if taken is None else taken
    label, required = domain_label(topology)
    # the last piece of a gang over several nodes had the most nodes to choose from
    ranks = min(fresh.values())
    order = None if required and label else index.compared(demand, ranks)
    where = {} if order is None else order.where
    nodes = []
    for name, n in seats.items():
        if name in index:
            record = index.record(name)
            listed = None if record.state is None or n != ranks else where.get(record.state)
            nodes.append(NodeChoice(record, n, fresh.get(name, 0), True, () if listed is None else listed[0]))
    if order is not None:
        left = MOST_PLACES
        for score, _, _, state in order.entries:
            for number in index.by_state[state]:
                if (name := index.name_of(number)) not in seats:
                    nodes.append(NodeChoice(index.record(name), ranks, ranks, False, score))
                    left -= 1
                    if not left:
                        break
            if not left:
                break
    return Placed(index.rule, tuple(nodes), order is not None, index.count == 1)


def stays_on(index: NodeIndex, placement: tuple[str, ...]) -> Placed:
    """Return the nodes of a job that continues with fewer ranks, as they are now."""
    nodes = [
        NodeChoice(index.record(name), n, 0, True) for name, n in Counter(placement).items() if name in index
    ]
    return Placed(index.rule, tuple(nodes))
