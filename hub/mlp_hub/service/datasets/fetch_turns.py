"""Whose source is copied next: of few places a tenant has one, and another one only of those that are left for such."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mlp_hub.executors.workspace import FETCHES

MOST_OF_USER = 2
"""Safety: sources of one user that are copied at a time: an endpoint that hardly sends holds up nobody else."""
SHARED = 2
"""Safety: places that tenants have who have one already: the rest is for the first one of each."""


class FetchTurns:
    """Turns to copy; who waits longest goes first, of those that may."""

    def __init__(self, most: int = FETCHES, shared: int = SHARED, of_user: int = MOST_OF_USER) -> None:
        self._most, self._shared, self._of_user = most, shared, of_user
        self._users: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._waiting: list[tuple[str, str, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, user: str, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        one = user, tenant, come
        self._waiting.append(one)
        self._look()
        try:
            await come
            yield
        finally:
            if one in self._waiting:
                self._waiting.remove(one)
            elif come.done():
                self._users[user] -= 1
                self._tenants[tenant] -= 1
            self._look()

    def _may(self, user: str, tenant: str) -> bool:
        if self._tenants.total() >= self._most or self._users[user] >= self._of_user:
            return False
        beyond = sum(n - 1 for n in self._tenants.values() if n > 1)
        return not self._tenants[tenant] or beyond < self._shared

    def _look(self) -> None:
        for one in list(self._waiting):
            user, tenant, come = one
            if self._may(user, tenant):
                self._waiting.remove(one)
                self._users[user] += 1
                self._tenants[tenant] += 1
                if not come.done():
                    come.set_result(None)
