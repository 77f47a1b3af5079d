"""Layout of the trees of tenants and cohorts; see `tree` for the rules.

A layout gives every node a cell per dimension: a number under which its use is counted. It stores
the way from each tenant to its root, which a question about quota follows. It never changes, so
that forks of a tree share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.dimensions import FLAT
from mlp_hub.scheduler.model.resources import limits_of
from mlp_hub.scheduler.model.types import TenantQueue

Cell = tuple[int, int, int]
"""Use of a node of the tree: where it is counted, its guarantee (what it never lends), the most it may hold."""

Path = tuple[Cell, ...]
"""Cells from a tenant up to its root."""

UNLIMITED = 1 << 62
"""Given: amount that stands for no limit."""
NO_LIMIT_ABOVE = 1 << 61
"""Given: bound between sums of real amounts, below, and sums that contain UNLIMITED, above."""


@dataclass(slots=True)
class Layout:
    """Parts of a tree that never change between two changes of a tenant."""

    paths: dict[str, dict[str, Path]]
    nominal: list[int | None]  # by cell; None: no limit of its own
    roots: dict[str, str]
    members: dict[str, tuple[str, ...]]
    first: int = 0  # the number of its first cell, while it is being made
    unused: int = 0  # cells of trees that are arranged otherwise now
    limited: dict[str, bool] = field(default_factory=dict)  # kept by `QuotaTree.is_limited`


@dataclass(slots=True)
class _QuotaNode:
    """A tenant or (tenant None) a cohort; limits by dimension, those that are None left out."""

    tenant: str | None
    above: _QuotaNode | None
    limits: dict[str, int] = field(default_factory=dict)
    borrowing: dict[str, int] = field(default_factory=dict)
    lending: dict[str, int] = field(default_factory=dict)
    below: list[_QuotaNode] = field(default_factory=list)
    # of the dimension that is being arranged:
    shares: bool = False  # whether it takes part in the tree of this dimension
    visible: int = 0  # of its total, what is not hidden by guarantees below
    hidden: int = 0  # the guarantees below it
    kept: int = 0  # its own guarantee, a part of what is visible
    tail: Path = ()  # from here to the root
    limited: Path = ()  # from the nearest tenant that has a limit to the root: what takers without a limit take from


def shape(tenant: TenantQueue) -> tuple[object, ...]:
    """Return all of a tenant that a layout depends on."""
    return tenant.quota, tenant.borrowing_limit, tenant.lending_limit, tenant.parent, tenant.cohort


def layout_of(tenants: Mapping[str, TenantQueue], first: int = 0) -> Layout:
    """Arrange the tenants; ValueError on an unknown parent or on a circle of parents, naming it.

    Cells are numbered from `first` on.
    """
    nodes = _nodes(tenants)
    dimensions = dict.fromkeys(FLAT)
    for node in nodes:
        dimensions.update(dict.fromkeys(node.limits))
    layout = Layout({name: {} for name in tenants}, [], {}, {}, first)
    for dimension in dimensions:
        for node in reversed(nodes):
            _total(node, dimension)
        for node in nodes:
            _enter(node, dimension, layout)
    members: dict[str, list[str]] = {}
    for name in tenants:
        root = layout.roots[name] = _root(tenants, name)
        members.setdefault(root, []).append(name)
    layout.members = {root: tuple(names) for root, names in members.items()}
    return layout


def touched(layout: Layout, tenants: Mapping[str, TenantQueue], changed: Iterable[str]) -> set[str]:
    """Return all tenants whose trees change if the changed ones (of before or of now) are as they are now.

    These make whole trees: a tenant that is not returned shares with none of them, neither before nor
    now.
    """
    found: set[str] = set()
    for name in changed:
        found.add(name)
        if name in layout.roots:
            found.update(layout.members[layout.roots[name]])
    for name in list(found):
        if (root := _root_if_any(tenants, name)) is not None:
            found.update(layout.members.get(root, ()))
    return found & tenants.keys()


def _root_if_any(tenants: Mapping[str, TenantQueue], name: str) -> str | None:
    """Return the result of `_root`, or None for a tenant that is gone or whose parents do not end."""
    seen: set[str] = set()
    top = tenants.get(name)
    while top is not None and top.parent is not None and top.name not in seen:
        seen.add(top.name)
        top = tenants.get(top.parent)
    return None if top is None or top.parent is not None else top.cohort or top.name


def merged(layout: Layout, part: Layout, gone: Iterable[str]) -> Layout:
    """Return a layout with the trees of `part` instead of those of the tenants `gone`.

    The cells of `part` follow those of the layout.
    """
    paths, roots, members = dict(layout.paths), dict(layout.roots), dict(layout.members)
    limited = dict(layout.limited)
    unused: set[int] = set()
    for name in gone:
        if name in paths:
            unused.update(at for path in paths.pop(name).values() for at, _, _ in path)
            members.pop(roots.pop(name), None)
            limited.pop(name, None)
    return Layout(
        paths | part.paths,
        layout.nominal + part.nominal,
        roots | part.roots,
        members | part.members,
        unused=layout.unused + len(unused),
        limited=limited,
    )


def _nodes(tenants: Mapping[str, TenantQueue]) -> list[_QuotaNode]:
    """List the nodes of all trees, each after the one above it."""
    nodes: dict[str, _QuotaNode] = {}
    cohorts: dict[str, _QuotaNode] = {}
    order: list[_QuotaNode] = []
    for first in tenants:
        chain: list[str] = []
        name: str | None = first
        while name is not None and name not in nodes:
            if name not in tenants:
                raise ValueError(f"{chain[-1]} has an unknown parent: {name}")
            if name in chain:
                raise ValueError(f"parents in a circle: {' > '.join([*chain[chain.index(name) :], name])}")
            chain.append(name)
            name = tenants[name].parent
        for each in reversed(chain):
            tenant = tenants[each]
            above = nodes[tenant.parent] if tenant.parent is not None else None
            if above is None and tenant.cohort is not None:
                above = cohorts.get(tenant.cohort)
                if above is None:
                    above = cohorts[tenant.cohort] = _QuotaNode(None, None)
                    order.append(above)
            node = _QuotaNode(
                each,
                above,
                limits_of(tenant.quota),
                limits_of(tenant.borrowing_limit),
                limits_of(tenant.lending_limit),
            )
            if above is not None:
                above.below.append(node)
            nodes[each] = node
            order.append(node)
    return order


def _root(tenants: Mapping[str, TenantQueue], name: str) -> str:
    top = tenants[name]
    while top.parent is not None:
        top = tenants[top.parent]
    return top.cohort or top.name


def _total(node: _QuotaNode, dimension: str) -> None:
    """Add up what this node has, all below being known."""
    own = node.limits.get(dimension)
    node.hidden = node.kept = 0
    node.shares = own is not None or any(n.shares for n in node.below)
    if not node.shares:
        node.visible = 0
        return
    _sum(node, own)
    if own is not None and node.hidden > own:
        _shrink_below(node, dimension, own)
    if own is not None and node.above is not None and dimension in node.lending:
        node.kept = max(0, node.visible - node.lending[dimension])


def _sum(node: _QuotaNode, own: int | None) -> None:
    node.hidden = sum(n.hidden + n.kept for n in node.below if n.shares)
    if own is not None:
        node.visible = own - node.hidden
    else:
        node.visible = sum(n.visible - n.kept for n in node.below if n.shares)


def _shrink_below(node: _QuotaNode, dimension: str, most: int) -> None:
    """Shrink the guarantees below in proportion, so that together they promise no more than `most`."""
    promised = node.hidden
    for child in node.below:
        if not child.shares:
            continue
        part = (child.hidden + child.kept) * most // promised
        if child.hidden > part:
            child.kept = 0
            _shrink_below(child, dimension, part)
        else:
            child.kept = part - child.hidden
    _sum(node, node.limits.get(dimension))


def _enter(node: _QuotaNode, dimension: str, layout: Layout) -> None:
    """Number the cells of this node and of the node's jobs, with all above known, and store the way up."""
    own = node.limits.get(dimension)
    above = node.above
    node.tail = ()
    node.limited = above.limited if above is not None else ()
    if node.shares:
        if above is None:
            most = node.visible
        elif own is not None and dimension in node.borrowing:
            most = node.visible + node.borrowing[dimension]
        else:
            most = UNLIMITED
        cell = (_cell(layout, node.visible), node.kept, most)
        node.tail = (cell, *(above.tail if above is not None else ()))
        if own is not None:
            node.limited = node.tail
    if node.tenant is None:
        return
    if own is None:
        path: Path = ((_cell(layout, None), 0, UNLIMITED), *node.limited)
    elif node.below:
        left = max(0, own - sum(n.hidden + n.visible for n in node.below if n.shares))
        path = ((_cell(layout, left), 0, UNLIMITED), *node.tail)
    else:
        path = node.tail
    layout.paths[node.tenant][dimension] = path


def _cell(layout: Layout, nominal: int | None) -> int:
    layout.nominal.append(nominal)
    return layout.first + len(layout.nominal) - 1


def room_on(used: Sequence[int], path: Path) -> int:
    """Return how much more may be taken at the start of a way, given what is in use by cell."""
    room = UNLIMITED
    for at, kept, most in reversed(path):
        held = used[at]
        room = kept - held + min(room, most - kept) if held < kept else min(room, most - held)
    # an overfull node above (a quota was lowered) is paid for first, as in Kueue: nobody is told a debt
    return max(0, room)


def has_room(used: Sequence[int], path: Path, asked: int) -> bool:
    """Return whether every node on the way up has room for the part that guarantees below it do not cover."""
    rest = asked  # below zero it pays for an overfull node above
    for at, kept, most in path:
        held = used[at]
        if held < kept:
            rest -= kept - held
            held = kept
        if held + rest > most:
            return False
    return True
