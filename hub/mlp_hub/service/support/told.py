"""Writes that others are told of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def told(
    write: Coroutine[Any, Any, T], tell: Callable[[], None], *, news: Callable[[T], bool] = lambda _: True
) -> T:
    """Return what a write returns; `tell` is called once it is over, before anybody goes on, unless there are no `news`.

    Whatever became of it: it may be stored though an error came back, and it is stored though who asked has gone.
    """

    def over(done: asyncio.Future[T]) -> None:
        if done.cancelled() or done.exception() is not None or news(done.result()):
            tell()

    task = asyncio.ensure_future(write)
    task.add_done_callback(over)
    return await asyncio.shield(task)
