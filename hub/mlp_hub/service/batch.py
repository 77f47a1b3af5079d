"""Doing together what is asked one by one: what comes while one lot is under way makes up the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from mlp_hub.service.apart import apart

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST = 512
"""Of one lot, so that nobody waits long for others."""
PACE_S = 0.005
"""Where many ask at once, lots are this far apart: larger ones cost less for each item."""


class Batch(Generic[Item, Result]):
    """Collects items and hands them to `work` in lots, one lot at a time.

    `work` returns a result, or an error to be raised, for each item in order; where it raises itself, nothing of the lot
    may be kept: then it is called for parts of it, until it is found whose the error is. A caller that is cancelled does not take its item back. The first item of an idle batch is not kept waiting.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]) -> None:
        self._work = work
        self._items: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    async def put(self, item: Item) -> Result:
        """Return what `work` returned for the item."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._items.append((item, future))
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
        return await future

    async def stop(self) -> None:
        """Do no more; who waits is cancelled."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        items, self._items = self._items, []
        for _, future in items:
            future.cancel()

    async def _run(self) -> None:
        busy = False
        while self._items:
            if busy:
                await asyncio.sleep(PACE_S)
            lot, self._items = self._items[:MOST], self._items[MOST:]
            try:
                outcomes = await apart([item for item, _ in lot], self._work)
            except asyncio.CancelledError:
                for _, future in lot:
                    future.cancel()
                raise
            results: list[Result | Exception] = []
            for outcome in outcomes:
                failed = outcome.error
                results += (outcome.result or ()) if failed is None else [failed] * len(outcome.items)
            for (_, future), result in zip(lot, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
            busy = len(lot) > 1
