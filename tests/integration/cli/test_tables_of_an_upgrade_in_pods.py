"""Tables that services of the version before cannot use, where parts are pods: those end first, and the hub's pod decides when."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import httpx
import psycopg
import pytest

from mlp_hub.service.state.leadership import Leadership
from mlp_hub.store import Database, migrate
from support.hubs.hub_parts import HubParts
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, wait_for

BEFORE = "0052"
HEALTH = "/services/mlp/api/v1/health"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def parts(server: PostgresServer, tmp_path: Path) -> Iterator[HubParts]:
    name = tmp_path.name[-20:]
    for each in (f"platform_{name}", f"hub_{name}"):
        server.run("CREATE DATABASE {}", each)
    made = HubParts(tmp_path, server, name)
    try:
        yield made
    finally:
        made.end()


def probe(parts: HubParts) -> int:
    """Ask the service's pod as the cluster does."""
    try:
        return httpx.get(f"http://{parts.env['MLP_SERVICE_LISTEN_TENANTS']}{HEALTH}", timeout=10).status_code
    except httpx.TransportError:
        return 0


def change(url: str, statement: LiteralString) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement)


async def test_the_tables_are_made_once_the_services_before_have_ended_and_the_new_one_is_ready_all_the_time(
    parts: HubParts,
) -> None:
    url = parts.env["MLP_DATABASE_URL"]
    parts.start("service")
    wait_for(lambda: probe(parts) == 503, message="for the probes to be answered without tables")
    migrate.upgrade(url, BEFORE)
    # as the cluster sees it, so that it ends the pods before
    wait_for(lambda: probe(parts) == 200, message="for a service that waits to be ready")
    db = Database(url)
    before = Leadership(db, time.time, length_s=3600, poll_s=0.01, alone=False, of_tables=lambda _: None)
    await before.acquire_lease()
    done: list[subprocess.CompletedProcess[str]] = []

    def set_up() -> None:
        done.append(parts.setup())

    setup = threading.Thread(target=set_up)
    setup.start()
    try:
        # a program that leads learns nothing of it, and writes on
        said = wait_for((parts.root / "service.log").read_text)
        assert "The services of the version before end" in said
        for _ in range(20):
            await db.write(lambda tx: tx.settings.put("still", 1))
        assert (migrate.current(url), done) == (BEFORE, [])
    finally:
        await before.give_up()
        db.close()
    setup.join(PATIENCE_S)
    assert done[0].returncode == 0, done[0].stderr
    assert "waiting until those have ended" in done[0].stdout
    assert migrate.current(url) == migrate.head()
    parts.start("hub")
    parts.start("proxy")
    wait_for(lambda: parts.status("/services/mlp/api/v1/ready") == 200, message="for the new service to lead")


def test_a_service_of_an_older_version_than_its_tables_ends_with_words(
    parts: HubParts,
) -> None:
    url = parts.env["MLP_DATABASE_URL"]
    migrate.upgrade(url)
    change(url, "UPDATE alembic_version SET version_num = '9999'")
    change(url, "UPDATE setting SET value = '\"9999\"' WHERE key = 'tables.works_from'")
    parts.start("service")
    assert parts.running.pop("service").wait(PATIENCE_S) == 1
    assert "newer than this version's" in (parts.root / "service.log").read_text()
    # what only was added is no hindrance: a rollback needs no restore
    change(url, "UPDATE setting SET value = '\"0053\"' WHERE key = 'tables.works_from'")
    assert parts.setup().returncode == 0
    parts.start("service")
    wait_for(lambda: probe(parts) == 200)
