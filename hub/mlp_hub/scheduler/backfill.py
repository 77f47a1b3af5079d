"""Reservations for jobs that cannot start yet, and whether another can pass them.

EASY backfill (Mu'alem and Feitelson, IEEE TPDS 2001) with quotas as one more resource. A blocked
job is promised the earliest time at which it would fit if running work ends by its time limits or
estimates. Work of unknown length counts as ending last. Another job can start before it only if it
ends by then, or if the blocked job would still fit beside it. Reservations are computed only when a
job wants to pass, since each costs a walk along the ends of the running work.

A window that a tenant booked is also a reservation, of quota alone, whose time is known. A job
cannot start if it would hold quota that the window keeps free, and would still run when it opens.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from mlp_hub.scheduler.assign.fit import has_claim, is_entitled, seats, vector_on
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector
from mlp_hub.scheduler.model.types import CapacityWindow, Devices
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.policy import is_one_queue
from mlp_hub.scheduler.preemption.victims import RoomMade
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.admitted import EndKey
from mlp_hub.scheduler.workloads.pending import Entry, JobClass

MOST_ON_NODES = 4
"""Tuning: jobs blocked by full nodes that get a reservation in one cycle; those behind them have none."""
MOST_OF_TENANT = 2
"""Tuning: jobs of one tenant among those with a reservation: the others' first jobs shall be protected too."""
MOST_ON_QUOTA = 4
"""Tuning: jobs blocked by quota that get a reservation, in each quota tree: time of a cycle, for how much is tried in it."""
MOST_WINDOWS = 16
"""Tuning: booked windows to come that are looked at, the next ones: time of a cycle, for how much is tried in it."""
CLOSE_STEPS = 256
"""Tuning: ends of running jobs after each of which the walk checks; beyond them it checks after each 32nd."""

_START: EndKey = (-math.inf, -math.inf, "")


@dataclass(eq=False, slots=True)
class Reservation:
    """Reservation of a blocked job: its start time, and the state of nodes and quotas then, with it started."""

    entry: Entry
    at: float
    quotas: QuotaTree
    index: NodeIndex | None  # None: only its quota is kept for it
    placement: tuple[str, ...]
    reached: EndKey  # the last end that was counted in
    serial: int  # holds up to this one were there when it was made
    kept: dict[str, Devices] = field(default_factory=dict)  # who passed it and will still be there


@dataclass(eq=False, slots=True)
class ProposedStart:
    """A job, or more workers of one, that could start now: on these nodes, until `end` as far as is known."""

    uid: str
    tenant: str
    demand: Demand
    placement: tuple[str, ...]
    vector: Vector
    end: float
    by_right: bool = False
    """It waits and is entitled to room. Of the other tenants' jobs it yields only to a first one that is entitled too:
    from any other it could take back what was promised to it as soon as that one ran."""


@dataclass(eq=False, slots=True)
class Window:
    """Quotas as they will be when a booked window opens."""

    booking: CapacityWindow
    quotas: QuotaTree


@dataclass(frozen=True, slots=True)
class Delay:
    """Delay that a start would cause: the job or the window that is `ahead`, and the nodes that are tight for it.

    A start that ends by `by` does not delay it; None where no end would be soon enough.
    """

    ahead: Entry | CapacityWindow
    tight: tuple[str, ...] = ()
    by: float | None = None


