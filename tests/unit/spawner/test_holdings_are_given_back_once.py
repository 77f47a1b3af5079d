"""What an ended server held is given back once, and never what the next start of it takes."""

from __future__ import annotations

import asyncio
from typing import Any

from mlp_language.message import msg
from mlp_spawner.errors import ServiceRefused
from mlp_spawner.quota.holding import CONFIRMED, TRIED, ServerHolding
from mlp_spawner.quota.service_client import Amount


class Service:
    """Answers releases one by one, when the test lets it; it knows what is held by now."""

    def __init__(self) -> None:
        self.answers = [asyncio.Event(), asyncio.Event()]
        self.asked = 0
        self.tried = False
        self.cancelled = 0

    async def release(self, _key: str) -> None:
        self.asked += 1
        await self.answers[self.asked - 1].wait()
        if self.tried:
            raise ServiceRefused(msg("it is tried and cannot be released; cancel it"), "WrongState")

    async def cancel(self, _key: str) -> None:
        self.cancelled += 1

    async def try_hold(self, *_asked: object) -> None:
        self.tried = True


async def test_a_second_look_at_an_end_gives_back_nothing_of_a_start_that_follows_the_first() -> None:
    service = Service()
    asks: Any = service
    holding = ServerHolding("ann/", asks, step=CONFIRMED)
    first, second = (asyncio.ensure_future(holding.give_back()) for _ in range(2))
    await asyncio.sleep(0)
    service.answers[0].set()
    await first
    await holding.hold_amount("ann", "ann's notebook", Amount("default", 1.0, 100))
    service.answers[1].set()
    await second
    assert (holding.step, service.cancelled, service.asked) == (TRIED, 0, 1)
