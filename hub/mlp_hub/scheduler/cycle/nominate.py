"""The order of one cycle: which workload is nominated next.

Tenants take turns by policy. The classes of each tenant are in the order of their first jobs. The
first inadmissible classes are also passed on the way, as long as one of them can get a reservation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.assign.fit import has_quota
from mlp_hub.scheduler.backfill import Reservations
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.cycle.elastic import growable
from mlp_hub.scheduler.cycle.grounds import Passed
from mlp_hub.scheduler.fairness.lines import Line, MemberLines
from mlp_hub.scheduler.model.types import PendingWorkload
from mlp_hub.scheduler.policy import is_one_queue
from mlp_hub.scheduler.workloads.pending import Awaits, Entry, Queue

MOST_PASSED = 4
"""Tuning: passed workloads that a decision names; a trade of a reader's attention against detail."""


class Nominees:
    """The workloads of one cycle in their order, and the reservations of those that were blocked."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.reservations = Reservations(state)
        self._grows: bool | None = None  # whether an elastic job may grow; None: not looked at yet
        self._admitted = False  # of the class nominated last
        self._passed: set[int] = set()  # serials of classes that did not start
        self._first_passed: tuple[tuple[PendingWorkload, Reason], ...] = ()

    def begin_again(self) -> None:
        """Forget all reservations: the line is gone through once more."""
        self.reservations = Reservations(self.state)
        self._passed.clear()
        self._first_passed = ()

    @property
    def passed(self) -> Passed:
        """Return who was looked at so far and did not start."""
        return Passed(self._first_passed, len(self._passed))

    def note_passed(self, entry: Entry) -> None:
        """Take in that a workload does not start, and that those behind it have their turn."""
        cls = entry.cls
        if cls.serial in self._passed:
            return
        self._passed.add(cls.serial)
        if len(self._first_passed) < MOST_PASSED and cls.reason is not None:
            self._first_passed = (*self._first_passed, (entry.job, cls.reason))

    def note_admission(self) -> None:
        """Take in that a job was admitted, the one nominated last or an equal of it: the next of its class follows."""
        self._admitted = True

    def __iter__(self) -> Iterator[Entry]:
        """Yield the first job of each active class, the next one of a class as soon as one of it was admitted."""
        state = self.state
        if not self._has_budget():
            return
        lines: dict[str, Line | MemberLines] = {}
        heap = [(state.key_of(name), name) for name in self._tenants()]
        heapify(heap)
        while heap and self._has_budget():
            _, name = heappop(heap)
            line = lines.get(name)
            if line is None:
                line = lines[name] = self._line(name)
            cls = line.pop()
            if cls is None:
                continue
            entry = state.waiting[cls.jobs[0][1]]
            if cls.awaits is Awaits.NOTHING:
                self._admitted = False
                yield entry
                if not self._admitted:
                    self.note_passed(entry)
                elif cls.jobs:
                    line.push(cls)
            else:
                self.line_up(entry)
                self.note_passed(entry)
            turn = self._next_turn(name, line, alone=not heap)
            if turn is not None:
                heappush(heap, (turn, name))

    def line_up(self, entry: Entry) -> None:
        """Queue a workload that cannot start for a reservation, for nodes or for quota."""
        state, cls, reservations = self.state, entry.cls, self.reservations
        if reservations.has_no_place_for(cls.tenant):
            return
        state.effort += 1
        # as things are now: since it was last tried, others may have taken its quota, or the room that it had to leave
        if not has_quota(state.quotas, cls):
            reservations.line_up_for_quota(entry)
            return
        by_quota = cls.reason is Reason.WAITING_FOR_QUOTA
        if not by_quota and not reservations.notes_for_nodes(cls.tenant):
            return
        has_room = state.index.has_slots(cls.demand, cls.ranks_min, cls.topology)
        if has_room and by_quota:
            reservations.line_up_for_quota(entry)
        elif not has_room or cls.reason is not Reason.RESERVED:
            reservations.line_up_for_nodes(entry)

    def _has_budget(self) -> bool:
        """Return whether any workload is left to be tried, or needs its place before elastic jobs grow."""
        if self.state.inadmissible.active:
            return True
        if not self.reservations.wanted:
            return False
        if self._grows is None:
            self._grows = bool(self.state.running.elastic and growable(self.state))
        return self._grows

    def _tenants(self) -> Iterable[str]:
        """Return the tenants to be looked at: those with active classes, and the first by policy for their reservations."""
        first = [name for name in self.state.first_tenants() if self.state.queues[name].length]
        return dict.fromkeys((*first, *self.state.inadmissible.active))

    def _line(self, name: str) -> Line | MemberLines:
        """Return the classes of a tenant to be looked at: inadmissible ones too while somebody is owed a reservation."""
        queue = self.state.queues[name]
        if queue.by_members:
            return self._lines_of_members(queue)
        if self.reservations.wanted:
            return Line(queue.heads[:])
        active = self.state.inadmissible.active.get(name, {}).values()
        return Line(sorted((cls.jobs[0], cls.serial, cls) for cls in active))

    def _lines_of_members(self, queue: Queue) -> MemberLines:
        state, tenant = self.state, queue.tenant.name
        if self.reservations.wanted:
            lanes = {user: heads[:] for user, heads in queue.lanes.items()}
        else:
            lanes = {}
            for cls in state.inadmissible.active.get(tenant, {}).values():
                lanes.setdefault(cls.user, []).append((cls.jobs[0], cls.serial, cls))
            for heads in lanes.values():
                heads.sort()
        return MemberLines(lanes, lambda user, head: state.member_key(tenant, user, head))

    def _next_turn(
        self, name: str, line: Line | MemberLines, *, alone: bool
    ) -> tuple[float, float, str] | None:
        """Return when the tenant's turn comes again, None when nobody in its line has to be looked at any more."""
        state = self.state
        if self._owes_reservations(name):
            head = line.next()
            return None if head is None else state.tenant_key(name, head)
        if alone:
            line.narrow(state.inadmissible.active.get(name, {}).values())
        found = line.pass_inadmissible(state.promised)
        if found is None:
            return None
        head, latest = found
        share, at, last = state.tenant_key(name, head)
        return (share, at, last) if is_one_queue(state.policy) else (share, max(at, latest), last)

    def _owes_reservations(self, tenant: str) -> bool:
        """Whether one of a tenant's inadmissible jobs could still get a reservation."""
        reservations = self.reservations
        if reservations.has_no_place_for(tenant):
            return False
        return reservations.notes_for_nodes(tenant) or self.state.quotas.is_limited(tenant)
