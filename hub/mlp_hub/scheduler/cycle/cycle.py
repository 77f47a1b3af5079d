"""One cycle of the scheduling core, read as prose.

1. Requeue inadmissible workloads that could use the resources that came free.
2. Under `finish`, send work ahead that would outlast all the rest.
3. Nominate: take the tenant that is next by policy, and its first workload.
4. Assign: find nodes for the whole gang, inside its quota, that delay no workload to which a start
   was promised.
5. Preempt: where there are none, and a stop of others can make room, choose the cheapest victims.
6. Admit the workloads that have a place.
7. The others are inadmissible, for a typed reason and until a change that can help. Each gets a
   reservation that no workload behind it can delay.
8. Go through the line again for those that had to let others inside their quota go first, or lost
   their place again.
9. Grow elastic jobs by resources that nobody waits for.
10. Give waiting jobs their reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.assign.fit import has_claim, has_quota, most_seats, seats, stays_inside, vector_on
from mlp_hub.scheduler.backfill import Delay, ProposedStart, Reservations
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.cycle.elastic import grow
from mlp_hub.scheduler.cycle.nominate import Nominees
from mlp_hub.scheduler.cycle.plan import Plan
from mlp_hub.scheduler.cycle.requeue import requeue_inadmissible
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import CapacityWindow, Decision
from mlp_hub.scheduler.nodes.placement import domain_label
from mlp_hub.scheduler.policy import end_of
from mlp_hub.scheduler.preemption.defragment import make_way
from mlp_hub.scheduler.preemption.eligibility import PreemptionRights
from mlp_hub.scheduler.preemption.victims import NotYet, RoomMade, ShortOfNodes, make_room, room_comes
from mlp_hub.scheduler.reasons.verdicts import WantsReason, reason_to_report
from mlp_hub.scheduler.workloads.pending import Awaits, Entry, JobClass

MOST_TOLD = 64
"""Tuning: jobs of one class that are told when the reason changes; those behind them are told when they are asked for."""
MOST_EXAMINED = 600
"""Tuning: running jobs examined as victims in one cycle; a workload that comes after them has its search in the next cycle."""
MOST_TRIES = 3
"""Tuning: other places tried for a workload that would delay one ahead of it: time of a cycle, for how much is tried in it."""


class Obstacle(Enum):
    """Obstacle that keeps a gang from a place."""

    QUOTA = "its quota has no room"
    NODES = "the nodes have no room"
    PROMISES = "it would delay somebody to whom a start was promised"


class Unsearched(Enum):
    """Reason for which no victims were searched now."""

    STOPPING = "enough is stopping already"
    INSIDERS_FIRST = "workloads inside their nominal quota have their turn before"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job, the nominated one or a shorter equal behind it, and a node for each of its ranks."""

    entry: Entry
    placement: tuple[str, ...]


Assigned = Assignment | Obstacle
"""Outcome of a search for a place."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Victims whose room no other was promised, the start and the reservations once they are gone, and the rights to stop them."""

    made: RoomMade
    start: ProposedStart
    reservations: Reservations
    rights: PreemptionRights


NoVictims = Unsearched | RoomMade | NotYet | ShortOfNodes | None
"""Result of a search without a preemption; `RoomMade`: the victims' room is promised to a job ahead."""


