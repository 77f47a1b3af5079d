"""Threads ask the event loop, which may be about to end."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import Future

import pytest

from mlp_hub.loops import ask_loop


async def test_a_thread_gets_the_result_or_the_error_of_a_coroutine() -> None:
    loop = asyncio.get_running_loop()

    async def double(n: int) -> int:
        if n < 0:
            raise ValueError("below 0")
        return 2 * n

    assert await asyncio.to_thread(ask_loop, loop, lambda: double(4), 60) == 8
    with pytest.raises(ValueError, match="below 0"):
        await asyncio.to_thread(ask_loop, loop, lambda: double(-1), 60)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "stopped"])
def test_a_loop_that_has_ended_leaves_no_coroutine_behind(closed: bool) -> None:
    loop = asyncio.new_event_loop()
    if closed:
        loop.close()
    made: list[str] = []
    ended: Future[str] = Future()

    async def note() -> None:
        made.append("made")

    def ask() -> None:
        try:
            ask_loop(loop, note, 0.05)
        except (RuntimeError, TimeoutError) as error:
            ended.set_result(type(error).__name__)

    thread = threading.Thread(target=ask)
    thread.start()
    assert ended.result(60) == ("RuntimeError" if closed else "TimeoutError")
    thread.join()
    loop.close()
    gc.collect()  # a coroutine that nobody awaited would warn here, which fails a test
    assert not made
