"""The scheduling core as the hub keeps it: updated with changes, never made again without a reason.

Decisions of the core are true in the core at once, and in the hub somewhat later. There are three
differences:

- `promised`: jobs that run in the core, on room that others still hold. They wait in the hub until
  those are gone.
- `leaving`: jobs that the core has released for another one, and that still hold their amounts.
- `resizing`: elastic jobs that have another number of workers in the core; the ranks to be given up
  still run.

While any job is leaving or resizing, an admission that finds no room is early, not wrong. All three
are stored (as a target), or planning can find them again. After a restart the jobs that were asked
to make room are leaving again. The job that they make room for is admitted again.

A pending request is a workload that waits like a job. Once it is admitted, its row holds its
amounts. So the core learns in one step that the request is gone and that non-jobs hold more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import GOES_ON, HOLDING, Job, Phase, Target
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.cycle.grounds import Grounds
from mlp_hub.scheduler.model.types import (
    Admit,
    AdmittedWorkload,
    CapacityWindow,
    Decision,
    Node,
    PendingWorkload,
    Preempt,
    Resize,
    Snapshot,
    TenantQueue,
    Wait,
)
from mlp_hub.scheduler.workloads.pending import Awaits
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.admission.snapshot import (
    STOPPING,
    fixed,
    is_resizing,
    running_of,
    waiting_of,
    workload_of,
)

_RUNS = frozenset({Phase.ADMITTED, Phase.STARTING, Phase.RUNNING})
LATE_S = 1.0
"""Tuning: seconds from admission to begin beyond which the core gets the later end of the job.

