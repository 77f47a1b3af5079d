"""The scheduling core: events in, decisions out; free of clocks and of I/O.

One cycle, read as prose:

1. Wake the classes of waiting jobs that what came free could serve.
2. Start the jobs whose place was being freed, once it is.
3. Take the tenant that is next by policy; look at its first job.
4. If the gang fits, whole, in quota and on nodes, and delays nobody to whom a start was promised, admit it.
5. If it does not fit, and stopping others may make room for it, stop the cheapest and admit it.
6. Else it waits with a typed reason, and gets a reservation that no job behind it may delay.
7. Give what nobody waits for to elastic jobs.
8. Tell those that wait why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler import verdicts
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.elastic import grow, growable, resize
from mlp_hub.scheduler.fitting import is_entitled, is_inside, most_seats, seats, vector_on
from mlp_hub.scheduler.model import (
    Admit,
    Decision,
    Node,
    Preempt,
    Resize,
    RunningJob,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    Verdict,
    Wait,
    WaitingJob,
)
from mlp_hub.scheduler.moving import make_way
from mlp_hub.scheduler.ordering import span_of
from mlp_hub.scheduler.preemption import (
    LacksNodes,
    NotYet,
    RoomMade,
    lost_work,
    make_room,
    room_comes,
    without_last,
)
from mlp_hub.scheduler.queues import Asleep, JobClass
from mlp_hub.scheduler.reservation import Reservations, Start
from mlp_hub.scheduler.rights import Rights
from mlp_hub.scheduler.state import Entry, State
from mlp_hub.scheduler.vectors import resources_of

MOST_TOLD = 64
"""Jobs of one class that are told when the reason changes; those behind them are told when they are asked for."""
MOST_LOOKS = 600
"""Running jobs that are looked at as victims in one cycle; who then had no look has it in a cycle right after."""
MOST_TRIES = 3
"""Other places that are tried for a job that would delay one ahead of it."""

_Line = list[tuple[tuple[tuple[float, float, str], str], int, JobClass]]


def plan_cycle(snapshot: Snapshot, now: float) -> list[Decision]:
    """Decide about every waiting job of a snapshot, in the order in which the decisions were taken.

    Pure: the same snapshot and time give the same plan.
    """
    return Core.of(snapshot, now).plan(now)


class Core:
    """Keeps the state of a cluster by events and plans in proportion to what changed.

    `instant`: what is preempted is free at once, as in virtual time without a grace period; otherwise the
    preemptor is nominated and starts once its victims have ended.
    """

    def __init__(
        self,
        policy: SchedulingPolicy,
        nodes: Iterable[Node] = (),
        tenants: Iterable[TenantQueue] = (),
        typical: tuple[tuple[Demand, float], ...] = (),
        *,
        instant: bool = False,
    ) -> None:
        self.state = State(policy, nodes, tenants, typical)
        self.instant = instant
        self.cycles = 0

    @classmethod
    def of(cls, snapshot: Snapshot, now: float, *, instant: bool = False) -> Core:
        """Make the core of a snapshot taken at `now`."""
        core = cls(snapshot.policy, snapshot.nodes, (), snapshot.typical, instant=instant)
        core.state.now = now
        core.state.set_tenants(snapshot.tenants)
        for running in snapshot.running:
            core.start(running)
        for job in snapshot.waiting:
            core.submit(job)
        core.state.promised = snapshot.promised
        return core

    # --- events

    def submit(self, job: WaitingJob) -> None:
        """Let a new or requeued job wait. Raises `ValueError` when its uid is known."""
        self.state.submit(job)

    def withdraw(self, uid: str) -> WaitingJob:
        """Take a waiting job out of the queue. Raises `KeyError` when it does not wait."""
        return self.state.withdraw(uid)

    def start(self, running: RunningJob) -> None:
        """Tell of a job that already runs, whatever quotas and nodes say."""
        self.state.hold(running, force=True)

    def end(self, uid: str, now: float) -> RunningJob:
        """Tell that a running job gave back all it held. Raises `KeyError` when it does not run."""
        self.state.now = max(self.state.now, now)
        return self.state.give_back(uid).run

    def set_tenants(self, tenants: Iterable[TenantQueue]) -> None:
        """Add tenants, or change quotas, weights and what others than jobs hold of them."""
        self.state.set_tenants(tenants)

    def set_tenant(self, tenant: TenantQueue) -> None:
        """Add or change one tenant."""
        self.state.set_tenants((tenant,))

    def remove_tenant(self, name: str) -> None:
        """Drop a tenant. Raises `ValueError` while it has running jobs; waiting ones stay, without a home."""
        self.state.remove_tenant(name)

    def add_node(self, node: Node) -> None:
        """Add a node, or change one of the same name."""
        self.state.add_node(node)

    def set_node(self, name: str, *, up: bool) -> None:
        """Take a node out of service or back; its jobs are the caller's to end."""
        self.state.set_node(name, up=up)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self.state.remove_node(name)

    def set_policy(self, policy: SchedulingPolicy) -> None:
        """Go on under another policy."""
        self.state.set_policy(policy)

    def snapshot(self, now: float) -> Snapshot:
        """Return what a core made from nothing has to know to go on from `now` as this one would."""
        return self.state.snapshot(now)

    def fork(self) -> Core:
        """Return an independent copy, for questions that begin with "what if"."""
        other = Core.__new__(Core)
        other.state = self.state.fork()
        other.instant = self.instant
        other.cycles = self.cycles
        return other

    # --- what it knows

    def verdict(self, uid: str) -> Wait | None:
        """Return why a job waits as the last cycle found it, with today's numbers; None when it does not."""
        return next(_waits(self.state, (uid,)), None)

    @property
    def running(self) -> dict[str, RunningJob]:
        """Return what runs, by uid."""
        return {uid: held.run for uid, held in self.state.running.items()}

    def is_waiting(self, uid: str) -> bool:
        """Whether a job waits here."""
        return uid in self.state.waiting or uid in self.state.gated or uid in self.state.homeless

    def next_wake(self) -> float | None:
        """Return the next time at which something could be decided without an event."""
        if self.state.owed:
            return self.state.now
        return self.state.alarms[0][0] if self.state.alarms else None

    # --- decisions

    def plan(self, now: float) -> list[Decision]:
        """Decide, and apply the decisions to this core: who is admitted runs from now on."""
        self.cycles += 1
        return _Cycle(self, now).run()


