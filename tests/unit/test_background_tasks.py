"""A background task of a component is started, ended and started again, and its failure is seen."""

from __future__ import annotations

import asyncio
import logging

import pytest

from mlp_hub.background import BackgroundTask, BackgroundTasks


class Worker:
    """Counts its runs; each waits to be released, or fails."""

    def __init__(self) -> None:
        self.begun, self.ended = 0, 0
        self.release = asyncio.Event()
        self.fails = False
        self.task = BackgroundTask(self.work)

    async def work(self) -> None:
        self.begun += 1
        try:
            await self.release.wait()
            if self.fails:
                raise OSError("the disk is gone")
        finally:
            await asyncio.sleep(0)
            self.ended += 1


async def test_a_second_start_begins_nothing_and_a_stop_waits_for_the_end() -> None:
    worker = Worker()
    assert not worker.task.is_started
    await worker.task.stop()  # which never started
    worker.task.start()
    worker.task.start()
    await asyncio.sleep(0)
    assert (worker.begun, worker.task.is_started, worker.task.is_running) == (1, True, True)
    await worker.task.stop()
    assert (worker.ended, worker.task.is_started, worker.task.is_running) == (1, False, False)


async def test_it_runs_again_after_its_end_and_after_a_stop() -> None:
    worker = Worker()
    worker.release.set()
    worker.task.start()
    await worker.task.finish()
    assert (worker.task.is_started, worker.task.is_running) == (True, False)
    worker.task.start()
    await worker.task.finish()
    await worker.task.stop()
    worker.task.start()
    await worker.task.finish()
    assert worker.ended == 3


async def test_a_start_during_a_stop_is_not_lost() -> None:
    worker = Worker()
    worker.task.start()
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(worker.task.stop())
    await asyncio.sleep(0)
    worker.task.start()
    await stopping
    assert (worker.begun, worker.ended, worker.task.is_running) == (2, 1, True)
    await worker.task.stop()
    assert worker.ended == 2


async def test_a_stop_that_is_cancelled_leaves_the_task_for_the_next_stop() -> None:
    worker = Worker()
    worker.task.start()
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(worker.task.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    assert worker.task.is_started
    await worker.task.stop()
    assert (worker.ended, worker.task.is_started) == (1, False)


async def test_the_work_may_cancel_its_own_task() -> None:
    async def work() -> None:
        task.cancel()
        await asyncio.sleep(0)
        pytest.fail("it continues")

    task = BackgroundTask(work)
    task.start()
    with pytest.raises(asyncio.CancelledError):
        await task.finish()
    assert not task.is_started


async def test_a_failure_is_logged_once_with_the_name_of_the_work(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker()
    worker.fails = True
    worker.release.set()
    with caplog.at_level(logging.ERROR):
        worker.task.start()
        with pytest.raises(OSError, match="the disk is gone"):
            await worker.task.finish()
        await worker.task.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "the background task has failed: Worker.work"
    ]
    assert "the disk is gone" in caplog.text


async def test_a_caller_that_is_cancelled_while_it_waits_does_not_end_the_work() -> None:
    worker = Worker()
    worker.task.start()
    waiting = asyncio.ensure_future(worker.task.finish())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert worker.task.is_running
    await worker.task.stop()


async def test_short_tasks_return_their_results_and_are_waited_for_or_cancelled() -> None:
    tasks = BackgroundTasks()
    release = asyncio.Event()

    async def later(value: int) -> int:
        await release.wait()
        if value == 1:
            tasks.start(later(3))
        return value

    one, two = tasks.start(later(1)), tasks.start(later(2))
    release.set()
    await tasks.finish()
    assert (one.result(), two.result(), tasks._tasks) == (1, 2, set())
    release.clear()
    three = tasks.start(later(4))
    await tasks.stop()
    assert three.cancelled()
    await tasks.stop()
