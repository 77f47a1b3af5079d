"""A whole hub whose databases, the platform's and JupyterHub's own, are PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.hubs.live_hub import LiveHub, live_hub, tenant_use
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import wait_for


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        for name in ("platform", "jupyterhub"):
            started.run("CREATE DATABASE {}", name)
        yield started


@pytest.fixture(scope="module")
def hub(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """One hub for all of them; who stops it or its database starts it again."""
    urls = {"MLP_DATABASE_URL": server.url("platform"), "MLP_HUB_DATABASE_URL": server.url("jupyterhub")}
    with live_hub(tmp_path_factory.mktemp("hub") / "home", **urls) as hub:
        hub.add_user("ann")
        yield hub


def test_up_on_a_running_hub_restarts_nothing_on_postgresql_either(hub: LiveHub) -> None:
    before = hub.pids()
    text = hub.up()
    assert "up to date" in text
    assert "already running" in text
    assert hub.pids() == before


def test_a_hub_on_postgresql_runs_jobs_and_forgets_nothing(hub: LiveHub, server: PostgresServer) -> None:
    code = "import mlp\nfor step in range(5): mlp.report(loss=1 / (step + 1), step=step)\nprint('done')"
    hub.submit("ann", "digits", code, cpu=0.5, ram=256)
    hub.wait_phase("ann", "digits", "finished")
    hub.submit("ann", "long", "import time; time.sleep(600)", cpu=0.5, ram=256)
    hub.wait_phase("ann", "long", "running")
    hub.token("admin")  # kept from here on: a service that was just killed gives none
    old = hub.kill("service")
    hub.wait_back("service", old)
    hub.down()
    hub.up()
    assert hub.job("ann", "long")["phase"] == "running"
    assert [p["values"]["loss"] for p in hub.points("ann", "digits")] == [1 / step for step in range(1, 6)]
    assert tenant_use(hub)["cpu"] == 0.5
    hub.ok("PUT", "/users/ann/jobs/long:cancel", "ann")
    hub.wait_phase("ann", "long", "cancelled")
    assert tenant_use(hub)["cpu"] == 0
    # both have their tables there, and nothing was written to SQLite on the way
    for name, query in (
        ("platform", 'SELECT name FROM "user"'),
        ("jupyterhub", "SELECT name FROM users"),
    ):
        with psycopg.connect(server.url(name)) as connection:
            assert ("ann",) in connection.execute(query).fetchall()
    assert [p.name for p in (hub.home / "db").glob("*.sqlite")] == []


@pytest.mark.whole
def test_commands_say_that_the_database_is_away_and_leave_what_needs_it(
    hub: LiveHub, server: PostgresServer
) -> None:
    hub.submit("ann", "stays", "import time; time.sleep(600)", cpu=0.5, ram=256)
    job = hub.wait_phase("ann", "stays", "running")
    headers = {"Authorization": f"Bearer {hub.token('ann')}"}

    def server_is_ready() -> bool:
        server = hub.http.get("/hub/api/users/ann", headers=headers).json()["servers"].get("")
        if server is None:  # not asked for yet, or given up by a hub that had no time for it
            hub.http.post("/hub/api/users/ann/server", headers=headers)
        return bool(server and server["ready"])

    wait_for(server_is_ready, every=0.5)
    before = hub.pids()
    server.take_away()
    health = "/services/mlp/api/v1/health"
    wait_for(lambda: "database" in {p["component"] for p in hub.http.get(health).json().get("problems", ())})

    done = hub.run("up", check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "The platform's database does not answer" in done.stderr
    assert {n: p for n, p in hub.pids().items() if n != "hub"} == {
        n: p for n, p in before.items() if n != "hub"
    }  # JupyterHub may give up by itself

    done = hub.run("down", "--jobs", "stop", check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "The running jobs cannot be suspended, and still run" in done.stderr
    assert "1 notebook server stopped" in done.stdout
    assert "1 job still running" in done.stdout
    assert set(hub.pids().values()) == {None}

    server.launch()
    hub.up()
    after = hub.wait_phase("ann", "stays", "running")
    assert (after["uid"], after["restarts"]) == (job["uid"], job["restarts"])
