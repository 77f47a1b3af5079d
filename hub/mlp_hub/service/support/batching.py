"""Batches of single requests, with a separate retry where one of them spoils the rest.

Requests that come during one batch make up the next. A batch in one transaction fails together. If
one request is the cause, it is found by halves, and the rest continues without it. The store also
commits transactions together. One transaction of many items gives 379 submissions a second instead
of 216, of 1,000 at once on two busy cores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.store.errors import StatementFailed

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST = 512
"""Tuning: items of one lot, so that nobody waits long for others."""
PACE_S = 0.005
"""Tuning: seconds between two lots where many ask at once: larger lots cost less for each item."""
MOST_BAD = 16
"""Safety: items of one lot that may fail one by one; then the fault is not theirs, and the rest is not tried."""


@dataclass(frozen=True, slots=True)
class PartOutcome(Generic[Item, Result]):
    """Outcome of one part of the items: a result, or the error that kept all of them from being done."""

    items: Sequence[Item]
    result: Result | None = None
    error: Exception | None = None


def is_everybodys(error: Exception) -> bool:
    """Whether nobody could do any better: the database does not answer, or another service decides."""
    return isinstance(error, Unavailable) and not isinstance(error, StatementFailed)


async def in_parts(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Awaitable[Result]]
) -> list[PartOutcome[Item, Result]]:
    """Do the work for all items, in order, in as few parts as can be; tell what became of each part.

    `work` does all of its part or nothing. An error that is everybody's ends it for all that is left.
    """
    outcomes: list[PartOutcome[Item, Result]] = []
    parts: list[Sequence[Item]] = [items]  # the next one last
    bad = 0
    while parts:
        part = parts.pop()
        try:
            outcomes.append(PartOutcome(part, result=await work(part)))
        except Exception as error:  # noqa: BLE001 - it is handed on with those whose it is
            if len(part) > 1 and not is_everybodys(error):
                half = len(part) // 2
                parts += (part[half:], part[:half])
                continue
            bad += 1
            outcomes.append(PartOutcome(part, error=error))
            if is_everybodys(error) or bad >= MOST_BAD:
                outcomes += [PartOutcome(rest, error=error) for rest in reversed(parts)]
                return outcomes
    return outcomes


class Batch(Generic[Item, Result]):
    """Collects items and hands them to `work` in lots, one lot at a time.

    `work` returns a result, or an error to be raised, for each item in order; where it raises itself, nothing of the lot
    may be kept: then it is called for parts of it, until it is found whose the error is. A caller that is cancelled does
    not take its item back. The first item of an idle batch is not kept waiting.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]) -> None:
        self._work = work
        self._items: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task = BackgroundTask(self._run)

    async def submit_item(self, item: Item) -> Result:
        """Return what `work` returned for the item."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._items.append((item, future))
        self._task.start()
        return await future

    async def stop(self) -> None:
        """Stop; waiting calls are cancelled."""
        await self._task.stop()
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
                outcomes = await in_parts([item for item, _ in lot], self._work)
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
