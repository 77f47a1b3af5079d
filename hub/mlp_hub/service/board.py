"""The jobs that are not final, in memory as they are in the database, and the one way to change any job.

`Board.commit` runs a function in a writing transaction; what it changed is noted in a `Changes`, and only once
it is durable do memory, watchers and the loops hear of it. A caller that is cancelled in between (a client that
hung up) does not take that away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mlp_hub.domain.job import FINAL, HOLDING, Job, Phase, check_move
from mlp_hub.domain.ledger import RequestPhase, check_request_move
from mlp_hub.service.broker import QUEUE_TOPIC, Broker, job_topic
from mlp_hub.store.database import Database
from mlp_hub.store.records import JobEvent, MetricPoint
from mlp_hub.store.tx import Tx

T = TypeVar("T")
APPLIER = "jm"
MOST_EVENTS = 1000
"""Steps of one timeline that are kept; a job that fails for ever stays small."""


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
    """Message of a job's topic: these metric points are stored."""

    points: list[MetricPoint]


@dataclass(frozen=True, slots=True)
class WaitChanged:
    """Message of a job's topic: why it waits, or its place in the queue, has changed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a timeline that is to be written down."""

    kind: str
    message: str
    reason: str | None = None


@dataclass(slots=True)
class Changes:
    """What one transaction did to jobs."""

    jobs: list[Job] = field(default_factory=list)
    removed: list[Job] = field(default_factory=list)
    events: dict[str, list[JobEvent]] = field(default_factory=dict)

    def add_event(self, tx: Tx, uid: str, now: float, step: Step) -> None:
        """Append a step to a job's timeline."""
        event = tx.events.add(uid, now, step.kind, step.message, step.reason)
        if event.seq % 100 == 0 and event.seq > MOST_EVENTS:
            tx.events.trim(uid, MOST_EVENTS)
        self.events.setdefault(uid, []).append(event)

    def move(self, tx: Tx, old: Job, new: Job, now: float, step: Step) -> Job:
        """Store a transition with its event; what the job held is given back as it leaves the holding phases."""
        check_move(new.spec.name, old.phase, new.phase)
        if old.phase in HOLDING and new.phase not in HOLDING:
            release(tx, old.attempt)
            tx.tokens.revoke(old.uid)
        stored = self.update(tx, new)
        self.add_event(tx, new.uid, now, step)
        return stored

    def update(self, tx: Tx, job: Job) -> Job:
        """Store a change within the phase."""
        stored = tx.jobs.update(job)
        self.jobs.append(stored)
        return stored


def release(tx: Tx, attempt: str) -> None:
    """Give back what the attempt holds; nothing if it holds nothing."""
    request = tx.ledger.get(APPLIER, attempt)
    if request is not None and request.held:
        check_request_move(request, RequestPhase.RELEASED)
        tx.ledger.put(replace(request, phase=RequestPhase.RELEASED, expires_at=None, last="release"))


class Board:
    """Active jobs by uid, and those of them that wait and that hold quota."""

    def __init__(self, db: Database, broker: Broker) -> None:
        self.db = db
        self.broker = broker
        self.jobs: dict[str, Job] = {}
        self.waiting: dict[str, Job] = {}
        self.holding: dict[str, Job] = {}
        self._listeners: list[Callable[[Job, Job | None], None]] = []
        self._tasks: set[asyncio.Task[object]] = set()

    async def load(self) -> None:
        """Read all active jobs."""
        for job in await self.db.read(lambda tx: tx.jobs.active()):
            self._put(job)

    def on_change(self, listener: Callable[[Job, Job | None], None]) -> None:
        """Call `listener(job now, job before)` after each durable change; None before: it is new here."""
        self._listeners.append(listener)

    async def commit(self, fn: Callable[[Tx, Changes], T]) -> T:
        """Run `fn(tx, changes)` in one transaction; return its result once all have heard of the changes."""
        task = asyncio.ensure_future(self._commit(fn))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _commit(self, fn: Callable[[Tx, Changes], T]) -> T:
        changes = Changes()
        result = await self.db.write(lambda tx: fn(tx, changes))
        self._apply(changes)
        return result

    async def drain(self) -> None:
        """Wait for commits under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop(self) -> None:
        """Tell nobody any more."""
        self._listeners.clear()

    async def refresh(self, uid: str) -> Job | None:
        """Read a job anew, after somebody else was quicker; None when it is gone."""
        job = await self.db.read(lambda tx: tx.jobs.get(uid))
        if job is None:
            self._drop(uid)
        else:
            self._put(job)
        return job

    def _apply(self, changes: Changes) -> None:
        for job in changes.jobs:
            before = self.jobs.get(job.uid)
            if not self._put(job):
                continue
            self.broker.publish(job_topic(job.uid), JobChanged(job))
            if before is None or before.phase is not job.phase:
                self.broker.publish(QUEUE_TOPIC, {"type": "changed"})
            for listener in self._listeners:
                listener(job, before)
        for uid, events in changes.events.items():
            self.broker.publish(job_topic(uid), EventsAdded(tuple(events)))
        for job in changes.removed:
            self._drop(job.uid)
            self.broker.publish(job_topic(job.uid), JobChanged(job, removed=True))
            self.broker.publish(QUEUE_TOPIC, {"type": "changed"})

    def _put(self, job: Job) -> bool:
        known = self.jobs.get(job.uid)
        if known is not None and known.version >= job.version:
            return False
        if job.phase in FINAL:
            self._drop(job.uid)
            return True
        self.jobs[job.uid] = job
        _keep(self.waiting, job, job.phase is Phase.QUEUED)
        _keep(self.holding, job, job.phase in HOLDING)
        return True

    def _drop(self, uid: str) -> None:
        for index in (self.jobs, self.waiting, self.holding):
            index.pop(uid, None)


def _keep(index: dict[str, Job], job: Job, here: bool) -> None:
    if here:
        index[job.uid] = job
    else:
        index.pop(job.uid, None)
