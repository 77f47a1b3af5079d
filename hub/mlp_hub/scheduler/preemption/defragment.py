"""Small jobs that are scattered over the nodes make way for one that needs whole nodes.

Sharing must leave no tenant worse off than its own nodes would (HiveD, Zhao et al., OSDI 2020). A
job inside its tenant's nominal quota can lack room only because smaller work is scattered, though
enough is free in total. Then the smaller jobs that fit elsewhere at the same time are stopped,
whoever owns them. They lose their work since the last checkpoint and start again at once. Only
smaller work ever moves for larger, so jobs do not evict each other in turns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from mlp_hub.scheduler.assign.fit import vector_on
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import placed
from mlp_hub.scheduler.nodes.placement import domain_label
from mlp_hub.scheduler.preemption.eligibility import PreemptionRights
from mlp_hub.scheduler.preemption.victims import NotYet, RoomMade, ShortOfNodes, make_room
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.admitted import Held

Size = tuple[int, int, int]

MOST_LOOKED_AT = 300
"""Tuning: running jobs that are examined as ones that could move: time of a cycle, for how much is tried in it."""


def make_way(
    rights: PreemptionRights, made: NotYet | ShortOfNodes | None, spared: Collection[str] = ()
) -> RoomMade | NotYet | ShortOfNodes | None:
    """Make room by moving smaller jobs, where `made` says that by right alone none can be made."""
    if not rights.entitled or rights.short:
        return made
    moves = _Moves(rights)
    if not moves.would_do():
        return made
    found = make_room(moves, spared)
    rights.examined += moves.examined
    room = found.made if isinstance(found, NotYet) else found
    if isinstance(room, RoomMade) and not _start_again(rights, room, moves.moved(room)):
        return made
    if isinstance(found, NotYet):
        return NotYet(min(found.at, made.at)) if isinstance(made, NotYet) else found
    if not isinstance(found, RoomMade):
        return made
    return replace(found, moved=frozenset(h.run.job.uid for h in moves.moved(found)))


class _Moves(PreemptionRights):
    """Besides whom the job may stop by right, smaller ones that may move for it."""

    def __init__(self, rights: PreemptionRights) -> None:
        super().__init__(rights.state, rights.entry)
        self._rightful = rights.candidates()
        self.by_right = {h.run.job.uid for h in self._rightful}
        cls = rights.entry.cls
        self._smaller: dict[tuple[Demand, int, str | None], bool] = {}
        self._size = _size(cls.demand, cls.ranks_min, cls.topology)

    def moved(self, made: RoomMade) -> list[Held]:
        """Return those of whom are stopped that only move."""
        return [h for h in made.victims if h.run.job.uid not in self.by_right]

    def would_do(self) -> bool:
        """Whether what the job asks for is free in all, or can be by right, only not where it could use it."""
        cls = self.entry.cls
        free, _ = self.state.index.free_for(cls.demand)
        for d, need in placed(cls.demand.resources):
            by_right = sum([h.vector.get(d, 0) for h in self._rightful])
            if need * cls.ranks_min > free.part(d) + by_right:
                return False
        return True

    def _candidates(self) -> Iterator[Held]:
        yield from self._rightful
        running = self.state.running
        self.examined += min(len(running), MOST_LOOKED_AT)
        found = 0
        for uid, held in running.items():
            run, job = held.run, held.run.job
            if uid in self.by_right or run.stopping or not job.preemptible:
                continue
            if job.tenant == self.tenant and job.priority > self.entry.job.priority:
                continue  # it could stop this one in turn
            if self._is_smaller(held.demand, job.workers_min + job.ps, job.topology):
                yield held
                found += 1
                if found == MOST_LOOKED_AT:
                    return

    def _is_smaller(self, demand: Demand, ranks: int, topology: str | None) -> bool:
        asked = (demand, ranks, topology)
        known = self._smaller.get(asked)
        if known is None:
            known = self._smaller[asked] = _size(*asked) < self._size
        return known

    def shrinkable(self) -> list[Held]:
        return []

    def has_its_turn(self, held: Held) -> bool:
        return held.run.job.uid in self.by_right and super().has_its_turn(held)

    def for_nodes(self, held: Held, quotas: QuotaTree) -> bool:
        return held.run.job.uid not in self.by_right or super().for_nodes(held, quotas)


def _size(demand: Demand, ranks: int, topology: str | None) -> Size:
    """Return what has to be free in one place: a rank's needs, or the whole gang's where it has to stay together."""
    n = ranks if domain_label(topology)[1] else 1
    return demand.gpu * n, demand.cpu * n, demand.ram * n


def _start_again(rights: PreemptionRights, made: RoomMade, moved: list[Held]) -> bool:
    """Whether all that move fit elsewhere once the job has started, the largest placed first."""
    cls = rights.entry.cls
    index, quotas = made.index.fork(), made.quotas.fork()
    quotas.charge(cls.tenant, vector_on(index, cls.demand, made.placement))
    index.reserve_ranks(cls.demand, made.placement)
    for held in sorted(moved, key=lambda h: (-h.demand.gpu, -h.demand.cpu, h.serial)):
        job = held.run.job
        placement = index.place(held.demand, job.workers_min + job.ps, job.topology)
        if placement is None:
            return False
        vector = vector_on(index, held.demand, placement)
        if not quotas.fits(job.tenant, vector):
            return False
        quotas.charge(job.tenant, vector)
        index.reserve_ranks(held.demand, placement)
    return True
