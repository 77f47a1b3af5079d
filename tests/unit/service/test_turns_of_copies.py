"""Whose source is copied next, and whose work has a thread: who has many under way keeps nobody's first one waiting."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

from mlp_hub.pools import FairPool
from mlp_hub.service.datasets.fetch_turns import HELD_S, FetchTurns
from waiting import PATIENCE_S, until


async def taken(turns: FetchTurns, held: AsyncExitStack, *who: tuple[str, str]) -> list[str]:
    """Ask for turns, one after the other; return who has one at once."""
    found: list[str] = []

    async def take(user: str, tenant: str) -> None:
        async with turns.turn(user, tenant):
            found.append(user)
            await asyncio.Event().wait()

    for user, tenant in who:
        task = asyncio.ensure_future(take(user, tenant))
        held.callback(task.cancel)
    for _ in range(3):
        await asyncio.sleep(0)
    return found


def test_attack_two_accounts_with_endless_copies_keep_no_other_tenant_from_copying() -> None:
    async def story() -> None:
        turns = FetchTurns(4, 2, 2)
        async with AsyncExitStack() as held:
            assert await taken(turns, held, *[("ann", "red")] * 5, *[("tad", "red")] * 5) == [
                "ann",
                "ann",
                "tad",
            ]
            assert await taken(turns, held, ("bob", "blue")) == ["bob"]

    asyncio.run(story())


def test_a_turn_that_is_given_back_goes_to_who_waits_longest() -> None:
    async def story() -> None:
        turns = FetchTurns(1, 0, 1)
        order: list[str] = []

        async def copy(user: str) -> None:
            async with turns.turn(user, user):
                order.append(user)
                await asyncio.sleep(0)

        await asyncio.gather(*(copy(user) for user in ("ann", "bob", "cam")))
        assert order == ["ann", "bob", "cam"]

    asyncio.run(story())


def test_who_waits_and_goes_away_holds_no_turn() -> None:
    async def story() -> None:
        turns = FetchTurns(1, 0, 1)
        async with AsyncExitStack() as held:
            assert await taken(turns, held, ("ann", "red")) == ["ann"]
            async with AsyncExitStack() as gone:
                assert await taken(turns, gone, ("bob", "blue")) == []
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        async with turns.turn("cam", "green"):
            pass

    asyncio.run(story())


def test_attack_as_many_tenants_as_there_are_places_keep_no_other_one_from_copying() -> None:
    """An endpoint that sends a little for days holds its place no longer than a while, once somebody without one waits."""

    async def story() -> None:
        now = 0.0
        turns = FetchTurns(3, 1, 2, clock=lambda: now)
        came: list[str] = []

        async def copy(user: str, tenant: str) -> None:
            async with turns.turn(user, tenant) as turn:
                came.append(user)
                async with asyncio.timeout(PATIENCE_S):
                    while True:
                        await asyncio.sleep(0)
                        if turns.is_over(turn):
                            return

        async def some_steps() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        copies = []
        for user, tenant in (("ann", "red"), ("tad", "red"), ("bob", "blue"), ("eve", "red")):
            copies.append(asyncio.ensure_future(copy(user, tenant)))
            await some_steps()
            now += 1
        now += 2 * HELD_S
        await some_steps()
        assert came == ["ann", "tad", "bob"]  # eve's tenant has places: nobody makes way for her
        copies.append(asyncio.ensure_future(copy("cam", "green")))
        await some_steps()
        assert came == ["ann", "tad", "bob", "cam"]  # ann's, who has held one of red's two longest
        assert [copy.done() for copy in copies] == [True, False, False, False, False]
        copies.append(asyncio.ensure_future(copy("dan", "white")))
        await some_steps()
        # for dan tad's, who is red's last: red's next is eve, and has bob's after that
        assert came[4:] == ["dan", "eve"]
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        assert not turns._held

    asyncio.run(story())


def test_attack_who_blocks_their_threads_keeps_nobody_else_from_having_one() -> None:
    async def story() -> None:
        pool, ends = FairPool("test", 3, 2), threading.Event()
        blocked = [asyncio.ensure_future(pool.run("ann", ends.wait)) for _ in range(20)]
        await asyncio.sleep(0)
        assert await pool.run("bob", lambda: "done") == "done"
        blocked[-1].cancel()
        ends.set()
        assert await asyncio.gather(*blocked[:-1]) == [True] * 19

        async def over() -> bool:
            return pool._turns._each == {}

        await until(over, what="turns to be given back")
        pool.close()

    asyncio.run(story())
