"""The admission loop: one cycle after something happened, or after a time.

1. Make a snapshot of what waits, runs and is there.
2. Let the scheduling core decide about every waiting job.
3. Store all decisions of the cycle in one transaction, each admission checked once more against the ledger.
4. Wake the reconciler (it hears of every stored change) and tell watchers whose reason or place changed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import HOLDING, Job, Phase, Target
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.core import plan_cycle
from mlp_hub.scheduler.model import Admit, Preempt, Snapshot, Verdict, Wait, Why
from mlp_hub.scheduler.ordering import dominant_share
from mlp_hub.scheduler.usage import UsageMeter
from mlp_hub.scheduler.verdicts import waits_for_preempted
from mlp_hub.scheduler.why import explain
from mlp_hub.service.board import APPLIER, Board, Changes, Step, WaitChanged
from mlp_hub.service.broker import job_topic
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.decisions import Decisions, Told
from mlp_hub.service.discreet import reason_for, stop_for, why_for
from mlp_hub.service.room import Room
from mlp_hub.service.sentences import behind, ranks_on
from mlp_hub.service.snapshot import SnapshotMaker
from mlp_hub.store.records import DecayedUsage
from mlp_hub.store.repos.jobs import Stale
from mlp_hub.store.tx import Tx

T = TypeVar("T")
log = logging.getLogger(__name__)
COALESCE_S = 0.001


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a job waits, as the last cycle found it. `position` counts from 1 in its tenant's queue."""

    verdict: Verdict
    position: int


