"""Reservations for jobs that cannot start yet, and whether another may pass them.

EASY backfill (Mu'alem and Feitelson, IEEE TPDS 2001) with quotas as one more resource. A blocked job is promised
the earliest time at which it would fit if what runs ends as its time limits or estimates tell; work of unknown
length counts as ending last. Another job may start before it only if it ends by then, or if the blocked job would
still fit beside it. Reservations are worked out only when a job wants to pass, since each costs a walk along the
ends of what runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.fitting import is_entitled, seats, vector_on
from mlp_hub.scheduler.model import Devices
from mlp_hub.scheduler.nodes import NodeIndex
from mlp_hub.scheduler.ordering import is_one_queue
from mlp_hub.scheduler.preemption import RoomMade
from mlp_hub.scheduler.queues import Vector
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.state import EndKey, Entry, State

MOST_ON_NODES = 8
"""Jobs blocked by full nodes that get a reservation in one cycle; those behind them have none of their own."""
MOST_OF_TENANT = 2
"""Of those, jobs of one tenant: the others' first jobs shall be protected too."""
MOST_ON_QUOTA = 4
"""Jobs blocked by quota that get a reservation, in each quota tree."""
CLOSE_STEPS = 256
"""Ends of running jobs after each of which the walk looks again; beyond them it looks after each 32nd."""

_START: EndKey = (-math.inf, -math.inf, "")


@dataclass(eq=False, slots=True)
class Reservation:
    """When a blocked job can start, and how things stand at that time once it has."""

    entry: Entry
    at: float
    quotas: QuotaTree
    index: NodeIndex | None  # None: only its quota is kept for it
    placement: tuple[str, ...]
    reached: EndKey  # the last end that was counted in
    serial: int  # holds up to this one were there when it was made
    kept: dict[str, Devices] = field(default_factory=dict)  # who passed it and will still be there


@dataclass(frozen=True, slots=True)
class Delay:
    """Whose start would be delayed, and the nodes that are tight for it."""

    entry: Entry
    tight: tuple[str, ...]


