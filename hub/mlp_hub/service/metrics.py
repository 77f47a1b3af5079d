"""Metric points: stored, then shown to who watches; each of them exactly once.

A value that is not finite (a loss that became NaN) is kept as such and delivered as null: refusing it would
hold up all that its process reports after it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from mlp_api.metrics import MetricAck, MetricBatch
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.job import FINAL, HOLDING, Job, Phase, with_progress
from mlp_hub.service import spool
from mlp_hub.service.board import Board, Changes, PointsStored, Step
from mlp_hub.service.broker import job_topic
from mlp_hub.store.records import Appended, MetricPoint, Sample
from mlp_hub.store.tx import Tx

PROGRESS_EVERY_S = 1.0
REPLAY_PAGE = 5000
_REPORTING = HOLDING - {Phase.ADMITTED}


class Metrics:
    """What jobs report about their training; of each job `points_max` points are stored."""

    def __init__(self, board: Board, clock: Callable[[], float], points_max: int) -> None:
        self._board = board
        self._clock = clock
        self._points_max = points_max
        self._progress: dict[str, int] = {}
        self._flushes: dict[str, asyncio.Task[None]] = {}

    async def append(self, user: str, name: str, batch: MetricBatch) -> MetricAck:
        """Store the batch's new points and show them; say how far the source's points are stored.

        Points of a job that does not run are ignored. Those beyond the job's limit count as stored, so that their
        sender goes on, and are dropped; the job's timeline says so. A batch that starts beyond the next number adds nothing:
        the answer says where to go on from.
        """
        points = _storable(batch)

        def work(tx: Tx, changes: Changes) -> tuple[str, Appended | None, int]:
            job = tx.jobs.find(user, name)
            if job is None:
                raise not_found("job", name)
            if job.phase not in _REPORTING:
                return job.uid, None, tx.metrics.last(job.uid, batch.source)
            done = self._store(tx, changes, job.uid, batch.source, points)
            return job.uid, done, done.last

        uid, done, last = await self._board.commit(work)
        if done is not None and done.accepted:
            self._show(uid, done)
        return MetricAck(last=last)

    async def pages(self, uid: str, since: int) -> AsyncIterator[list[MetricPoint]]:
        """Yield the stored points of a job above number `since`, in pages."""
        while page := await self._page(uid, since):
            yield page
            since = page[-1].seq

    async def begin(self, user: str, name: str) -> None:
        """Say that a job is about to report; nothing needs to be done but to know the job."""
        await self._find(user, name)

    async def finish(self, user: str, name: str) -> None:
        """Say that a job reports no more: its progress is stored at once."""
        job = await self._find(user, name)
        await self._flush(job.uid)

    async def delete(self, user: str, name: str) -> None:
        """Forget the points of a job that is final."""
        job = await self._find(user, name)
        if job.phase not in FINAL:
            msg = f"job {name} is {job.phase}; its metrics can be deleted when it has ended, cancel it first"
            raise Refused(Reason.WRONG_STATE, msg)

        def work(tx: Tx) -> None:
            tx.metrics.delete(job.uid)
            tx.ended.put(tx.ended.measure([job.uid]))

        await self._board.db.write(work)

    async def sweep(self, job: Job, workspace: Path) -> int:
        """Store what the job's processes spooled and never delivered; return how many points that were."""
        stored = 0
        room = spool.Room()
        for source in await asyncio.to_thread(spool.sources, workspace):
            stored += await self._sweep(job.uid, workspace, source, room)
        return stored

    async def _sweep(self, uid: str, workspace: Path, source: str, room: spool.Room) -> int:
        after = await self._board.db.read(lambda tx: tx.metrics.last(uid, source))
        batches = spool.read(workspace, source, after, room=room)
        stored = 0
        while (points := await asyncio.to_thread(next, batches, None)) is not None:
            done = await self._board.commit(partial(self._take_in, uid=uid, source=source, points=points))
            stored += len(done.accepted)
            self._show(uid, done)
        return stored

    def _take_in(
        self, tx: Tx, changes: Changes, *, uid: str, source: str, points: list[spool.SpooledPoint]
    ) -> Appended:
        last = tx.metrics.last(uid, source)
        fresh = spool.renumbered([p for p in points if p.n > last], last)
        return self._store(tx, changes, uid, source, fresh)

    def _store(self, tx: Tx, changes: Changes, uid: str, source: str, points: Sequence[Sample]) -> Appended:
        most = self._points_max
        done = tx.metrics.append(uid, source, points, most)
        if done.accepted and done.seq_first + len(done.accepted) > most:
            text = f"{most} metric points are stored, which is the limit of a job; later ones are dropped"
            changes.add_event(tx, uid, self._clock(), Step("metrics-full", text))
        return done

    def set_progress(self, uid: str, progress: int) -> None:
        """Note a job's progress (0-100); it is stored soon, many reports in one write."""
        self._progress[uid] = max(0, min(100, progress))
        if uid not in self._flushes:
            task = asyncio.ensure_future(self._flush_later(uid))
            self._flushes[uid] = task
            task.add_done_callback(lambda _: self._flushes.pop(uid, None))

    def take_progress(self, uid: str) -> int | None:
        """Return the noted progress that is not stored yet; the caller stores it."""
        return self._progress.pop(uid, None)

    async def stop(self) -> None:
        """Store what is noted."""
        for task in list(self._flushes.values()):
            task.cancel()
        for uid in list(self._progress):
            await self._flush(uid)

    def _show(self, uid: str, done: Appended) -> None:
        topic = job_topic(uid)
        if self._board.broker.watched(topic):
            self._board.broker.publish(topic, PointsStored(done.points()))
        for point in reversed(done.accepted):
            progress = point.v.get("progress")
            if progress is not None and math.isfinite(progress):
                self.set_progress(uid, round(max(0.0, min(100.0, progress))))
                break

    async def _flush_later(self, uid: str) -> None:
        await asyncio.sleep(0)
        await self._flush(uid)
        await asyncio.sleep(PROGRESS_EVERY_S)
        while uid in self._progress:
            await self._flush(uid)
            await asyncio.sleep(PROGRESS_EVERY_S)

    async def _flush(self, uid: str) -> None:
        progress = self._progress.pop(uid, None)
        if progress is None:
            return

        def work(tx: Tx, changes: Changes) -> None:
            job = tx.jobs.get(uid)
            if job is None or job.phase not in HOLDING:
                return
            new = with_progress(job, progress, self._clock())
            if new is not job:
                changes.update(tx, new)

        await self._board.commit(work)

    async def _find(self, user: str, name: str) -> Job:
        job = await self._board.db.read(lambda tx: tx.jobs.find(user, name))
        if job is None:
            raise not_found("job", name)
        return job

    async def _page(self, uid: str, since: int) -> list[MetricPoint]:
        return await self._board.db.read(lambda tx: tx.metrics.since(uid, since, REPLAY_PAGE))


def _storable(batch: MetricBatch) -> Sequence[Sample]:
    """Return the batch's points with NaN where the wire says null: JSON has no other word for it."""
    if any(None in p.v.values() for p in batch.points):
        return [spool.SpooledPoint(p.n, p.t, spool.values_of(dict(p.v))) for p in batch.points]
    return cast(Sequence[Sample], batch.points)  # no null is left in them


def frame_of(point: MetricPoint) -> dict[str, Any]:
    """Return a point as the streams show it; JSON makes null of what is not finite."""
    return {
        "seq": point.seq,
        "time": point.time,
        "rank": point.rank,
        "step": point.values.get("step"),
        "values": point.values,
    }
