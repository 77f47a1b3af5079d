"""Two platforms on one database: one decides, the other waits, and nothing is done twice whoever is killed when."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.jobs.job import HOLDING
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.platform import Platform
from mlp_hub.service.state.leadership import NAME, LeaseLost
from mlp_hub.store.database import Database
from support.rigs.platform_rig import FAST, node
from support.rigs.tasks import tasks_of
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, until

_numbers = itertools.count()
POLICY = replace(FAST, lease_s=2.5)


@dataclass
class Two:
    """Two platforms, each with its own connection, on one database and one executor."""

    dbs: list[Database]
    executor: SimulatedExecutor

    def platform(self, which: int) -> Platform:
        return Platform(self.dbs[which], self.executor, time.time, POLICY)


def kill(p: Platform) -> None:
    """Take a platform away as a power failure does; its lease stays."""
    p.board.stop()
    p.lease._held = False
    p.queue.close()
    for task in tasks_of(p):
        task.cancel()


@asynccontextmanager
async def two_services(url: str, root: Path) -> AsyncIterator[Two]:
    dbs = [Database(url), Database(url)]
    dbs[0].create_schema()
    executor = SimulatedExecutor(
        [node("n1", 3), node("n2", 3)], time.time, Directories(root / "homes", root / "jobs")
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield Two(dbs, executor)
    finally:
        await executor.close()
        for db in dbs:
            await asyncio.to_thread(db.close)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return str(tmp_path / "mlp.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"lease{next(_numbers)}"
    server.run("CREATE DATABASE {}", name)
    return server.url(name)


def ask(name: str, **sim: float) -> JobCreate:
    return JobCreate(name=name, code="x", cpu=1.0, ram=100, env={f"SIM_{k}": str(v) for k, v in sim.items()})


async def test_the_second_platform_waits_and_continues_where_the_killed_first_stopped(
    url: str, tmp_path: Path
) -> None:
    async with two_services(url, tmp_path) as two:
        rng = random.Random(4)
        first, second = two.platform(0), two.platform(1)
        await first.start()
        waiting = asyncio.ensure_future(second.start())
        for i in range(15):
            await first.jobs.submit("ann", ask(f"j{i}", DURATION=rng.uniform(0.05, 0.3)))

        async def waits() -> bool:
            return second.lease.waits_for == first.lease.holder

        await until(waits, what="the second to wait for the first")
        assert not waiting.done()
        kill(first)
        await waiting
        assert (await two.dbs[1].read(lambda tx: tx.leases.get(NAME))).holder == second.lease.holder  # type: ignore[union-attr]

        async def all_done() -> bool:
            held, active = await two.dbs[1].read(
                lambda tx: ({r.id for r in tx.ledger.held(time.time(), applier="jm")}, tx.jobs.active(SYSTEM))
            )
            assert held == {j.attempt for j in active if j.phase in HOLDING}
            return not active

        await until(all_done)
        jobs, _ = await second.jobs.list(SYSTEM, "ann")
        assert {j.phase for j in jobs} == {"finished"}
        assert len(two.executor.starts) == len(set(two.executor.starts)) == 15
        assert await two.dbs[1].read(lambda tx: tx.ledger.in_use("default", time.time())) == ZERO
        await second.stop()


async def test_a_leader_that_was_silent_for_too_long_changes_nothing_more_and_becomes_a_standby(
    url: str, tmp_path: Path
) -> None:
    async with two_services(url, tmp_path) as two:
        first, second = two.platform(0), two.platform(1)
        await first.start()
        await first.jobs.submit("ann", ask("early", DURATION=0.1))
        first.lease._renewing.cancel()  # it is stopped in its tracks, as by SIGSTOP
        await second.start()
        with pytest.raises(LeaseLost, match="is on standby"):
            await first.jobs.submit("ann", ask("late"))
        await second.jobs.submit("ann", ask("next", DURATION=0.1))

        async def done() -> bool:
            return (await second.jobs.get(SYSTEM, "ann", "next")).phase == "finished"

        await until(done)
        assert (await second.jobs.get(SYSTEM, "ann", "early")).phase == "finished"
        assert len(two.executor.starts) == len(set(two.executor.starts)) == 2
        await second.stop()  # gives the lease back, so that the other need not wait

        async def leads() -> bool:
            found = await two.dbs[0].read(lambda tx: tx.leases.get(NAME))
            return found is not None and found.holder == first.lease.holder and first.lease.is_held

        await until(leads)
        await first.jobs.submit("ann", ask("last", DURATION=0.05))

        async def last() -> bool:
            return (await first.jobs.get(SYSTEM, "ann", "last")).phase == "finished"

        await until(last)
        await first.stop()


async def test_a_returning_leader_knows_changes_of_tenants_and_users_by_the_other(
    url: str, tmp_path: Path
) -> None:
    async with two_services(url, tmp_path) as two:
        first, second = two.platform(0), two.platform(1)
        await first.start()
        await first.tenants.create(TenantCreate(name="red", network="outbound"))
        await first.tenants.set_member("red", "ann")
        asked = structs.replace(ask("early"), tenant="red")
        assert (await first.jobs.offer("ann", asked)).network == "outbound"
        await first.users.choose_language("ann", "en")
        assert await first.users.language_of("ann") == "en"
        first.lease._renewing.cancel()
        await second.start()
        await second.tenants.update("red", TenantUpdate(network="none"))
        await second.users.choose_language("ann", "zh-CN")
        await second.tenants.create(TenantCreate(name="blue"))
        await second.tenants.set_member("blue", "ann")
        await second.stop()

        async def leads() -> bool:
            return first._leads

        with contextlib.suppress(LeaseLost):
            await first.jobs.submit("ann", asked)  # by which it sees that it leads no more
        await until(leads)
        assert (await first.jobs.offer("ann", asked)).network == "none"
        assert await first.users.language_of("ann") == "zh-CN"
        assert (await first.jobs.offer("ann", structs.replace(asked, tenant="blue"))).tenant == "blue"
        await first.stop()


async def test_a_returning_leader_accepts_jobs_of_a_tenant_created_by_the_other(
    url: str, tmp_path: Path
) -> None:
    async with two_services(url, tmp_path) as two:
        first, second = two.platform(0), two.platform(1)
        await first.start()
        await first.jobs.submit("ann", ask("before", DURATION=0.1))
        waiting = asyncio.ensure_future(second.start())
        first.lease._renewing.cancel()  # it is stopped in its tracks
        await waiting
        with contextlib.suppress(LeaseLost):
            await first.lease.confirm()
        await second.tenants.create(TenantCreate(name="red"))
        await second.tenants.set_member("red", "ann")
        await second.stop()

        async def leads() -> bool:
            return first._leads

        await until(leads, what="the first to lead again")
        taken = await first.jobs.submit("ann", structs.replace(ask("after", DURATION=0.1), tenant="red"))
        assert taken.tenant == "red"
        await first.stop()
