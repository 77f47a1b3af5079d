"""Writes that others are notified of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def notifying(
    write: Coroutine[Any, Any, T], tell: Callable[[], None], *, news: Callable[[T], bool] = lambda _: True
) -> T:
    """Return the result of a write; `tell` is called once it is over, before the caller continues.

    It is not called if there are no `news`. It is called whatever the outcome: the write can be stored
    although an error came back, and it is stored although the caller has gone.
    """

    def over(done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None or news(done.result()):
            tell()

    task = asyncio.ensure_future(write)
    task.add_done_callback(over)
    return await asyncio.shield(task)
