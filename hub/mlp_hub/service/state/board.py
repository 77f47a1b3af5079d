"""The jobs that are not final, in memory as in the database, and the one way to change any job.

`fence` is called first in every transaction that changes jobs, and raises if this process may not
change any.

`Board.commit` runs a function in a writing transaction. Its changes are noted in a `Changes`, and
only once they are durable do memory, watchers and the loops learn of them. A caller that is
cancelled in between (a client that hung up) does not stop that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from mlp_hub.background import BackgroundTasks
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, Phase
from mlp_hub.domain.resources import milli
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import OF_JOBS, RequestPhase, check_request_move
from mlp_hub.service.quota.node_shares import kinds_in, shares_of, total_of
from mlp_hub.service.state.bus import QUEUE_TOPIC, RESYNC, Bus, job_topic
from mlp_hub.service.state.frames import Shared
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.state.moves import Move, Step
from mlp_hub.service.state.tallies import Tallies
from mlp_hub.service.state.user_limits import Weights
from mlp_hub.store.database import Database
from mlp_hub.store.records import JobEvent, StoredPoint
from mlp_hub.store.repos.workload.ledger import MeasuredUse
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
T = TypeVar("T")
APPLIER = OF_JOBS
MOST_EVENTS = 1000
"""Limit of jobs: steps of the timeline of a job that are stored, the newest ones."""
MOST_DECISIONS = 200
"""Safety: explanations of decisions about one job that are kept, about: more are never shown."""


@dataclass(frozen=True, slots=True)
class JobChanged:
    """Message of a job's topic: this is the job now; it is gone when `removed`."""

    job: Job
    removed: bool = False


@dataclass(frozen=True, slots=True)
class EventsAdded:
    """Message of a job's topic: its timeline has grown."""

    events: tuple[JobEvent, ...]


@dataclass(frozen=True, slots=True)
class PointsStored:
    """Message of a job's topic: these metric points are stored, and so they are shown.

    Without points: so many that watchers read them from the store.
    """

    points: list[StoredPoint]
    frame: Shared | None


@dataclass(frozen=True, slots=True)
class WaitChanged:
    """Message of a job's topic: why it waits, or its place in the queue, has changed."""


BEGINS = "starting"
"""Kind of the step with which each attempt begins in a timeline."""
FEW = 4
"""Tuning: number of steps up to which each is numbered and sent to watchers; above, watchers read again.

It trades fewer messages for one more read by watchers.
"""


class MoveNotices(Protocol):
    """Interface for notices about moves.

    It stores them in the transaction that stores the moves, returns the users, and is called when that
    is durable.
    """

    def moved(self, tx: Tx, moves: Sequence[Move], now: float) -> set[str]: ...
    def notify(self, users: set[str]) -> None: ...


@dataclass(slots=True)
class Changes:
    """Changes that one transaction made to jobs."""

    jobs: list[Job] = field(default_factory=list)
    removed: list[Job] = field(default_factory=list)
    events: dict[str, list[JobEvent]] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)  # their timelines have grown, nobody looked by what
    notices: MoveNotices | None = None
    notified: set[str] = field(default_factory=set)  # users who are told of something
    moves: list[Move] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)  # of new jobs: SHA-256 of the script that is noted

    def add_events(self, tx: Tx, steps: Sequence[tuple[str, Step]], now: float) -> None:
        """Append steps (uid, step) to the timelines of many jobs; those that are there once are not repeated."""
        if any(step.once for _, step in steps):
            steps = _unreported(tx, steps)
        if len(steps) <= FEW:
            for uid, step in steps:
                self.add_event(tx, uid, now, step)
            return
        tx.events.add_many([(uid, _time_of(s, now), s.kind, s.message, s.reason) for uid, s in steps])
        self.unread.update(dict.fromkeys(uid for uid, _ in steps))

    def move_many(self, tx: Tx, moves: Sequence[Move], now: float) -> list[Job]:
        """Store transitions of different jobs together; raises `Stale`, and nothing may be kept, if one was changed."""
        if len(moves) <= FEW:
            stored = []
            for m in moves:
                stored.append(self.move(tx, m, now))
                if m.token is not None:
                    tx.tokens.add(m.token, m.new.uid, now)
            return stored
        moves = [m.unless_left(tx, now) for m in moves]
        self.moves += moves
        for m in moves:
            m.check()
        jobs = tx.jobs.update_many(
            [m.new for m in moves]
        )  # first: of what somebody else changed nothing else is known
        left: list[Job] = []
        used: list[MeasuredUse | None] = []
        for m in moves:
            if m.old.phase in HOLDING and m.new.phase not in HOLDING:
                left.append(m.old)
                used.append(use_of(m))
            elif m.old.phase in HOLDING and m.old.attempt != m.new.attempt:
                hand_over(tx, m.old, m.new, now, use_of(m))
                tx.tokens.revoke(m.old.uid)
            if m.new.restarts != m.old.restarts and m.new.restarts % 64 == 0:
                _trim(tx, m.new.uid)
        tx.ledger.release_many(APPLIER, [job.attempt for job in left], used)
        tx.tokens.revoke_many([job.uid for job in left])
        self.jobs += jobs
        if self.notices is not None:
            self.notified |= self.notices.moved(tx, moves, now)
        self.add_events(tx, [(m.new.uid, step) for m in moves for step in m.steps], now)
        tx.tokens.add_many([(m.token, m.new.uid) for m in moves if m.token is not None], now)
        return jobs

    def add_event(self, tx: Tx, uid: str, now: float, step: Step) -> None:
        """Append a step to a job's timeline."""
        event = tx.events.add(uid, _time_of(step, now), step.kind, step.message, step.reason)
        if event.seq % 100 == 0 and event.seq > MOST_EVENTS:
            _trim(tx, uid)
        self.events.setdefault(uid, []).append(event)

    def move(self, tx: Tx, move: Move, now: float) -> Job:
        """Store a transition with its events; the job's holdings are given back as it leaves the holding phases."""
        move = move.unless_left(tx, now)
        self.moves.append(move)
        old, new = move.old, move.new
        move.check()
        stored = self.update(tx, new)
        if old.phase in HOLDING and old.attempt != new.attempt and new.phase in HOLDING:
            hand_over(tx, old, new, now, use_of(move))
            tx.tokens.revoke(old.uid)
        elif old.phase in HOLDING and new.phase not in HOLDING:
            release(tx, old.attempt, use_of(move))
            tx.tokens.revoke(old.uid)
        self.add_events(tx, [(new.uid, step) for step in move.steps], now)
        if self.notices is not None:
            self.notified |= self.notices.moved(tx, (move,), now)
        return stored

    def update(self, tx: Tx, job: Job) -> Job:
        """Store a change within the phase, of a job that has not ended: listeners take a change of an ended job for its end."""
        stored = tx.jobs.update(job)
        self.jobs.append(stored)
        return stored


