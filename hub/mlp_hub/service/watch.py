"""The one stream of all that concerns a job: first what there is, then what happens, then the end.

Frames are plain objects with a type: job, events, metrics, log, why, synced, end.
A watcher who does not keep up misses nothing: it reads again from the store where it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.domain.errors import not_found
from mlp_hub.domain.job import FINAL, HOLDING, Job, Phase
from mlp_hub.executors.base import Executor
from mlp_hub.service import wire_jobs as wire
from mlp_hub.service.admit import Admission
from mlp_hub.service.board import Board, EventsAdded, JobChanged, PointsStored, WaitChanged
from mlp_hub.service.broker import RESYNC, Subscription, job_topic
from mlp_hub.service.config import Paths
from mlp_hub.service.jobs import Jobs, ranks_logged, ranks_of
from mlp_hub.service.metrics import Metrics, frame_of
from mlp_hub.store.records import MetricPoint

Frame = dict[str, Any]
TAIL_LINES = 1000
"""Lines of each rank that a new watcher gets; older ones are read by `logs`."""
CHUNK_LINES = 1000
POLL_S = 0.5
_OVER = FINAL | {Phase.DELETING}


class _LogGrew:
    """Message: some rank has written."""


_LOG_GREW = _LogGrew()


@dataclass(slots=True)
class _Place:
    """How far one watcher has come."""

    job: Job
    points: int
    event: int = 0
    cursors: dict[int, int] = field(default_factory=dict)
    removed: bool = False
    followed: int = 0
    """How many ranks' logs are followed; a resize changes it."""

    def over(self) -> bool:
        return self.removed or self.job.phase in _OVER


