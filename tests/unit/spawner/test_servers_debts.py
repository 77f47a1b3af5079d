"""What ended servers still hold is given back later, and what starting ones hold is left alone."""

from __future__ import annotations

import asyncio
import logging
import os
import time

import pytest

from mlp_spawner import server
from mlp_spawner.errors import ServiceUnreachable
from mlp_spawner.holding import Holding
from mlp_spawner.service import Amount


class Ledger:
    def __init__(self) -> None:
        self.released: list[str] = []
        self.away = 1

    async def release(self, key, amount):
        if self.away:
            self.away -= 1
            raise ServiceUnreachable("no")
        self.released.append(key)

    async def cancel(self, key):
        raise AssertionError("nothing here is only tried")


@pytest.fixture
def no_waiting(monkeypatch):
    real = asyncio.sleep
    naps = []

    async def nap(seconds):
        naps.append(seconds)
        if len(naps) > 5:
            raise asyncio.CancelledError
        await real(0)

    monkeypatch.setattr(server.asyncio, "sleep", nap)
    return naps


def test_debts_are_paid_once_the_service_is_back(tmp_path, no_waiting):
    ledger = Ledger()
    for user, age in (("ann", 1000), ("bob", 0)):
        holding = Holding(tmp_path / user / "-.holding.json", f"{user}/", ledger)
        holding._write("confirmed", Amount("red", 0.2, 1024))
        then = time.time() - age
        os.utime(holding.file, (then, then))

    async def story():
        with pytest.raises(asyncio.CancelledError):
            await server._settle(tmp_path, ledger, logging.getLogger("test"))

    asyncio.run(story())
    # bob's server may be about to start
    assert ledger.released == ["ann/"]
    assert not (tmp_path / "ann" / "-.holding.json").exists()
    assert (tmp_path / "bob" / "-.holding.json").exists()


def test_without_debts_nobody_keeps_looking(tmp_path, no_waiting):
    asyncio.run(server._settle(tmp_path, Ledger(), logging.getLogger("test")))
    assert no_waiting == [10]
