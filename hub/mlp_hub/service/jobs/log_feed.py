"""Reader of a job's log, shared by all watchers: one reader per job, as long as it has followers.

The reader follows all ranks and keeps the last frames. Watchers at the same place get these.
Watchers that are behind read by themselves, but never beyond the reader, so that all meet again at
the live end. Frames are made in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import Job
from mlp_hub.executors.base import Executor, LogChunk
from mlp_hub.executors.workspace import JobRun
from mlp_hub.service.jobs import wire
from mlp_hub.service.state.bus import Subscription
from mlp_hub.service.state.frames import Shared
from mlp_hub.service.support.runs import attempt_of, run_of

log = logging.getLogger(__name__)
CHUNK_LINES = 1000
"""Tuning: lines of one frame: size of a lot, for how long others wait behind it."""
KEPT_BYTES = 1 << 20
"""Safety: bytes read last that are kept for watchers that have not taken them yet: memory held by watchers that do not read is
bounded."""
AGAIN_S = 0.1
"""Tuning: seconds after which a log that could not be followed is followed again: work for freshness."""


class LogGrew:
    """Message: some rank has written."""


LOG_GREW = LogGrew()


class LogFeed:
    """The log of one run of a job, for all who watch it now."""

    def __init__(self, executor: Executor, job: Job, threads: ThreadPoolExecutor) -> None:
        self._executor = executor
        self._threads = threads
        self._job = job  # as known by who knows the latest of it
        self._ends: dict[int, int] = {}
        self._recent: OrderedDict[tuple[int, int], Shared] = OrderedDict()
        self._kept_bytes = 0
        self._followers: dict[Subscription, int] = {}
        self._reads = "", 0  # of which attempt, and how many ranks
        self._reader = BackgroundTask(lambda: self._read(self._reads[1]))
        self._turn = asyncio.Lock()
        self._passes = 0
        self.users = 0

    # ------------------------------------------------------------------ who follows

    def know(self, job: Job) -> None:
        """Take note of the job as somebody knows it: it may have another attempt by now."""
        if job.version > self._job.version:
            self._job = job

    def follow(self, news: Subscription, job: Job, ranks: int) -> None:
        """Put `LOG_GREW` among the subscriber's messages whenever one of the first `ranks` ranks has written."""
        self.know(job)
        self._followers[news] = ranks
        reads = self._job.attempt, max(self._followers.values())
        if not self._reader.is_started or self._reads != reads:
            self._reader.cancel()
            self._reads = reads
            self._reader.start()

    def leave(self, news: Subscription) -> None:
        """Tell a subscriber no more; nobody reads for nobody."""
        self._followers.pop(news, None)
        if not self._followers:
            self._reader.cancel()

    # ------------------------------------------------------------------ what there is

    async def tail(self, rank: int, count: int) -> Shared:
        """Return the last lines of a rank, up to the end of the shared part; the first caller sets that end."""
        attempt, until = attempt_of(self._job), self._ends.get(rank)
        frame = await self._frame(await self._executor.tail_log(attempt, rank, count, until))
        self._ends.setdefault(rank, frame["offset"])
        return frame

    async def next(self, rank: int, since: int) -> Shared | None:
        """Return the frame after a cursor, up to the end of the shared part; None at the end of it."""
        known = self._recent.get((rank, since))
        if known is not None:
            return known
        until = self._ends.get(rank, 0)
        if since >= until:
            return None
        attempt = attempt_of(self._job)
        frame = await self._frame(await self._executor.read_log(attempt, rank, since, CHUNK_LINES, until))
        return None if frame["offset"] == since else frame

    async def read_all(self, ranks: Collection[int]) -> None:
        """Read on until nothing is left that these ranks had written when this was called; once for all who ask together."""
        asked = self._passes
        async with self._turn:
            if self._passes > asked:
                return  # somebody began after this was called, and is through
            self._passes += 1
            self._reader.cancel()  # it would read the same
            while True:
                cursors = {rank: self._ends.get(rank, 0) for rank in ranks}
                chunks = await self._executor.read_new(attempt_of(self._job), cursors, CHUNK_LINES)
                if not chunks:
                    return
                await self._take(cursors, chunks)

    async def _frame(self, chunk: LogChunk) -> Shared:
        return await asyncio.get_running_loop().run_in_executor(self._threads, wire.log_frame, chunk)

    # ------------------------------------------------------------------ the reader

    async def _read(self, ranks: int) -> None:
        while True:
            try:
                async with self._turn:
                    cursors = {rank: self._ends.get(rank, 0) for rank in range(ranks)}
                followed = self._executor.follow_log(attempt_of(self._job), cursors, CHUNK_LINES)
                async with contextlib.aclosing(followed) as news:
                    async for chunks in news:
                        if not await self._take(cursors, chunks):
                            break  # somebody began elsewhere in a log of which nothing was read yet
            except asyncio.CancelledError:
                raise
            except Exception:  # what is wrong now may not be so the next time
                log.exception("reading the log of %s failed", self._job.title)
                await asyncio.sleep(AGAIN_S)

    async def _take(self, cursors: dict[int, int], chunks: Sequence[LogChunk]) -> bool:
        """Keep what was read from these cursors on, and move them; False where it does not follow what is kept."""
        frames = await asyncio.get_running_loop().run_in_executor(self._threads, _frames, chunks)
        if any(self._ends.get(chunk.rank, 0) != cursors[chunk.rank] for chunk in chunks):
            return False
        for frame in frames:
            self._keep(cursors[frame["rank"]], frame)
            cursors[frame["rank"]] = frame["offset"]
        for news in self._followers:
            if not news.holds(LOG_GREW):
                news.queue_message(LOG_GREW)
        return True

    def _keep(self, since: int, frame: Shared) -> None:
        rank, end = frame["rank"], frame["offset"]
        self._ends[rank] = end
        self._recent[rank, since] = frame
        self._kept_bytes += end - since
        while self._kept_bytes > KEPT_BYTES:
            (_, first), old = self._recent.popitem(last=False)
            self._kept_bytes -= old["offset"] - first


def _frames(chunks: Sequence[LogChunk]) -> list[Shared]:
    frames = [*map(wire.log_frame, chunks)]
    for frame in frames:
        frame.json()
    return frames


class LogFeeds:
    """Log feeds of all jobs that anybody watches."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        # its own: those that all share may be waiting for processes to end
        self._threads = ThreadPoolExecutor(1, "log-frames")
        self._feeds: dict[JobRun, LogFeed] = {}

    @contextlib.contextmanager
    def feed_of(self, job: Job) -> Iterator[LogFeed]:
        """Share the feed of a run with all who use it at the same time."""
        run = run_of(job)
        feed = self._feeds.setdefault(run, LogFeed(self._executor, job, self._threads))
        feed.know(job)
        feed.users += 1
        try:
            yield feed
        finally:
            feed.users -= 1
            if not feed.users:
                del self._feeds[run]