class Watcher:
    """Makes the streams."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        admission: Admission,
        jobs: Jobs,
        metrics: Metrics,
        executor: Executor,
        paths: Paths,
    ) -> None:
        self._board = board
        self._admission = admission
        self._jobs = jobs
        self._metrics = metrics
        self._executor = executor
        self._paths = paths

    async def watch(self, user: str, name: str, since: int = 0) -> AsyncIterator[Frame]:
        """Yield the frames of a job; metric points only above number `since`. Refuses a job that is not there."""
        job = await self._board.db.read(lambda tx: tx.jobs.find(user, name))
        if job is None:
            raise not_found("job", name)
        follower: asyncio.Task[None] | None = None
        with self._board.broker.subscribe(job_topic(job.uid)) as news:
            # read again: what happened before the subscription is in the store, what comes after is in the queue
            place = _Place(await self._board.refresh(job.uid) or job, since)
            try:
                async for frame in self._catch_up(place, first=True):
                    yield frame
                yield {"type": "synced"}
                if not place.over():
                    follower = self._follow_soon(place, news, follower)
                    async for message in news:
                        async for frame in self._next(place, message):
                            yield frame
                        if place.over():
                            break
                        follower = self._follow_soon(place, news, follower)
                    else:
                        return  # the service stops; its end is not the job's
                if not place.removed:
                    async for frame in self._rest(place):
                        yield frame
                yield {"type": "end"}
            finally:
                if follower is not None:
                    follower.cancel()

    async def _next(self, place: _Place, message: Any) -> AsyncIterator[Frame]:  # noqa: C901 - one case a message
        match message:
            case PointsStored(points=points):
                async for frame in self._points(place, points):
                    yield frame
            case JobChanged(job=job, removed=removed):
                place.removed = removed
                if job.version > place.job.version:
                    place.job = job
                    yield self._job_frame(job)
            case EventsAdded(events=events):
                new = [e for e in events if e.seq > place.event]
                if new:
                    place.event = new[-1].seq
                    yield {"type": "events", "events": [wire.event_to(e) for e in new]}
            case WaitChanged():
                yield self._job_frame(place.job)
                yield {"type": "why", "why": await self._jobs.why_of(place.job)}
            case _LogGrew():
                async for frame in self._logs(place):
                    yield frame
            case _ if message is RESYNC:
                async for frame in self._catch_up(place, first=False):
                    yield frame

    async def _catch_up(self, place: _Place, *, first: bool) -> AsyncIterator[Frame]:
        if not first:
            job = await self._board.refresh(place.job.uid)
            place.removed = job is None
            place.job = job or place.job
        yield self._job_frame(place.job)
        async for frame in self._rest(place, tail=first):
            yield frame
        if place.job.phase in {Phase.QUEUED, Phase.SUSPENDED}:
            yield {"type": "why", "why": await self._jobs.why_of(place.job)}

    async def _rest(self, place: _Place, *, tail: bool = False) -> AsyncIterator[Frame]:
        """Yield what is stored and written and was not sent yet."""
        uid = place.job.uid
        while events := await self._board.db.read(lambda tx: tx.events.since(uid, place.event)):
            place.event = events[-1].seq
            yield {"type": "events", "events": [wire.event_to(e) for e in events]}
        async for page in self._metrics.pages(uid, place.points):
            place.points = page[-1].seq
            yield {"type": "metrics", "points": [frame_of(p) for p in page]}
        async for frame in self._logs(place, tail=tail):
            yield frame

    async def _points(self, place: _Place, points: list[MetricPoint]) -> AsyncIterator[Frame]:
        new = [p for p in points if p.seq > place.points]
        if not new:
            return
        if new[0].seq > place.points + 1:
            # some were stored that this watcher was not told of
            async for page in self._metrics.pages(place.job.uid, place.points):
                place.points = page[-1].seq
                yield {"type": "metrics", "points": [frame_of(p) for p in page]}
            return
        place.points = new[-1].seq
        yield {"type": "metrics", "points": [frame_of(p) for p in new]}

    async def _logs(self, place: _Place, *, tail: bool = False) -> AsyncIterator[Frame]:
        workspace = str(self._paths.workspace(place.job.spec.user, place.job.spec.name))
        # what ranks wrote that the job has given up since is still there, and may have grown until then
        ranks = range(ranks_logged(place.job) if tail else ranks_of(place.job))
        for rank in sorted({*ranks, *place.cursors}):
            while True:
                since = place.cursors.get(rank, 0)
                if tail:
                    chunk = await asyncio.to_thread(self._executor.tail_log, workspace, rank, TAIL_LINES)
                else:
                    chunk = await asyncio.to_thread(
                        self._executor.read_log, workspace, rank, since, CHUNK_LINES
                    )
                if chunk.offset:
                    place.cursors[rank] = chunk.offset
                if not chunk.lines:
                    break
                yield wire.log_frame(chunk)
                if tail or len(chunk.lines) < CHUNK_LINES:
                    break

    def _follow_soon(
        self, place: _Place, news: Subscription, follower: asyncio.Task[None] | None
    ) -> asyncio.Task[None] | None:
        """Follow the logs from when the job can write some, of as many ranks as it has."""
        job = place.job
        if job.phase not in HOLDING or job.phase is Phase.ADMITTED:
            return follower
        if follower is not None and place.followed == ranks_of(job):
            return follower
        if follower is not None:
            follower.cancel()
        place.followed = ranks_of(job)
        return asyncio.ensure_future(self._follow(job, news))

    async def _follow(self, job: Job, news: Subscription) -> None:
        """Tell the watcher whenever a rank has written; what, it reads itself from where it stands."""
        workspace = str(self._paths.workspace(job.spec.user, job.spec.name))
        told = False
        while True:
            async for _ in self._executor.follow(workspace, ranks_of(job)):
                if not news.holds(_LOG_GREW):
                    news.put(_LOG_GREW)
                told = True
            await asyncio.sleep(POLL_S)
            if not told and not news.holds(_LOG_GREW):
                news.put(_LOG_GREW)

    def _job_frame(self, job: Job) -> Frame:
        why = self._admission.expected(job.uid)
        waiting = self._admission.waiting(job.uid)
        return {"type": "job", "job": wire.job_to(job, waiting, None if why is None else why.expected_start)}