class Admission:
    """Decides who starts."""

    def __init__(
        self,
        board: Board,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        policy: RunPolicy,
    ) -> None:
        self._board = board
        self._nodes = nodes
        self._clock = clock
        self._policy = policy
        self._usage = UsageMeter(policy.scheduling.half_life_s)
        self._maker = SnapshotMaker(board, nodes, policy.scheduling, self._usage.value)
        self.decisions = Decisions(board.db)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._waits: dict[str, Waiting] = {}
        self._said: dict[str, Reason] = {}
        self._starts: dict[str, tuple[int, Why]] = {}
        self._next_expiry: float | None = None
        self.cycles = 0
        self.durations: deque[float] = deque(maxlen=1000)  # seconds of planning, of the last cycles

    async def start(self) -> None:
        """Begin with one cycle at once."""
        for tenant, stored in (await self._board.db.read(lambda tx: tx.usage.all())).items():
            self._usage.load(tenant, stored.value, stored.as_of)
        self._board.on_change(self._board_says)
        self.wake()
        self._task = asyncio.ensure_future(self._loop())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """Ask for a cycle soon; asking often is one asking."""
        self._wake.set()

    def waiting(self, uid: str) -> Waiting | None:
        """Return why a job waits, if the last cycle looked at it."""
        return self._waits.get(uid)

    def expected(self, uid: str) -> Why | None:
        """Return the last full answer for a job, if it is not out of date."""
        known = self._starts.get(uid)
        return known[1] if known is not None and known[0] == self.cycles else None

    async def snapshot(self) -> Snapshot:
        """Return the present snapshot."""
        return (await self._maker.make(self._clock()))[0]

    async def capacity(self) -> Snapshot:
        """Return the nodes and tenants alone, for the question whether a job can ever run."""
        return await self._maker.empty()

    async def explain(self, uid: str) -> Why | None:
        """Return why a job waits and until when; None when it does not wait."""
        known = self.expected(uid)
        if known is not None:
            return known
        cycle = self.cycles
        now = self._clock()
        snapshot, _ = await self._maker.make(now)
        if not any(j.uid == uid for j in snapshot.waiting):
            return None
        why: Why = await self._run(len(snapshot.waiting), explain, snapshot, uid, now)
        job = self._board.jobs.get(uid)
        if job is not None:
            why = why_for(why, job.spec.tenant, self._board.jobs)
        self._starts[uid] = (cycle, why)
        return why

    async def cycle(self) -> int:
        """Run one cycle; return how many jobs were admitted."""
        now = self._clock()
        snapshot, holders = await self._maker.make(now)
        begun = time.perf_counter()
        plan = await self._run(len(snapshot.waiting), plan_cycle, snapshot, now) if snapshot.waiting else []
        self.durations.append(time.perf_counter() - begun)
        # who needs others to stop first is admitted by a later cycle, once they have: its reservation keeps the place
        admits = [p for p in plan if isinstance(p, Admit) and not p.after]
        preempts = [p for p in plan if isinstance(p, Preempt)]
        waits = {p.uid: Waiting(self._told(p), p.position) for p in plan if isinstance(p, Wait)}
        waits |= {p.uid: self._until_stopped(p) for p in plan if isinstance(p, Admit) and p.after}
        news = [uid for uid, w in waits.items() if self._said.get(uid) is not w.verdict.reason]
        told = await self._run(len(snapshot.waiting), self.decisions.cycle, snapshot, plan, self._waits, now)
        changed = self._usage.set_shares(self._shares(snapshot), now)
        usage = {tenant: DecayedUsage(self._usage.value(tenant, now), now) for tenant in changed}
        admitted = 0
        if admits or preempts or news or usage:

            def work(tx: Tx, changes: Changes) -> int:
                for tenant, value in usage.items():
                    tx.usage.put(tenant, value)
                done = self._admit(tx, changes, admits, now, told)
                for preempt in preempts:
                    self._preempt(tx, changes, preempt, now, told)
                told.store(tx)
                for uid in news:
                    self._say_why(tx, changes, uid, waits[uid], now)
                return done

            admitted = await self._board.commit(work)
        self.cycles += 1
        self._remember(waits)
        if admitted < len(admits):
            self.wake()  # somebody was quicker: decide anew
        self._next_expiry = holders.next_expiry
        return admitted

    async def _loop(self) -> None:
        while True:
            timeout = self._policy.cycle_every_s
            if self._next_expiry is not None:
                timeout = min(timeout, max(self._next_expiry - self._clock(), 0.0) + 0.01)
            try:
                async with asyncio.timeout(timeout):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._wake.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(COALESCE_S)
            self._wake.clear()
            try:
                await self.cycle()
            except asyncio.CancelledError:
                raise
            except Exception:  # the loop must go on whatever happened in one cycle
                log.exception("a scheduling cycle failed")
                await asyncio.sleep(self._policy.backoff_s)
                self.wake()

    async def _run(self, size: int, fn: Callable[..., T], *args: object) -> T:
        if size > self._policy.large_cycle:
            return await asyncio.to_thread(fn, *args)
        return fn(*args)

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.phase is Phase.QUEUED:
            if before is None or before.phase is not Phase.QUEUED:
                self.wake()
        elif before is not None and before.phase in HOLDING and job.phase not in HOLDING:
            self.wake()
        elif before is not None and before.phase is Phase.QUEUED and job.phase not in HOLDING:
            self.wake()  # it left the queue: others move up

    def _admit(self, tx: Tx, changes: Changes, admits: list[Admit], now: float, told: Told) -> int:
        if not admits:
            return 0
        room = Room(tx, self._nodes(), now)
        done = 0
        for admit in admits:
            job = self._board.waiting.get(admit.uid)
            if job is None or job.target not in (Target.RUN, Target.PREEMPT) or not room.take(job, admit):
                continue
            message = f"admitted: {len(admit.placement)} ranks {ranks_on(admit.placement)}"
            if len(admit.placement) == 1:
                message = f"admitted {ranks_on(admit.placement)}"
            new = replace(
                job,
                phase=Phase.ADMITTED,
                target=Target.RUN,
                placement=admit.placement,
                admitted_at=now,
                reason=None,
                message=message,
            )
            try:
                changes.move(tx, job, new, now, Step("admitted", message))
            except Stale:
                room.give_back(job, admit)
                continue
            tx.ledger.put(
                ResourceRequest(
                    id=job.attempt,
                    applier=APPLIER,
                    tenant=job.spec.tenant,
                    amount=admit.amount,
                    phase=RequestPhase.CONFIRMED,
                    created_at=now,
                    last="confirm",
                    holder=f"job {job.spec.name} of {job.spec.user}",
                    user=job.spec.user,
                    shares=room.shares(job, admit),
                )
            )
            told.note(admit.uid)
            done += 1
        return done

    def _preempt(self, tx: Tx, changes: Changes, preempt: Preempt, now: float, told: Told) -> None:
        job = self._board.holding.get(preempt.uid)
        if job is None or job.target is not Target.RUN or job.phase is Phase.FINISHING:
            return
        try:
            changes.update(tx, replace(job, target=Target.PREEMPT))
        except Stale:
            return
        verdict = stop_for(preempt.verdict, job.spec.tenant, self._board.jobs)
        step = Step("preempted", verdict.message, verdict.reason.value)
        changes.add_event(tx, job.uid, now, step)
        told.note(job.uid)

    def _say_why(self, tx: Tx, changes: Changes, uid: str, wait: Waiting, now: float) -> None:
        job = self._board.waiting.get(uid)
        if job is None or tx.jobs.get(uid) is None:
            return
        message = f"{behind(wait.position)}: {wait.verdict.message}"
        changes.add_event(tx, uid, now, Step("waiting", message, wait.verdict.reason.value))

    def _told(self, wait: Wait) -> Verdict:
        """Return why a job waits, in words for its tenant."""
        job = self._board.waiting.get(wait.uid)
        return wait.verdict if job is None else reason_for(wait.verdict, job.spec.tenant, self._board.jobs)

    def _until_stopped(self, admit: Admit) -> Waiting:
        """Return why a job waits for which others are being stopped."""
        holding = self._board.holding
        names = [f"job {holding[u].spec.name} of {holding[u].spec.user}" for u in admit.after if u in holding]
        verdict, job = waits_for_preempted(names, admit.after), self._board.waiting.get(admit.uid)
        return Waiting(verdict if job is None else reason_for(verdict, job.spec.tenant, self._board.jobs), 1)

    def _remember(self, waits: dict[str, Waiting]) -> None:
        before, self._waits = self._waits, waits
        self._said = {uid: w.verdict.reason for uid, w in waits.items()}
        self._starts = {uid: known for uid, known in self._starts.items() if uid in waits}
        broker = self._board.broker
        for uid, wait in waits.items():
            if before.get(uid) != wait and broker.watched(job_topic(uid)):
                broker.publish(job_topic(uid), WaitChanged())

    def _shares(self, snapshot: Snapshot) -> dict[str, float]:
        total = ZERO
        for node in snapshot.nodes:
            if node.up:
                total += node.capacity
        used: dict[str, Resources] = {t.name: t.used for t in snapshot.tenants}
        for running in snapshot.running:
            tenant = running.job.tenant
            used[tenant] = used.get(tenant, ZERO) + running.job.per_worker * len(running.placement)
        return {
            tenant: dominant_share(amount, total) for tenant, amount in used.items() if not amount.is_zero
        }