class _Cycle:
    """The working state of one cycle."""

    def __init__(self, core: Core, now: float) -> None:
        self.core = core
        self.state = core.state
        self.now = now
        self.decisions: list[Decision] = []
        self.touched: dict[int, JobClass] = {}
        self.reservations = Reservations(core.state)
        self.grows: bool | None = None  # whether an elastic job may grow; None: not looked at yet
        self.looks = 0
        self.by_nodes = False  # what held the last one up were nodes, which are everybody's
        self.held_up: dict[tuple[Demand, str | None, int], tuple[float, str | None]] = {}
        self.insiders: bool | None = (
            None  # whether jobs inside their quota are awake; None: not looked at yet
        )
        self.deferred = False  # somebody could stop others only once those had their turn
        self.spared: dict[str, None] = {}  # for whom others were stopped: they do start
        self.resized: set[str] = set()  # uids of what ran before and has other workers from now on

    def run(self) -> list[Decision]:
        self.state.wake_up(self.now)
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
            self._resized(change)
        self._tell()
        return self.decisions

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
                is_inside(quotas, cls.tenant, cls.vector)
                for group in self.state.awake.values()
                for cls in group.values()
            )
        return self.insiders

    def _admit_in_order(self) -> None:
        state = self.state
        if not self._goes_on():
            return
        lines: dict[str, _Line] = {}
        heap = [(state.key_of(name), name) for name in self._tenants()]
        heapify(heap)
        while heap and self._goes_on():
            _, name = heappop(heap)
            line = lines.get(name)
            if line is None:
                line = lines[name] = self._line(name)
            if not line:
                continue
            _, _, cls = heappop(line)
            entry = state.waiting[cls.jobs[0][1]]
            if cls.asleep is Asleep.NO:
                if self._try(entry) and cls.jobs:
                    heappush(line, (cls.jobs[0], cls.serial, cls))
            else:
                self._stand(entry)
            if line:
                heappush(heap, (state.tenant_key(name, line[0][0][0]), name))
        if self.reservations.first is not None:
            state.promised = self.reservations.first

    def _tenants(self) -> Iterable[str]:
        """Return the tenants to be looked at: those with awake jobs, and the first by policy for their reservations."""
        first = [name for name in self.state.first_tenants() if self.state.queues[name].length]
        return dict.fromkeys((*first, *self.state.awake))

    def _goes_on(self) -> bool:
        """Whether somebody is left to be tried, or has to stand before elastic jobs grow."""
        if self.state.awake:
            return True
        if not self.reservations.wanted:
            return False
        if self.grows is None:
            self.grows = bool(self.state.elastic and growable(self.state))
        return self.grows

    def _line(self, name: str) -> _Line:
        """Return the classes of a tenant to be looked at, as a heap by their first jobs.

        Those that sleep cannot start, but the first of them are owed a reservation.
        """
        if self.reservations.wanted:
            classes = iter(self.state.queues[name].classes.values())
        else:
            classes = iter(self.state.awake.get(name, {}).values())
        line = [(cls.jobs[0], cls.serial, cls) for cls in classes]
        heapify(line)
        return line

    def _stand(self, entry: Entry) -> None:
        state, cls = self.state, entry.cls
        # as things are now: since it was last tried, others may have taken its quota, or the room that it had to leave
        has_room = state.index.total_slots(cls.demand, cls.topology) >= cls.ranks_min
        if state.quotas.excess(cls.tenant, cls.vector) or (
            has_room and cls.reason is Reason.WAITING_FOR_QUOTA
        ):
            self.reservations.stand_on_quota(entry)
        elif not has_room or cls.reason is not Reason.RESERVED:
            self.reservations.stand_on_nodes(entry)

    # --- one job

    def _try(self, entry: Entry) -> bool:
        """Admit the job if it can start; else put its class to sleep. Returns whether it was admitted."""
        state, cls = self.state, entry.cls
        self.touched[cls.serial] = cls
        if state.quotas.excess(cls.tenant, cls.vector):
            return self._blocked(entry, on_quota=True)
        if self._is_held_up(cls):
            state.sleep(cls)
            return False
        placement = most_seats(state.index, state.quotas, cls)
        if placement is None:
            on_quota = self._lacks_kind(cls)
            return self._blocked(entry, on_quota=on_quota)
        found = self._undelaying(entry, placement)
        if found is None:
            return self._backfill_behind(entry)
        self._admit(entry, found)
        return True

    def _is_held_up(self, cls: JobClass) -> bool:
        """Whether an equal of another tenant, no longer than the shortest of these, found no place that delays nobody."""
        known = self.held_up.get((cls.demand, cls.topology, cls.ranks_min))
        if known is None or self.now + cls.shortest < known[0]:
            return False
        if self.state.policy.preemption and is_entitled(self.state.quotas, cls.tenant, cls.vector):
            return False
        cls.reason, cls.ahead = Reason.RESERVED, known[1]
        return True

    def _lacks_kind(self, cls: JobClass) -> bool:
        """Whether nodes would have room, but the quota of their kinds of GPU is used up."""
        if not cls.demand.gpu or cls.demand.gpu_kind:
            return False
        return self.state.index.total_slots(cls.demand, cls.topology) >= cls.ranks_min

    def _undelaying(self, entry: Entry, placement: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return a placement that delays nobody ahead, this one if it does not; None when there is none."""
        state, cls = self.state, entry.cls
        end = _end(entry.job, self.now)
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
            cls.ahead = delay.entry.job.uid
            self.by_nodes = bool(delay.tight) and cls.workers_max == cls.workers_min
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
        longest = _end(entry.job, self.now)
        for _, uid in cls.jobs[1:MOST_TOLD]:
            other = state.waiting[uid]
            end = _end(other.job, self.now)
            if end >= longest:
                continue
            longest = end
            ahead = cls.ahead
            placement = most_seats(state.index, state.quotas, cls)
            found = None if placement is None else self._undelaying(other, placement)
            cls.ahead = ahead
            if found is not None:
                self._admit(other, found)
                return True
        if self.by_nodes:
            ask = (cls.demand, cls.topology, cls.ranks_min)
            before = self.held_up.get(ask)
            if before is None or longest < before[0]:
                self.held_up[ask] = (longest, cls.ahead)
        state.sleep(cls)
        return False

    def _blocked(self, entry: Entry, *, on_quota: bool) -> bool:
        """Make room by stopping others, or let the class sleep until something is given back."""
        state, cls = self.state, entry.cls
        made: RoomMade | NotYet | LacksNodes | None = None
        if state.stopping and room_comes(Rights(state, entry)):
            self._note(entry, on_quota=on_quota)
            cls.reason = Reason.WAITING_FOR_PREEMPTED
            state.sleep(cls)
            return False
        if state.policy.preemption and self.looks < MOST_LOOKS:
            rights = Rights(state, entry)
            if not rights.inside and self._insiders_wait():
                # else one of them might take back from this one what others were stopped for
                self.deferred = True
                self._note(entry, on_quota=on_quota)
                return False  # it stays awake
            made = make_room(rights, self.spared)
            if not isinstance(made, RoomMade):
                made = make_way(rights, made, self.spared)
            self.looks += rights.looked_at
        elif state.policy.preemption and state.may_stop(cls):
            state.owed[cls.serial] = cls  # a look of its own, with a fresh allowance
        robs = isinstance(made, RoomMade) and self._robs(entry, made)
        if isinstance(made, RoomMade) and not robs:
            self._preempt(entry, made)
            return True
        self._note(entry, on_quota=on_quota)
        if isinstance(made, NotYet):
            if made.at <= self.now:
                return False  # it stays awake
            state.alarm(made.at, cls)
        if robs or isinstance(made, NotYet) or (on_quota and isinstance(made, LacksNodes)):
            state.sleep(cls)
        else:
            self._sleep(cls, on_quota=on_quota)
        return False

    def _sleep(self, cls: JobClass, *, on_quota: bool) -> None:
        if on_quota:
            self.state.sleep_on_quota(cls)
        else:
            self.state.sleep_on_nodes(cls)

    def _note(self, entry: Entry, *, on_quota: bool) -> None:
        """Note what the job lacks, and let it stand in line for that."""
        state, cls = self.state, entry.cls
        cls.ahead = None
        if on_quota:
            cls.reason = Reason.WAITING_FOR_QUOTA
        else:
            enough = state.index.total_slots(cls.demand) >= cls.ranks_min
            cls.reason = Reason.TOPOLOGY_PLACEMENT_FAILED if enough else Reason.WAITING_FOR_RESOURCES
        self._stand(entry)

    def _robs(self, entry: Entry, made: RoomMade) -> bool:
        """Whether the place that was made is promised to somebody ahead."""
        cls = entry.cls
        vector = vector_on(made.index, cls.demand, made.placement)
        end = _end(entry.job, self.now)
        start = Start(entry.job.uid, cls.tenant, cls.demand, made.placement, vector, end, by_right=True)
        return self.reservations.trial(made).delayed_by(start) is not None

    # --- applying

    def _admit(self, entry: Entry, placement: tuple[str, ...], after: tuple[str, ...] = ()) -> None:
        state, job = self.state, entry.job
        state.withdraw(job.uid, served=True)
        end = _end(job, self.now)
        run = RunningJob(job, placement, self.now, None if end == math.inf else end)
        devices, vector = state.hold(run, entry.cls.demand)
        workers = len(placement) - job.ps
        self.decisions.append(Admit(job.uid, placement, workers, resources_of(vector), devices, after))

    def _preempt(self, entry: Entry, made: RoomMade) -> None:
        state, job = self.state, entry.job
        stops = False  # what ran before this cycle
        for shrink in made.shrinks:
            placement, _ = without_last(shrink.held, shrink.by)
            verdict = verdicts.shrunk_for(job, shrink.held, shrink.by)
            change = resize(state, shrink.held, placement, job.uid)
            stops = self._resized(replace(change, verdict=verdict)) or stops
        after = []
        for held in made.victims:
            reclaimed = held.run.job.tenant != job.tenant and held.run.job.priority >= job.priority
            lost = lost_work(held, self.now, state.policy.restart_cost_s)
            moved = held.run.job.uid in made.moved
            verdict = verdicts.preempted_for(job, held, lost, reclaimed=reclaimed, moved=moved)
            if not self._retract(held.run.job.uid):
                self._unresize(held.run.job.uid)
                self.decisions.append(Preempt(held.run.job.uid, job.uid, verdict))
                after.append(held.run.job.uid)
            state.give_back(held.run.job.uid)
        self.reservations.forget()
        self.held_up.clear()
        if after or stops:
            self.spared[job.uid] = None
        self._admit(entry, made.placement, tuple(after))

    def _retract(self, uid: str) -> bool:
        """Take back an admission of this very cycle: the job never started."""
        at = self._admission(uid)
        if at is None:
            return False
        del self.decisions[at]
        self.state.requeue.append(self.state.running[uid].run.job)
        return True

    def _resized(self, change: Resize) -> bool:
        """Note a resize; what was admitted in this very cycle just starts so. Returns whether it ran before."""
        at = self._admission(change.uid)
        if at is None:
            self.decisions.append(change)
            self.resized.add(change.uid)
            return True
        after = self.decisions[at].after  # type: ignore[union-attr] # an admission
        self.decisions[at] = Admit(
            change.uid, change.placement, change.workers, change.amount, change.devices, after
        )
        return False

    def _unresize(self, uid: str) -> None:
        """Drop the resizes of a job that is stopped after all; who was to start on what it gave up awaits its end."""
        if uid not in self.resized:
            return
        self.resized.discard(uid)
        heirs = {d.for_uid for d in self.decisions if isinstance(d, Resize) and d.uid == uid}
        self.decisions = [
            replace(d, after=(*d.after, uid)) if isinstance(d, Admit) and d.uid in heirs else d
            for d in self.decisions
            if not (isinstance(d, Resize) and d.uid == uid)
        ]

    def _admission(self, uid: str) -> int | None:
        """Find what was admitted in this very cycle."""
        if self.state.running[uid].run.started_at < self.now:
            return None
        for i in reversed(range(len(self.decisions))):
            d = self.decisions[i]
            if isinstance(d, Admit) and d.uid == uid:
                return i
        return None

    # --- telling

    def _tell(self) -> None:
        """Say why to those that wait since this cycle, and to those whose reason changed."""
        state = self.state
        told: dict[str, None] = {}
        fresh = list(state.unanswered)
        state.unanswered.clear()
        for cls in self.touched.values():
            if cls.jobs and cls.asleep is not Asleep.NO and cls.said is not cls.reason:
                if cls.said is not None:
                    if len(told) >= MOST_TOLD:
                        continue  # when it is looked at again
                    told.update(dict.fromkeys(uid for _, uid in cls.jobs[:MOST_TOLD]))
                cls.said = cls.reason
        told.update(dict.fromkeys(fresh))
        self.decisions += _waits(state, told)


def _waits(state: State, uids: Iterable[str]) -> Iterator[Wait]:
    made: dict[int, Verdict] = {}
    for uid in uids:
        entry = state.waiting.get(uid)
        if entry is None:
            plain = state.gated.get(uid) or state.homeless.get(uid)
            if plain is not None:
                gated = plain.gated is not None
                yield Wait(uid, verdicts.is_gated(plain) if gated else verdicts.no_tenant(plain), 1)
            continue
        cls = entry.cls
        verdict = made.get(cls.serial)
        if verdict is None:
            verdict = made[cls.serial] = verdicts.of(state, entry)
        yield Wait(uid, verdict, state.queues[cls.tenant].position(entry.key))


def _end(job: WaitingJob, now: float) -> float:
    span = span_of(job)
    return math.inf if span is None else now + span
