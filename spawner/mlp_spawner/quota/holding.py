"""Holdings of a server's quota, noted before each step, so that no crash loses count.

A hub that dies in between finds afterwards the amounts that might be held, and gives them back. All
steps can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mlp_spawner.errors import ServiceRefused
from mlp_spawner.quota.service_client import Amount, ServiceClient

ASK_EVERY_S = 0.5
"""Seconds between an answer and the next try, which waits for room that is being made."""
NOTHING, TRIED, CONFIRMED, UNKNOWN = "", "tried", "confirmed", "unknown"


class ServerHolding:
    """The place of one server in the ledger. `step` is how far it came; `note` makes that durable."""

    def __init__(
        self, key: str, service: ServiceClient, note: Callable[[], None] = lambda: None, step: str = NOTHING
    ) -> None:
        self.key = key
        self.service = service
        self.step = step
        self._note = note
        self._giving = asyncio.Lock()

    def _write(self, step: str) -> None:
        self.step = step
        self._note()

    async def hold_amount(
        self,
        user: str,
        holder: str,
        amount: Amount,
        *,
        patience_s: float = 0.0,
        waits: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Hold the amount for a while; raise ServiceRefused or ServiceUnreachable.

        If there can be room within `patience_s`, the request is repeated, for at most that time: `waits`
        gets the reason each time. A caller that gives up also gives up its place.
        """
        await self.give_back()
        self._write(TRIED)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            try:
                await self.service.try_hold(self.key, user, holder, amount)
            except ServiceRefused as refused:
                after, waited = refused.retry_after, loop.time() - begun
                if after is None:
                    self._write(NOTHING)
                    raise
                if after > patience_s or waited > patience_s:
                    await self.give_back()
                    raise
                waits(refused.msg)
                await asyncio.sleep(min(after, ASK_EVERY_S))
            else:
                return

    async def keep(self) -> None:
        """Hold for good what was taken."""
        if self.step == NOTHING:
            raise ServiceRefused(
                "what the server held was given back while it started; start it again", "WrongState"
            )
        await self.service.confirm(self.key)
        self._write(CONFIRMED)

    async def give_back(self) -> None:
        """Give back what may be held; raises ServiceUnreachable, then it is owed and stays noted."""
        async with (
            self._giving
        ):  # two looks may find the same end: the later one must not give back what a new start takes
            if self.step == NOTHING:
                return
            for give in (
                (self._release, self._cancel) if self.step != TRIED else (self._cancel, self._release)
            ):
                try:
                    await give()
                    break
                except ServiceRefused:
                    # it stands the other way: its confirm never arrived, or did although no answer came
                    continue
            self._write(NOTHING)

    async def _release(self) -> None:
        await self.service.release(self.key)

    async def _cancel(self) -> None:
        await self.service.cancel(self.key)
