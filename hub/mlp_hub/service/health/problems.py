"""Problems: parts of the platform that do not work now, as those know who would use them. Kept small: anybody may ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mlp_hub.executors.base import Executor
from mlp_hub.store.database import Database
from mlp_language.message import Message, msg


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work. Everybody reads the message: it names no path, no host and no person.

    `fails` says that people's requests are refused because of it, so that whoever watches shall know at once.
    """

    component: str
    reason: str
    message: Message
    fails: bool = True


Source = Callable[[], Awaitable[Sequence[Problem]]]
"""Part of the platform that lists its problems, from present knowledge or by one query for all callers."""


class Problems:
    """All present problems, from all sources."""

    def __init__(self, *sources: Source) -> None:
        self._sources: list[Source] = list(sources)

    def add(self, *sources: Source) -> None:
        """Ask these too."""
        self._sources += sources

    async def now(self) -> list[Problem]:
        """List them."""
        found = await asyncio.gather(*(source() for source in self._sources))
        return [problem for some in found for problem in some]


async def own_problems(db: Database, executor: Executor) -> Sequence[Problem]:
    """List the problems of the database and of the executor."""
    found = []
    if db.trouble is not None:
        message = msg("the database accepts no writes; nothing new is accepted until it does, jobs continue")
        found.append(Problem("database", "DatabaseUnavailable", message))
    if (trouble := executor.trouble()) is not None:
        found.append(Problem("executor", "ExecutorTrouble", trouble, fails=False))
    return found
