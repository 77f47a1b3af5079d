"""A work queue of keys: nothing twice, nothing at the same time, nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from mlp_hub.service.lifecycle import workqueue
from mlp_hub.service.lifecycle.workqueue import WorkQueue


class Bench:
    """A queue whose worker notes what it was given, and may be held up or made to fail."""

    def __init__(self, first_s: float = 0.001, most_s: float = 0.004) -> None:
        self.queue = WorkQueue(first_s, most_s)
        self.seen: list[str] = []
        self.busy: Counter[str] = Counter()
        self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails: dict[str, list[BaseException]] = {}
        self.again: Counter[str] = Counter()
        self.looked = asyncio.Condition()
        self.queue.serve("thing", self.work)
        self.queue.start()

    async def work(self, uid: str) -> bool:
        self.busy[uid] += 1
        assert self.busy[uid] == 1, "two workers at one key"
        self.most_at_once = max(self.most_at_once, self.busy.total())
        try:
            self.seen.append(uid)
            await self.gate.wait()
            if self.fails.get(uid):
                raise self.fails[uid].pop(0)
            self.again[uid] -= 1
            return self.again[uid] >= 0
        finally:
            self.busy[uid] -= 1
            async with self.looked:
                self.looked.notify_all()

    def add(self, *uids: str) -> None:
        for uid in uids:
            self.queue.add(("thing", uid))

    async def until(self, what: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self.looked:
            await self.looked.wait_for(what)


@asynccontextmanager
async def running_bench(**more: float) -> AsyncIterator[Bench]:
    bench = Bench(**more)
    yield bench
    await bench.queue.stop()


async def test_a_key_added_twice_before_its_turn_is_processed_once() -> None:
    async with running_bench() as b:
        b.add("a", "b", "a", "b")
        await b.until(lambda: b.seen == ["a", "b"])
        await asyncio.sleep(0)
        assert b.seen == ["a", "b"]


async def test_a_key_added_during_its_processing_is_processed_once_more_and_never_by_two_workers() -> None:
    async with running_bench() as b:
        b.gate.clear()
        b.add("a")
        await asyncio.sleep(0)
        assert b.queue.is_at(("thing", "a"))
        b.add("a", "a", "a")
        b.gate.set()
        await b.until(lambda: len(b.seen) == 2)
        b.add("z")
        await b.until(lambda: b.seen == ["a", "a", "z"])


async def test_a_worker_continues_at_once_and_then_knows_all_keys_added_meanwhile() -> None:
    async with running_bench() as b:
        b.gate.clear()
        b.again["a"] = 2
        b.add("a")
        await asyncio.sleep(0)
        b.add("a")
        b.gate.set()
        b.add("z")
        await b.until(lambda: "z" in b.seen and b.seen.count("a") == 3)


async def test_the_number_of_simultaneous_keys_is_limited_and_keys_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workqueue, "WORKERS", 3)

    async with running_bench() as b:
        uids = [f"u{n}" for n in range(20)]
        b.gate.clear()
        b.add(*uids)
        await asyncio.sleep(0)
        assert b.seen == uids[:3]
        b.gate.set()
        await b.until(lambda: len(b.seen) == 20)
        assert b.seen == uids
        assert b.most_at_once == 3


async def test_of_two_delays_the_shorter_one_counts() -> None:
    async with running_bench() as b:
        for delay in (600.0, 0.001, 600.0):
            b.queue.add_after(("thing", "a"), delay)
        await b.until(lambda: b.seen == ["a"])


async def test_a_failed_key_is_retried_with_doubling_delays_until_it_succeeds() -> None:
    waits: list[float] = []

    async with running_bench() as b:
        real = b.queue.add_after

        def add_after(key: tuple[str, str], delay_s: float) -> None:
            waits.append(delay_s)
            real(key, delay_s)

        b.queue.add_after = add_after  # type: ignore[method-assign]
        b.fails["a"] = [OSError("full")] * 4
        b.add("a", "b")
        await b.until(lambda: b.seen.count("a") == 5)
        await asyncio.sleep(0)
        b.fails["a"] = [OSError("full")]
        b.add("a")
        await b.until(lambda: b.seen.count("a") == 7)
        assert b.seen.count("b") == 1
    assert waits == [0.001, 0.002, 0.004, 0.004, 0.001]


async def test_a_key_whose_worker_is_cancelled_from_inside_is_not_lost() -> None:
    async with running_bench() as b:
        b.fails["a"] = [asyncio.CancelledError()]
        b.add("a")
        await b.until(lambda: b.seen == ["a", "a"])


async def test_once_it_has_stopped_nobody_works_and_nothing_is_taken_until_it_is_started_again() -> None:
    async with running_bench() as b:
        b.gate.clear()
        b.add("a", "b")
        b.queue.add_after(("thing", "c"), 0.001)
        await asyncio.sleep(0)
        await b.queue.stop()
        assert not b.busy.total()
        b.gate.set()
        b.add("d")
        b.queue.add_after(("thing", "d"), 0.001)
        b.queue.start()
        b.add("a")
        await b.until(lambda: b.seen == ["a", "b", "a"])


async def test_each_kind_has_its_own_worker_and_uids_of_two_kinds_are_two_keys() -> None:
    async with running_bench() as b:
        others: list[str] = []

        async def work(uid: str) -> bool:
            others.append(uid)
            return False

        b.queue.serve("dataset", work)
        b.queue.add(("dataset", "a"))
        b.add("a")
        await b.until(lambda: b.seen == ["a"])
        assert others == ["a"]


async def test_keys_that_come_before_all_is_started_are_kept_and_worked_on_then() -> None:
    queue, seen, done = WorkQueue(0.001, 0.004), list[str](), asyncio.Event()

    async def work(uid: str) -> bool:
        seen.append(uid)
        if len(seen) == 2:
            done.set()
        return False

    queue.serve("thing", work)
    queue.add(("thing", "before it is open"))
    queue.open()
    for uid in ("a", "b", "a"):
        queue.add(("thing", uid))
    for _ in range(10):
        await asyncio.sleep(0)  # as many turns of the loop as a worker would need
    assert (seen, queue.depth["waiting"]) == ([], 2)
    queue.start()
    await done.wait()
    assert seen == ["a", "b"]
    await queue.stop()
