"""On PostgreSQL the lease of who is connected no more is free at once; of who was only cut off for a moment it is not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from sqlalchemy import text

from mlp_hub.domain.errors import Unavailable
from mlp_hub.service.state.leadership import NAME, Leadership, LeaseLost
from mlp_hub.store import Tx
from mlp_hub.store.database import Database
from mlp_hub.store.engine import WRITE_LOCK
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, until

LONG_S = 3600.0
"""Nobody waits so long in these tests: who takes the lease has it for another reason than time."""


class Two:
    """Two services of one database, each with its own connection."""

    def __init__(self, url: str) -> None:
        self.dbs = [Database(url), Database(url)]
        self.dbs[0].create_schema()
        self.first, self.second = (
            Leadership(db, time.time, length_s=LONG_S, poll_s=0.01, alone=False) for db in self.dbs
        )

    async def tries(self) -> str:
        """Let the second try once; return who has the lease then."""
        found = await self.dbs[1].write(lambda tx: self.second._try(tx, 0), fenced=False)
        return found.holder


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture
def url(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    name = f"dead{abs(hash(request.node.name)) % 10**8}"
    server.run("CREATE DATABASE {}", name)
    return server.url(name)


@asynccontextmanager
async def two_services(url: str) -> AsyncIterator[Two]:
    two = Two(url)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield two
    finally:
        for lease in (two.first, two.second):
            await lease.forget()
        for db in two.dbs:
            await asyncio.to_thread(db.close)


def write(tx: Tx) -> None:
    tx.settings.put("a", 1)


def cut_off(tx: Tx) -> None:
    tx.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


async def test_a_dead_services_lease_is_taken_without_waiting_for_its_end(url: str) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        assert await two.tries() == await two.tries() == two.first.holder
        await asyncio.to_thread(two.dbs[0].close)  # as the system does for a process that was killed
        await two.second.acquire_lease()
        assert two.second.epoch == two.first.epoch + 1


async def test_a_leader_cut_off_for_a_moment_continues_to_lead(url: str) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        with pytest.raises(Unavailable):
            await two.dbs[0].write(cut_off)
        assert await two.tries() == two.first.holder  # it was seen to be gone once
        await two.dbs[0].write(write)
        assert await two.tries() == await two.tries() == two.first.holder
        assert two.first.is_held


def end_others(tx: Tx) -> None:
    """End all sessions at this database but the one that asks, as its administrator can, or a restart does."""
    tx.connection.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    )


async def test_an_idle_leader_that_is_cut_off_connects_again_and_keeps_the_lease(
    url: str,
) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        lease = await two.dbs[1].read(lambda tx: tx.leases.get(NAME))
        await two.dbs[1].write(end_others, fenced=False)

        async def renewed() -> bool:
            return await two.dbs[1].read(lambda tx: tx.leases.get(NAME)) != lease

        await until(renewed)
        assert two.first.is_sure
        assert await two.tries() == await two.tries() == two.first.holder


async def test_a_leader_that_is_cut_off_is_not_sure_until_it_has_asked_the_database(url: str) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        await two.first.forget()  # it does not ask by itself
        assert two.first.is_sure
        await two.dbs[1].write(end_others, fenced=False)

        async def unsure() -> bool:
            return not two.first.is_sure

        await until(unsure)
        await two.first.ensure_held()
        assert two.first.is_sure
        await two.dbs[1].write(end_others, fenced=False)
        await until(unsure)
        await two.second.acquire_lease()
        with pytest.raises(LeaseLost):
            await two.first.ensure_held()


async def test_the_new_leader_is_not_taken_for_dead_when_the_hanging_old_one_ends(url: str) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        await two.dbs[1].write(
            lambda tx: tx.connection.execute(text("UPDATE lease SET expires_at = 0")), fenced=False
        )
        await two.second.acquire_lease()  # while the first is connected still
        with pytest.raises(LeaseLost):
            await two.dbs[0].write(write)
        for _ in range(3):
            found = await two.dbs[0].write(lambda tx: two.first._try(tx, 0), fenced=False)
            assert found.holder == two.second.holder
        await asyncio.to_thread(two.dbs[0].close)
        third = Database(url)
        try:
            lease = Leadership(third, time.time, length_s=LONG_S, poll_s=0.01, alone=False)
            for _ in range(3):
                found = await third.write(lambda tx: lease._try(tx, 0), fenced=False)
                assert found.holder == two.second.holder
        finally:
            await asyncio.to_thread(third.close)


async def test_a_service_that_no_longer_leads_stores_nothing(url: str) -> None:
    async with two_services(url) as two:
        await two.first.acquire_lease()
        await two.dbs[0].write(write)
        await two.dbs[1].write(
            lambda tx: tx.connection.execute(text("UPDATE lease SET expires_at = 0")), fenced=False
        )
        await two.second.acquire_lease()
        said = await asyncio.gather(
            *(two.dbs[0].write(lambda tx, n=n: tx.settings.put(f"late{n}", n)) for n in range(50)),
            return_exceptions=True,
        )
        assert {type(error) for error in said} == {LeaseLost}
        keys = [f"late{n}" for n in range(50)]
        assert await two.dbs[1].read(lambda tx: tx.settings.get_all(keys)) == {}
        assert not two.first.is_held


SHORT_S = 1.0
"""Length of leases of those who are followed because they are silent."""

HANGS = """
import asyncio, sys, time
from mlp_hub.service.state.leadership import Leadership
from mlp_hub.store.database import Database
from mlp_hub.store.engine import WRITE_LOCK

def hang(tx):
    tx.settings.put("late", 1)
    print("writes", flush=True)
    time.sleep(3600)

async def main():
    db = Database(sys.argv[1])
    lease = Leadership(db, time.time, length_s=float(sys.argv[2]), poll_s=0.01, alone=False)
    await lease.acquire_lease()
    try:
        await db.write(hang)
    except Exception as error:
        print(type(error).__name__, flush=True)

asyncio.run(main())
"""


async def test_one_that_hangs_in_the_middle_of_a_write_is_followed_and_nothing_of_that_is_kept(
    url: str,
) -> None:
    async with two_services(url) as two:
        command = [sys.executable, "-c", HANGS, url, str(SHORT_S)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as old:  # noqa: ASYNC220 - it is stopped, not waited for
            try:
                assert old.stdout is not None
                assert await asyncio.to_thread(old.stdout.readline) == "writes\n"
                old.send_signal(signal.SIGSTOP)
                next_one = Leadership(two.dbs[1], time.time, length_s=SHORT_S, poll_s=0.01, alone=False)
                await next_one.acquire_lease()
                await two.dbs[1].write(write)
                assert await two.dbs[1].read(lambda tx: tx.settings.get_all(["a", "late"])) == {"a": 1}
                await next_one.forget()
            finally:
                old.kill()


async def test_another_hanging_writer_does_not_block_a_takeover(url: str) -> None:
    async with two_services(url) as two:
        with psycopg.connect(url) as hangs:  # as a command that was stopped, which has no lease
            hangs.execute("SELECT pg_advisory_xact_lock(%s)", [WRITE_LOCK])
            await two.second.acquire_lease()
            with pytest.raises(psycopg.OperationalError):
                hangs.execute("SELECT 1")
