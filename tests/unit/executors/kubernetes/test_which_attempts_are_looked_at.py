"""Which attempts the executor of a cluster looks at: those of which there is news, and others in their time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mlp_hub.executors.base import AttemptPhase, Observation, Superseded
from mlp_hub.executors.kubernetes import sync_loop as module
from mlp_hub.executors.kubernetes.sync_loop import SyncLoop
from support import waiting

STARTS = Observation("a.0", AttemptPhase.STARTING)


class Watched:
    """Attempts that start and never get further, until they are said to."""

    def __init__(self, *, tells_news: bool = False) -> None:
        self.stands: dict[str, Observation] = {}
        self.looked: list[str] = []
        self.told: list[str] = []
        self.looked_at = asyncio.Event()
        self.tending = SyncLoop(self._advance, tells_news=tells_news)
        self.tending.listeners.append(self.told.append)

    async def _advance(self, attempt: str) -> tuple[Observation, bool]:
        self.looked.append(attempt)
        self.looked_at.set()
        return self.stands.get(attempt, STARTS), False

    async def news(self, attempt: str) -> None:
        """Tell of an attempt, and wait until it is looked at."""
        before = self.looked.count(attempt)
        self.tending.news(attempt)
        await self.looks(attempt, before + 1)

    async def looks(self, attempt: str, times: int) -> None:
        """Wait until an attempt was looked at so often."""
        while self.looked.count(attempt) < times:
            self.looked_at.clear()
            await self.looked_at.wait()


@pytest.fixture
def watched() -> Watched:
    return Watched()


async def _while_tended(watched: Watched, work: Any) -> None:
    tending = asyncio.ensure_future(watched.tending.run())
    try:
        async with asyncio.timeout(waiting.PATIENCE_S):
            await work()
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)


def test_events_of_one_attempt_trigger_no_look_at_other_starting_attempts(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 1_000.0)

    async def work() -> None:
        await watched.news("other.0")
        for _ in range(20):
            await watched.news("a.0")

    asyncio.run(_while_tended(watched, work))
    assert watched.looked == ["other.0", *["a.0"] * 20]


def test_starting_attempts_are_looked_at_again_without_any_event(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)

    async def work() -> None:
        await watched.news("a.0")
        await watched.looks("a.0", 5)

    asyncio.run(_while_tended(watched, work))


def test_an_observation_is_not_reported_twice(watched: Watched) -> None:
    async def work() -> None:
        for _ in range(5):
            await watched.news("a.0")
        watched.stands["a.0"] = Observation("a.0", AttemptPhase.RUNNING)
        await watched.news("a.0")

    asyncio.run(_while_tended(watched, work))
    assert watched.told == ["a.0", "a.0"]


def test_absent_attempts_are_forgotten(watched: Watched) -> None:
    watched.stands["a.0"] = Observation("a.0", AttemptPhase.ABSENT)
    asyncio.run(_while_tended(watched, lambda: watched.news("a.0")))
    assert not watched.tending.last


def test_a_watcher_that_wants_all_events_gets_them_without_a_change() -> None:
    watched = Watched(tells_news=True)

    async def work() -> None:
        for _ in range(3):
            await watched.news("a.0")

    asyncio.run(_while_tended(watched, work))
    assert watched.told[:2] == ["a.0", "a.0"]


async def test_a_failed_look_is_repeated_and_a_superseded_watcher_gives_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    looked: list[str] = []
    done = asyncio.Event()

    async def advance(attempt: str) -> tuple[Observation, bool]:
        looked.append(attempt)
        if attempt == "old.0":
            raise Superseded
        if looked.count("a.0") < 3:
            raise OSError("away")
        done.set()
        return STARTS, True

    tending = SyncLoop(advance)
    running = asyncio.ensure_future(tending.run())
    tending.news("old.0")
    tending.news("a.0")
    async with asyncio.timeout(waiting.PATIENCE_S):
        await done.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert sorted(looked) == ["a.0", "a.0", "a.0", "old.0"]
    assert [r.getMessage() for r in caplog.records] == ["a.0: away"], "each look fails alike: said once"