def _unreported(tx: Tx, steps: Sequence[tuple[str, Step]]) -> list[tuple[str, Step]]:
    """Return the steps without those of which the attempt's timeline has one already."""
    once = {(uid, step.kind) for uid, step in steps if step.once}
    known: set[tuple[str, str]] = set()
    kinds = {BEGINS, *(kind for _, kind in once)}
    for uid, events in tx.events.of_kinds({uid for uid, _ in once}, kinds):
        began = max((n for n, event in enumerate(events) if event.kind == BEGINS), default=-1)
        known.update((uid, event.kind) for event in events[began + 1 :])
    return [(uid, step) for uid, step in steps if not (step.once and (uid, step.kind) in known)]


def _time_of(step: Step, now: float) -> float:
    return now if step.at is None else min(step.at, now)


def _trim(tx: Tx, uid: str) -> None:
    """Delete old entries of a job that runs for very long."""
    tx.events.trim(uid, MOST_EVENTS)
    tx.decisions.trim(uid, MOST_DECISIONS)


def release(tx: Tx, attempt: str, used: MeasuredUse | None = None) -> None:
    """Give back what the attempt holds; nothing if it holds nothing. `used` is what was measured of it."""
    request = tx.ledger.get(APPLIER, attempt)
    if request is not None and request.held:
        check_request_move(request, RequestPhase.RELEASED)
        tx.ledger.put(replace(request, phase=RequestPhase.RELEASED, expires_at=None, last="release"), used)


def use_of(move: Move) -> MeasuredUse | None:
    """Return the measured use of the attempt that ends with a move; None where a rank was not measured."""
    ranks, began = move.new.ranks or move.old.ranks, move.old.started_at or move.new.started_at
    cores = [r.cpu_mean for r in ranks if r.cpu_mean is not None]
    memory = [r.ram_mean for r in ranks if r.ram_mean is not None]
    if began is None or not ranks or len(cores) < len(ranks) or len(memory) < len(ranks):
        return None
    return MeasuredUse(
        milli(sum(cores)),
        sum(memory),
        began,
        cpu_reported=any(r.cores_reported for r in ranks),
        ram_reported=any(r.memory_reported for r in ranks),
    )


def hand_over(tx: Tx, old: Job, new: Job, now: float, used: MeasuredUse | None = None) -> None:
    """Pass the holdings that the next attempt needs on from the last one, and give back the rest."""
    request = tx.ledger.get(APPLIER, old.attempt)
    if request is None or not request.held:
        raise RuntimeError(
            f"attempt {old.attempt} of job {old.title} holds nothing that could be handed over"
        )
    shares = shares_of(new.spec.per_worker, new.placement, kinds_in(request))
    release(tx, old.attempt, used)
    tx.ledger.put(
        replace(
            request, id=new.attempt, amount=total_of(shares), shares=shares, created_at=now, last="confirm"
        )
    )


