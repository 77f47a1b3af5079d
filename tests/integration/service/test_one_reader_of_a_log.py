"""However many watch a job, its log is read once; who lags reads by themselves; nothing is read on the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptKey, LogChunk
from mlp_hub.executors.following import follow
from mlp_hub.executors.shared_volume import logs
from mlp_hub.service.jobs import log_feed
from mlp_hub.service.jobs.log_feed import LOG_GREW, LogFeed, LogFeeds
from mlp_hub.service.state.bus import Bus, Subscription, job_topic
from support.no_files import no_files
from support.waiting import until

JOB = Job("u", JobSpec("j", "ann", "red", "plain", Resources(1000)), Phase.RUNNING, Target.RUN, 1.0)
WHOLE = "2026-11-22T10:00:00.000000000Z stdout F "


class Files:
    """The log files of a job, as the executors of real processes read them; counts who reads."""

    def __init__(self, root: Path) -> None:
        self.workspace = str(root)
        self.folder = root / "log"
        self.folder.mkdir()
        self.alone: Counter[int] = Counter()
        self.looks = 0
        self.asked: set[str] = set()

    def write(self, *texts: str, rank: int = 0) -> None:
        with (self.folder / f"rank-{rank}.log").open("a") as out:
            out.writelines(f"{WHOLE}{text}\n" for text in texts)

    async def read_log(
        self, attempt: AttemptKey, rank: int, since: int = 0, limit: int = 1000, until: int | None = None
    ) -> LogChunk:
        self.asked.add(attempt.id)
        self.alone[rank] += 1
        return await asyncio.to_thread(logs.read_log, self.workspace, rank, since, limit, until)

    async def tail_log(
        self, attempt: AttemptKey, rank: int, count: int, until: int | None = None
    ) -> LogChunk:
        self.asked.add(attempt.id)
        return await asyncio.to_thread(logs.tail_log, self.workspace, rank, count, until)

    async def read_new(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> Sequence[LogChunk]:
        self.asked.add(attempt.id)
        self.looks += 1
        return await asyncio.to_thread(logs.read_new, self.workspace, cursors, limit)

    def follow_log(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> AsyncGenerator[Sequence[LogChunk], None]:
        return follow(lambda at: self.read_new(attempt, at, limit), cursors, limit)


class Reader:
    """One who watches: takes what there is whenever told that there is more."""

    def __init__(self, feed: LogFeed, news: Subscription) -> None:
        self.feed, self.news = feed, news
        self.lines: list[str] = []
        self.cursor = 0

    async def begin(self, ranks: int = 1) -> None:
        frame = await self.feed.tail(0, 1000)
        self.cursor = frame["offset"]
        self.lines += [line["text"] for line in frame["lines"]]
        self.feed.follow(self.news, JOB, ranks)

    async def take(self) -> None:
        while (frame := await self.feed.next(0, self.cursor)) is not None:
            self.cursor = frame["offset"]
            self.lines += [line["text"] for line in frame["lines"]]

    async def follow(self) -> None:
        async for message in self.news:
            assert message is LOG_GREW
            await self.take()


async def has(reader: Reader, count: int) -> None:
    async def look() -> bool:
        return len(reader.lines) >= count

    await until(look, what=f"{count} lines")


async def test_a_hundred_who_watch_cost_one_reader_and_see_the_same(tmp_path: Path) -> None:
    files: Any = Files(tmp_path)
    files.write(*(f"old {n}" for n in range(20)))

    broker, feeds = Bus(), LogFeeds(files)
    with no_files(), feeds.feed_of(JOB) as feed:
        readers = [Reader(feed, broker.subscribe(job_topic("j"))) for _ in range(100)]
        await asyncio.gather(*(r.begin() for r in readers))
        tasks = [asyncio.ensure_future(r.follow()) for r in readers]
        for n in range(20):
            before = files.looks
            await asyncio.to_thread(files.write, f"new {n}")
            await has(readers[-1], 21 + n)
            assert files.looks - before < 100
        await asyncio.gather(*(has(r, 40) for r in readers))
        for r in readers:
            feed.leave(r.news)
        broker.close()
        await asyncio.gather(*tasks)
    expected = [f"old {n}" for n in range(20)] + [f"new {n}" for n in range(20)]
    assert all(r.lines == expected for r in readers)
    assert not files.alone
    assert feeds._feeds == {}


async def test_a_slow_reader_reads_alone_and_returns_to_the_live_end_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_feed, "KEPT_BYTES", 500)
    files: Any = Files(tmp_path)

    broker, feeds = Bus(), LogFeeds(files)
    with no_files(), feeds.feed_of(JOB) as feed:
        quick, slow = (Reader(feed, broker.subscribe(job_topic("j"))) for _ in range(2))
        await quick.begin()
        await slow.begin()
        task = asyncio.ensure_future(quick.follow())
        for n in range(50):
            await asyncio.to_thread(files.write, f"line {n:02d}")
            await has(quick, n + 1)
        assert not files.alone
        await slow.take()
        assert slow.lines == quick.lines
        assert files.alone == {0: 1}
        assert slow.cursor == quick.cursor
        await asyncio.to_thread(files.write, "last")
        await has(quick, 51)
        await slow.take()
        assert slow.lines[-1] == "last"
        assert files.alone == {0: 1}
        feed.leave(quick.news)
        feed.leave(slow.news)
        broker.close()
        await task


async def test_a_new_reader_of_a_watched_job_begins_no_farther_than_the_shared_reader(
    tmp_path: Path,
) -> None:
    files: Any = Files(tmp_path)

    broker, feeds = Bus(), LogFeeds(files)
    with feeds.feed_of(JOB) as feed:
        first = Reader(feed, broker.subscribe(job_topic("j")))
        await first.begin()
        feed.leave(first.news)  # its reader stands still
        await asyncio.to_thread(files.write, "a", "b")
        late = Reader(feed, broker.subscribe(job_topic("j")))
        await late.begin()
        assert late.cursor == first.cursor
        task = asyncio.ensure_future(late.follow())
        await has(late, 2)
        await first.take()
        assert first.lines == late.lines == ["a", "b"]
        feed.leave(late.news)
        broker.close()
        await task


async def test_at_the_end_all_is_read_once_for_all_who_ask(tmp_path: Path) -> None:
    files: Any = Files(tmp_path)

    broker, feeds = Bus(), LogFeeds(files)
    with feeds.feed_of(JOB) as feed:
        readers = [Reader(feed, broker.subscribe(job_topic("j"))) for _ in range(50)]
        for r in readers:
            await r.begin()
            feed.leave(r.news)
        await asyncio.to_thread(files.write, *(f"{n}" for n in range(2500)))
        await asyncio.to_thread(files.write, "of the other rank", rank=1)
        files.looks = 0
        await asyncio.gather(*(feed.read_all([0, 1]) for _ in readers))
        await asyncio.gather(*(r.take() for r in readers))
        assert all(r.lines == [f"{n}" for n in range(2500)] for r in readers)
        assert (
            files.looks <= 2 * 4
        )  # twice through: for the first who asked, and for those who came meanwhile
        assert not files.alone
        other = await feed.next(1, 0)
        assert other is not None
        assert other["lines"][0]["text"] == "of the other rank"
        broker.close()


async def test_a_log_that_cannot_be_read_now_is_read_later(tmp_path: Path) -> None:
    files: Any = Files(tmp_path)
    real, failing = files.read_new, [True]

    async def read_new(*args: Any) -> Sequence[LogChunk]:
        if failing:
            failing.pop()
            raise OSError(5, "the disk does not answer")
        found: Sequence[LogChunk] = await real(*args)
        return found

    files.read_new = read_new

    broker, feeds = Bus(), LogFeeds(files)
    with feeds.feed_of(JOB) as feed:
        reader = Reader(feed, broker.subscribe(job_topic("j")))
        await reader.begin()
        task = asyncio.ensure_future(reader.follow())
        await asyncio.to_thread(files.write, "after all")
        await has(reader, 1)
        assert not failing
        feed.leave(reader.news)
        broker.close()
        await task


async def test_the_log_of_a_run_continues_with_its_next_attempt(tmp_path: Path) -> None:
    files: Any = Files(tmp_path)

    broker, feeds = Bus(), LogFeeds(files)
    with no_files(), feeds.feed_of(JOB) as feed:
        reader = Reader(feed, broker.subscribe(job_topic("j")))
        await reader.begin()
        task = asyncio.ensure_future(reader.follow())
        await asyncio.to_thread(files.write, "of the first")
        await has(reader, 1)
        assert files.asked == {"u.0"}
        files.asked.clear()
        again = replace(JOB, restarts=1, version=JOB.version + 1)
        feed.follow(reader.news, again, 1)
        feed.follow(reader.news, JOB, 1)  # who lags does not lead back
        await asyncio.to_thread(files.write, "of the second")
        await has(reader, 2)
        assert files.asked == {"u.1"}
        feed.leave(reader.news)
        broker.close()
        await task
