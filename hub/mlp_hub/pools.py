"""Threads for work that blocks, with one pool for each kind.

Files that are slow delay no work of another kind, and little of the same kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from enum import Enum
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkKind(Enum):
    """Kinds of work that is nobody's in particular: the name of its threads, and how many there are."""

    REPLICAS = ("replicas", 2)  # directories of sockets of apps' replicas
    ZONES = ("zones", 1)  # files of time zones
    EXPLAINING = ("explaining", 2)  # why jobs wait, and when they may start
    RECORDING = ("recording", 1)  # what a what-if takes, and what it answers
    SHIPPING = ("shipping", 2)  # receivers of the audit log
    SCRAPES = ("scrapes", 1)  # texts of all metrics


_threads = {kind: ThreadPoolExecutor(kind.value[1], kind.value[0]) for kind in WorkKind}


async def run_in(kind: WorkKind, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something in a thread of its kind, which are made when they are needed."""
    return await asyncio.get_running_loop().run_in_executor(_threads[kind], partial(work, *args, **kwargs))


class FairTurns:
    """Turns of which `most` are taken at a time, and `of_one` for each of those who take them: one after the other has theirs."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._all: asyncio.Semaphore | None = None
        self._each: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        if self._all is None:
            self._all = asyncio.Semaphore(self._most)
        own, waiting = self._each.get(who) or (asyncio.Semaphore(self._of_one), 0)
        self._each[who] = own, waiting + 1
        try:
            # first among one's own: who asks a hundred times stands in the queue of all no more often than that
            async with own, self._all:
                yield
        finally:
            own, waiting = self._each[who]
            if waiting == 1:
                del self._each[who]
            else:
                self._each[who] = own, waiting - 1


class FairPool:
    """Threads of one kind of work, of which each user has a few at a time."""

    def __init__(self, name: str, threads: int, of_one: int) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._turns = FairTurns(threads, of_one)

    async def run(self, who: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it in a thread, when the turn of `who` comes."""
        async with self._turns.turn(who):
            call = asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))
            try:
                return await asyncio.shield(call)
            except asyncio.CancelledError:
                # the thread goes on with it, and so does the turn
                await asyncio.wait([call])
                raise

    def close(self) -> None:
        """Begin no more of it, and wait for none."""
        self._threads.shutdown(wait=False, cancel_futures=True)
