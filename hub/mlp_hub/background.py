"""Background tasks of a component: started with it, and ended with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


class BackgroundTask:
    """Runs `work()` in one asyncio task, until it returns or `stop` is called. `start` runs it again afterwards.

    If `work` raises, the error is logged at once with the `name`, and the task has ended.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, object]], name: str = "") -> None:
        self._work = work
        self._name = name or getattr(work, "__qualname__", "")
        self._task: asyncio.Task[object] | None = None

    @property
    def is_started(self) -> bool:
        """Whether `start` was called, and neither `stop` nor `cancel` since; the work may have ended by itself."""
        return self._task is not None

    @property
    def is_running(self) -> bool:
        """Whether the work has not ended yet."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Run the work, unless it runs."""
        if self._task is None or self._task.done() or self._task.cancelling():
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Cancel the work without waiting for its end; the work itself may call this."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def stop(self) -> None:
        """Cancel the work, and wait for its end."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._task is task:  # nobody has started it again meanwhile
                self._task = None

    async def finish(self) -> None:
        """Wait until the work ends by itself; raise what it raised. A caller that is cancelled does not end it."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the background task has failed: %s", self._name, exc_info=error)


class BackgroundTasks:
    """Short tasks of a component, each of which ends by itself."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine, and return its task, which nobody has to keep."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self) -> None:
        """Wait until all have ended, those too that begin meanwhile."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Cancel all, and wait for their ends."""
        for task in self._tasks:
            task.cancel()
        await self.finish()
