"""What a server holds is given back, whichever step of taking it a crash cut off."""

from __future__ import annotations

import asyncio

import pytest

from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.holding import CONFIRMED, NOTHING, TRIED, ServerHolding
from mlp_spawner.quota.service_client import Amount

AMOUNT = Amount("red", 0.2, 1024)


class Ledger:
    """The service's ledger in memory; `fail` dies before or after the nth call took effect."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.steps: list[str] = []
        self.die_at: tuple[int, str] | None = None
        self.full = False
        self.making = 0  # so many tries are told that room is being made
        self.after = 5.0

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if self.die_at == (len(self.steps), "before"):
            raise SystemExit

    def _done(self) -> None:
        if self.die_at == (len(self.steps), "after"):
            raise SystemExit

    async def try_hold(self, key, user, holder, amount):
        self._step("try")
        if self.full and key not in self.rows:
            raise ServiceRefused("red may use 1024 MiB", "ExceedsMaxQuota")
        if self.making:
            self.making -= 1
            self.rows[key] = "pending"
            raise ServiceRefused("blue takes back its own at 09:37", "WaitingForPreempted", self.after)
        self.rows[key] = "tried"
        self._done()

    async def confirm(self, key):
        self._step("confirm")
        if key in self.rows:
            self.rows[key] = "confirmed"
        self._done()

    async def cancel(self, key):
        self._step("cancel")
        if self.rows.get(key) == "confirmed":
            raise ServiceRefused("it is confirmed", "WrongState")
        self.rows.pop(key, None)
        self._done()

    async def release(self, key):
        self._step("release")
        if self.rows.get(key) == "tried":
            raise ServiceRefused("it is only tried", "WrongState")
        self.rows.pop(key, None)
        self._done()


@pytest.fixture
def ledger():
    return Ledger()


@pytest.fixture
def holding(ledger):
    return ServerHolding("ann/", ledger)


async def test_a_server_takes_keeps_and_gives_back(holding, ledger):
    await holding.hold_amount("ann", "ann's notebook", AMOUNT)
    assert ledger.rows == {"ann/": "tried"}
    await holding.keep()
    assert ledger.rows == {"ann/": "confirmed"}
    await holding.give_back()
    await holding.give_back()
    assert ledger.rows == {}
    assert ledger.steps == ["try", "confirm", "release"]


def test_a_refusal_leaves_nothing_behind(holding, ledger):
    ledger.full = True
    with pytest.raises(ServiceRefused):
        asyncio.run(holding.hold_amount("ann", "ann's notebook", AMOUNT))
    assert holding.step == NOTHING


@pytest.mark.parametrize("at", range(1, 4))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_step_heals_at_the_next_look(holding, ledger, at, when):
    async def life():
        await holding.hold_amount("ann", "ann's notebook", AMOUNT)
        await holding.keep()
        await holding.give_back()

    ledger.die_at = (at, when)
    with pytest.raises(SystemExit):
        asyncio.run(life())
    ledger.die_at = None
    asyncio.run(holding.give_back())
    assert ledger.rows == {}
    assert holding.step == NOTHING


def test_an_unreleased_holding_is_remembered_while_the_service_is_away(holding, ledger):
    async def story():
        await holding.hold_amount("ann", "ann's notebook", AMOUNT)
        await holding.keep()

    asyncio.run(story())

    async def away(key):
        raise ServiceUnreachable("no")

    there, ledger.release = ledger.release, away
    with pytest.raises(ServiceUnreachable):
        asyncio.run(holding.give_back())
    assert holding.step == CONFIRMED
    ledger.release = there
    asyncio.run(holding.give_back())
    assert ledger.rows == {}


async def test_a_new_start_first_gives_back_what_the_last_one_held(holding, ledger):
    await holding.hold_amount("ann", "ann's notebook", AMOUNT)
    await holding.keep()
    await holding.hold_amount("ann", "ann's notebook", Amount("blue", 1, 100))
    assert ledger.steps == ["try", "confirm", "release", "try"]


def test_room_that_is_being_made_is_waited_for_and_each_wait_is_told(holding, ledger, monkeypatch):
    monkeypatch.setattr("mlp_spawner.quota.holding.ASK_EVERY_S", 0.01)
    ledger.making, told = 3, []
    asyncio.run(holding.hold_amount("ann", "ann's notebook", AMOUNT, patience_s=30, waits=told.append))
    assert ledger.rows == {"ann/": "tried"}
    assert ledger.steps == ["try"] * 4
    assert told == ["blue takes back its own at 09:37"] * 3


def test_a_server_with_too_long_a_wait_gives_up_its_place_at_once_and_shows_the_services_reason(
    holding, ledger
):
    ledger.making, ledger.after = 9, 600.0
    with pytest.raises(ServiceRefused, match="blue takes back its own at 09:37") as caught:
        asyncio.run(holding.hold_amount("ann", "ann's notebook", AMOUNT, patience_s=60))
    assert caught.value.reason == "WaitingForPreempted"
    assert ledger.rows == {}
    assert ledger.steps == ["try", "cancel"]
    assert holding.step == NOTHING


def test_patience_ends_and_its_place_is_given_up(holding, ledger, monkeypatch):
    monkeypatch.setattr("mlp_spawner.quota.holding.ASK_EVERY_S", 0.01)
    ledger.making, ledger.after = 10**6, 0.05
    with pytest.raises(ServiceRefused):
        asyncio.run(holding.hold_amount("ann", "ann's notebook", AMOUNT, patience_s=0.06))
    assert ledger.rows == {}
    assert holding.step == NOTHING


def test_a_hub_that_dies_while_it_waits_for_room_gives_its_place_up_later(holding, ledger):
    ledger.making = 10**6

    async def life():
        task = asyncio.create_task(holding.hold_amount("ann", "ann's notebook", AMOUNT, patience_s=30))
        await asyncio.sleep(0.05)
        assert ledger.rows == {"ann/": "pending"}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(life())
    assert holding.step == TRIED
    asyncio.run(holding.give_back())
    assert ledger.rows == {}
