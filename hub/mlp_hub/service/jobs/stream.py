"""Single stream of a job's data: first the present state, then events, then the end.

Frames are plain objects with a type: job, events, attempts, metrics, log, why, synced, end. A slow
watcher misses nothing: it reads again from the store at its place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, Phase
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import wire
from mlp_hub.service.jobs.log_feed import LogFeed, LogFeeds, LogGrew
from mlp_hub.service.jobs.service import JobService, check_rank, ranks_logged, ranks_of
from mlp_hub.service.jobs.stages import STEPS
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.metrics.storing import frame_of
from mlp_hub.service.state.board import Board, EventsAdded, JobChanged, PointsStored, WaitChanged
from mlp_hub.service.state.bus import RESYNC, Subscription, job_topic
from mlp_hub.service.state.frames import Frame
from mlp_hub.service.support.runs import found_job

TAIL_LINES = 1000
"""Limit of jobs: lines of each rank that a new watcher of a log receives; `logs` returns the older ones."""
_OVER = FINAL | {Phase.DELETING}


@dataclass(slots=True)
class _Place:
    """Position of one watcher."""

    job: Job
    log: LogFeed
    points: int
    event: int = 0
    cursors: dict[int, int] = field(default_factory=dict)
    removed: bool = False

    def over(self) -> bool:
        return self.removed or self.job.phase in _OVER


class Watcher:
    """Makes the streams."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        admission: Admission,
        forecasts: Forecasts,
        jobs: JobService,
        metrics: MetricsService,
        feeds: LogFeeds,
    ) -> None:
        self._board = board
        self._admission = admission
        self._forecasts = forecasts
        self._jobs = jobs
        self._metrics = metrics
        self._feeds = feeds

    async def watch(
        self, context: TenantContext, user: str, name: str, since: int = 0
    ) -> AsyncIterator[Frame]:
        """Yield the frames of a job; metric points only above number `since`. Refuses a job that is not there."""
        job = await self._find(context, user, name)
        with (
            self._board.bus.subscribe(job_topic(job.uid)) as news,
            self._feeds.feed_of(job) as feed,
        ):
            # read again: what happened before the subscription is in the store, what comes after is in the queue
            place = _Place(await self._board.refresh(job.uid) or job, feed, since)
            try:
                async for frame in self._catch_up(place, first=True):
                    yield frame
                yield {"type": "synced"}
                if not place.over():
                    self._follow_soon(place, news)
                    async for message in news:
                        async for frame in self._next(place, message):
                            yield frame
                        if place.over():
                            break
                        self._follow_soon(place, news)
                    else:
                        return  # the service stops; its end is not the job's
                if not place.removed:
                    await feed.read_all(self._ranks(place))
                    async for frame in self._rest(place):
                        yield frame
                yield {"type": "end"}
            finally:
                feed.leave(news)

    async def follow_log(
        self, context: TenantContext, user: str, name: str, rank: int, *, since: int, tail: int | None = None
    ) -> AsyncIterator[Frame]:
        """Yield a rank's log from `since` on, or its last `tail` lines first, until the job has ended and all was given."""
        job = await self._find(context, user, name)
        check_rank(job, rank)
        with (
            self._board.bus.subscribe(job_topic(job.uid)) as news,
            self._feeds.feed_of(job) as feed,
        ):
            place = _Place(await self._board.refresh(job.uid) or job, feed, 0)
            try:
                last = await feed.tail(rank, tail or 0)
                if tail and last["lines"]:
                    yield last
                since = since if tail is None else last["offset"]
                while not place.over():
                    self._follow_soon(place, news)
                    while (frame := await feed.next(rank, since)) is not None:
                        since = frame["offset"]
                        yield frame
                    try:
                        message = await anext(news)
                    except StopAsyncIteration:
                        return
                    self._note(place, message)
                    if message is RESYNC:
                        place.job = await self._board.refresh(job.uid) or place.job
                if place.removed:
                    return
                await feed.read_all([rank])
                while (frame := await feed.next(rank, since)) is not None:
                    since = frame["offset"]
                    yield frame
            finally:
                feed.leave(news)

    async def _next(self, place: _Place, message: Any) -> AsyncIterator[Frame]:  # noqa: C901 - one case a message
        match message:
            case PointsStored():
                async for frame in self._points(place, message):
                    yield frame
            case JobChanged():
                before = place.job
                self._note(place, message)
                if place.job is not before:
                    yield self._job_frame(place.job)
            case EventsAdded(events=events):
                new = [e for e in events if e.seq > place.event]
                if new:
                    place.event = new[-1].seq
                    yield {"type": "events", "events": [wire.event_to(e) for e in new]}
                if any(e.kind in STEPS for e in new):
                    yield await self._attempts_frame(place)
            case WaitChanged():
                yield self._job_frame(place.job)
                yield {"type": "why", "why": await self._jobs.why_of(place.job)}
            case LogGrew():
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
        uid, before = place.job.uid, place.event
        while events := await self._board.db.read(lambda tx: tx.events.since(uid, place.event)):
            place.event = events[-1].seq
            yield {"type": "events", "events": [wire.event_to(e) for e in events]}
        if place.event > before:
            yield await self._attempts_frame(place)
        async for frame in self._stored_points(place):
            yield frame
        async for frame in self._logs(place, tail=tail):
            yield frame

    async def _points(self, place: _Place, message: PointsStored) -> AsyncIterator[Frame]:
        points = message.points
        if message.frame is None:
            async for frame in self._stored_points(place):
                yield frame
            return
        if points[0].seq == place.points + 1:
            place.points = points[-1].seq
            yield message.frame
            return
        new = [p for p in points if p.seq > place.points]
        if not new:
            return
        if new[0].seq > place.points + 1:
            # some were stored that this watcher was not told of
            async for frame in self._stored_points(place):
                yield frame
            return
        place.points = new[-1].seq
        yield {"type": "metrics", "points": [frame_of(p) for p in new]}

    async def _stored_points(self, place: _Place) -> AsyncIterator[Frame]:
        async for page in self._metrics.pages(place.job.uid, place.points):
            place.points = page[-1].seq
            yield {"type": "metrics", "points": [frame_of(p) for p in page]}

    async def _logs(self, place: _Place, *, tail: bool = False) -> AsyncIterator[Frame]:
        for rank in self._ranks(place, tail=tail):
            if tail:
                frame = await place.log.tail(rank, TAIL_LINES)
                place.cursors[rank] = frame["offset"]
                if frame["lines"]:
                    yield frame
                continue
            while (more := await place.log.next(rank, place.cursors.get(rank, 0))) is not None:
                place.cursors[rank] = more["offset"]
                yield more

    @staticmethod
    def _ranks(place: _Place, *, tail: bool = False) -> list[int]:
        # what ranks wrote that the job has given up since is still there, and may have grown until then
        ranks = range(ranks_logged(place.job) if tail else ranks_of(place.job))
        return sorted({*ranks, *place.cursors})

    @staticmethod
    def _follow_soon(place: _Place, news: Subscription) -> None:
        """Follow the logs from when the job can write some, of as many ranks as it has."""
        job = place.job
        if job.phase in HOLDING and job.phase is not Phase.ADMITTED:
            place.log.follow(news, job, ranks_of(job))

    @staticmethod
    def _note(place: _Place, message: Any) -> None:
        if isinstance(message, JobChanged):
            place.removed = message.removed
            if message.job.version > place.job.version:
                place.job = message.job

    async def _find(self, context: TenantContext, user: str, name: str) -> Job:
        return await self._board.db.read(lambda tx: found_job(tx, context, user, name))

    async def _attempts_frame(self, place: _Place) -> Frame:
        return {"type": "attempts", "attempts": await self._jobs.attempts_of(place.job)}

    def _job_frame(self, job: Job) -> Frame:
        waiting, start = self._admission.waiting(job.uid), self._forecasts.start_of(job)
        outlook = self._forecasts.outlook_of(job)
        return {"type": "job", "job": wire.job_to(job, waiting, start, outlook)}
