"""Reading of logs where the service has the files, for any executor whose ranks write them there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from mlp_hub.executors.base import AttemptKey, LogChunk
from mlp_hub.executors.following import follow
from mlp_hub.executors.shared_volume import logs
from mlp_hub.executors.shared_volume.directories import Directories

READERS = 2
"""Tuning: threads that read logs: threads, for how long one waits for a slow disk."""
P = ParamSpec("P")
T = TypeVar("T")


class SharedVolumeLogs:
    """Executor whose logs lie below these directories."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self._readers = ThreadPoolExecutor(READERS, "log-reader")

    async def read_log(
        self, attempt: AttemptKey, rank: int, since: int = 0, limit: int = 1000, until: int | None = None
    ) -> LogChunk:
        """Read a rank's log from a cursor on, up to another one."""
        return await self._read(attempt, logs.read_log, rank, since, limit, until)

    async def tail_log(
        self, attempt: AttemptKey, rank: int, count: int, until: int | None = None
    ) -> LogChunk:
        """Read the last `count` lines of a rank's log, up to a cursor; `offset` is the one behind them."""
        return await self._read(attempt, logs.tail_log, rank, count, until)

    async def read_new(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> Sequence[LogChunk]:
        """Read on from the cursors of these ranks, of those that have written."""
        return await self._read(attempt, logs.read_new, cursors, limit)

    def follow_log(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> AsyncGenerator[Sequence[LogChunk], None]:
        """Read the files repeatedly, which costs less than an event for each line."""
        return follow(lambda at: self.read_new(attempt, at, limit), cursors, limit)

    async def _read(
        self, attempt: AttemptKey, work: Callable[Concatenate[str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def read() -> T:
            with self._directories.using(attempt.of) as workspace:
                return work(str(workspace), *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._readers, read)
