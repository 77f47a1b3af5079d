"""Fragmentation: how much of the idle GPUs of a node is of no use to the jobs that are typical here.

The measure is that of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023): for each typical shape the idle
thousandths that it cannot use, weighed by how often it is asked for. Placing a rank where this rises least keeps GPUs
usable. FGD looks at one more rank of each shape; a node with eight idle GPUs and cores for one is unfragmented to it.
`stranded` adds what is seen when a node is filled to the end: idle GPUs beyond what its cores and memory can feed at the
typical ratio. That alone decides where ranks without a GPU and ranks with many cores go.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from mlp_hub.domain.dimensions import MILLI, PLACED
from mlp_hub.scheduler.model.demand import NOTHING, Demand, Rest

COVERAGE = 0.95
"""Tuning: part of all that is asked for: the most popular shapes up to here are the typical ones, as in FGD."""
REMEMBERED = 1 << 14
"""Tuning: states of nodes whose fragmentation is remembered: memory for not working it out again."""

Gpus = tuple[int, ...]  # free thousandths of the GPUs of a node, falling, used up ones left out
Kept = tuple[str | None, str | None]  # the kind of a node's GPUs, and whom the node is kept for

FALLBACK: tuple[tuple[Demand, float], ...] = tuple(
    (Demand(whole=whole, part=part), weight)
    for whole, part, weight in (
        (1, 0, 0.4),
        (2, 0, 0.15),
        (4, 0, 0.1),
        (8, 0, 0.1),
        (0, 500, 0.15),
        (0, 250, 0.1),
    )
)
"""Typical shapes where nothing has been asked for yet."""


class Fragmentation:
    """The measure for one distribution of demands; remembers what it has worked out."""

    def __init__(self, typical: Sequence[tuple[Demand, float]] = (), coverage: float = COVERAGE) -> None:
        self.typical = _popular(typical or FALLBACK, coverage)
        total = sum(weight for _, weight in self.typical)
        self._shapes = [(demand, weight / total) for demand, weight in self.typical]
        # only which thresholds lie below what is free matters, not how much is free
        self._cpus = sorted({d.cpu for d, _ in self._shapes})
        self._rams = sorted({d.ram for d, _ in self._shapes})
        self._rests = [
            sorted({(d.rest or NOTHING)[at] for d, _ in self._shapes}) for at in range(len(PLACED))
        ]
        self._rest_places: dict[Rest, tuple[int, ...]] = {}
        gpu = sum(d.gpu * w for d, w in self._shapes)
        with_gpu = [(d, w) for d, w in self._shapes if d.gpu]
        self.cpu_per_gpu = sum(d.cpu * w for d, w in with_gpu) / gpu if gpu else 0.0
        self.ram_per_gpu = sum(d.ram * w for d, w in with_gpu) / gpu if gpu else 0.0
        self._usable: dict[tuple[object, ...], tuple[float, list[tuple[int, int, float]]]] = {}
        self._known: dict[tuple[object, ...], float] = {}

    def loss(self, kept: Kept, cpu: int, ram: int, rest: Rest, gpus: Gpus) -> float:
        """Return idle GPU thousandths of no typical use, FGD's and the stranded ones together."""
        if not gpus:
            return 0.0
        return self.measure(kept, cpu, ram, rest, gpus) + self.stranded(cpu, ram, sum(gpus))

    def stranded(self, cpu: int, ram: int, idle: int) -> float:
        """Return the idle thousandths beyond what this much cpu (m) and ram (MiB) can feed at the typical ratio."""
        fed = float(idle)
        if self.cpu_per_gpu:
            fed = min(fed, cpu / self.cpu_per_gpu)
        if self.ram_per_gpu:
            fed = min(fed, ram / self.ram_per_gpu)
        return idle - max(fed, 0.0)

    def measure(self, kept: Kept, cpu: int, ram: int, rest: Rest, gpus: Gpus) -> float:
        """Return FGD's measure of a node with this much free: expected thousandths that a typical rank cannot use."""
        if not gpus:
            return 0.0
        place = (
            kept,
            bisect_right(self._cpus, cpu),
            bisect_right(self._rams, ram),
            self._rest_places.get(rest) or self._rest_place(rest),
        )
        key = (place, gpus)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._measure(place, cpu, ram, rest, gpus)
        return known

    def _rest_place(self, rest: Rest) -> tuple[int, ...]:
        if len(self._rest_places) >= REMEMBERED:
            self._rest_places.clear()
        place = tuple(map(bisect_right, self._rests, rest or NOTHING))
        self._rest_places[rest] = place
        return place

    def _measure(
        self,
        place: tuple[Kept, int, int, tuple[int, ...]],
        cpu: int,
        ram: int,
        rest: Rest,
        gpus: Gpus,
    ) -> float:
        usable = self._usable.get(place)
        if usable is None:
            usable = self._usable[place] = self._of_use(place[0], cpu, ram, rest)
        lost, shapes = usable
        idle = sum(gpus)
        untouched = gpus.count(MILLI)
        broken = gpus[untouched:]
        for whole, part, weight in shapes:
            if untouched < whole:
                lost += weight
            elif part:
                enough = untouched + sum(1 for g in broken if g >= part)
                if enough <= whole:
                    lost += weight
                elif broken:
                    lost += weight * sum(g for g in broken if g < part) / idle
            elif broken:
                lost += weight * sum(broken) / idle
        return lost * idle

    def _of_use(
        self, kept: Kept, cpu: int, ram: int, rest: Rest
    ) -> tuple[float, list[tuple[int, int, float]]]:
        """Return the weight of shapes for which the cpu, ram or kind will not do, and the others by their GPUs."""
        kind, tenant = kept
        lost = 0.0
        shapes: dict[tuple[int, int], float] = {}
        for demand, weight in self._shapes:
            wrong = (
                not demand.gpu
                or demand.cpu > cpu
                or demand.ram > ram
                or any(one > have for one, have in zip(demand.rest or NOTHING, rest or NOTHING, strict=True))
                or (demand.gpu_kind is not None and kind not in demand.gpu_kind.split("|"))
                or (tenant is not None and demand.tenant != tenant)
            )
            if wrong:
                lost += weight
            else:
                shape = (demand.whole, demand.part)
                shapes[shape] = shapes.get(shape, 0.0) + weight
        return lost, [(whole, part, weight) for (whole, part), weight in shapes.items()]


def _popular(typical: Sequence[tuple[Demand, float]], coverage: float) -> tuple[tuple[Demand, float], ...]:
    """Keep the most popular shapes that together make up `coverage` of all."""
    together: dict[Demand, float] = {}
    for demand, weight in typical:
        together[demand] = together.get(demand, 0.0) + weight
    total = sum(together.values())
    kept: list[tuple[Demand, float]] = []
    covered = 0.0
    for demand, weight in sorted(together.items(), key=lambda e: -e[1]):  # equal ones in the order given
        kept.append((demand, weight))
        covered += weight
        if covered >= coverage * total - 1e-12:
            break
    return tuple(kept)
