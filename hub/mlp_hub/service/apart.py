"""Work that many share, done apart where one of them spoils it.

What goes together in one transaction fails together. Where that is the fault of one, it is found by halves, and the rest
goes on without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlp_hub.domain.errors import Unavailable
from mlp_hub.store.errors import StatementFailed

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST_BAD = 16
"""Of one lot: where so many fail one by one, the fault is not theirs, and the rest is not tried."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item, Result]):
    """What became of some of the items: a result, or the error that kept all of them from being done."""

    items: Sequence[Item]
    result: Result | None = None
    error: Exception | None = None


def is_everybodys(error: Exception) -> bool:
    """Whether nobody could do any better: the database does not answer, or another service decides."""
    return isinstance(error, Unavailable) and not isinstance(error, StatementFailed)


async def apart(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Awaitable[Result]]
) -> list[Outcome[Item, Result]]:
    """Do the work for all items, in order, in as few parts as can be; tell what became of each part.

    `work` does all of its part or nothing. An error that is everybody's ends it for all that is left.
    """
    outcomes: list[Outcome[Item, Result]] = []
    parts: list[Sequence[Item]] = [items]  # the next one last
    bad = 0
    while parts:
        part = parts.pop()
        try:
            outcomes.append(Outcome(part, result=await work(part)))
        except Exception as error:  # noqa: BLE001 - it is handed on with those whose it is
            if len(part) > 1 and not is_everybodys(error):
                half = len(part) // 2
                parts += (part[half:], part[:half])
                continue
            bad += 1
            outcomes.append(Outcome(part, error=error))
            if is_everybodys(error) or bad >= MOST_BAD:
                outcomes += [Outcome(rest, error=error) for rest in reversed(parts)]
                return outcomes
    return outcomes