It trades fewer corrections for a less exact forecast.
"""


@dataclass(slots=True)
class AdmissionPlan:
    """The decisions of a cycle, by kind. `admits` begins with those that earlier cycles promised."""

    admits: list[Admit] = field(default_factory=list)
    preempts: list[Preempt] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)  # all of them, as they were taken
    grounds: Mapping[str, Grounds] = field(default_factory=dict)  # why, by job


class KeptCore:
    """A core and what lies between it and the hub. It is used by one thread at a time."""

    def __init__(
        self,
        snapshot: Snapshot,
        now: float,
        jobs: Mapping[str, Job],
        backoff: JobBackoff,
        pending: Mapping[str, ResourceRequest] | None = None,
    ) -> None:
        """`jobs` are those that hold quota, `pending` the requests that wait in the snapshot; both by uid."""
        self._backoff = backoff
        self.leaving: dict[str, None] = {uid: None for uid, job in jobs.items() if _makes_room(job)}
        # their room is somebody's already: counted twice, more would be stopped
        stays = tuple(r for r in snapshot.running if r.job.uid not in self.leaving)
        self.core = Core.from_snapshot(replace(snapshot, running=stays), now)
        self.pending = dict(pending or {})
        self.promised: dict[str, Admit] = {}
        self.resizing: dict[str, None] = {uid: None for uid, job in jobs.items() if is_resizing(job)}
        self.held_back: dict[str, None] = {}  # may not grow before all who leave are gone
        self.to_sync: dict[str, None] = {}  # to be looked at again before the next plan
        self._tenants = {t.name: _plain(t) for t in snapshot.tenants}
        self._nodes = {n.name: n for n in snapshot.nodes}
        self._reported: Iterable[Node] | None = None  # not `()`, which no nodes at all are too
        self._bookings = snapshot.bookings

    # --- what happened

    def tenants_are(
        self, tenants: Iterable[TenantQueue], history: Callable[[str], float] = lambda _: 0.0
    ) -> bool:
        """Tell which tenants there are now, without their history; returns whether anything changed.

        `history` is the decayed usage of one, asked for those that changed only.
        """
        now = {t.name: t for t in tenants}
        known = self._tenants
        gone = [name for name in known if name not in now]
        changed = [t for name, t in now.items() if known.get(name) is not t and known.get(name) != t]
        if changed:
            self.core.set_tenants([replace(t, decayed_usage=history(t.name)) for t in changed])
        for name in sorted(gone, key=self._depth, reverse=True):  # who is below another goes first
            self.core.remove_tenant(name)
        self._tenants = now
        return bool(changed or gone)

    def _depth(self, name: str) -> int:
        depth, at = 0, self._tenants.get(name)
        while at is not None and at.parent is not None:
            depth, at = depth + 1, self._tenants.get(at.parent)
        return depth

    def nodes_are(self, nodes: Iterable[Node]) -> bool:
        """Tell which nodes there are now, and what others than jobs hold of them; returns whether anything changed."""
        if nodes is self._reported:
            return False
        self._reported = nodes
        known, now = self._nodes, {n.name: n for n in nodes}
        gone = [name for name in known if name not in now]
        changed = [n for name, n in now.items() if known.get(name) is not n and known.get(name) != n]
        self._nodes = now
        if changed or gone:
            self.core.set_nodes(changed, gone)
        return bool(changed or gone)

    def bookings_are(self, bookings: tuple[CapacityWindow, ...]) -> bool:
        """Tell which windows are booked now; returns whether anything changed."""
        if bookings == self._bookings:
            return False
        self._bookings = bookings
        self.core.set_bookings(bookings)
        return True

    def pending_are(self, pending: Mapping[str, ResourceRequest], now: float) -> bool:
        """Tell which requests wait now, by uid; returns whether anything changed. To be told before what tenants hold."""
        changed = False
        for uid in [u for u, r in self.pending.items() if pending.get(u) != r]:
            changed = self.sync(uid, None, now) or changed
        for uid, request in pending.items():
            if uid not in self.pending:
                changed = self.sync(uid, request, now) or changed
        return changed

    def sync(self, uid: str, stored: Job | ResourceRequest | None, now: float) -> bool:
        """Make the core see one job or one pending request as it is stored; returns whether that changed anything."""
        self.pending.pop(uid, None)
        match stored:
            case ResourceRequest():
                self.pending[uid] = stored
                if uid not in self._backoff:
                    return self._waits(uid, stored, now)
            case Job(phase=Phase.QUEUED) if uid not in self._backoff:
                return self._waits(uid, stored, now)
            case Job() if stored.phase in HOLDING:
                return self._holds(stored, now)
        self.promised.pop(uid, None)
        return self._is_gone(uid, now)

    def _waits(self, uid: str, stored: Job | ResourceRequest, now: float) -> bool:
        if uid in self.promised:
            return False
        if self.core.is_waiting(uid):
            if not (isinstance(stored, Job) and self._is_other(stored)):
                return False
            self.core.withdraw(uid)
        self._is_gone(uid, now)
        self.core.submit(workload_of(stored))
        return True

    def _is_other(self, job: Job) -> bool:
        """Whether a job that waits was changed by somebody since the core heard of it."""
        state = self.core.state
        entry = state.waiting.get(job.uid)
        known = state.orphaned[job.uid] if entry is None else entry.job
        return _steering(known) != _steering(waiting_of(job))

    def _holds(self, job: Job, now: float) -> bool:
        uid = job.uid
        self.promised.pop(uid, None)
        if uid in self.leaving:
            if job.phase in _RUNS and job.target in GOES_ON:
                # its user stopped and resumed it before it was asked to leave: what was planned with its room is void
                raise ValueError(f"job {uid} was to leave and goes on")
            return False
        wanted = running_of(job, alone=uid in self._backoff)
        if is_resizing(job):
            self.resizing[uid] = None
        elif uid in self.resizing:
            del self.resizing[uid]
            self._let_grow()
        held = self.core.state.running.get(uid)
        if held is not None and _same(held.run, wanted, frozen=uid in self.held_back):
            return False
        self._is_gone(uid, now)
        self.core.start(wanted)
        return True

    def _is_gone(self, uid: str, now: float) -> bool:
        was_leaving = uid in self.leaving or uid in self.resizing
        self.leaving.pop(uid, None)
        self.resizing.pop(uid, None)
        self.held_back.pop(uid, None)
        if was_leaving:
            self._let_grow()
        return self._leaves(uid, now) or was_leaving

    def _leaves(self, uid: str, now: float) -> bool:
        if self.core.is_waiting(uid):
            self.core.withdraw(uid)
        elif uid in self.core.state.running:
            self.core.end(uid, now)
        else:
            return False
        return True

    # --- decisions

    def plan(self, now: float) -> AdmissionPlan:
        """Decide; the decisions hold in the core from now on, and the core must be informed of those not stored."""
        decisions = self.core.plan(now)
        plan = AdmissionPlan(decisions=decisions, grounds=self.core.grounds)
        fresh: dict[str, Admit] = {}
        for decision in decisions:
            match decision:
                case Admit():
                    fresh[decision.uid] = decision
                case Preempt():
                    self._preempted(plan, decision)
                case Resize():
                    self._resized(plan, decision)
                case Wait():
                    plan.waits.append(decision)
        plan.admits = [*self.promised.values(), *fresh.values()]
        return plan

    def plan_requests(self, now: float) -> list[Admit]:
        """Decide about pending requests alone, while no job may start and nobody is stopped."""
        if not self.pending:
            return []
        core = self.core.fork()
        for uid in [u for u in core.state.waiting if u not in self.pending]:
            core.withdraw(uid)
        promised = [admit for uid, admit in self.promised.items() if uid in self.pending]
        fresh = [d for d in core.plan_unheard(now) if isinstance(d, Admit) and not d.after]
        return promised + fresh

    def _preempted(self, plan: AdmissionPlan, decision: Preempt) -> None:
        promised = self.promised.pop(decision.uid, None)
        if promised is not None:
            self.to_sync[decision.uid] = None  # it never began, and waits again
        else:
            self.leaving[decision.uid] = None
            self.resizing.pop(decision.uid, None)
            self.held_back.pop(decision.uid, None)
            plan.preempts.append(decision)

    def _resized(self, plan: AdmissionPlan, decision: Resize) -> None:
        uid = decision.uid
        promised = self.promised.get(uid)
        if promised is not None:
            self.promised[uid] = Admit(
                uid, decision.placement, decision.workers, decision.amount, decision.devices, promised.after
            )
            return
        plan.resizes = [r for r in plan.resizes if r.uid != uid]  # shrunk again, for one more job
        plan.resizes.append(decision)
        self.resizing[uid] = None
        self._freeze(uid, decision.workers)

    def _freeze(self, uid: str, workers: int) -> None:
        run = self.core.end(uid, self.core.state.now)
        self.core.start(replace(run, job=fixed(run.job, workers)))

    @property
    def early(self) -> bool:
        """Whether an admission may find no room because somebody has not left yet."""
        return bool(self.leaving or self.resizing)

    def is_due(self, admit: Admit) -> bool:
        """Whether all who were stopped for an admission are gone."""
        return not any(uid in self.leaving for uid in admit.after)

    def promise(self, admit: Admit) -> None:
        """Let a job wait for the room that it was promised."""
        self.promised[admit.uid] = admit

    def kept_promise(self, uid: str) -> None:
        """Note that a job that was promised room holds it."""
        self.promised.pop(uid, None)

    def is_inadmissible(self, uid: str) -> bool:
        """Whether the last cycle found no room for one that waits, and nobody is leaving for it."""
        entry = self.core.state.waiting.get(uid)
        return (
            entry is not None
            and entry.cls.awaits is not Awaits.NOTHING
            and entry.cls.reason is not Reason.WAITING_FOR_PREEMPTED
        )

    def ripe_at(self, uid: str) -> float | None:
        """Return when others may be stopped for one that waits, where they only have to have run long enough."""
        entry = self.core.state.waiting.get(uid)
        return None if entry is None else entry.cls.ripe

    def hold_back(self, job: Job, now: float) -> None:
        """Take a growth back: the room is not free yet. The job is not asked again before all who leave are gone."""
        run = running_of(job)
        self.resizing.pop(job.uid, None)
        self.core.end(job.uid, now)
        self.core.start(replace(run, job=fixed(run.job, run.workers)))
        self.held_back[job.uid] = None

    def _let_grow(self) -> None:
        if not self.early:
            self.to_sync.update(self.held_back)
            self.held_back.clear()

    # --- what it knows

    def content(self, jobs: Mapping[str, Job]) -> dict[str, dict[str, object]]:
        """Return the core's content in the hub's terms, to compare it with a core made of a snapshot, for checks."""
        state = self.core.state
        running: dict[str, object] = {
            uid: _shape(held.run)
            for uid, held in state.running.items()
            if uid not in self.promised and uid not in self.held_back
        }
        running |= {
            uid: _shape(running_of(jobs[uid], alone=uid in self._backoff))
            for uid in (*self.leaving, *self.held_back)
            if uid in jobs
        }
        waiting: dict[str, object] = dict.fromkeys((*state.waiting, *state.orphaned, *self.promised), True)
        return {
            "tenants": {name: _plain(q.tenant) for name, q in state.queues.items()},
            "nodes": {name: state.index.node(name) for name in state.index.names},
            "bookings": {f"{b.tenant}/{b.name}": b for b in state.bookings.all},
            "waiting": waiting,
            "running": running,
        }

    def differences(self, snapshot: Snapshot, jobs: Mapping[str, Job]) -> list[str]:
        """Return the differences between this core and a new one made of the snapshot."""
        mine, found = self.content(jobs), []
        for part, value in self.content_of(snapshot).items():
            for name in {**mine[part], **value}:
                kept, anew = mine[part].get(name), value.get(name)
                if kept != anew:
                    found.append(f"{part} {name}: kept {kept}, made anew {anew}")
        return found

    @staticmethod
    def content_of(snapshot: Snapshot) -> dict[str, dict[str, object]]:
        """Return the same of a snapshot."""
        return {
            "tenants": {t.name: _plain(t) for t in snapshot.tenants},
            "nodes": {n.name: n for n in snapshot.nodes},
            "bookings": {f"{b.tenant}/{b.name}": b for b in snapshot.bookings},
            "waiting": {j.uid: True for j in snapshot.waiting},
            "running": {r.job.uid: _shape(r) for r in snapshot.running},
        }


def _makes_room(job: Job) -> bool:
    """Whether it was decided that a job is stopped for another one."""
    return job.target is Target.PREEMPT or job.phase in (Phase.PREEMPTING, Phase.FINISHING)


def _plain(tenant: TenantQueue) -> TenantQueue:
    """Return a tenant without its history, which the core measures itself."""
    return replace(tenant, decayed_usage=0.0, member_usage=())


def _shape(run: AdmittedWorkload) -> tuple[object, ...]:
    job = run.job
    return (run.placement, run.stopping, job.workers_min, job.workers_max, job.tenant, *_steering(job))


def _steering(job: PendingWorkload) -> tuple[object, ...]:
    """Return what may be changed of a job after it was submitted."""
    return (job.priority, job.time_limit, job.place)


def _range(run: AdmittedWorkload) -> tuple[int, int]:
    return (run.job.workers_min, run.job.workers_max)


def _same(run: AdmittedWorkload, wanted: AdmittedWorkload, *, frozen: bool) -> bool:
    """Whether a job runs as it should; `frozen`: its range of workers may differ."""
    return (
        run.placement == wanted.placement
        and run.stopping == wanted.stopping
        and run.job.preemptible == wanted.job.preemptible
        and _steering(run.job) == _steering(wanted.job)
        and (frozen or _range(run) == _range(wanted))
        and abs(run.started_at - wanted.started_at) < LATE_S
    )


def matters(job: Job, before: Job) -> bool:
    """Whether a core has to hear of a change of a job."""
    if job.steered is not before.steered and job.steered != before.steered:
        return True
    if job.phase is before.phase:
        return job.target is not before.target or job.placement != before.placement
    if before.phase is Phase.QUEUED and job.phase in (Phase.ADMITTED, Phase.STARTING):
        return False  # it decided so
    limited = job.phase is Phase.RUNNING and job.spec.time_limit is not None  # its time has begun only now
    if (
        limited
        or (before.phase in HOLDING) != (job.phase in HOLDING)
        or Phase.RESIZING in (job.phase, before.phase)
    ):
        return True
    was_quicker = before.phase in STOPPING and job.phase not in STOPPING  # than those who stopped it
    if was_quicker or Phase.QUEUED in (job.phase, before.phase):
        return True
    return job.target not in (Target.RUN, before.target)
