"""A whole hub whose databases, the platform's and JupyterHub's own, are PostgreSQL's."""

from __future__ import annotations

from pathlib import Path

import psycopg

from live_hub import live_hub, tenant_use
from postgres import postgres_server


def test_a_hub_on_postgresql_runs_jobs_and_forgets_nothing(tmp_path: Path) -> None:
    with postgres_server() as server:
        for name in ("platform", "jupyterhub"):
            server.run("CREATE DATABASE {}", name)
        urls = {
            "MLP_DATABASE_URL": server.url("platform"),
            "MLP_HUB_DATABASE_URL": server.url("jupyterhub"),
        }
        with live_hub(tmp_path / "home", **urls) as hub:
            hub.add_user("ann")
            code = (
                "import mlp\nfor step in range(5): mlp.report(loss=1 / (step + 1), step=step)\nprint('done')"
            )
            hub.submit("ann", "digits", code, cpu=0.5, ram=256)
            hub.wait_phase("ann", "digits", "finished")
            hub.submit("ann", "long", "import time; time.sleep(600)", cpu=0.5, ram=256)
            hub.wait_phase("ann", "long", "running")
            old = hub.kill("service")
            hub.wait_back("service", old)
            hub.down()
            hub.up()
            assert hub.job("ann", "long")["phase"] == "running"
            assert [p["values"]["loss"] for p in hub.points("ann", "digits")] == [
                1,
                1 / 2,
                1 / 3,
                1 / 4,
                1 / 5,
            ]
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
            assert [p.name for p in (tmp_path / "home" / "db").glob("*.sqlite")] == []
