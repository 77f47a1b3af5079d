"""The admission loop: a cycle after a relevant event, or when a time has come.

1. Update the core with the changes since the last cycle: jobs, tenants, holdings of others, nodes.
2. Let it decide.
3. Store all decisions of the cycle in one transaction, each admission checked once more against the
   ledger.
4. Inform the core of decisions that could not be stored; where that concerns more than one job,
   make the core again.

The reconciler and watchers learn of every stored change from the board. Between cycles nothing
runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, JobSpec, Phase, Target
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import JOB
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import Admit, Preempt, Resize, Snapshot, Verdict, Wait
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.admission.cache import AdmissionPlan, KeptCore, matters
from mlp_hub.service.admission.caps import KeptKeys, held_now, is_capped, of_member
from mlp_hub.service.admission.commit import Decided, Starts, Stored, store_apart
from mlp_hub.service.admission.cycle_watch import CycleWatch
from mlp_hub.service.admission.fair_usage import FairUsage
from mlp_hub.service.admission.reason_counts import ReasonCounts
from mlp_hub.service.admission.snapshot import (
    Holders,
    Queues,
    SeenNodes,
    SnapshotMaker,
    read_holders,
)
from mlp_hub.service.admission.waits import WaitReasons
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.lifecycle.job_tokens import JobToken, make_token
from mlp_hub.service.reasons.decisions import DecisionLog, Explanations
from mlp_hub.service.state.board import Board

T = TypeVar("T")
log = logging.getLogger(__name__)
COALESCE_S = 0.001
"""Tuning: seconds after a first change in which further ones are taken into the same cycle: fewer cycles, for a later
start."""
BUSY_S = 0.008
"""Tuning: seconds after a first change in which further ones are taken into the same cycle, where the last one admitted more
than `MANY`: fewer cycles, for a later start."""
MANY = 4
"""Tuning: admissions of one cycle, beyond which the loop counts as busy: fewer cycles for jobs that came together, for a later
start."""
MOST_ROUNDS = 16
"""Safety: times in a row that decisions may be refused before the loop slows down: decisions refused again and again do not
take all processor time."""


class Admission:
    """Decides who starts; `starts` starts them, and without it admissions are stored only.

    `changed` is called when what others than jobs hold has run out, or was admitted.
    """

    def __init__(
        self,
        board: Board,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        policy: RunPolicy,
        starts: Starts | None = None,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._board = board
        self._nodes = nodes
        self._clock = clock
        self._policy = policy
        self._usage = FairUsage(policy.scheduling.half_life_s)
        self._backoff = JobBackoff(policy.backoff_s, policy.backoff_max_s)
        self._maker = SnapshotMaker(board, nodes, policy.scheduling, self._usage.of_tenant, self._backoff)
        self._queues = Queues()
        self._seen = SeenNodes()
        self._waits = WaitReasons(board, clock)
        self._keys = KeptKeys()
        self._backoff.held = self.is_held
        self.decisions = DecisionLog(board.db)
        self._starts = starts
        self._changed = changed
        self._kept: KeptCore | None = None
        self._planning = False
        self._reload = False
        self._dirty: dict[str, None] = {}
        self._holders: Holders | None = None
        self._holders_changed = True
        self._known_nodes: tuple[NodeInfo, ...] = ()
        self._wake = asyncio.Event()
        self._task = BackgroundTask(self._loop)
        self._refusals = 0  # cycles in a row in which something was refused
        self.watch = CycleWatch()
        self.on_preempted: list[Callable[[Preempt], None]] = []
        """Called with each decision to stop a job for another one, once it is stored."""
        self.on_waits: list[Callable[[Sequence[Wait]], None]] = []
        """Called with the reasons of waiting that are new or of another kind, once they are stored."""
        self._one = asyncio.Lock()
        self.cycles = 0
        self.differences: list[str] = []  # between the kept core and one made anew, where that is checked

    async def start(self) -> None:
        """Begin with one cycle at once."""
        await self._usage.load(self._board.db, self._clock())
        self._kept, self._holders, self._holders_changed = None, None, True
        self._dirty.clear()
        self._waits.begin()
        self._board.on_change(self._board_says)
        self._wake.set()
        self._task.start()

    async def stop(self) -> None:
        """End the loop; store what tenants used."""
        if not self._task.is_started:
            return
        await self._task.stop()
        if self._usage.changed:
            usage = self._usage.rows(self._tenants, self._clock())
            with contextlib.suppress(Unavailable):
                await self._board.commit(lambda tx, _: tx.usage.put_many(usage))

    def wake(self) -> None:
        """Tell that tenants, or what others than jobs hold, have changed; often is as good as once."""
        self._holders_changed = True
        self._wake.set()

    def nodes_changed(self) -> None:
        """Tell that nodes have changed."""
        self._wake.set()

    def hold(self, why: Verdict | None) -> None:
        """Let no job start, for this reason, until None is told; requests say themselves when they are refused."""
        if why is self._waits.held:
            return
        self._waits.held = why
        self._reload = why is None  # all are looked at again, and what was written down of them is put right
        self._wake.set()

    def hold_of(self, tenant: str) -> Verdict | None:
        """Return why nothing of a tenant may start; None where something may."""
        return self._waits.tenants.get(tenant)

    def cap_of(self, uid: str) -> Verdict | None:
        """Return why a job or a pending request waits, if that is because its member holds as much as they may."""
        return self._waits.capped.get(uid)

    async def cap_of_new(self, spec: JobSpec, uid: str) -> Verdict | None:
        """Return why a job that is submitted now would wait, if that is because its member holds as much as they may."""
        holders = self._holders
        if holders is None or not is_capped(holders.caps, spec):
            return None
        job = Job(uid, spec, Phase.QUEUED, Target.RUN, self._clock())
        # a copy of what that member has, which a thread may look at: they may have thousands that wait
        mine = partial(of_member, spec.tenant, spec.user)
        waiting, holding = mine(self._board.waiting.values()), mine(self._board.holding.values())
        look = partial(held_now, holders, [*waiting, job], holding, self._policy.scheduling, {})
        return (await asyncio.to_thread(look) if self.is_large else look()).get(uid)

    def hold_tenants(self, why: Mapping[str, Verdict], *, by: str) -> None:
        """Hold back all jobs of these tenants, for these reasons, until the next call of the same caller, `by`; others pass.

        Running jobs continue.
        """
        if self._waits.hold_tenants(why, by):
            self._reload = True
            self._wake.set()

    def is_held(self, uid: str) -> bool:
        """Whether a workload waits that is held back itself, or whose tenant is."""
        return self._waits.is_held(uid, self.pending)

    @property
    def held(self) -> Verdict | None:
        """Why nobody may start now; None where somebody may."""
        return self._waits.held

    # --- what others ask of it

    @property
    def kept(self) -> KeptCore | None:
        """The kept core; None while there is none, or while another thread plans with it."""
        return None if self._planning else self._kept

    @property
    def is_large(self) -> bool:
        """Return whether the number of waiting jobs is so large that answers are worth a thread."""
        return len(self._board.waiting) > self._policy.large_cycle

    def waiting(self, uid: str) -> Wait | None:
        """Return why a job waits, and its place in its tenant's queue from 1 on."""
        return next(iter(self.waits((uid,)).values()), None)

    def waits(self, uids: Sequence[str]) -> dict[str, Wait]:
        """Return why each of these jobs waits, of those that do."""
        return self._waits.reasons_of(self.kept, uids)

    @property
    def last_said(self) -> Mapping[str, Wait]:
        """Why each job waits, as it was last written down: costs nothing, and may lag behind `waits` by a cycle."""
        return self._waits.said

    @property
    def reason_counts(self) -> ReasonCounts:
        """How many jobs wait for each of these reasons, and since when."""
        return self._waits.counts

    @property
    def pending(self) -> Mapping[str, ResourceRequest]:
        """The requests that wait to be admitted, by uid, as of the last cycle."""
        return {} if self._holders is None else self._holders.pending

    @property
    def _tenants(self) -> Sequence[Tenant]:
        return () if self._holders is None else self._holders.tenants

    async def snapshot(self) -> Snapshot:
        """Return the present snapshot."""
        return (await self._maker.make(self._clock()))[0]

    async def jobs_snapshot(self) -> Snapshot:
        """Return the present snapshot with only jobs waiting, for reports on jobs alone."""
        found = await self.snapshot()
        return replace(found, waiting=tuple(w for w in found.waiting if w.kind == JOB))

    async def capacity(self) -> Snapshot:
        """Return the nodes and tenants alone, for the question whether a job can ever run."""
        return await self._maker.empty(self._clock())

    # --- the cycle

    async def cycle(self) -> int:
        """Run one cycle, after the one in progress; return the number of admitted jobs."""
        # between storing and learning what was stored, the kept core is ahead of what others hold
        async with self._one:
            with self.watch.one() as outcome:
                admitted = await self._cycle()
                outcome.is_held, outcome.admitted = self._waits.held is not None, admitted
                return admitted

    async def _cycle(self) -> int:
        now = self._clock()
        try:
            kept = await self._up_to_date(now)
            held = self._waits.held is not None
            plan, explanations = self._held_plan(kept, now) if held else await self._plan(kept, now)
            if not held:
                plan.waits += self._waits.news_of_held()
            stored = await self._store(kept, plan, explanations, now)
        except BaseException:
            self._forget()  # what the core believes may not be what is stored
            raise
        self.cycles += 1
        self._waits.show(self.kept)
        return len(stored.admitted)

    def _held_plan(self, kept: KeptCore, now: float) -> tuple[AdmissionPlan, Explanations]:
        """Decide nothing about jobs; those who were not told yet hear why."""
        said, held = self._waits.said, self._waits.held
        news = [u for u in self._board.waiting if u not in said or said[u].verdict is not held]
        plan = AdmissionPlan(kept.plan_requests(now), waits=list(self._waits.reasons_of(kept, news).values()))
        return plan, Explanations({})

    async def _up_to_date(self, now: float) -> KeptCore:
        """Return the core as of this moment."""
        if self._reload:
            self._reload = False
            self._waits.begin_holds()  # here alone: within a cycle they stay the same
            self._forget()
        if self._holders_changed or self._holders is None:
            self._holders_changed = False
            try:
                self._holders = await self._board.db.read(lambda tx: read_holders(tx, now))
            except BaseException:
                self._holders_changed = True  # the next cycle reads what changed
                raise
            news = True
        else:
            news = False
            if self._holders.next_expiry is not None and self._holders.next_expiry <= now:
                self.wake()  # read anew in the next cycle
                self._changed()
        self._dirty |= dict.fromkeys(self._backoff.ripe(now))
        self._hold_back(self._holders)
        if self._kept is None:
            return await self._rebuild(now)
        try:
            self._catch_up(self._kept, self._holders, now, news=news)
        except (KeyError, ValueError, IndexError) as error:
            log.warning("the scheduling core is made anew: %r", error)
            return await self._rebuild(now)
        return self._kept

    def _hold_back(self, holders: Holders) -> None:
        """Hold those back whose members hold as much as they may, and let others through."""
        before = self._waits.capped
        if holders.caps or before:
            waiting, holding = self._board.waiting.values(), self._board.holding.values()
            self._waits.capped = held_now(
                holders, waiting, holding, self._policy.scheduling, before, keys=self._keys
            )
            self._dirty |= dict.fromkeys(before.keys() ^ self._waits.capped.keys())

    def _catch_up(self, kept: KeptCore, holders: Holders, now: float, *, news: bool) -> None:
        nodes = tuple(self._nodes())
        if news:
            kept.pending_are(holders.pending, now)
            kept.tenants_are(self._queues.tenant_queues(holders), lambda name: self._usage.value(name, now))
        if news or nodes != self._known_nodes:
            self._known_nodes = nodes
            kept.nodes_are(self._seen.seen_nodes(nodes, holders))
        if news:
            kept.bookings_are(holders.bookings)
        dirty, self._dirty = self._dirty, {}
        jobs = self._board.jobs
        while dirty or kept.to_sync:
            dirty |= kept.to_sync
            kept.to_sync = {}
            for uid in dirty:
                kept.sync(uid, jobs.get(uid) or holders.pending.get(uid), now)
            dirty = {}
        if self._policy.check_core:
            anew = self._maker.snapshot_of(holders, now)
            self.differences += kept.differences(anew, jobs)

    async def _rebuild(self, now: float) -> KeptCore:
        assert self._holders is not None  # noqa: S101 - read by the caller
        self._forget()
        self._dirty.clear()
        self._known_nodes = tuple(self._nodes())
        snapshot = self._maker.snapshot_of(self._holders, now)
        pending = self._holders.pending
        make = partial(KeptCore, snapshot, now, dict(self._board.holding), self._backoff, pending)
        size = len(snapshot.waiting) + len(snapshot.running)
        self._kept = await (asyncio.to_thread(make) if size > self._policy.large_cycle else _at_once(make))
        self._usage.meter = self._kept.core.state.meter
        self._catch_up(self._kept, self._holders, now, news=False)
        return self._kept

    def _forget(self) -> None:
        if self._kept is not None:
            self._usage.meter = self._kept.core.state.meter.fork()
        self._kept = None
        self._wake.set()

    async def _plan(self, kept: KeptCore, now: float) -> tuple[AdmissionPlan, Explanations]:
        # after a start or a rebuild all are looked at; events that come meanwhile are taken in by the next cycle
        if kept.core.cycles == 0 and self.is_large:
            self._planning = True
            try:
                plan = await asyncio.to_thread(kept.plan, now)
            finally:
                self._planning = False
        else:
            plan = kept.plan(now)
        return plan, self.decisions.cycle(
            plan.decisions, plan.grounds, self._waits.said, self._policy.scheduling.name, now
        )

    async def _store(
        self, kept: KeptCore, plan: AdmissionPlan, explanations: Explanations, now: float
    ) -> Stored:
        due = [a for a in plan.admits if kept.is_due(a)]
        for admit in plan.admits:
            if not kept.is_due(admit):
                kept.promise(admit)
        jobs = self._board.jobs
        concerned = [
            *(a.uid for a in due),
            *(p.uid for p in plan.preempts),
            *(r.uid for r in plan.resizes),
        ]
        tokens = {} if self._starts is None else {a.uid: make_token() for a in due if a.uid in jobs}
        usage_due = self._usage.due_at()
        decided = Decided(
            due,
            plan.preempts,
            plan.resizes,
            self._waits.news(kept, plan),
            self._usage.rows(self._tenants, now) if usage_due is not None and now >= usage_due else {},
            {uid: jobs[uid] for uid in concerned if uid in jobs},
            self._known_nodes,
            now,
            tokens,
            explanations,
            list(kept.promised),
            kept.pending,
            kept.early,
        )
        if not decided:
            return Stored()
        stored = await store_apart(self._board, decided, self._starts or _nobody)
        if decided.usage:
            self._usage.note_stored(now)
        self._waits.written(decided.waits)
        for told in self.on_waits:
            told(decided.waits)
        if decided.preempts:
            self._tell_preempted(decided.preempts, stored)
        self._learn(kept, stored, now)
        return stored

    def _tell_preempted(self, preempts: Sequence[Preempt], stored: Stored) -> None:
        in_force = set(stored.in_force)
        for preempt in preempts:
            if preempt.uid in in_force:
                for listener in self.on_preempted:
                    listener(preempt)

    def _learn(self, kept: KeptCore, stored: Stored, now: float) -> None:
        """Tell the core what could not be stored."""
        self._usage.changed = self._usage.changed or bool(stored.admitted)
        for uid in stored.admitted:
            kept.kept_promise(uid)
            self._waits.forget(uid)
        for uid in stored.stale:
            # somebody else changed it: what it is now is known, or will be told
            kept.promised.pop(uid, None)
            kept.sync(uid, None, now)
            self._dirty[uid] = None
        refused = False
        for admit in stored.no_room:
            if kept.early:
                kept.promise(admit)
            else:
                refused = True
        refused = self._cannot_grow(kept, stored, now) or refused
        refused = self._put_aside(kept, stored, now) or refused
        if refused:  # somebody was quicker, and it is not in what the core knows
            self._refusals += 1
            self._holders_changed = True
            self._forget()
        elif stored.stale:
            self._refusals += 1
        elif stored.admitted:
            self._refusals = 0
        if not kept.pending.keys().isdisjoint(stored.admitted):
            self.wake()  # it is among what others than jobs hold now
            self._changed()
        if self._dirty or kept.to_sync:
            self._wake.set()

    def _cannot_grow(self, kept: KeptCore, stored: Stored, now: float) -> bool:
        """Take growths back that found no room; returns whether that was not to be expected."""
        for resize in stored.cannot_grow:
            job = self._board.jobs.get(resize.uid)
            if job is not None and job.phase in HOLDING:
                kept.hold_back(job, now)
        return bool(stored.cannot_grow) and not kept.early

    def _put_aside(self, kept: KeptCore, stored: Stored, now: float) -> bool:
        """Leave alone for a while whom nothing can be stored about; returns whether the core is wrong about others too."""
        for uid in stored.in_force:
            self._backoff.forget(uid)
        void = False
        for piece, error in stored.bad:
            if not isinstance(piece, Admit | Preempt | Resize):
                log.error("%s could not be stored, and is left out", piece, exc_info=error)
                continue
            wait = self._backoff.delay_job(piece.uid, now)
            job = self._board.jobs.get(piece.uid)
            name = piece.uid if job is None else f"{job.title} of {job.spec.user}"
            text = "what was decided about job %s could not be stored; it is left alone for %g s"
            log.error(text, name, wait, exc_info=error)
            self._wake.set()  # for others, who may pass
            if isinstance(piece, Admit):
                kept.promised.pop(piece.uid, None)
                kept.sync(piece.uid, None, now)
            else:
                void = True  # others may have been promised its room
        return void

    # --- when

    async def _loop(self) -> None:
        busy = False
        while True:
            timeout = self._until_next(self._clock())
            try:
                async with asyncio.timeout(timeout):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._wake.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(BUSY_S if busy else COALESCE_S)
            self._wake.clear()
            try:
                busy = await self.cycle() > MANY
            except asyncio.CancelledError:
                raise
            except Exception:  # the loop must go on whatever happened in one cycle
                log.exception("a scheduling cycle failed")
                await asyncio.sleep(self._policy.backoff_s)
                self._wake.set()
            if self._refusals > MOST_ROUNDS:
                await asyncio.sleep(self._policy.backoff_s)

    def _until_next(self, now: float) -> float:
        """Return the seconds until a cycle is worth it though nothing happens."""
        if self._waits.held is not None:
            return self._policy.cycle_every_s
        times = [now + self._policy.cycle_every_s]
        if self._holders is not None and self._holders.next_expiry is not None:
            times.append(self._holders.next_expiry + 0.01)
        if self._kept is not None:
            at = self._kept.core.next_wake()
            if at is not None:
                times.append(at)
            least = self._policy.scheduling.min_run_s
            ripe = [h.run.started_at + least for h in self._kept.core.state.running.elastic.values()]
            times += [at for at in ripe if at > now]
        if (at := self._backoff.next()) is not None:
            times.append(at)
        if (at := self._usage.due_at()) is not None:
            times.append(at)
        return max(min(times) - now, 0.0)

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.phase is not Phase.QUEUED:
            self._waits.forget(job.uid)
        if job.phase in FINAL:
            self._backoff.forget(job.uid)
        if before is None or matters(job, before):
            self._dirty[job.uid] = None
            self._wake.set()
            if before is not None and before.phase in HOLDING:
                self._usage.changed = True


def _nobody(attempt: str, token: JobToken | None) -> None:
    """Start nothing."""


async def _at_once(make: Callable[[], T]) -> T:
    return make()
