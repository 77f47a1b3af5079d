"""Revisions that only add: services of the version before work on, and may lead after them; after others none of them leads."""

from __future__ import annotations

import ast
import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mlp_hub.cli.state import database
from mlp_hub.service.state.leadership import Leadership
from mlp_hub.store import Database, Tx, WrongSchema, migrate
from mlp_hub.store.tables import REVISION, WORKS_FROM
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S

MORE = '''"""One column more."""
import sqlalchemy as sa
from alembic import op

revision = "9001"
down_revision = "{before}"
{marked}

def upgrade() -> None:
    op.add_column("job", sa.Column("more", sa.Text()))
'''
ADDING = {"add_column", "create_table", "create_index"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture
def url(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    name = f"beside{abs(hash(request.node.name)) % 10**8}"
    server.run("CREATE DATABASE {}", name)
    return server.url(name)


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Directory of the migrations of a version that comes after this one."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "MIGRATIONS", folder)
    monkeypatch.setattr(database, "_versions", lambda *_: folder / "versions")
    yield folder / "versions"
    database._chain.cache_clear()


def add(versions: Path, *, adds_only: bool) -> None:
    marked = "ADDS_ONLY = True" if adds_only else ""
    (versions / "9001_more.py").write_text(MORE.format(before=REVISION, marked=marked))


def write(tx: Tx) -> None:
    tx.settings.put("written", time.time())


def lead(db: Database) -> Leadership:
    return Leadership(db, time.time, length_s=3600, poll_s=0.01, alone=False)


async def test_no_write_fails_while_columns_are_added_and_who_knows_nothing_of_them_leads_on(
    url: str, next_version: Path
) -> None:
    migrate.upgrade(url)
    add(next_version, adds_only=True)
    assert migrate.adds_only(REVISION)
    db = Database(url, guard=True)
    first, second = lead(db), lead(db)
    changed = threading.Event()

    def change() -> None:
        migrate.upgrade_beside(url)
        changed.set()

    changing = threading.Thread(target=change)
    try:
        await first.acquire_lease()
        with psycopg.connect(url) as reader:  # of a long answer: the first tries find the table in use
            reader.execute("SELECT count(*) FROM job")
            changing.start()
            until = time.monotonic() + 3 * migrate.BESIDE_AGAIN_S
            while time.monotonic() < until:
                await db.write(write)
            assert not changed.is_set()
        while not changed.is_set():
            await db.write(write)
        await db.write(write)
        db.check_schema()
        await first.give_up()
        async with asyncio.timeout(PATIENCE_S):
            await second.acquire_lease()
        assert second.epoch == first.epoch + 1
    finally:
        changing.join(PATIENCE_S)
        for lease in (first, second):
            await lease.forget()
        db.close()
    found = database.Tables("", "9001", REVISION, frozenset({REVISION}), WORKS_FROM)
    assert found.fits


async def test_nobody_of_the_version_before_leads_on_tables_that_were_changed(
    url: str, next_version: Path
) -> None:
    migrate.upgrade(url)
    add(next_version, adds_only=False)
    assert not migrate.adds_only(REVISION)
    db = Database(url, guard=True)
    before = lead(db)
    try:
        db.open()
        migrate.upgrade(url)
        with pytest.raises(WrongSchema, match="the tables are of revision 9001"):
            await before.acquire_lease()
        with pytest.raises(WrongSchema, match="a newer version of MLP Hub made it"):
            db.check_schema()
    finally:
        await before.forget()
        db.close()


@pytest.mark.parametrize("adds_only", [True, False])
def test_the_operators_commands_know_it_without_running_a_migration(
    next_version: Path, adds_only: bool
) -> None:
    add(next_version, adds_only=adds_only)
    looked = database.Tables("", REVISION, "9001", frozenset({REVISION, "9001"}))
    assert database.adds_only(looked) is adds_only
    assert database.adds_only(database.Tables("", "9001", "9001", frozenset({"9001"})))


def test_revisions_that_are_marked_so_only_add_and_the_tables_say_from_which_on() -> None:
    assert migrate.works_from(str(migrate.head())) == WORKS_FROM
    for path in (migrate.MIGRATIONS / "versions").glob("*.py"):
        tree = ast.parse(path.read_text())
        if not any(
            isinstance(node, ast.Assign) and ast.unparse(node) == "ADDS_ONLY = True" for node in tree.body
        ):
            continue
        (upgrade,) = (
            node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "upgrade"
        )
        done = {
            node.func.attr
            for node in ast.walk(upgrade)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "op"
        }
        assert done <= ADDING, (
            f"{path.name} does {done - ADDING}, which programs of the version before may not survive"
        )