class Cycle:
    """The working state of one cycle."""

    def __init__(
        self, state: ClusterState, now: float, *, tells: bool = True, wants: WantsReason | None = None
    ) -> None:
        self.state = state
        self.now = now
        self.tells = tells  # whether anybody listens to why jobs wait
        self.wants = wants  # of which of them, by uid and reason; None: of all
        self.plan = Plan(state, now)
        self.nominees = Nominees(state)
        self.touched: dict[int, JobClass] = {}
        self.examined = 0  # running jobs, as victims
        self.by_nodes = False  # what held the last one up were nodes, which are everybody's
        self.held_up: dict[
            tuple[Demand, str | None, int], tuple[float, str | CapacityWindow | None, float | None]
        ] = {}
        self.insiders: bool | None = (
            None  # whether jobs inside their quota are active; None: not looked at yet
        )
        self.deferred = False  # somebody could stop others only once those had their turn
        self.spared: dict[str, None] = {}  # for whom others were stopped: they do start

    def run(self) -> list[Decision]:
        """Decide and apply, once."""
        self.state.begin_cycle(self.now)
        self._requeue()  # 1.
        self._send_long_ahead()  # 2.
        self._go_through_the_line()  # 3. to 7.
        self._go_through_it_again()  # 8.
        self._grow()  # 9.
        self._report_reasons()  # 10.
        return self.plan.decisions

    def _go_through_the_line(self) -> None:
        for entry in self._nominate():  # 3.
            assigned = self._assign(entry)  # 4.
            victims = self._preempt(entry, assigned)  # 5.
            if not self._admit(entry, assigned, victims):  # 6.
                self._set_aside(entry, assigned, victims)  # 7.
        if self.nominees.reservations.first is not None:
            self.state.promised = self.nominees.reservations.first

    # --- 1. Requeue

    def _requeue(self) -> None:
        """Let those be active again whom what came free could serve."""
        requeue_inadmissible(self.state)

    # --- 2. Send ahead

    def _send_long_ahead(self) -> None:
        """Under `finish`, put work first that would outlast all the rest."""
        self.state.send_long_ahead()

    # --- 3. Nominate

    def _nominate(self) -> Iterator[Entry]:
        """Yield the first workload of the tenant that is next by policy, then of the next one."""
        for entry in self.nominees:
            self.state.effort += 1
            self.touched[entry.cls.serial] = entry.cls
            yield entry

    # --- 4. Assign

    def _assign(self, entry: Entry) -> Assigned:
        """Find a place that delays nobody; else tell what is in the way."""
        state, cls = self.state, entry.cls
        if not has_quota(state.quotas, cls):
            return Obstacle.QUOTA
        if entry.job.gives_way and self._is_held_up(cls):
            return Obstacle.PROMISES
        if entry.job.gives_way and self._would_delay_anywhere(entry):
            return self._backfill_behind(entry)
        placement = most_seats(state.index, state.quotas, cls)
        if placement is None:
            return Obstacle.QUOTA if self._is_short_of_kind(cls) else Obstacle.NODES
        found = self._undelaying(entry, placement)
        return self._backfill_behind(entry) if found is None else Assignment(entry, found)

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
        delay = self.nominees.reservations.delayed_anywhere(cls, end_of(entry.job, self.now))
        if delay is None:
            return False
        self._note_delay(cls, delay)
        return True

    def _note_delay(self, cls: JobClass, delay: Delay) -> None:
        cls.ahead = delay.ahead.job.uid if isinstance(delay.ahead, Entry) else delay.ahead
        cls.pass_by = delay.by
        self.by_nodes = bool(delay.tight) and cls.workers_max == cls.workers_min

    def _is_short_of_kind(self, cls: JobClass) -> bool:
        """Whether nodes would have room, but the quota of their kinds of GPU is used up."""
        if not cls.demand.gpu or cls.demand.gpu_kind:
            return False
        return self.state.index.has_slots(cls.demand, cls.ranks_min, cls.topology)

    def _undelaying(self, entry: Entry, placement: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return a placement that delays nobody ahead, this one if it does not; None when there is none."""
        state, cls, reservations = self.state, entry.cls, self.nominees.reservations
        end = end_of(entry.job, self.now)
        avoid: dict[str, None] = {}
        for _ in range(MOST_TRIES):
            start = ProposedStart(
                entry.job.uid,
                cls.tenant,
                cls.demand,
                placement,
                vector_on(state.index, cls.demand, placement),
                end,
                by_right=True,
            )
            delay = reservations.delayed_by(start) if entry.job.gives_way else None
            if delay is None:
                reservations.keep(start)
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

    def _backfill_behind(self, entry: Entry) -> Assigned:
        """Find a place for a shorter job of the class, where the first would delay somebody."""
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
                return Assignment(other, found)
        if self.by_nodes:
            ask = (cls.demand, cls.topology, cls.ranks_min)
            before = self.held_up.get(ask)
            if before is None or longest < before[0]:
                self.held_up[ask] = (longest, cls.ahead, cls.pass_by)
        return Obstacle.PROMISES

    # --- 5. Preempt

    def _preempt(self, entry: Entry, assigned: Assigned) -> Preemption | NoVictims:
        """Where it has no place, choose the cheapest victims that leave it one which delays nobody; nothing is stopped yet."""
        state, cls = self.state, entry.cls
        if isinstance(assigned, Assignment) or assigned is Obstacle.PROMISES:
            return None
        if state.running.stopping and room_comes(PreemptionRights(state, entry)):
            return Unsearched.STOPPING
        if not state.policy.preemption:
            return None
        if self.examined >= MOST_EXAMINED:
            if state.may_stop(cls):
                state.inadmissible.owed[cls.serial] = cls  # a search of its own, with a fresh allowance
            return None
        if not stays_inside(state.quotas, cls) and self._insiders_wait():
            # else one of them might take back from this one what others were stopped for
            self.deferred = True
            return Unsearched.INSIDERS_FIRST
        return self._choose_victims(entry)

    def _choose_victims(self, entry: Entry) -> Preemption | NoVictims:
        state, cls = self.state, entry.cls
        if not state.may_stop(cls) and not state.overshare.any_but(cls.tenant, state.running.preemptible):
            return None
        rights = PreemptionRights(state, entry)
        made = make_room(rights, self.spared)
        if not isinstance(made, RoomMade):
            made = make_way(rights, made, self.spared)
        self.examined += rights.examined
        state.effort += rights.examined
        if isinstance(made, RoomMade):
            start = self._start_on(entry, made)
            trial = self.nominees.reservations.trial(made)
            if trial.delayed_by(start) is None:
                return Preemption(made, start, trial, rights)
        return made

    def _insiders_wait(self) -> bool:
        """Whether jobs inside their tenants' nominal quota are active, who have their turn before others stop work."""
        if self.insiders is None:
            quotas = self.state.quotas
            self.insiders = any(
                stays_inside(quotas, cls)
                for group in self.state.inadmissible.active.values()
                for cls in group.values()
            )
        return self.insiders

    def _start_on(self, entry: Entry, made: RoomMade) -> ProposedStart:
        """Return the job's start where room was made for it."""
        cls = entry.cls
        vector = vector_on(made.index, cls.demand, made.placement)
        end = end_of(entry.job, self.now)
        return ProposedStart(
            entry.job.uid, cls.tenant, cls.demand, made.placement, vector, end, by_right=True
        )

    # --- 6. Admit

    def _admit(self, entry: Entry, assigned: Assigned, victims: Preemption | NoVictims) -> bool:
        """Admit what has a place, now or once its victims are stopped; returns whether anything was."""
        if isinstance(assigned, Assignment):
            if assigned.entry is not entry:
                self.nominees.note_passed(entry)  # by an equal that is shorter
            self.plan.admit(assigned.entry, assigned.placement, self.nominees.passed)
        elif isinstance(victims, Preemption):
            if self.plan.preempt(entry, victims.made, victims.rights, self.nominees.passed):
                self.spared[entry.job.uid] = None
            self.nominees.reservations = victims.reservations.adopted(victims.start)
            self.held_up.clear()
        else:
            return False
        self.nominees.note_admission()
        return True

    # --- 7. Inadmissible

    def _set_aside(self, entry: Entry, obstacle: Assigned, victims: Preemption | NoVictims) -> None:
        """Let a class wait until something changes that may help it, its first job with a reservation."""
        state, cls = self.state, entry.cls
        inadmissible = state.inadmissible
        if obstacle is Obstacle.PROMISES:
            inadmissible.await_anything(cls)
            return
        self._note(entry, obstacle)
        if victims is Unsearched.INSIDERS_FIRST:
            return  # it stays active
        if victims is Unsearched.STOPPING:
            cls.reason = Reason.WAITING_FOR_PREEMPTED
            inadmissible.await_anything(cls)
            return
        if isinstance(victims, NotYet):
            if victims.at <= self.now:
                return  # it stays active
            cls.ripe = victims.at
            inadmissible.requeue_at(victims.at, cls)
        on_quota = obstacle is Obstacle.QUOTA
        if isinstance(victims, RoomMade | NotYet) or (on_quota and isinstance(victims, ShortOfNodes)):
            inadmissible.await_anything(cls)
        elif on_quota:
            inadmissible.await_quota(cls, state.quotas.root(cls.tenant))
        else:
            inadmissible.await_nodes(cls)

    def _note(self, entry: Entry, obstacle: Assigned) -> None:
        """Note the resource that the job lacks, and queue the job for it."""
        state, cls = self.state, entry.cls
        cls.ahead, cls.ripe = None, None
        if obstacle is Obstacle.QUOTA:
            cls.reason = Reason.WAITING_FOR_QUOTA
        else:
            enough = state.index.has_slots(cls.demand, cls.ranks_min)
            cls.reason = Reason.TOPOLOGY_PLACEMENT_FAILED if enough else Reason.WAITING_FOR_RESOURCES
        self.nominees.line_up(entry)

    # --- 8. Again

    def _go_through_it_again(self) -> None:
        """Try those that are active still: they let others go first, or lost their place again before they started."""
        if self.deferred:
            self.insiders = False
            self._try_the_rest()
        while self.state.retracted:
            again, self.state.retracted = self.state.retracted, []
            for job in again:
                self.state.submit(job)
            self._try_the_rest()

    def _try_the_rest(self) -> None:
        self.nominees.begin_again()
        self.held_up.clear()
        self._go_through_the_line()

    # --- 9. Grow

    def _grow(self) -> None:
        """Give elastic jobs what nobody waits for."""
        for change in grow(self.state, self.nominees.reservations):
            self.plan.resize(change)

    # --- 10. Tell

    def _report_reasons(self) -> None:
        """Say why to those that wait since this cycle, and to those whose reason changed."""
        state = self.state
        reported: dict[str, None] = {}
        fresh = list(state.unanswered)
        state.unanswered.clear()
        if not self.tells:
            return
        for cls in self.touched.values():
            if not cls.jobs or cls.awaits is Awaits.NOTHING:
                continue
            reason = reason_to_report(state.quotas, cls)
            if cls.said is not reason:
                if cls.said is not None:
                    if len(reported) >= MOST_TOLD:
                        continue  # when it is looked at again
                    reported.update(dict.fromkeys(uid for _, uid in cls.jobs[:MOST_TOLD]))
                cls.said = reason
        reported.update(dict.fromkeys(fresh))
        self.plan.report_reasons(reported, self.wants)
