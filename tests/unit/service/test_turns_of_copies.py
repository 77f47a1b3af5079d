"""Whose source is copied next, and whose work has a thread: who has many under way keeps nobody's first one waiting."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from mlp_hub.pools import FairPool
from mlp_hub.service.datasets.fetch_turns import HELD_S, FetchTurns
from support.waiting import PATIENCE_S, until


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


async def test_attack_two_accounts_with_endless_copies_keep_no_other_tenant_from_copying() -> None:
    turns = FetchTurns(4, 2, 2)
    async with AsyncExitStack() as held:
        assert await taken(turns, held, *[("ann", "red")] * 5, *[("tad", "red")] * 5) == [
            "ann",
            "ann",
            "tad",
        ]
        assert await taken(turns, held, ("bob", "blue")) == ["bob"]


async def test_a_user_who_copied_once_is_forgotten_when_nobody_copies() -> None:
    turns = FetchTurns(2, 0, 1)
    for user in ("ann", "bob"):
        async with turns.turn(user, user):
            assert turns._served
    assert [*turns._served, *turns._users, *turns._tenants] == []


async def test_a_released_turn_goes_to_the_user_who_has_waited_longest() -> None:
    turns = FetchTurns(1, 0, 1)
    order: list[str] = []

    async def copy(user: str) -> None:
        async with turns.turn(user, user):
            order.append(user)
            await asyncio.sleep(0)

    await asyncio.gather(*(copy(user) for user in ("ann", "bob", "cam")))
    assert order == ["ann", "bob", "cam"]


async def test_a_user_who_waits_and_leaves_holds_no_turn() -> None:
    turns = FetchTurns(1, 0, 1)
    async with AsyncExitStack() as held:
        assert await taken(turns, held, ("ann", "red")) == ["ann"]
        async with AsyncExitStack() as gone:
            assert await taken(turns, gone, ("bob", "blue")) == []
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with turns.turn("cam", "green"):
        pass


@contextlib.asynccontextmanager
async def copies(*limits: int) -> AsyncIterator[Copies]:
    made = Copies(*limits)
    try:
        yield made
    finally:
        for each in made.tasks:
            each.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
        assert not made.turns._held


class Copies:
    """Copies that never end by themselves, of endpoints that send a little for days: they go on until they are to make way."""

    def __init__(self, *limits: int) -> None:
        self.now = 0.0
        self.came: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.turns = FetchTurns(*limits, clock=lambda: self.now)

    async def add(self, user: str, tenant: str) -> None:
        self.tasks.append(asyncio.ensure_future(self._copy(user, tenant)))
        await self.steps()
        self.now += 1

    async def steps(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def _copy(self, user: str, tenant: str) -> None:
        async with self.turns.turn(user, tenant) as turn:
            self.came.append(user)
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await asyncio.sleep(0)
                    if self.turns.is_over(turn):
                        return


async def test_attack_as_many_tenants_as_there_are_places_keep_no_other_one_from_copying() -> None:
    async with copies(3, 1, 2) as all_:
        for user, tenant in (("bob", "blue"), ("ann", "red"), ("tad", "red")):
            await all_.add(user, tenant)
        all_.now += 2 * HELD_S
        await all_.add("cam", "green")
        assert all_.came == ["bob", "ann", "tad", "cam"]
        # of the tenant that has two
        assert [copy.done() for copy in all_.tasks] == [False, True, False, False]


async def test_attack_one_member_keeps_no_colleague_from_copying() -> None:
    async with copies(6, 2, 2) as all_:
        for user in ("ann", "ann", "eve", "ann", "tad"):
            await all_.add(user, "red")
        await all_.add("bob", "blue")
        assert all_.came == ["ann", "ann", "eve", "bob"]
        all_.now += 2 * HELD_S
        await all_.steps()
        assert all_.came[4:] == ["tad"]  # in the place of ann's first, though her third waits longer
        assert [copy.done() for copy in all_.tasks] == [True, False, False, False, False, False]


async def test_a_late_user_does_not_wait_behind_the_whole_queue_of_another_tenant() -> None:
    async with copies(1, 0, 1) as all_:
        for user, tenant in (*[(f"user{n}", "red") for n in range(9)], ("bob", "blue")):
            await all_.add(user, tenant)
        all_.now += 2 * HELD_S
        await all_.steps()
        assert all_.came == ["user0", "bob"]


async def test_attack_who_blocks_their_threads_keeps_nobody_else_from_having_one() -> None:
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
