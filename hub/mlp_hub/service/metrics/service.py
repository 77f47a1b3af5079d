"""Metric points: stored, then shown to watchers; each of them exactly once.

A value that is not finite (a loss that became NaN) is kept as such and delivered as null. A refusal
would delay all later reports of its process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import cast

from mlp_api.jobs.metrics import MetricAck, MetricBatch
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, HOLDING, PHASES, Job, with_progress
from mlp_hub.domain.jobs.points import SpooledPoint, values_of
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.workspace import SpoolLot, Workspace
from mlp_hub.service.config import BrokerPolicy
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.metrics.carrier import Carrier
from mlp_hub.service.metrics.storing import REPORTING, PointStore
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.state.moves import Step
from mlp_hub.service.support.runs import found_job, run_of
from mlp_hub.store.records import Appended, Sample, StoredPoint
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg, msgs

PROGRESS_EVERY_S = 1.0
"""Tuning: seconds between two times that a job's progress is stored: sooner with less, cheaper with more."""
LOOKED_BACK = 50
"""Tuning: steps of a timeline that are read before a loss is added to it: more than one attempt has at its end."""
REPLAY_PAGE = 5000
"""Tuning: points that are read from the store at a time: size of a lot, for how long others wait behind it."""


class MetricsService:
    """Metrics that jobs report about their training; of each job `points_max` points are stored, and about `bytes_max` bytes of them."""

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float],
        points_max: int,
        bytes_max: int,
        broker: BrokerPolicy | None = None,
    ) -> None:
        self._board = board
        self._clock = clock
        self.points = PointStore(board, clock, points_max, bytes_max, self.set_progress)
        self.carrier = None if broker is None else Carrier(board, self.points, broker)
        self.deleted: list[Callable[[str], None]] = []
        """Called with the uid of a job whose points were deleted."""
        self._progress: dict[str, int] = {}
        self._flushes: dict[str, asyncio.Task[None]] = {}

    def lag(self) -> int | None:
        """Return how many messages the broker has that are not read; None without a broker, or before the first answer."""
        return None if self.carrier is None else self.carrier.lag

    async def append(self, context: TenantContext, user: str, name: str, batch: MetricBatch) -> MetricAck:
        """Store the batch's new points and show them; return the last stored number of the source.

        Points of a job that is not running are ignored. Points beyond the job's limit count as stored, so
        that their sender continues, and are dropped; the job's timeline reports it. A batch that starts
        beyond the next number adds nothing: the answer has the number to continue from. With a broker, the
        broker has them on return, and they are stored and shown soon.
        """
        points = _storable(batch)
        if self.carrier is not None:
            return await self.carrier.accept(context, user, name, batch.source, points)

        def work(tx: Tx, changes: Changes) -> tuple[str, Appended | None, int]:
            job = found_job(tx, context, user, name)
            if job.phase not in REPORTING:
                return job.uid, None, tx.metrics.last(job.uid, batch.source)
            done = self.points.store(tx, changes, job.uid, batch.source, points)
            return job.uid, done, done.last

        # its process has them in a file too: who watches need not wait for the disk
        uid, done, last = await self._board.commit(work, durable=False)
        if done is not None and done.accepted:
            self.points.show(uid, done)
        return MetricAck(last=last)

    async def pages(self, uid: str, since: int) -> AsyncIterator[list[StoredPoint]]:
        """Yield the stored points of a job above number `since`, in pages."""
        while page := await self._page(uid, since):
            yield page
            since = page[-1].seq

    async def some(
        self, context: TenantContext, user: str, name: str, since: int, limit: int
    ) -> list[StoredPoint]:
        """Return a job's points above the number `since`, `limit` of them at most."""
        job = await self._find(context, user, name)
        return await self._board.db.read(lambda tx: tx.metrics.since(job.uid, since, limit))

    async def begin(self, context: TenantContext, user: str, name: str) -> None:
        """Say that a job is about to report; nothing needs to be done but to know the job."""
        await self._find(context, user, name)

    async def finish(self, context: TenantContext, user: str, name: str) -> None:
        """Say that a job reports no more: its progress is stored at once."""
        job = await self._find(context, user, name)
        await self._flush(job.uid)

    async def delete(self, context: TenantContext, user: str, name: str) -> None:
        """Forget the points of a job that is final."""

        def work(tx: Tx) -> str:
            job = found_job(tx, context, user, name)
            if job.phase not in FINAL:
                text = msg(
                    "job {name} is {phase}; its metrics can be deleted when it has ended, cancel it first",
                    name=name,
                    phase=PHASES[job.phase],
                )
                raise Refused(Reason.WRONG_STATE, text)
            tx.metrics.delete(job.uid)
            tx.metrics.close(job.uid)  # for those that are still on their way
            tx.runs.forget_metrics(job.uid)
            tx.ended.put(tx.ended.measure([job.uid]))
            return job.uid

        uid = await self._board.db.write(work)
        for listener in self.deleted:
            listener(uid)

    async def store_spooled(self, job: Job, workspace: Workspace) -> int:
        """Store what the job's processes spooled and never delivered; return how many points that were."""
        stored, cut_at = 0, None
        lost: Mapping[str, int | None] = {}
        if self.carrier is not None:
            self.carrier.forget(job.uid)

        async def after() -> Mapping[str, int]:
            return await self._board.db.read(lambda tx: tx.metrics.last_of_all(job.uid))

        async for batch in workspace.spooled(run_of(job), after):
            cut_at, lost = batch.cut_at, batch.lost
            for done in await self._board.commit(partial(self._take_in, uid=job.uid, lot=batch.lot)):
                stored += len(done.accepted)
                self.points.show(job.uid, done)
        if texts := _losses(cut_at, lost, job.restarts):
            await self._board.commit(partial(self._report_losses, uid=job.uid, texts=texts))
        return stored

    def _report_losses(self, tx: Tx, changes: Changes, *, uid: str, texts: Sequence[Message]) -> None:
        """Add to the timeline what it does not say about this attempt: a sweep may be repeated."""
        said: list[Message] = []
        for event in tx.events.last(uid, LOOKED_BACK):
            said = [] if event.kind == "starting" else [*said, event.message]
        for text in texts:
            if text not in said:
                changes.add_event(tx, uid, self._clock(), Step("metrics-lost", text))

    def _take_in(self, tx: Tx, changes: Changes, *, uid: str, lot: SpoolLot) -> list[Appended]:
        taken = []
        for source, points in lot:
            last = tx.metrics.last(uid, source)
            fresh = _renumbered([p for p in points if p.n > last], last)
            taken.append(self.points.store(tx, changes, uid, source, fresh))
        return taken

    def set_progress(self, uid: str, progress: int) -> None:
        """Note a job's progress (0-100); it is stored soon, many reports in one write."""
        self._progress[uid] = max(0, min(100, progress))
        if uid not in self._flushes:
            self._flushes[uid] = task = asyncio.ensure_future(self._flush_later(uid))
            task.add_done_callback(partial(self._flushed, uid))

    def _flushed(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._flushes.get(uid) is task:
            del self._flushes[uid]

    def take_progress(self, uid: str) -> int | None:
        """Return the noted progress that is not stored yet; the caller stores it."""
        return self._progress.pop(uid, None)

    def start_reading(self) -> None:
        """Take what comes from the broker, where there is one."""
        if self.carrier is not None:
            self.carrier.start()

    async def problems(self) -> Sequence[Problem]:
        """Tell whether points come through."""
        return () if self.carrier is None else await self.carrier.problems()

    async def stop_reading(self) -> None:
        """Take no more from the broker, where there is one."""
        if self.carrier is not None:
            await self.carrier.stop()

    async def stop(self) -> None:
        """Store what is noted."""
        for task in list(self._flushes.values()):
            task.cancel()
        for uid in list(self._progress):
            await self._flush(uid)

    async def _flush_later(self, uid: str) -> None:
        await asyncio.sleep(0)
        with suppress(LeaseLost):  # who leads now is told by the job itself
            await self._flush(uid)
            await asyncio.sleep(PROGRESS_EVERY_S)
            while uid in self._progress:
                await self._flush(uid)
                await asyncio.sleep(PROGRESS_EVERY_S)
        self._flushes.pop(uid, None)  # at once: what is noted from here on needs another task

    async def _flush(self, uid: str) -> None:
        progress = self._progress.pop(uid, None)
        if progress is None:
            return

        def work(tx: Tx, changes: Changes) -> None:
            job = tx.jobs.get(SYSTEM, uid)
            if job is None or job.phase not in HOLDING:
                return
            new = with_progress(job, progress, self._clock())
            if new is not job:
                changes.update(tx, new)

        await self._board.commit(work, durable=False)

    async def _find(self, context: TenantContext, user: str, name: str) -> Job:
        return await self._board.db.read(lambda tx: found_job(tx, context, user, name))

    async def _page(self, uid: str, since: int) -> list[StoredPoint]:
        return await self._board.db.read(lambda tx: tx.metrics.since(uid, since, REPLAY_PAGE))


def _storable(batch: MetricBatch) -> Sequence[Sample]:
    """Return the batch's points with NaN where the wire says null: JSON has no other word for it."""
    if any(None in p.v.values() for p in batch.points):
        return [SpooledPoint(p.n, p.t, values_of(dict(p.v))) for p in batch.points]
    return cast(Sequence[Sample], batch.points)  # no null is left in them


def _losses(cut_at: int | None, lost: Mapping[str, int | None], attempt: int) -> list[Message]:
    """Say what is missing of an attempt's points; a source is named by rank, attempt and a random text, with dots between."""
    counts = [n for source, n in lost.items() if int(source.split(".")[1]) == attempt]
    texts: list[Message] = []
    if cut_at is not None:
        texts.append(
            msg(
                "its processes left more than {n} MiB of metric points; the rest was not read",
                n=cut_at >> 20,
            )
        )
    if missing := sum(n for n in counts if n):
        texts.append(
            msgs(
                "{n} metric point could not be written and is lost: the disk was full, or the job reached its limit of points on disk",
                "{n} metric points could not be written and are lost: the disk was full, or the job reached its limit of points on disk",
                n=missing,
            )
        )
    if unknown := sum(n is None for n in counts):
        texts.append(
            msgs(
                "{n} process has no metric points on disk, as after a full disk; what it reported may be lost",
                "{n} processes have no metric points on disk, as after a full disk; what they reported may be lost",
                n=unknown,
            )
        )
    return texts


def _renumbered(points: list[SpooledPoint], after: int) -> list[SpooledPoint]:
    """Number the points from `after` on without gaps: missing ones between them will never come."""
    if points and points[0].n == after + 1 and points[-1].n == after + len(points):
        return points
    return [SpooledPoint(n, p.t, p.v) for n, p in enumerate(points, after + 1)]
