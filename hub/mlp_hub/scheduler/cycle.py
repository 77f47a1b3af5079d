"""One cycle of the scheduling core, read as prose.

1. Wake the classes of waiting jobs that what came free could serve.
2. Under `finish`, send work ahead that would outlast all the rest.
3. Take the tenant that is next by policy; look at its first job.
4. If the gang fits, whole, in quota and on nodes, and delays nobody to whom a start was promised, admit it.
5. If it does not fit, and stopping others may make room for it, stop the cheapest and admit it.
6. Else it waits with a typed reason, and gets a reservation that no job behind it may delay.
7. Go through the line again for those that had to let jobs inside their quota go first, or lost their place again.
8. Give what nobody waits for to elastic jobs.
9. Tell those that wait why.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.elastic import grow, growable
from mlp_hub.scheduler.fitting import has_claim, has_quota, most_seats, seats, stays_inside, vector_on
from mlp_hub.scheduler.lines import Line, MemberLines
from mlp_hub.scheduler.model import Booking, Decision
from mlp_hub.scheduler.moving import make_way
from mlp_hub.scheduler.ordering import end_of, is_one_queue
from mlp_hub.scheduler.placement import domain_label
from mlp_hub.scheduler.plan import Plan
from mlp_hub.scheduler.preemption import LacksNodes, NotYet, RoomMade, make_room, room_comes
from mlp_hub.scheduler.queues import Asleep, Entry, JobClass, Queue
from mlp_hub.scheduler.reservation import Delay, Reservations, Start
from mlp_hub.scheduler.rights import Rights
from mlp_hub.scheduler.state import State
from mlp_hub.scheduler.verdicts import Hears, reason_to_tell
from mlp_hub.scheduler.waking import wake_up

MOST_TOLD = 64
"""Jobs of one class that are told when the reason changes; those behind them are told when they are asked for."""
MOST_LOOKS = 600
"""Running jobs that are looked at as victims in one cycle; who then had no look has it in a cycle right after."""
MOST_TRIES = 3
"""Other places that are tried for a job that would delay one ahead of it."""


class Cycle:
    """The working state of one cycle."""

    def __init__(self, state: State, now: float, *, tells: bool = True, hears: Hears | None = None) -> None:
        self.state = state
        self.now = now
        self.tells = tells  # whether anybody listens to why jobs wait
        self.hears = hears  # of which of them, by uid and reason; None: of all
        self.plan = Plan(state, now)
        self.touched: dict[int, JobClass] = {}
        self.reservations = Reservations(state)
        self.grows: bool | None = None  # whether an elastic job may grow; None: not looked at yet
        self.looks = 0
        self.by_nodes = False  # what held the last one up were nodes, which are everybody's
        self.held_up: dict[
            tuple[Demand, str | None, int], tuple[float, str | Booking | None, float | None]
        ] = {}
        self.insiders: bool | None = (
            None  # whether jobs inside their quota are awake; None: not looked at yet
        )
        self.deferred = False  # somebody could stop others only once those had their turn
        self.spared: dict[str, None] = {}  # for whom others were stopped: they do start

    def run(self) -> list[Decision]:
        """Decide and apply, once."""
        self.state.begin_cycle(self.now)
        wake_up(self.state)
        self.state.send_long_ahead()
        self._admit_in_order()
        if self.deferred:
            self.insiders = False
            self._admit_the_rest()
        while self.state.requeue:
            # who lost its place again before it started may find another one
            again, self.state.requeue = self.state.requeue, []
            for job in again:
                self.state.submit(job)
            self._admit_the_rest()
        for change in grow(self.state, self.reservations):
            self.plan.resize(change)
        self._tell()
        return self.plan.decisions

    # --- order

    def _admit_the_rest(self) -> None:
        """Go through the line once more, for those that are awake still."""
        self.reservations = Reservations(self.state)
        self.held_up.clear()
        self._admit_in_order()

    def _insiders_wait(self) -> bool:
        """Whether jobs inside their tenants' nominal quota are awake, who have their turn before others stop work."""
        if self.insiders is None:
            quotas = self.state.quotas
            self.insiders = any(
                stays_inside(quotas, cls)
                for group in self.state.sleepers.awake.values()
                for cls in group.values()
            )
        return self.insiders

    def _admit_in_order(self) -> None:
        state = self.state
        if not self._goes_on():
            return
        lines: dict[str, Line | MemberLines] = {}
        heap = [(state.key_of(name), name) for name in self._tenants()]
        heapify(heap)
        while heap and self._goes_on():
            _, name = heappop(heap)
            line = lines.get(name)
            if line is None:
                line = lines[name] = self._line(name)
            cls = line.pop()
            if cls is None:
                continue
            entry = state.waiting[cls.jobs[0][1]]
            if cls.asleep is Asleep.NO:
                if self._try(entry) and cls.jobs:
                    line.push(cls)
            else:
                self._line_up(entry)
            turn = self._next_turn(name, line, alone=not heap)
            if turn is not None:
                heappush(heap, (turn, name))
        if self.reservations.first is not None:
            state.promised = self.reservations.first

    def _tenants(self) -> Iterable[str]:
        """Return the tenants to be looked at: those with awake jobs, and the first by policy for their reservations."""
        first = [name for name in self.state.first_tenants() if self.state.queues[name].length]
        return dict.fromkeys((*first, *self.state.sleepers.awake))

    def _goes_on(self) -> bool:
        """Whether somebody is left to be tried, or has to stand before elastic jobs grow."""
        if self.state.sleepers.awake:
            return True
        if not self.reservations.wanted:
            return False
        if self.grows is None:
            self.grows = bool(self.state.running.elastic and growable(self.state))
        return self.grows

    def _line(self, name: str) -> Line | MemberLines:
        """Return the classes of a tenant to be looked at: those that sleep too while somebody is owed a reservation."""
        queue = self.state.queues[name]
        if queue.by_members:
            return self._lines_of_members(queue)
        if self.reservations.wanted:
            return Line(queue.heads[:])
        awake = self.state.sleepers.awake.get(name, {}).values()
        return Line(sorted((cls.jobs[0], cls.serial, cls) for cls in awake))

    def _lines_of_members(self, queue: Queue) -> MemberLines:
        state, tenant = self.state, queue.tenant.name
        if self.reservations.wanted:
            lanes = {user: heads[:] for user, heads in queue.lanes.items()}
        else:
            lanes = {}
            for cls in state.sleepers.awake.get(tenant, {}).values():
                lanes.setdefault(cls.user, []).append((cls.jobs[0], cls.serial, cls))
            for heads in lanes.values():
                heads.sort()
        return MemberLines(lanes, lambda user, head: state.member_key(tenant, user, head))

    def _next_turn(
        self, name: str, line: Line | MemberLines, *, alone: bool
    ) -> tuple[float, float, str] | None:
        """Return when the tenant's turn comes again, None when nobody in its line has to be looked at any more."""
        state = self.state
        if self._owes_sleepers(name):
            head = line.next()
            return None if head is None else state.tenant_key(name, head)
        if alone:
            line.narrow(state.sleepers.awake.get(name, {}).values())
        found = line.pass_sleepers(state.promised)
        if found is None:
            return None
        head, latest = found
        share, at, last = state.tenant_key(name, head)
        return (share, at, last) if is_one_queue(state.policy) else (share, max(at, latest), last)

    def _owes_sleepers(self, tenant: str) -> bool:
        """Whether one of a tenant's jobs that sleep could still get a reservation."""
        reservations = self.reservations
        if reservations.has_no_place_for(tenant):
            return False
        return reservations.notes_for_nodes(tenant) or self.state.quotas.is_limited(tenant)

    def _line_up(self, entry: Entry) -> None:
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

    # --- one job

    def _try(self, entry: Entry) -> bool:
        """Admit the job if it can start; else put its class to sleep. Returns whether it was admitted."""
        state, cls = self.state, entry.cls
        state.effort += 1
        self.touched[cls.serial] = cls
        if not has_quota(state.quotas, cls):
            return self._blocked(entry, on_quota=True)
        if self._is_held_up(cls):
            state.sleepers.sleep(cls)
            return False
        if self._would_delay_anywhere(entry):
            return self._backfill_behind(entry)
        placement = most_seats(state.index, state.quotas, cls)
        if placement is None:
            on_quota = self._lacks_kind(cls)
            return self._blocked(entry, on_quota=on_quota)
        found = self._undelaying(entry, placement)
        if found is None:
            return self._backfill_behind(entry)
        self.plan.admit(entry, found)
        return True

    def _is_held_up(self, cls: JobClass) -> bool:
        """Whether an equal of another tenant, no longer than the shortest of these, found no place that delays nobody."""
        known = self.held_up.get((cls.demand, cls.topology, cls.ranks_min))
        if known is None or self.now + cls.shortest < known[0]:
            return False
        if self.state.policy.preemption and has_claim(self.state.quotas, cls):
            return False
        cls.reason, cls.ahead, cls.pass_by = Reason.RESERVED, known[1], known[2]
        return True

    def _would_delay_anywhere(self, entry: Entry) -> bool:
        """Whether there is room, but none that the first job that nodes are kept for could spare: no place has to be tried."""
        state, cls = self.state, entry.cls
        if domain_label(cls.topology)[1] or not state.index.has_slots(cls.demand, cls.ranks_min):
            return False
        delay = self.reservations.delayed_anywhere(cls, end_of(entry.job, self.now))
        if delay is None:
            return False
        self._note_delay(cls, delay)
        return True

    def _note_delay(self, cls: JobClass, delay: Delay) -> None:
        cls.ahead = delay.ahead.job.uid if isinstance(delay.ahead, Entry) else delay.ahead
        cls.pass_by = delay.by
        self.by_nodes = bool(delay.tight) and cls.workers_max == cls.workers_min

    def _lacks_kind(self, cls: JobClass) -> bool:
        """Whether nodes would have room, but the quota of their kinds of GPU is used up."""
        if not cls.demand.gpu or cls.demand.gpu_kind:
            return False
        return self.state.index.has_slots(cls.demand, cls.ranks_min, cls.topology)

    def _undelaying(self, entry: Entry, placement: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return a placement that delays nobody ahead, this one if it does not; None when there is none."""
        state, cls = self.state, entry.cls
        end = end_of(entry.job, self.now)
        avoid: dict[str, None] = {}
        for _ in range(MOST_TRIES):
            start = Start(
                entry.job.uid,
                cls.tenant,
                cls.demand,
                placement,
                vector_on(state.index, cls.demand, placement),
                end,
                by_right=True,
            )
            delay = self.reservations.delayed_by(start)
            if delay is None:
                self.reservations.keep(start)
                return placement
            self._note_delay(cls, delay)
            avoid.update(dict.fromkeys(delay.tight))
            # fewer workers may do where all would not
            other = None
            if delay.tight:
                other = most_seats(state.index, state.quotas, cls, avoid)
            if other is None and len(placement) > cls.ranks_min:
                other = seats(state.index, state.quotas, cls, cls.workers_min, avoid)
            if other is None or other == placement:
                return None
            placement = other
        return None

    def _backfill_behind(self, entry: Entry) -> bool:
        """The first of its class would delay somebody: one behind it that is shorter may pass all the same."""
        state, cls = self.state, entry.cls
        cls.reason = Reason.RESERVED
        longest, least = end_of(entry.job, self.now), self.now + cls.shortest
        for _, uid in cls.jobs[1:MOST_TOLD]:
            if longest <= least:
                break  # nobody is shorter
            other = state.waiting[uid]
            end = end_of(other.job, self.now)
            if end >= longest:
                continue
            longest = end
            ahead, by = cls.ahead, cls.pass_by
            placement = most_seats(state.index, state.quotas, cls)
            found = None if placement is None else self._undelaying(other, placement)
            cls.ahead, cls.pass_by = ahead, by
            if found is not None:
                self.plan.admit(other, found)
                return True
        if self.by_nodes:
            ask = (cls.demand, cls.topology, cls.ranks_min)
            before = self.held_up.get(ask)
            if before is None or longest < before[0]:
                self.held_up[ask] = (longest, cls.ahead, cls.pass_by)
        state.sleepers.sleep(cls)
        return False

    def _blocked(self, entry: Entry, *, on_quota: bool) -> bool:
        """Make room by stopping others, or let the class sleep until something is given back."""
        state, cls = self.state, entry.cls
        made: RoomMade | NotYet | LacksNodes | None = None
        if state.running.stopping and room_comes(Rights(state, entry)):
            self._note(entry, on_quota=on_quota)
            cls.reason = Reason.WAITING_FOR_PREEMPTED
            state.sleepers.sleep(cls)
            return False
        if state.policy.preemption and self.looks < MOST_LOOKS:
            if not stays_inside(state.quotas, cls) and self._insiders_wait():
                # else one of them might take back from this one what others were stopped for
                self.deferred = True
                self._note(entry, on_quota=on_quota)
                return False  # it stays awake
            if state.may_stop(cls) or state.exposed.any_but(cls.tenant, state.running.preemptible):
                rights = Rights(state, entry)
                made = make_room(rights, self.spared)
                if not isinstance(made, RoomMade):
                    made = make_way(rights, made, self.spared)
                self.looks += rights.looked_at
                state.effort += rights.looked_at
        elif state.policy.preemption and state.may_stop(cls):
            state.sleepers.owed[cls.serial] = cls  # a look of its own, with a fresh allowance
        if isinstance(made, RoomMade):
            start = self._start_on(entry, made)
            trial = self.reservations.trial(made)
            if trial.delayed_by(start) is None:  # else the place that was made is promised to somebody ahead
                if self.plan.preempt(entry, made):
                    self.spared[entry.job.uid] = None
                self.reservations = trial.adopted(start)
                self.held_up.clear()
                return True
        self._note(entry, on_quota=on_quota)
        self._sleep(cls, made, on_quota=on_quota)
        return False

    def _sleep(self, cls: JobClass, made: RoomMade | NotYet | LacksNodes | None, *, on_quota: bool) -> None:
        """Let a class sleep until something is given back that may help it, given what looking for victims told."""
        sleepers = self.state.sleepers
        if isinstance(made, NotYet):
            if made.at <= self.now:
                return  # it stays awake
            cls.ripe = made.at
            sleepers.alarm(made.at, cls)
        if isinstance(made, RoomMade | NotYet) or (on_quota and isinstance(made, LacksNodes)):
            sleepers.sleep(cls)
        elif on_quota:
            sleepers.sleep_on_quota(cls, self.state.quotas.root(cls.tenant))
        else:
            sleepers.sleep_on_nodes(cls)

    def _note(self, entry: Entry, *, on_quota: bool) -> None:
        """Note what the job lacks, and let it stand in line for that."""
        state, cls = self.state, entry.cls
        cls.ahead, cls.ripe = None, None
        if on_quota:
            cls.reason = Reason.WAITING_FOR_QUOTA
        else:
            enough = state.index.has_slots(cls.demand, cls.ranks_min)
            cls.reason = Reason.TOPOLOGY_PLACEMENT_FAILED if enough else Reason.WAITING_FOR_RESOURCES
        self._line_up(entry)

    def _start_on(self, entry: Entry, made: RoomMade) -> Start:
        """Return the job's start where room was made for it."""
        cls = entry.cls
        vector = vector_on(made.index, cls.demand, made.placement)
        end = end_of(entry.job, self.now)
        return Start(entry.job.uid, cls.tenant, cls.demand, made.placement, vector, end, by_right=True)

    # --- telling

    def _tell(self) -> None:
        """Say why to those that wait since this cycle, and to those whose reason changed."""
        state = self.state
        told: dict[str, None] = {}
        fresh = list(state.unanswered)
        state.unanswered.clear()
        if not self.tells:
            return
        for cls in self.touched.values():
            if not cls.jobs or cls.asleep is Asleep.NO:
                continue
            reason = reason_to_tell(state.quotas, cls)
            if cls.said is not reason:
                if cls.said is not None:
                    if len(told) >= MOST_TOLD:
                        continue  # when it is looked at again
                    told.update(dict.fromkeys(uid for _, uid in cls.jobs[:MOST_TOLD]))
                cls.said = reason
        told.update(dict.fromkeys(fresh))
        self.plan.tell(told, self.hears)