def _of_nobody(task: asyncio.Task[object]) -> None:
    """Look at how a commit ended that nobody waits for any more, as one of a service that leads no more."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, LeaseLost):
        log.error("a commit that nobody waited for failed: %s", error)


class Board:
    """Active jobs by uid, and those of them that wait and that hold quota."""

    def __init__(self, db: Database, bus: Bus) -> None:
        self.db = db
        self.bus = bus
        self.jobs: dict[str, Job] = {}
        self.waiting: dict[str, Job] = {}
        self.holding: dict[str, Job] = {}
        self.programs: dict[str, str] = {}
        """SHA-256 of the script that is noted, of jobs accepted here and not started yet: the others' is in the database alone."""
        self.weights = Weights()
        self.tallies = Tallies()
        self._listeners: list[Callable[[Job, Job | None], None]] = []
        self.on_moves: list[Callable[[Sequence[Move]], None]] = []
        """Called with the moves of each transaction, once they are durable."""
        self._tasks = BackgroundTasks()
        self.notices: MoveNotices | None = None

    async def load(self) -> None:
        """Read all active jobs."""
        for job in await self.db.read(lambda tx: tx.jobs.active(SYSTEM)):
            self._put(job)

    def on_change(self, listener: Callable[[Job, Job | None], None]) -> None:
        """Call `listener(job now, job before)` after each durable change; None before: it is new here."""
        self._listeners.append(listener)

    async def commit(self, fn: Callable[[Tx, Changes], T], *, durable: bool = True) -> T:
        """Run `fn(tx, changes)` in one transaction; return its result once all have heard of the changes.

        `durable` is as in `Database.write`.
        """
        task = self._tasks.start(self._commit(fn, durable=durable))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_of_nobody)
            raise

    async def _commit(self, fn: Callable[[Tx, Changes], T], *, durable: bool) -> T:
        changes = Changes(notices=self.notices)

        result = await self.db.write(lambda tx: fn(tx, changes), durable=durable)
        self._apply(changes)
        if changes.notices is not None:
            changes.notices.notify(changes.notified)
        return result

    async def drain(self) -> None:
        """Wait for commits in progress."""
        await self._tasks.finish()

    def stop(self) -> None:
        """Tell nobody any more, and forget all: another may change jobs from now on."""
        self._listeners.clear()
        for index in (self.jobs, self.waiting, self.holding, self.programs):
            index.clear()
        self.weights.clear()
        self.tallies.clear()

    async def refresh(self, uid: str) -> Job | None:
        """Read a job again, after another writer was faster; None when it is gone."""
        job = await self.db.read(lambda tx: tx.jobs.get(SYSTEM, uid))
        if job is None:
            self._drop(uid)
        else:
            self._put(job)
        return job

    def _apply(self, changes: Changes) -> None:
        self.programs |= changes.programs  # before anybody hears of the jobs
        for job in changes.jobs:
            before = self.jobs.get(job.uid)
            if not self._put(job):
                continue
            topic = job_topic(job.uid)
            if self.bus.watched(topic):
                self.bus.publish(topic, JobChanged(job))
            if before is None or before.phase is not job.phase:
                self.bus.publish(QUEUE_TOPIC, {"type": "changed"})
            for listener in self._listeners:
                listener(job, before)
        if changes.moves:
            for moved in self.on_moves:
                moved(changes.moves)
        self._tell_timelines(changes)
        for job in changes.removed:
            self._drop(job.uid)
            self.bus.publish(job_topic(job.uid), JobChanged(job, removed=True))
            self.bus.publish(QUEUE_TOPIC, {"type": "changed"})

    def _tell_timelines(self, changes: Changes) -> None:
        for uid, events in changes.events.items():
            self.bus.publish(job_topic(uid), EventsAdded(tuple(events)))
        for uid in changes.unread:
            self.bus.publish(job_topic(uid), RESYNC)

    def _put(self, job: Job) -> bool:
        known = self.jobs.get(job.uid)
        if known is not None and known.version >= job.version:
            return False
        if job.phase in FINAL:
            self._drop(job.uid)
            return True
        self.weights.change(known, job)
        self.tallies.change(known, job)
        self.jobs[job.uid] = job
        _keep(self.waiting, job, job.phase is Phase.QUEUED)
        _keep(self.holding, job, job.phase in HOLDING)
        return True

    def _drop(self, uid: str) -> None:
        known = self.jobs.get(uid)
        self.weights.change(known, None)
        self.tallies.change(known, None)
        for index in (self.jobs, self.waiting, self.holding, self.programs):
            index.pop(uid, None)


def _keep(index: dict[str, Job], job: Job, here: bool) -> None:
    if here:
        index[job.uid] = job
    else:
        index.pop(job.uid, None)
