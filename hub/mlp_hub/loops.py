"""Questions of a thread to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def ask_loop(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]], seconds: float | None
) -> T:
    """Run a coroutine on the loop from another thread and return its result.

    The coroutine is made on the loop, so a loop that has stopped or is closed leaves none behind that nobody awaits.
    Raises RuntimeError if the loop is closed, TimeoutError after `seconds` (None: never).
    """
    answer: Future[T] = Future()

    def begin() -> None:
        task = loop.create_task(make())
        task.add_done_callback(hand_over)

    def hand_over(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            answer.cancel()
        elif error := task.exception():
            answer.set_exception(error)
        else:
            answer.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    return answer.result(seconds)
