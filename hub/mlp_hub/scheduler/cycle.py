"""One scheduling cycle, read as prose.

1. Sort each tenant's queue by priority and age.
2. Take the tenant with the smallest fair share; look at its first job.
3. If the gang fits, whole, in quota and on nodes, admit it, and its tenant's share grows.
4. If it does not fit, it gets a reservation: the earliest time at which it would. Jobs behind it may pass
   (backfill) only if they end before that time or leave it room all the same.
5. Every job that was looked at and not admitted gets a typed reason with numbers.

EASY backfill as in Mu'alem and Feitelson (IEEE TPDS 2001), with quotas as one more resource. A job without time
limit or estimate counts as never ending: it may pass only where it takes nothing that was reserved.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

from mlp_hub.domain.resources import ZERO
from mlp_hub.scheduler import verdicts
from mlp_hub.scheduler.model import Admit, Decision, RunningJob, Snapshot, Verdict, Wait, WaitingJob
from mlp_hub.scheduler.ordering import is_one_queue, job_key, sorted_queues, tenant_key
from mlp_hub.scheduler.room import Room

MOST_RESERVATIONS = 32
"""Blocked jobs beyond so many in one cycle get no reservation of their own: they stand behind those that have one."""


def plan_cycle(snapshot: Snapshot, now: float) -> list[Decision]:
    """Decide about every waiting job: `Admit` with its placement, or `Wait` with its reason and position.

    Pure: the same snapshot and time give the same plan, in the order in which the decisions were taken.
    """
    return _Cycle(snapshot, now).run()


@dataclass(frozen=True, slots=True)
class Reservation:
    """The blocked job first in line, when it could start, and the room at that time once it has."""

    job: WaitingJob
    placement: tuple[str, ...]
    at: float
    room: Room


class _Cycle:
    """The working state of one cycle."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now
        self.policy = snapshot.policy
        self.room = Room.of(snapshot)
        self.total = self.room.total()
        self.reservations: list[Reservation] = []
        self.admitted: list[RunningJob] = []
        self.verdict_of_shape: dict[tuple[object, ...], Verdict] = {}

    def run(self) -> list[Decision]:
        decisions: list[Decision] = []
        positions: dict[str, int] = {}
        for job in self._in_order():
            placement = self._try(job)
            if isinstance(placement, Verdict):
                positions[job.tenant] = positions.get(job.tenant, 0) + 1
                decisions.append(Wait(job.uid, placement, positions[job.tenant]))
            else:
                self.room.hold(job, placement)
                self.admitted.append(RunningJob(job, placement, self.now, _end(job, self.now)))
                amount = self.room.charge(job, placement)
                decisions.append(Admit(job.uid, placement, len(placement) - job.ps, amount))
        return decisions

    def _in_order(self) -> Iterator[WaitingJob]:
        """Yield every waiting job once, the next in line first; shares are those after what was admitted so far."""
        if is_one_queue(self.policy):
            yield from sorted(self.snapshot.waiting, key=lambda j: job_key(j, self.policy))
            return
        by_tenant: dict[str, list[WaitingJob]] = {}
        for job in self.snapshot.waiting:
            by_tenant.setdefault(job.tenant, []).append(job)
        queues = {t: iter(q) for t, q in sorted_queues(by_tenant, self.policy).items()}
        heap = [(self._share(t), t) for t in queues]
        heapq.heapify(heap)
        while heap:
            _, tenant = heapq.heappop(heap)
            following = next(queues[tenant], None)
            if following is not None:
                yield following
                # after the yield: the share includes the job if it was admitted
                heapq.heappush(heap, (self._share(tenant), tenant))

    def _share(self, tenant: str) -> tuple[float, str]:
        queue = self.room.tenants.get(tenant)
        if queue is None:
            return (math.inf, tenant)
        return tenant_key(queue, self.room.used.get(tenant, ZERO), self.total, self.policy)

    def _try(self, job: WaitingJob) -> tuple[str, ...] | Verdict:
        if job.gated is not None:
            return verdicts.is_gated(job)
        if job.tenant not in self.room.tenants:
            return verdicts.no_tenant(job)
        # room only shrinks within a cycle, so a shape that failed once fails for all its equals
        shape = (job.tenant, job.per_worker, job.workers_min, job.ps, job.gpu_kind, job.topology)
        verdict = self.verdict_of_shape.get(shape)
        if verdict is None:
            if self.room.over_quota(job, job.workers_min):
                verdict = verdicts.waits_for_quota(job, self.room, self._with_admitted())
            else:
                placement = self.room.fit(job)
                if placement is not None:
                    ahead = self._would_delay(job, placement)
                    return placement if ahead is None else verdicts.waits_for_its_turn(job, ahead)
                verdict = verdicts.waits_for_nodes(job, self.room, self._with_admitted())
            self.verdict_of_shape[shape] = verdict
            self._reserve(job)
        return verdict

    def _would_delay(self, job: WaitingJob, placement: tuple[str, ...]) -> WaitingJob | None:
        """Return the reserved job that starting this one would delay, if any."""
        end = _end(job, self.now)
        for reservation in self.reservations:
            in_time = end is not None and end <= reservation.at
            if not self.policy.backfill:
                same_queue = reservation.job.tenant == job.tenant or is_one_queue(self.policy)
                if same_queue or not reservation.room.holds(job, placement):
                    return reservation.job
            elif not in_time and not reservation.room.holds(job, placement):
                return reservation.job
        # it passes: what it will still hold then is no longer there for others who want to pass
        for reservation in self.reservations:
            if end is None or end > reservation.at:
                reservation.room.hold(job, placement)
        return None

    def _reserve(self, job: WaitingJob) -> None:
        """Find when the blocked job could start if the running ones end as told, and keep its place then."""
        if len(self.reservations) >= MOST_RESERVATIONS:
            return
        room = self.room.copy()
        at = self.now
        running = sorted(
            [*self.snapshot.running, *self.admitted],
            key=lambda r: (r.expected_end if r.expected_end is not None else math.inf, r.job.uid),
        )
        for reservation in self.reservations:
            # what is reserved for those ahead is theirs; below zero until enough running jobs have ended
            room.hold(reservation.job, reservation.placement)
        for r in running:
            room.give_back(r)
            at = max(at, r.expected_end) if r.expected_end is not None else math.inf
            placement = room.fit(job)
            if placement is not None:
                room.hold(job, placement)
                self.reservations.append(Reservation(job, placement, at, room))
                return

    def _with_admitted(self) -> Snapshot:
        if not self.admitted:
            return self.snapshot
        s = self.snapshot
        return Snapshot(s.nodes, s.tenants, s.waiting, (*s.running, *self.admitted), s.policy)


def _end(job: WaitingJob, now: float) -> float | None:
    span = job.estimate if job.estimate is not None else job.time_limit
    return None if span is None else now + span
