"""Whoever hangs, at either end of a connection or in another process, keeps nobody waiting for longer than is said."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from mlp_hub.store import Database, StoreUnavailable, bounds, engine
from mlp_hub.store.bounds import Bounds, bind, bounded
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        started.run("CREATE DATABASE {}", "bounded")
        yield started


def write(tx: object) -> None:
    tx.settings.put("a", 1)  # type: ignore[attr-defined]


def test_every_session_of_postgresql_has_its_bounds(server: PostgresServer) -> None:
    db = Database(server.url("bounded"))
    db.create_schema()
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")

    def shown(tx: object) -> list[str]:
        connection = tx.connection  # type: ignore[attr-defined]
        return [str(connection.exec_driver_sql(f"SHOW {name}").scalar_one()) for name in names]

    assert asyncio.run(db.write(shown)) == ["3s", "15s", "8s"]
    assert db.read_now(shown) == ["3s", "30s", "2min"]
    with db.begin() as tx:  # a command is not taken over by anybody, so it outwaits a holder that hangs
        assert shown(tx) == ["12s", "15s", "8s"]
    db.close()
    plain = engine.plain_engine(engine.parse(server.url("bounded")), bounds.MIGRATION)
    with plain.connect() as connection:
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "1min"
    plain.dispose()


def test_the_line_is_watched_unless_the_url_says_how() -> None:
    url = engine.parse("postgresql://u@db/x?tcp_user_timeout=1")
    found = bounded(url).query
    assert (found["tcp_user_timeout"], found["connect_timeout"], found["keepalives_idle"]) == ("1", "5", "5")


def test_a_server_that_takes_everything_and_answers_nothing_is_given_up(server: PostgresServer) -> None:
    """As a machine that is frozen or a proxy that hangs, which acknowledge what they never read."""
    silent = threading.Event()
    listens = socket.create_server(("127.0.0.1", 0))

    def copy(one: socket.socket, other: socket.socket) -> None:
        with one:
            while data := one.recv(1 << 16):
                if not silent.is_set():
                    other.sendall(data)
            with contextlib.suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        near, _ = listens.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(server.sockets / ".s.PGSQL.5432"))
        back = threading.Thread(target=copy, args=(far, near))
        back.start()
        copy(near, far)
        back.join()

    line = threading.Thread(target=accept)
    line.start()
    url = engine.parse(f"postgresql://postgres@127.0.0.1:{listens.getsockname()[1]}/bounded")
    found = bind(create_engine(bounded(url)), Bounds(lock_s=1, statement_s=1, idle_s=600))
    with closing(listens), found.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
        silent.set()
        with pytest.raises(DBAPIError, match="has not answered for 6 s") as caught:
            connection.exec_driver_sql("SELECT 2")
        assert caught.value.connection_invalidated
    found.dispose()
    line.join()


async def test_a_connection_that_was_ended_while_nobody_used_it_fails_no_write(
    server: PostgresServer,
) -> None:
    db = Database(server.url("bounded"))
    await db.write(write)
    with psycopg.connect(server.url("postgres"), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'bounded'")
    await db.write(write)
    db.close()


async def test_a_writer_whose_listener_fails_writes_on(server: PostgresServer) -> None:
    told = threading.Event()

    def cut() -> None:
        told.set()
        raise RuntimeError("Event loop is closed")

    db = Database(server.url("bounded"))
    db.let_pass(None, cut)
    await db.write(write)
    with psycopg.connect(server.url("postgres"), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'bounded'")
    assert await asyncio.to_thread(told.wait, PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        await db.write(write)
    db.close()


async def test_a_writer_blocked_by_another_process_gets_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_MS", 10)
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    await db.write(write)
    with closing(sqlite3.connect(tmp_path / "mlp.sqlite", isolation_level=None)) as hangs:
        hangs.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process has locked the database"):
            await db.write(write)
    await db.write(write)
    db.close()
