"""A service that stands by tries to take over until it does, whatever fails meanwhile: nobody else may be there to do it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.platform import Platform
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.store import StoreUnavailable
from mlp_hub.store.database import Database
from mlp_language.message import msg
from support.rigs.platform_rig import FAST, node
from support.stores.postgres import postgres_server
from support.waiting import PATIENCE_S, until

POLICY = replace(FAST, lease_s=1.0)
ERRORS = [StoreUnavailable(msg("the database is away")), RuntimeError("who knows")]


class LeaderAndStandby:
    """One that leads, and one that waits for it."""

    def __init__(self, root: Path, url: str) -> None:
        self.dbs = [Database(url), Database(url)]
        self.dbs[0].create_schema()
        self.executor = SimulatedExecutor(
            [node("n1", 8)], time.time, Directories(root / "homes", root / "jobs")
        )
        self.first, self.second = (Platform(db, self.executor, time.time, POLICY) for db in self.dbs)

    async def begin(self) -> asyncio.Future[None]:
        """Return the start of the second once it waits for the first."""
        await self.first.start()
        starting = asyncio.ensure_future(self.second.start())

        async def waits() -> bool:
            return self.second.lease.waits_for == self.first.lease.holder

        await until(waits)
        return starting


@asynccontextmanager
async def leader_and_standby(root: Path, url: str = "") -> AsyncIterator[LeaderAndStandby]:
    both = LeaderAndStandby(root, url or str(root / "mlp.sqlite"))
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield both
    finally:
        await both.executor.close()
        for db in both.dbs:
            await asyncio.to_thread(db.close)


def failing(call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Return what raises this error twice, and then does what it should."""
    errors = [error, error]

    async def fails(*args: Any, **more: Any) -> Any:
        if errors:
            raise errors.pop()
        return await call(*args, **more)

    return fails


@pytest.mark.parametrize("error", ERRORS, ids=["away", "unforeseen"])
@pytest.mark.parametrize("what", ["look", "take", "load"])
async def test_one_that_has_only_ever_stood_by_tries_again(
    tmp_path: Path, what: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with leader_and_standby(tmp_path) as both:
        starting = await both.begin()
        if what == "load":
            both.second.board.load = failing(both.second.board.load, error)  # type: ignore[method-assign]
        elif what == "look":
            both.dbs[1].read = failing(both.dbs[1].read, error)  # type: ignore[method-assign]
        else:
            both.dbs[1].write = failing(both.dbs[1].write, error)  # type: ignore[method-assign]
        await both.first.stop()
        await starting
        assert both.second.leads
        await both.second.jobs.submit("ann", JobCreate(name="a", code="x", cpu=1.0, ram=100))
        assert caplog.text.count(str(error)) == 2
        await both.second.stop()


@pytest.mark.parametrize("error", ERRORS, ids=["away", "unforeseen"])
async def test_one_that_has_lost_the_lease_tries_again(tmp_path: Path, error: Exception) -> None:
    async with leader_and_standby(tmp_path) as both:
        starting = await both.begin()
        await both.first.lease.forget()  # it is stopped in its tracks
        await starting
        with pytest.raises(LeaseLost):
            await both.first.lease.confirm()  # by which it sees that it leads no more
        both.first.db.read = failing(both.first.db.read, error)  # type: ignore[method-assign]

        async def waits() -> bool:
            return both.first.lease.waits_for == both.second.lease.holder

        await until(waits)
        await both.second.stop()

        async def leads() -> bool:
            return both.first.leads

        await until(leads)
        await both.first.stop()


async def test_a_database_that_was_away_for_a_while_is_followed_by_one_that_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "away")

        caplog.set_level(logging.WARNING)
        async with leader_and_standby(tmp_path, server.url("away")) as both:
            starting = await both.begin()
            await both.first.lease.forget()  # it is stopped in its tracks
            await asyncio.to_thread(server.take_away)

            async def tried() -> bool:
                return caplog.text.count("this service cannot take over yet") > 2

            await until(tried)
            await asyncio.to_thread(server.launch)
            await starting
            assert both.second.leads
            await both.second.stop()
            await both.first.stop()


async def test_one_that_never_stood_by_says_at_once_what_is_missing(tmp_path: Path) -> None:
    async with leader_and_standby(tmp_path) as both:
        both.first.board.load = failing(both.first.board.load, ERRORS[0])  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable, match="is away"):
            await both.first.start()
        await both.first.stop()
