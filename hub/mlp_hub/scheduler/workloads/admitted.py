"""Admitted workloads, which hold quota and nodes, by whatever a decision asks for."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector
from mlp_hub.scheduler.model.types import AdmittedWorkload, Devices
from mlp_hub.scheduler.nodes.index import NodeIndex

EndKey = tuple[float, float, str]  # expected end (infinite when unknown), start, uid


@dataclass(eq=False, slots=True)
class Held:
    """A job that holds quota and nodes."""

    run: AdmittedWorkload
    demand: Demand
    vector: Vector
    end: EndKey
    serial: int  # of its hold: later holds have larger ones
    dimensions: tuple[str, ...]  # of its vector


class AdmittedWorkloads(dict[str, Held]):
    """The running jobs by uid, in the order in which they were held. Changed by `add` and `remove` alone.

    A plain dict to read from: a walk along the ends looks up every running job.
    """

    def __init__(self) -> None:
        super().__init__()
        self.holds = 0  # so many there were; the serial of the last one
        self.stopping: dict[str, None] = {}  # on their way out
        self.of_tenant: dict[str, dict[str, Held]] = {}
        self.elastic: dict[str, Held] = {}  # able to grow or shrink
        self.preemptible: dict[str, dict[int, dict[str, Held]]] = {}  # by tenant and priority
        self._preemptible_at: dict[int, int] = {}  # how many of these, by priority
        self.ends: list[EndKey] = []
        self.ends_of_root: dict[str, list[EndKey]] = {}

    def add(
        self, run: AdmittedWorkload, demand: Demand, vector: Vector, now: float, root: str | None
    ) -> None:
        """Note that a job runs; `root` is that of its quota tree, None when its tenant is gone."""
        job, uid = run.job, run.job.uid
        ends_at = math.inf if run.expected_end is None else run.expected_end
        if run.stopping:
            ends_at = min(ends_at, max(now, run.started_at))
            self.stopping[uid] = None
        end = (ends_at, run.started_at, uid)
        self.holds += 1
        held = Held(run, demand, vector, end, self.holds, tuple(vector))
        self[uid] = held
        self.of_tenant.setdefault(job.tenant, {})[uid] = held
        if job.workers_max > job.workers_min and not run.stopping:
            self.elastic[uid] = held
        if job.preemptible and not run.stopping:
            self._preemptible_at[job.priority] = self._preemptible_at.get(job.priority, 0) + 1
            self.preemptible.setdefault(job.tenant, {}).setdefault(job.priority, {})[uid] = held
        insort(self.ends, end)
        if root is not None:
            insort(self.ends_of_root.setdefault(root, []), end)

    def remove(self, uid: str, root: str | None) -> None:
        """Note that a job holds nothing any more; `root` as for `add`, as it is now."""
        held = self.pop(uid)
        job = held.run.job
        self.stopping.pop(uid, None)
        self.of_tenant[job.tenant].pop(uid)
        self.elastic.pop(uid, None)
        if job.preemptible and not held.run.stopping:
            self._preemptible_at[job.priority] -= 1
            groups = self.preemptible[job.tenant]
            del groups[job.priority][uid]
            if not groups[job.priority]:
                del groups[job.priority]
        _remove(self.ends, held.end)
        if root is not None:
            _remove(self.ends_of_root[root], held.end)

    def group_ends(self, root_of: Callable[[str], str | None]) -> None:
        """Sort the ends by quota tree again; `root_of` gives that of a tenant, None for one that is gone."""
        self.ends_of_root = {}
        for end in self.ends:
            root = root_of(self[end[2]].run.job.tenant)
            if root is not None:
                self.ends_of_root.setdefault(root, []).append(end)

    @property
    def preemptible_count(self) -> int:
        """Return how many jobs may be preempted and are not stopping."""
        return sum(self._preemptible_at.values())

    def any_preemptible_below(self, priority: int) -> bool:
        """Whether a preemptible job of a lower priority runs."""
        return any(n for p, n in self._preemptible_at.items() if p < priority)

    def fork(self) -> AdmittedWorkloads:
        """Return an independent copy."""
        other = AdmittedWorkloads()
        other.update(self)
        other.holds = self.holds
        other.stopping, other.elastic = dict(self.stopping), dict(self.elastic)
        # of most tenants nothing runs; they keep their places in the order all the same
        other.of_tenant = {t: dict(held) if held else {} for t, held in self.of_tenant.items()}
        other.preemptible = {
            t: {p: dict(held) for p, held in theirs.items()} if theirs else {}
            for t, theirs in self.preemptible.items()
        }
        other._preemptible_at = dict(self._preemptible_at)
        other.ends = self.ends[:]
        other.ends_of_root = {root: ends[:] for root, ends in self.ends_of_root.items()}
        return other


def take_seats(index: NodeIndex, demand: Demand, run: AdmittedWorkload, *, force: bool) -> Devices:
    """Hold what a job has on the nodes that are there; return its GPUs, none for ranks on nodes that are gone."""
    there = [rank for rank, name in enumerate(run.placement) if name in index]
    if len(there) == len(run.placement):
        return index.reserve_ranks(demand, run.placement, run.devices or None, force=force)
    given = index.reserve_ranks(
        demand,
        [run.placement[r] for r in there],
        tuple(run.devices[r] for r in there) if run.devices else None,
        force=force,
    )
    devices: list[tuple[int, ...]] = [()] * len(run.placement)
    for rank, numbers in zip(there, given, strict=True):
        devices[rank] = numbers
    return tuple(devices)


def _remove(ends: list[EndKey], end: EndKey) -> None:
    del ends[bisect_left(ends, end)]
