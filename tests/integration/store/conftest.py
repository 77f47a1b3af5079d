"""The store on both databases: SQLite always, PostgreSQL from its wheel on a UNIX socket."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.store import Database, migrate
from support.stores.postgres import PostgresServer, postgres_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "template")
        migrate.upgrade(server.url("template"))
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the migrated tables."""
    made = tmp_path_factory.mktemp("template") / "mlp.sqlite"
    migrate.upgrade(f"sqlite:///{made}")
    with contextlib.closing(sqlite3.connect(made)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the file alone is the database
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/mlp.sqlite"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"empty{next(_numbers)}"
    server.run("CREATE DATABASE {}", name)
    yield server.url(name)
    server.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with the migrated tables."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "mlp.sqlite")
        yield f"sqlite:///{tmp_path}/mlp.sqlite"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"test{next(_numbers)}"
    server.run("CREATE DATABASE {} TEMPLATE {}", name, "template")
    yield server.url(name)
    server.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """The database as the service has it."""
    database = Database(url, guard=True)
    yield database
    database.close()
