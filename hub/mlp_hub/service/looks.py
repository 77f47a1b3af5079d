"""Looks at waiting jobs: each has its full answer worked out, and none waits long for that."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

WAIT_S = 0.5
"""So long a look waits for the full answer; one that takes longer is there for a later look, if nothing is decided first."""
MOST = 4
"""Answers of one user that are under way; the jobs of others that they look at have none begun."""


class Looks:
    """Has answers worked out for those who look; `explain` works one out for the uid of a job."""

    def __init__(self, explain: Callable[[str], Awaitable[object]], wait_s: float = WAIT_S) -> None:
        self._explain = explain
        self._wait_s = wait_s
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._of_user: Counter[str] = Counter()

    async def at(self, uid: str, user: str) -> None:
        """Begin with the answer for a job of a user unless it is under way, and wait for it a little."""
        task = self._under_way.get(uid)
        if task is None:
            if self._of_user[user] >= MOST:
                return
            self._of_user[user] += 1
            task = self._under_way[uid] = asyncio.ensure_future(self._work(uid, user))
        await asyncio.wait((task,), timeout=self._wait_s)
        if task.done() and not task.cancelled():
            task.result()

    async def stop(self) -> None:
        """Work nothing out any more."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, uid: str, user: str) -> None:
        try:
            await self._explain(uid)
        finally:
            self._under_way.pop(uid, None)
            self._of_user[user] -= 1
            self._of_user = +self._of_user
