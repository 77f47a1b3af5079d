"""PgBouncer between service and PostgreSQL: by sessions it does no harm, by transactions the service refuses it with words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.service.state.leadership import Leadership
from mlp_hub.store import Database, Tx
from mlp_hub.store.errors import SharedSessions
from support.stores.pgbouncer import pgbouncer
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        started.run("CREATE DATABASE {}", "platform")
        db = Database(started.url("platform"))
        db.create_schema()
        db.close()
        yield started


def lead(db: Database) -> Leadership:
    return Leadership(db, time.time, length_s=3600, poll_s=0.01, alone=False)


def write(tx: Tx) -> None:
    tx.settings.put("a", 1)


def test_a_pooler_that_shares_sessions_is_refused_with_the_way_out(
    server: PostgresServer, tmp_path: Path
) -> None:
    with pgbouncer(server, "transaction", tmp_path) as port:
        db = Database(f"postgresql://postgres@127.0.0.1:{port}/platform", guard=True)
        try:
            with pytest.raises(SharedSessions, match="pool_mode = session"):
                db.open()
        finally:
            db.close()


async def test_in_session_mode_a_dead_leader_is_followed_at_once_as_without_a_pooler(
    server: PostgresServer, tmp_path: Path
) -> None:
    with pgbouncer(server, "session", tmp_path) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/platform"
        dbs = [Database(url, guard=True), Database(url, guard=True)]
        first, second = map(lead, dbs)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await first.acquire_lease()
                await dbs[0].write(write)
                await first.forget()
                await asyncio.to_thread(dbs[0].close)  # as the system does for a process that was killed
                await second.acquire_lease()
            assert second.epoch == first.epoch + 1
            await dbs[1].write(write)
        finally:
            await second.forget()
            for db in dbs:
                await asyncio.to_thread(db.close)