class Reservations:
    """The blocked jobs of one cycle, in their order, and what is promised to them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._on_nodes: list[Entry] = []
        self._on_quota: dict[str, list[Entry]] = {}
        self._of_tenant: dict[str, int] = {}
        self._made: list[Reservation | None] = []
        self._made_quota: dict[str, list[Reservation | None]] = {}
        self._blocked: dict[str, Entry] = {}  # the first of each tenant, for `backfill: false`
        self._base: RoomMade | None = None

    @property
    def wanted(self) -> bool:
        """Whether another job that is blocked by nodes would get a reservation."""
        return len(self._on_nodes) < MOST_ON_NODES or not self._state.policy.backfill

    def stand_on_nodes(self, entry: Entry) -> None:
        """Let a job that the nodes have no room for be the next in line."""
        tenant = entry.cls.tenant
        self._blocked.setdefault(tenant, entry)
        if len(self._on_nodes) < MOST_ON_NODES and self._of_tenant.get(tenant, 0) < MOST_OF_TENANT:
            self._of_tenant[tenant] = self._of_tenant.get(tenant, 0) + 1
            self._on_nodes.append(entry)

    def stand_on_quota(self, entry: Entry) -> None:
        """Let a job whose quota is used up be the next in line of its quota tree."""
        self._blocked.setdefault(entry.cls.tenant, entry)
        line = self._on_quota.setdefault(self._state.quotas.root(entry.cls.tenant), [])
        mine = sum(e.cls.tenant == entry.cls.tenant for e in line)
        if not mine or (len(line) < MOST_ON_QUOTA and mine < MOST_OF_TENANT):
            line.append(entry)

    def forget(self) -> None:
        """Work all reservations out anew: something was preempted."""
        self._made.clear()
        self._made_quota.clear()

    def trial(self, made: RoomMade) -> Reservations:
        """Return the same blocked jobs, with what would be promised to them once room was made for another."""
        other = Reservations(self._state)
        other._on_nodes = self._on_nodes
        other._on_quota = self._on_quota
        other._blocked = self._blocked
        other._base = made
        return other

    def delayed_by(
        self,
        tenant: str,
        demand: Demand,
        placement: Sequence[str],
        vector: Vector,
        end: float,
        *,
        by_right: bool = False,
    ) -> Delay | None:
        """Return whom it would delay if these ranks started now and ran until `end`; None when nobody.

        `by_right`: a job that waits and is entitled to room. Of the other tenants' jobs it yields to those alone that
        are entitled too: from any other it could take back what was promised to it as soon as that one ran.
        """
        by_right = by_right and self._state.policy.preemption and self._is_entitled(tenant, vector)
        if not self._state.policy.backfill:
            if is_one_queue(self._state.policy) and not by_right:
                first = next(iter(self._blocked.values()), None)
            else:
                first = self._blocked.get(tenant)
            if first is not None:
                return Delay(first, ())
            end = math.inf
        return self._first_delayed(tenant, demand, placement, vector, end, by_right=by_right)

    def _is_entitled(self, tenant: str, vector: Vector) -> bool:
        return is_entitled(self._state.quotas, tenant, vector)

    def _yields_to(self, tenant: str, entry: Entry) -> bool:
        """Whether a job of this tenant, which is entitled, yields to one ahead."""
        return entry.cls.tenant == tenant or self._is_entitled(entry.cls.tenant, entry.cls.vector)

    def keep(
        self, uid: str, tenant: str, demand: Demand, placement: Sequence[str], vector: Vector, end: float
    ) -> None:
        """Count a job that passes among what will be there at the times that were promised."""
        root = self._state.quotas.root(tenant)
        for r in (*self._made, *self._made_quota.get(root, ())):
            if r is not None and _outlasts(end, r):
                if r.index is not None and _short(r.index, demand, placement):
                    self.forget()  # it went by right
                    return
                r.quotas.charge(tenant, vector)
                r.kept[uid] = () if r.index is None else r.index.take(demand, placement)

    def _first_delayed(
        self,
        tenant: str,
        demand: Demand,
        placement: Sequence[str],
        vector: Vector,
        end: float,
        *,
        by_right: bool,
    ) -> Delay | None:
        root = self._state.quotas.root(tenant)
        line = self._on_quota.get(root, [])
        made = self._made_quota.setdefault(root, [])
        for i, entry in enumerate(line):
            if i == len(made):
                made.append(self._reserve(entry, made[:i], nodes=False))
            r = made[i]
            if by_right and entry.cls.tenant != tenant:
                continue  # nobody needs what lies inside another's nominal quota to get its own
            if r is not None and _outlasts(end, r) and r.quotas.excess(tenant, vector):
                return Delay(entry, ())
        for i, entry in enumerate(self._on_nodes):
            if i == len(self._made):
                self._made.append(self._reserve(entry, self._made[:i], nodes=True))
            r = self._made[i]
            if r is None or r.index is None or not _outlasts(end, r):
                continue
            if by_right and not self._yields_to(tenant, entry):
                continue
            if r.quotas.excess(tenant, vector) and not (by_right and entry.cls.tenant != tenant):
                return Delay(entry, ())
            if _short(r.index, demand, placement):
                held = dict.fromkeys(r.placement)
                return Delay(entry, tuple(n for n in held if not r.index.slots(n, demand)))
        return None

    def _reserve(
        self, entry: Entry, earlier: Sequence[Reservation | None], *, nodes: bool
    ) -> Reservation | None:
        """Find when the blocked job could start, after those that were promised before it."""
        state, cls = self._state, entry.cls
        before = next((r for r in reversed(earlier) if r is not None), None)
        if before is None:
            base = self._base or state
            quotas, index = base.quotas.fork(), base.index.fork() if nodes else None
            at, reached, kept, serial = state.now, _START, {}, state.holds
        else:
            quotas = before.quotas.fork()
            index = before.index.fork() if before.index is not None else None
            at, reached, kept, serial = before.at, before.reached, dict(before.kept), before.serial
        ends = state.ends if nodes else state.ends_of_root.get(state.quotas.root(cls.tenant), [])
        k = bisect_right(ends, reached)
        steps = 0
        while True:
            if steps < CLOSE_STEPS or steps % 32 == 0 or k == len(ends):
                placement = self._fits(index, quotas, entry)
                if placement is not None:
                    break
            if k == len(ends):
                return None  # what it waits for is not held by jobs
            reached = ends[k]
            k += 1
            steps += 1
            if self._base is not None and self._base.stops(reached[2]):
                continue
            held = state.running[reached[2]]
            if held.serial > serial and reached[2] not in kept:
                continue  # it passed, and ends before the time that was promised
            at = max(at, reached[0])
            if held.run.job.tenant in state.queues:
                quotas.release(held.run.job.tenant, held.vector)
            if index is not None:
                devices = kept.pop(reached[2], held.run.devices)
                index.give(held.demand, held.run.placement, devices)
        ranks = cls.ranks_min
        if index is not None:
            index.take(cls.demand, placement)
            quotas.charge(cls.tenant, vector_on(index, cls.demand, placement))
        else:
            quotas.charge(cls.tenant, cls.vector)
        assert index is None or len(placement) == ranks  # noqa: S101 - a gang is whole
        return Reservation(entry, at, quotas, index, placement, reached, serial, kept)

    def _fits(self, index: NodeIndex | None, quotas: QuotaTree, entry: Entry) -> tuple[str, ...] | None:
        cls = entry.cls
        if quotas.excess(cls.tenant, cls.vector):
            return None
        if index is None:
            return ()
        if index.total_slots(cls.demand, cls.topology) < cls.ranks_min:
            return None
        return seats(index, quotas, cls, cls.workers_min)


def _outlasts(end: float, promised: Reservation) -> bool:
    """Whether a job may still be there when another one's start is due; of two times nobody knows, it may."""
    return end > promised.at or end == math.inf


def _short(index: NodeIndex, demand: Demand, placement: Collection[str]) -> bool:
    """Whether these ranks do not fit on these very nodes."""
    need: dict[str, int] = {}
    for name in placement:
        need[name] = need.get(name, 0) + 1
    return any(index.slots(name, demand) < n for name, n in need.items())
