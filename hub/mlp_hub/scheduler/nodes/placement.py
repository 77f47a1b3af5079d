"""Placement of the ranks of a gang: all of them or none.

A gang goes onto one node if one holds it, else onto the nodes that hold most of it, and the rest where it fits best.
Which of several nodes that do equally is a matter of the rule: least rise of fragmentation, then the tightest, then
the first. A required domain (a rack, a zone) is the tightest one that holds the gang.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.nodes.states import RULES, PreparedDemand, slots_of

if TYPE_CHECKING:
    from mlp_hub.scheduler.nodes.index import NodeIndex
    from mlp_hub.scheduler.nodes.states import NodeState
    from mlp_hub.scheduler.nodes.views import PlaceOrder

TOPOLOGIES = ("same-node", "same-rack", "same-zone", "spread")
"""Rules of where ranks go, in addition to `required:LABEL` and `preferred:LABEL`."""
NODE = ""  # stands for the node itself where a label is looked for


def domain_label(topology: str | None) -> tuple[str | None, bool]:
    """Return the label of a topology request, one value of which ranks share, and whether they must share it.

    Otherwise they only should. `same-node`, `same-rack` and `same-zone` require the node (label `""`)
    and the labels `rack` and `zone`; `required:LABEL` and `preferred:LABEL` name the label. (None,
    False) without such a wish.
    """
    if topology in (None, "", "spread", "bin-pack"):
        return None, False
    if topology == "same-node":
        return NODE, True
    if topology in ("same-rack", "same-zone"):
        return str(topology).removeprefix("same-"), True
    how, colon, label = str(topology).partition(":")
    if not colon or how not in ("required", "preferred"):
        raise ValueError(
            f"no topology {topology!r}; there are {', '.join(TOPOLOGIES)}, required:LABEL and preferred:LABEL"
        )
    return (NODE if label == "node" else label), how == "required"


def place(
    index: NodeIndex, demand: Demand, ranks: int, topology: str | None, *, avoid: Collection[str], rule: str
) -> tuple[str, ...] | None:
    """Return the node of each rank, or None when the gang does not fit whole."""
    if rule not in RULES:
        raise ValueError(f"no placement rule {rule!r}; there are {', '.join(RULES)}")
    label, required = domain_label(topology)
    if ranks <= 0:
        return ()
    ask = index.catalog.ask(demand)
    closed = {n for name in avoid if (n := index.number_of(name)) is not None}
    if topology == "spread" or (rule == "spread" and label is None):
        return _spread(index, ask, ranks, closed)
    if label == NODE:
        one = _one_node(index, ask, ranks, rule, closed)
        if one is not None:
            return (index.name_of(one),) * ranks
    elif label is not None:
        found = _in_a_domain(index, ask, ranks, label, rule=rule, closed=closed)
        if found is not None:
            return found
    if required:
        return None
    return _pack(index, ask, ranks, rule, closed)


def _pack(
    index: NodeIndex, ask: PreparedDemand, ranks: int, rule: str, closed: set[int]
) -> tuple[str, ...] | None:
    """Fill the nodes that hold most, then put the rest where it fits best."""
    if ranks > 1:
        totals = index.totals(ask)
        if totals.total < ranks:
            return None
        sizes = sorted(totals.by_slots, reverse=True)
    else:
        sizes = [1]
    seats: list[str] = []
    used = set(closed)
    at = 0
    while len(seats) < ranks:
        left = ranks - len(seats)
        # nodes still in play hold no more than sizes[at], save ones in `used`
        if at < len(sizes) and left <= sizes[at]:
            one = _one_node(index, ask, left, rule, used)
            if one is not None:
                return (*seats, *[index.name_of(one)] * left)
        while at < len(sizes):
            size = sizes[at]
            number = None if size >= left else _first(index, index.order(ask, size, rule, exact=True), used)
            if number is not None:
                seats += [index.name_of(number)] * size
                used.add(number)
                break
            at += 1
        else:
            return None
    return tuple(seats)


def _one_node(index: NodeIndex, ask: PreparedDemand, ranks: int, rule: str, closed: set[int]) -> int | None:
    order = index.order(ask, ranks, rule)
    if rule == "random":
        return _drawn(index, order, closed)
    return _first(index, order, closed)


def _first(index: NodeIndex, order: PlaceOrder, closed: set[int]) -> int | None:
    """Return the best node; of those in equally good states the first."""
    best: int | None = None
    score: tuple[float, ...] = ()
    for entry in order.entries:
        if best is not None and entry[0] != score:
            break
        for number in index.by_state[entry[3]]:
            if best is not None and number > best:
                break
            if number not in closed:
                best, score = number, entry[0]
                break
    return best


def _drawn(index: NodeIndex, order: PlaceOrder, closed: set[int]) -> int | None:
    """Draw a node; the same one as long as nothing changed."""
    members = index.by_state
    drawn = _mixed(index.seed, index.changes)
    if closed:
        numbers = sorted(n for entry in order.entries for n in members[entry[3]] if n not in closed)
        return numbers[drawn % len(numbers)] if numbers else None
    sizes = [len(members[entry[3]]) for entry in order.entries]
    if not sizes:
        return None
    at = drawn % sum(sizes)
    for entry, size in zip(order.entries, sizes, strict=True):
        if at < size:
            return members[entry[3]][at]
        at -= size
    return None


def _mixed(seed: int, step: int) -> int:
    """Turn a seed and a step into evenly spread bits (SplitMix64)."""
    z = (seed * 0xD1342543DE82EF95 + (step + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ z >> 31


def _in_a_domain(
    index: NodeIndex, ask: PreparedDemand, ranks: int, label: str, *, rule: str, closed: set[int]
) -> tuple[str, ...] | None:
    """Pack within the tightest value of a label that holds all; the larger ones stay whole."""
    domains = index.domains(ask, label)
    for _, value in sorted((total, value) for value, total in domains.totals.items() if total >= ranks):
        nodes = [(k, n, state) for n, (k, state) in domains.nodes[value].items() if n not in closed]
        if sum(k for k, _, _ in nodes) >= ranks:
            return _pack_few(index, ask, ranks, rule, nodes)
    return None


def _pack_few(
    index: NodeIndex, ask: PreparedDemand, ranks: int, rule: str, nodes: list[tuple[int, int, NodeState]]
) -> tuple[str, ...]:
    """Pack as `_pack` does, within a few nodes (slots, number, state) that are known to hold all."""
    left = ranks
    seats: list[str] = []

    def rated(node: tuple[int, int, NodeState], n: int) -> tuple[tuple[float, ...], int]:
        return index.catalog.score(node[2], ask, n, rule), node[1]

    while True:
        holds_all = [node for node in nodes if node[0] >= left]
        if holds_all:
            _, number, _ = min(holds_all, key=lambda node: rated(node, left))
            return (*seats, *[index.name_of(number)] * left)
        most = max(k for k, _, _ in nodes)
        best = min((node for node in nodes if node[0] == most), key=lambda node: rated(node, most))
        nodes.remove(best)
        seats += [index.name_of(best[1])] * most
        left -= most


def _spread(index: NodeIndex, ask: PreparedDemand, ranks: int, closed: set[int]) -> tuple[str, ...] | None:
    """Deal one rank to each node in turn, the nodes that hold most first."""
    nodes: list[tuple[tuple[float, ...], int, int]] = []  # score, number, slots
    for entry in index.order(ask, 1, "spread").entries:
        if len(nodes) >= ranks and nodes[-1][0] != entry[0]:
            break  # enough nodes for one rank each
        slots = slots_of(entry[3], ask)
        nodes += ((entry[0], number, slots) for number in index.by_state[entry[3]] if number not in closed)
    nodes.sort()
    if sum(slots for _, _, slots in nodes) < ranks:
        return None
    seats: list[str] = []
    turn = 0
    while len(seats) < ranks:
        seats += [index.name_of(number) for _, number, slots in nodes if slots > turn][: ranks - len(seats)]
        turn += 1
    return tuple(seats)
