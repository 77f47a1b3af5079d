"""Who waits for what is done one at a time: whoever had much of it lately lets others go first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.support.costly import HALF_LIFE_S, CostlyTurns
from mlp_hub.service.support.limits import OFFERS_OF_USER
from mlp_language.message import Message, msg


class Story:
    """Users who take turns of some seconds each; `order` is who had them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.line = CostlyTurns(clock=lambda: self.now)
        self.order: list[str] = []

    async def take(self, user: str, seconds: float = 1.0) -> None:
        async with self.line.turn(user):
            self.order.append(user)
            await settled()
            self.now += seconds

    def asks(self, user: str, seconds: float = 1.0) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.take(user, seconds))


async def settled() -> None:
    """Let everything go on as far as it goes."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_user_waits_only_for_the_turn_in_progress_of_users_who_had_many() -> None:
    async def story() -> list[str]:
        s = Story()
        for flooder in ("mal", "max", "moe"):
            await s.take(flooder)
        s.order.clear()
        flood = [s.asks(user) for _ in range(8) for user in ("mal", "max", "moe")]
        await asyncio.sleep(0)
        assert s.order == ["mal"]
        victims = [s.asks("ann"), s.asks("bob")]
        await asyncio.gather(*flood, *victims)
        assert sorted(s.order[3:]) == sorted(["mal"] * 7 + ["max"] * 8 + ["moe"] * 8)
        return s.order[:3]

    assert asyncio.run(story()) == ["mal", "ann", "bob"]


def test_a_user_who_had_more_waits_for_one_turn_of_a_user_who_had_less_and_not_for_two() -> None:
    async def story() -> list[str]:
        s = Story()
        await s.take("vic", 5.0)
        s.order.clear()
        flood = [s.asks("mal", 0.1) for _ in range(8)]
        await asyncio.sleep(0)
        victim = s.asks("vic")
        more = [s.asks("max", 0.1) for _ in range(8)]
        await asyncio.gather(*flood, *more, victim)
        return s.order[:4]

    assert asyncio.run(story()) == ["mal", "max", "vic", "mal"]


def test_each_of_equals_has_a_turn_before_one_has_another() -> None:
    async def story() -> list[str]:
        s = Story()
        await asyncio.gather(*(s.asks(user) for user in ("ann", "ann", "ann", "bob", "bob", "kim")))
        return s.order

    assert asyncio.run(story()) == ["ann", "bob", "kim", "ann", "bob", "ann"]


def test_turns_that_took_long_weigh_more_than_many_short_ones() -> None:
    async def story() -> list[str]:
        s = Story()
        for _ in range(4):
            await s.take("bob", 0.5)
        await s.take("ann", 4.0)
        s.order.clear()
        await asyncio.gather(s.asks("kim"), s.asks("ann"), s.asks("bob"))
        return s.order

    assert asyncio.run(story()) == ["kim", "bob", "ann"]


def test_several_go_side_by_side_and_the_next_waits_or_is_refused() -> None:
    async def story(full: Message | None) -> tuple[int, list[object]]:
        turns, go, begun = CostlyTurns(2, full=full), asyncio.Event(), []

        async def take(user: str) -> None:
            async with turns.turn(user):
                begun.append(user)
                await go.wait()

        tasks = [asyncio.ensure_future(take(user)) for user in ("ann", "bob", "kim")]
        await settled()
        at_once = len(begun)
        go.set()
        return at_once, await asyncio.gather(*tasks, return_exceptions=True)

    assert asyncio.run(story(None)) == (2, [None, None, None])
    at_once, ends = asyncio.run(story(msg("{count} others are under way")))
    assert (at_once, ends[:2]) == (2, [None, None])
    assert isinstance(ends[2], Refused)
    assert str(ends[2].msg) == "2 others are under way"


def test_costs_from_long_ago_are_forgotten() -> None:
    async def story() -> list[str]:
        s = Story()
        await s.take("ann", 60.0)
        s.now += 30 * HALF_LIFE_S
        await s.take("kim", 0.0)
        s.order.clear()
        await asyncio.gather(s.asks("kim"), s.asks("ann"), s.asks("bob"))
        return s.order

    assert asyncio.run(story()) == ["kim", "ann", "bob"]


@pytest.mark.parametrize("given", [False, True])
def test_a_user_who_leaves_the_line_delays_nobody(given: bool) -> None:
    """Also who goes in the moment in which the turn is given to them."""

    async def story() -> list[str]:
        s = Story()
        gate = asyncio.Event()

        async def hold() -> None:
            async with s.line.turn("mal"):
                await gate.wait()
            if given:
                assert s.order == [], "the turn is given and not begun"
                gone.cancel()

        holding = asyncio.ensure_future(hold())
        await asyncio.sleep(0)
        gone, stays = s.asks("ann"), s.asks("bob")
        await settled()
        if not given:
            gone.cancel()
        gate.set()
        await asyncio.gather(holding, stays)
        assert gone.cancelled()
        await s.take("kim")
        return s.order

    assert asyncio.run(story()) == ["bob", "kim"]


def test_a_turn_that_fails_gives_the_next_one() -> None:
    async def story() -> list[str]:
        s = Story()
        with pytest.raises(ZeroDivisionError):
            async with s.line.turn("ann"):
                raise ZeroDivisionError
        await s.take("bob")
        return s.order

    assert asyncio.run(story()) == ["bob"]


class _Recorded(Forecasts):
    """Forecasts that take a while and tell in which order they were made."""

    def __init__(self) -> None:
        nobody = cast("Any", None)
        super().__init__(nobody, nobody, nobody, lambda: 0.0)
        self.order: list[str] = []

    async def _offer(self, spec: Any, uid: str, now: float) -> Any:
        del uid, now
        self.order.append(spec.user)
        await asyncio.sleep(0.01)
        return None, {}


def test_offers_to_one_user_keep_others_waiting_for_one_of_them_at_most() -> None:
    async def story() -> tuple[list[str], list[Any]]:
        answers = _Recorded()

        def ask(user: str) -> asyncio.Task[Any]:
            spec = cast("Any", SimpleNamespace(user=user))
            return asyncio.ensure_future(answers.offer(spec, "uid"))

        flood = [ask("mal") for _ in range(OFFERS_OF_USER + 1)]
        await asyncio.sleep(0)
        victim = ask("vic")
        results = await asyncio.gather(*flood, victim, return_exceptions=True)
        return answers.order, results

    order, results = asyncio.run(story())
    assert order == ["mal", "vic", *["mal"] * (OFFERS_OF_USER - 1)]
    assert [type(r) for r in results if isinstance(r, BaseException)] == [Refused]
