"""The store on both databases: SQLite always, PostgreSQL from its wheel on a UNIX socket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.store import Database, migrate
from postgres import PostgresServer, postgres_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "template")
        migrate.upgrade(server.url("template"))
        yield server


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
        found = f"sqlite:///{tmp_path}/mlp.sqlite"
        migrate.upgrade(found)
        yield found
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