class Reservations:
    """The blocked jobs of one cycle, in their order, and what is promised to them."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._on_nodes: list[Entry] = []
        self._on_quota: dict[str, list[Entry]] = {}
        self._of_tenant: dict[str, int] = {}
        self._made: list[Reservation | None] = []
        self._made_quota: dict[str, list[Reservation | None]] = {}
        self._blocked: dict[str, Entry] = {}  # the first of each tenant, for `backfill: false`
        self._base: RoomMade | None = None
        self._windows: list[Window] | None = None
        self._delays: dict[tuple[object, ...], Delay] = {}  # found since anything was last kept or charged
        self._stamp = 0  # of the quotas under which they were found

    @property
    def wanted(self) -> bool:
        """Whether another job that is blocked by nodes would get a reservation."""
        return len(self._on_nodes) < MOST_ON_NODES or not self._state.policy.backfill

    def line_up_for_nodes(self, entry: Entry) -> None:
        """Let a job that the nodes have no room for be the next in line."""
        tenant = entry.cls.tenant
        self._blocked.setdefault(tenant, entry)
        if self._has_place_on_nodes(tenant):
            self._of_tenant[tenant] = self._of_tenant.get(tenant, 0) + 1
            self._on_nodes.append(entry)

    def line_up_for_quota(self, entry: Entry) -> None:
        """Let a job whose quota is used up be the next in line of its quota tree."""
        self._blocked.setdefault(entry.cls.tenant, entry)
        line = self._on_quota.setdefault(self._root(entry.cls.tenant), [])
        mine = sum(e.cls.tenant == entry.cls.tenant for e in line)
        if not mine or (len(line) < MOST_ON_QUOTA and mine < MOST_OF_TENANT):
            line.append(entry)

    def has_no_place_for(self, tenant: str) -> bool:
        """Whether no other job of a tenant would get a reservation, so that it need not be asked what it lacks."""
        if tenant not in self._blocked:
            return False
        if self._has_place_on_nodes(tenant):
            return False
        line = self._on_quota.get(self._root(tenant), ())
        mine = sum(e.cls.tenant == tenant for e in line)
        return mine >= MOST_OF_TENANT or (mine > 0 and len(line) >= MOST_ON_QUOTA)

    def notes_for_nodes(self, tenant: str) -> bool:
        """Whether it is of any use to line up another job of a tenant that is blocked by nodes."""
        return tenant not in self._blocked or self._has_place_on_nodes(tenant)

    def _has_place_on_nodes(self, tenant: str) -> bool:
        return len(self._on_nodes) < MOST_ON_NODES and self._of_tenant.get(tenant, 0) < MOST_OF_TENANT

    @property
    def first(self) -> str | None:
        """Return the uid of the first job that nodes are kept for."""
        return self._on_nodes[0].job.uid if self._on_nodes else None

    def forget(self) -> None:
        """Compute all reservations again: a job was preempted."""
        self._delays.clear()
        self._made.clear()
        self._made_quota.clear()
        self._windows = None

    def trial(self, made: RoomMade) -> Reservations:
        """Return the same blocked jobs, with the promises to them if room were made for another."""
        other = Reservations(self._state)
        other._on_nodes = self._on_nodes
        other._on_quota = self._on_quota
        other._blocked = self._blocked
        other._of_tenant = self._of_tenant
        other._base = made
        return other

    def adopted(self, start: ProposedStart) -> Reservations:
        """Go on from a trial: room was made as it assumed, for this start."""
        self._base = None
        self.keep(start)
        return self

    def delayed_by(self, start: ProposedStart) -> Delay | None:
        """Return whom this start would delay; None when nobody."""
        quotas = self._state.quotas
        if self._stamp != quotas.stamp:
            self._stamp = quotas.stamp
            self._delays.clear()
        # equal jobs of other priorities ask the same; those that lined up since may delay it before the one that did
        lined_up = len(self._on_quota.get(self._root(start.tenant), ())), len(self._on_nodes)
        ask = (start.tenant, start.demand, start.placement, start.end, start.by_right, lined_up)
        known = self._delays.get(ask)
        if known is None:
            known = self._find_delay(start)
            if known is not None:
                self._delays[ask] = known
        return known

    def delayed_anywhere(self, cls: JobClass, end: float) -> Delay | None:
        """Return the job that a start of this class would delay on any nodes; None: it depends on the nodes.

        This looks only at the first job that nodes are kept for, where nothing is before that.
        """
        state = self._state
        if not self._on_nodes or self._counts_more_than_nodes(cls):
            return None
        first = self._on_nodes[0]
        if not self._made:
            self._made.append(self._reserve(first, [], nodes=True))
        r = self._made[0]
        if r is None or r.index is None or not _outlasts(end, r):
            return None
        yields = state.policy.preemption and has_claim(state.quotas, cls) and first.cls.tenant != cls.tenant
        spares = all(r.index.has_slots(d, cls.ranks_min) for d in (cls.cell.demand, cls.demand))
        # it has to fit on nodes that have room now and that will have some beside the first one
        spares = spares and state.index.has_common_slots(r.index, cls.demand, cls.ranks_min)
        if spares or (yields and not self._is_first_and_entitled(first)):
            return None
        if not yields and not r.quotas.fits(cls.tenant, cls.vector):
            return Delay(first, by=r.at)
        return Delay(first, _tight(r, cls.demand), r.at)

    def _counts_more_than_nodes(self, cls: JobClass) -> bool:
        """Return whether more than the first job in line for nodes decides about jobs of this class.

        This is also true if the amounts that they take depend on the nodes.
        """
        state = self._state
        if not state.policy.backfill or state.bookings or self._on_quota.get(self._root(cls.tenant)):
            return True
        any_kind = cls.demand.gpu and not cls.demand.gpu_kind
        return bool(any_kind and state.quotas.is_limited(cls.tenant) and state.index.kinds())

    def _find_delay(self, start: ProposedStart) -> Delay | None:
        policy = self._state.policy
        shut = self._delayed_by_booking(start)
        if shut is not None:
            return shut
        right = start.by_right and policy.preemption and self._is_entitled(start.tenant, start.vector)
        end = start.end
        if not policy.backfill:
            if is_one_queue(policy) and not right:
                first = next(iter(self._blocked.values()), None)
            else:
                first = self._blocked.get(start.tenant)
            if first is not None:
                return Delay(first)
            end = math.inf
        delay = self._delayed_in_quota(start, end, right=right)
        delay = delay or self._delayed_on_nodes(start, end, right=right)
        # without backfill nobody passes, however short
        return delay if delay is None or policy.backfill else Delay(delay.ahead, delay.tight)

    def keep(self, start: ProposedStart) -> None:
        """Count a job that passes among what will be there at the times that were promised."""
        self._delays.clear()
        for window in self._windows or ():
            if start.end > window.booking.start:
                window.quotas.charge(start.tenant, start.vector)
        root = self._root(start.tenant)
        for r in (*self._made, *self._made_quota.get(root, ())):
            if r is not None and _outlasts(start.end, r):
                if r.index is not None and _short(r.index, start.demand, start.placement):
                    self.forget()  # it went by right
                    return
                r.quotas.charge(start.tenant, start.vector)
                r.kept[start.uid] = (
                    () if r.index is None else r.index.reserve_ranks(start.demand, start.placement)
                )

    def _root(self, tenant: str) -> str:
        """Name the line of those that wait for quota: one for each tree, one for all while capacity is kept free."""
        return "" if self._state.quotas.reserves else self._state.quotas.root(tenant)

    def _delayed_by_booking(self, start: ProposedStart) -> Delay | None:
        if not self._state.bookings:
            return None
        if self._windows is None:
            self._windows = self._open_windows()
        for window in self._windows:
            if start.end > window.booking.start and not window.quotas.fits(start.tenant, start.vector):
                return Delay(window.booking, by=window.booking.start)
        return None

    def _open_windows(self) -> list[Window]:
        """Compute the quotas at the opening of each of the next windows.

        Work that is known to end by then has ended.
        """
        state = self._state
        windows = []
        for booking in state.bookings.after(state.now)[:MOST_WINDOWS]:
            quotas = (self._base or state).quotas.fork()
            for end, _, uid in state.running.ends:
                if end > booking.start:
                    break
                if end <= state.now and uid not in state.running.stopping:
                    continue  # it runs longer than was expected; nobody knows how long
                held = state.running[uid]
                gone = self._base is not None and self._base.stops(uid)
                if not gone and held.run.job.tenant in state.queues:
                    quotas.release(held.run.job.tenant, held.vector)
            quotas.set_booked(state.bookings.at(booking.start))
            windows.append(Window(booking, quotas))
        return windows

    def _is_entitled(self, tenant: str, vector: Vector) -> bool:
        return is_entitled(self._state.quotas, tenant, vector)

    def _is_first_and_entitled(self, entry: Entry) -> bool:
        """Whether a blocked job is the first of its tenant, lest one that waits for its own tenant's holds up others."""
        tenant = entry.cls.tenant
        return self._blocked.get(tenant) is entry and has_claim(self._state.quotas, entry.cls)

    def _delayed_in_quota(self, start: ProposedStart, end: float, *, right: bool) -> Delay | None:
        root = self._root(start.tenant)
        line = self._on_quota.get(root, [])
        made = self._made_quota.setdefault(root, [])
        for i, entry in enumerate(line):
            if i == len(made):
                made.append(self._reserve(entry, made[:i], nodes=False))
            r = made[i]
            if right and entry.cls.tenant != start.tenant:
                continue  # nobody needs what lies inside another's nominal quota to get its own
            if r is not None and _outlasts(end, r) and not r.quotas.fits(start.tenant, start.vector):
                return Delay(entry, by=r.at)
        return None

    def _delayed_on_nodes(self, start: ProposedStart, end: float, *, right: bool) -> Delay | None:
        for i, entry in enumerate(self._on_nodes):
            if i == len(self._made):
                self._made.append(self._reserve(entry, self._made[:i], nodes=True))
            r = self._made[i]
            if r is None or r.index is None or not _outlasts(end, r):
                continue
            other = right and entry.cls.tenant != start.tenant
            if other and not self._is_first_and_entitled(entry):
                continue
            if not other and not r.quotas.fits(start.tenant, start.vector):
                return Delay(entry, by=r.at)
            if _short(r.index, start.demand, start.placement):
                return Delay(entry, _tight(r, start.demand), r.at)
        return None

    def _reserve(
        self, entry: Entry, earlier: Sequence[Reservation | None], *, nodes: bool
    ) -> Reservation | None:
        """Find when the blocked job could start, after those that were promised before it."""
        state, running, cls = self._state, self._state.running, entry.cls
        before = next((r for r in reversed(earlier) if r is not None), None)
        if before is None:
            base = self._base or state
            index = base.index.fork() if nodes else None
            r = Reservation(entry, state.now, base.quotas.fork(), index, (), _START, running.holds)
        else:
            index = None if before.index is None else before.index.fork()
            at, reached, serial = before.at, before.reached, before.serial
            r = Reservation(entry, at, before.quotas.fork(), index, (), reached, serial, dict(before.kept))
        if nodes or state.quotas.reserves:
            ends = running.ends
        else:
            ends = running.ends_of_root.get(state.quotas.root(cls.tenant), [])
        first = bisect_right(ends, r.reached)
        placement: tuple[str, ...] | None = None
        for steps, k in enumerate(range(first, len(ends) + 1)):
            if steps < CLOSE_STEPS or steps % 32 == 0 or k == len(ends):
                placement = self._fits(r.index, r.quotas, entry)
                if placement is not None:
                    break
            if k == len(ends):
                return None  # what it waits for is not held by jobs
            self._let_end(r, ends[k])
        assert placement is not None  # noqa: S101 - the loop ends with one, or returns
        r.placement = placement
        if r.index is None:
            r.quotas.charge(cls.tenant, cls.vector)
        else:
            r.index.reserve_ranks(cls.demand, placement)
            r.quotas.charge(cls.tenant, vector_on(r.index, cls.demand, placement))
        return r

    def _let_end(self, r: Reservation, end: EndKey) -> None:
        """Count one running job as ended in the future state."""
        state = self._state
        r.reached = end
        uid = end[2]
        if self._base is not None and self._base.stops(uid):
            return
        held = state.running[uid]
        if held.serial > r.serial and uid not in r.kept:
            return  # it passed, and ends before the time that was promised
        r.at = max(r.at, end[0])
        if held.run.job.tenant in state.queues:
            r.quotas.release(held.run.job.tenant, held.vector)
        devices = r.kept.pop(uid, held.run.devices)
        if r.index is not None:
            r.index.release_ranks(held.demand, held.run.placement, devices)

    def _fits(self, index: NodeIndex | None, quotas: QuotaTree, entry: Entry) -> tuple[str, ...] | None:
        cls = entry.cls
        if not quotas.fits(cls.tenant, cls.vector):
            return None
        if index is None:
            return ()
        if not index.has_slots(cls.demand, cls.ranks_min, cls.topology):
            return None
        return seats(index, quotas, cls, cls.workers_min)


def _outlasts(end: float, promised: Reservation) -> bool:
    """Whether a job may still be there when another one's start is due; of two times nobody knows, it may."""
    return end > promised.at or end == math.inf


def _tight(promised: Reservation, demand: Demand) -> tuple[str, ...]:
    """Return the promised nodes that have no room for such a rank beside the blocked job."""
    index = promised.index
    return (
        ()
        if index is None
        else tuple(n for n in dict.fromkeys(promised.placement) if not index.slots(n, demand))
    )


def _short(index: NodeIndex, demand: Demand, placement: Collection[str]) -> bool:
    """Whether these ranks do not fit on these very nodes."""
    need: dict[str, int] = {}
    for name in placement:
        need[name] = need.get(name, 0) + 1
    return any(index.slots(name, demand) < n for name, n in need.items())
