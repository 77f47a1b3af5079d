"""Order of the sources to copy: each tenant has one place, and extra places only from a smaller share.

A tenant or a colleague never holds a place for ever while another has none. The holder of a long
turn makes way, and continues when the turn comes again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf

from mlp_hub.executors.workspace import FETCHES

MOST_OF_USER = 2
"""Limit of data: sources of one user that are copied at a time."""
SHARED = 2
"""Safety: places that tenants have who have one already: the rest is for the first one of each."""
HELD_S = 1800.0
"""Tuning: seconds for which a place is kept while a tenant, or a colleague, without one waits: how soon they begin, for lists read again, each of which may take a third of it."""


@dataclass(eq=False, slots=True)
class FetchTurn:
    """A place that is waited for, or held since a moment of the clock."""

    user: str
    tenant: str
    come: asyncio.Future[None]
    since: float = 0.0


class FetchTurns:
    """Turns to copy. Tenants without one go first, then users without one; among them those whose last turn began longest ago."""

    def __init__(
        self,
        most: int = FETCHES,
        shared: int = SHARED,
        of_user: int = MOST_OF_USER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._shared, self._of_user, self._clock = most, shared, of_user, clock
        self._users: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._waiting: list[FetchTurn] = []
        self._held: list[FetchTurn] = []
        self._served: dict[tuple[str, str], float] = {}  # when a tenant, or a user, was given a place last

    @asynccontextmanager
    async def turn(self, user: str, tenant: str) -> AsyncIterator[FetchTurn]:
        """Wait for a turn, and have it."""
        one = FetchTurn(user, tenant, asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._look()
        try:
            await one.come
            yield one
        finally:
            if one in self._waiting:
                self._waiting.remove(one)
            elif one.come.done():
                self._held.remove(one)
                self._users[user] -= 1
                self._tenants[tenant] -= 1
            self._look()

    def is_over(self, turn: FetchTurn) -> bool:
        """Return whether a turn should go to a tenant without one, or to a colleague without one. Thread-safe.

        One turn is claimed at a time, first from tenants, then from users, that have several.
        """
        if self._clock() - turn.since <= HELD_S:
            return False
        for waits in tuple(self._waiting):
            if self._users[waits.user] >= (self._of_user if not self._tenants[waits.tenant] else 1):
                continue
            held = tuple(self._held)
            if self._tenants[waits.tenant]:
                held = tuple(one for one in held if one.tenant == waits.tenant)
            if turn is min(held, key=self._goes_after, default=None):
                return True
        return False

    def _goes_after(self, held: FetchTurn) -> tuple[bool, bool, float]:
        """Return the order in which places are given back."""
        return self._tenants[held.tenant] < 2, self._users[held.user] < 2, held.since

    def _may(self, user: str, tenant: str) -> bool:
        if self._tenants.total() >= self._most or self._users[user] >= self._of_user:
            return False
        beyond = sum(n - 1 for n in self._tenants.values() if n > 1)
        return not self._tenants[tenant] or beyond < self._shared

    def _look(self) -> None:
        # by when they had their last turn: a place that is given back does not go to the next copy of the same user
        def after(one: FetchTurn) -> tuple[bool, bool, float, float]:
            served = self._served.get
            of_tenant, of_user = served(("tenant", one.tenant), -inf), served(("user", one.user), -inf)
            return self._tenants[one.tenant] > 0, self._users[one.user] > 0, of_tenant, of_user

        for one in sorted(self._waiting, key=after):
            if self._may(one.user, one.tenant):
                self._waiting.remove(one)
                self._held.append(one)
                self._users[one.user] += 1
                self._tenants[one.tenant] += 1
                one.since = self._clock()
                self._served["tenant", one.tenant] = self._served["user", one.user] = one.since
                if not one.come.done():
                    one.come.set_result(None)
        if not self._waiting and not self._held:
            for each in (self._served, self._users, self._tenants):
                each.clear()  # they would grow with everybody who ever copied
