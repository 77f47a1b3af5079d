"""Where the ranks of a gang go: all of them or none.

A node offers whole slots of one rank each, so feasibility is counting and costs one pass over the nodes.
Workers and their parameter servers are dealt out interleaved, which puts a PS beside its worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import Node, WaitingJob

UNBOUNDED = 1 << 30


def slots(free: Resources, per_rank: Resources) -> int:
    """Count the ranks that fit into what is free."""
    n = UNBOUNDED
    for (_, have), (_, need) in zip(free.items(), per_rank.items(), strict=True):
        if need > 0:
            n = min(n, max(have, 0) // need)
    return n


def matches(node: Node, job: WaitingJob) -> bool:
    """Whether the node may host the job at all: it is up, untainted and has the gpu kind asked for."""
    if not node.up or node.taints:
        return False
    return not (job.gpu_kind and job.per_worker.gpu and node.gpu_kind != job.gpu_kind)


def domain_label(topology: str | None) -> tuple[str | None, bool]:
    """Read a topology request: the label within whose one value all ranks must (or should) stay.

    `same-node` packs within a node, `same-rack` within the label `rack`; `required:LABEL` and
    `preferred:LABEL` name the label. Returns (label, required); the node itself is the label `""`.
    """
    if topology in (None, "", "spread", "bin-pack"):
        return None, False
    if topology == "same-node":
        return "", True
    if topology == "same-rack":
        return "rack", True
    how, _, label = str(topology).partition(":")
    return label, how == "required"


def place(
    job: WaitingJob, nodes: Sequence[Node], free: Mapping[str, Resources], workers: int
) -> tuple[str, ...] | None:
    """Return the node of each rank (workers first, then PS), or None when the gang does not fit whole."""
    ranks = workers + job.ps
    room = [
        (node, n)
        for node in nodes
        if matches(node, job) and (n := min(slots(free[node.name], job.per_worker), ranks)) > 0
    ]
    label, required = domain_label(job.topology)
    if label is not None:
        best: list[tuple[Node, int]] | None = None
        for group in _groups(room, label):
            # the tightest group that holds all leaves the larger ones whole
            total = sum(n for _, n in group)
            if total >= ranks and (best is None or total < sum(n for _, n in best)):
                best = group
        if best is not None:
            return _deal(job, best, free, workers)
        if required:
            return None
    if sum(n for _, n in room) < ranks:
        return None
    return _deal(job, room, free, workers)


def most_workers(job: WaitingJob, nodes: Sequence[Node], free: Mapping[str, Resources]) -> int:
    """Return the largest number of workers up to `workers_max` that can be placed now, 0 when not even the least."""
    low, high = job.workers_min, job.workers_max
    if place(job, nodes, free, low) is None:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if place(job, nodes, free, middle) is None:
            high = middle - 1
        else:
            low = middle
    return low


def _groups(room: Sequence[tuple[Node, int]], label: str) -> list[list[tuple[Node, int]]]:
    groups: dict[str, list[tuple[Node, int]]] = {}
    for node, n in room:
        value = node.name if label == "" else node.labels.get(label)
        if value is not None:
            groups.setdefault(value, []).append((node, n))
    return list(groups.values())


def _deal(
    job: WaitingJob, room: Sequence[tuple[Node, int]], free: Mapping[str, Resources], workers: int
) -> tuple[str, ...]:
    """Deal the ranks out over nodes that are known to hold them."""
    order = _interleaved(workers, job.ps)
    seats = _spread(room, len(order)) if job.topology == "spread" else _pack(room, free, len(order))
    placement = [""] * len(order)
    for rank, node in zip(order, seats, strict=True):
        placement[rank] = node
    return tuple(placement)


def _interleaved(workers: int, ps: int) -> list[int]:
    """Order ranks as w0 p0 w1 p1 ...; a rank's number is its place in the placement."""
    order: list[int] = []
    for i in range(max(workers, ps)):
        if i < workers:
            order.append(i)
        if i < ps:
            order.append(workers + i)
    return order


def _pack(room: Sequence[tuple[Node, int]], free: Mapping[str, Resources], ranks: int) -> list[str]:
    """Bin-pack: one node if one holds all (the fullest such), else the emptiest nodes first, the rest tightly."""
    seats: list[str] = []
    left = list(room)
    while len(seats) < ranks:
        need = ranks - len(seats)
        whole = [entry for entry in left if entry[1] >= need]
        if whole:
            node, _ = min(
                whole,
                key=lambda e: (free[e[0].name].gpu, free[e[0].name].cpu, free[e[0].name].ram, e[0].name),
            )
            seats += [node.name] * need
        else:
            entry = max(left, key=lambda e: (e[1], e[0].name))
            left.remove(entry)
            seats += [entry[0].name] * entry[1]
    return seats


def _spread(room: Sequence[tuple[Node, int]], ranks: int) -> list[str]:
    """Deal one rank to each node in turn."""
    left = {node.name: n for node, n in room}
    seats: list[str] = []
    while len(seats) < ranks:
        for name in sorted(left, key=lambda n: (-left[n], n)):
            if left[name] and len(seats) < ranks:
                left[name] -= 1
                seats.append(name)
    return seats
