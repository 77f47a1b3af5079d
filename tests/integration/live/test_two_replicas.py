"""Two services on one PostgreSQL: whichever of them is killed or stopped in its tracks, the other goes on with all there is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from mlp_hub.cli.http import HttpAnswer, request
from support.hubs.hub_stack import Browser
from support.hubs.live_hub import LiveHub, live_hub, tenant_use
from support.stores.postgres import postgres_server
from support.waiting import PATIENCE_S, wait_for

API = "/services/mlp/api/v1"
STEPS = 300
COUNTS = f"""
import mlp, os, time
for step in range({STEPS}):
    mlp.report(loss=step, step=step)
    print(step, flush=True)
    time.sleep(0.05)
while not os.path.exists("/workspace/ckpt/go"):
    time.sleep(0.05)
"""
FOREVER = "import time; time.sleep(600)"


def let_end(hub: LiveHub, name: str) -> None:
    """Tell a program that counts to end once it has counted."""
    (hub.home / "mlp" / "jobs" / "ann" / name / "ckpt" / "go").touch()


class Pair:
    """A hub of two services."""

    def __init__(self, hub: LiveHub, database: str) -> None:
        self.hub = hub
        self.database = database

    def ask(self, number: int, path: str, **more: Any) -> HttpAnswer:
        """Ask one of them at its own socket."""
        own = self.hub.home / "run" / "private" / f"mlp-{number}.sock"
        return request(own, "GET", f"{API}{path}", timeout=10, **more)

    def leader(self) -> int | None:
        """Return which of them leads; None while nobody does."""
        found = []
        for number in (1, 2):
            answer = self.ask(number, "/ready")
            if answer.status:
                assert answer.json()["ready"] is (answer.status == 200)
                found += [number] if answer.json()["ready"] else []
        assert len(found) < 2
        return found[0] if found else None

    def pid(self, number: int) -> int:
        return self.hub.pid("service" if number == 1 else f"service-{number}")

    def starts(self) -> list[str]:
        """Return the attempts that were ever started, as the run directories have them."""
        return sorted(p.name for p in (self.hub.home / "jobs-run").iterdir() if p.is_dir())

    def held(self) -> list[str]:
        """Return the jobs' attempts that hold quota."""
        with psycopg.connect(self.database) as connection:
            query = "SELECT id FROM resource_request WHERE applier = 'jm' AND phase IN ('tried', 'confirmed', 'releasing')"
            return sorted(row[0] for row in connection.execute(query).fetchall())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "platform")
        home = tmp_path_factory.mktemp("hub") / "home"
        environ = {"MLP_DATABASE_URL": server.url("platform"), "MLP_REPLICAS": "2", "MLP_NODE_CPU": "2"}
        with live_hub(home, **environ, MLP_NODE_CPU_OVERCOMMIT="1") as hub:
            hub.add_user("ann")
            hub.token("admin")
            hub.token("ann")
            yield Pair(hub, server.url("platform"))


@pytest.mark.whole
def test_the_leader_is_killed_while_jobs_run_and_a_browser_is_open(pair: Pair) -> None:
    hub = pair.hub
    browser = Browser(hub)
    browser.login("ann")
    browser.get("/services/mlp/login")
    assert browser.http.get(f"{API}/session").json()["username"] == "ann"
    hub.submit("ann", "counts", COUNTS, cpu=0.5, ram=256)
    hub.submit("ann", "long", FOREVER, cpu=1, ram=256)
    for name in ("counts", "long"):
        hub.wait_phase("ann", name, "running")
    hub.submit("ann", "waits", FOREVER, cpu=1, ram=256)
    first = wait_for(pair.leader)
    other = 3 - first
    jar = "; ".join(f"{c.name}={c.value}" for c in browser.http.cookies.jar)
    wait_for(lambda: pair.ask(other, "/session", headers={"Cookie": jar}).status == 503)
    assert wait_for(lambda: (a := pair.ask(other, "/health")).status and a).json()["status"] == "ok"
    with connect(
        f"ws://localhost:{hub.port}{API}/users/ann/jobs/counts:stream",
        additional_headers={"Cookie": jar, "Origin": hub.url},
        proxy=None,
    ) as stream:
        stream.recv(PATIENCE_S)
        os.kill(pair.pid(first), signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            list(stream)
    wait_for(lambda: pair.leader() == other)
    wait_for(lambda: browser.http.get(f"{API}/ready").status_code == 200)
    assert browser.http.get(f"{API}/session").json()["username"] == "ann"
    assert [hub.job("ann", name)["phase"] for name in ("long", "waits")] == ["running", "queued"]
    assert tenant_use(hub)["cpu"] == 1.5
    let_end(hub, "counts")
    hub.wait_phase("ann", "counts", "finished")
    assert [p["values"]["loss"] for p in hub.points("ann", "counts")] == list(range(STEPS))
    assert hub.log("ann", "counts").split() == [str(n) for n in range(STEPS)]
    hub.ok("PUT", "/users/ann/jobs/long:cancel", "ann")
    hub.wait_phase("ann", "waits", "running")
    hub.wait_phase("ann", "long", "cancelled")
    assert hub.job("ann", "counts")["restarts"] == hub.job("ann", "waits")["restarts"] == 0
    assert len(pair.held()) == 1
    assert tenant_use(hub)["cpu"] == 1
    # who was killed is back, and stands by
    wait_for(lambda: pair.ask(first, "/health").status == 200)
    assert pair.leader() == other
    hub.ok("PUT", "/users/ann/jobs/waits:cancel", "ann")
    hub.wait_phase("ann", "waits", "cancelled")
    assert pair.held() == []


def test_a_leader_that_was_stopped_for_a_while_acts_no_more_when_it_resumes(pair: Pair) -> None:
    hub = pair.hub
    hub.submit("ann", "steady", COUNTS, cpu=0.5, ram=256)
    hub.wait_phase("ann", "steady", "running")
    first = wait_for(pair.leader)
    other = 3 - first
    old = pair.pid(first)
    os.kill(hub.pid("supervisor"), signal.SIGSTOP)  # which would end who does not answer
    try:
        os.kill(old, signal.SIGSTOP)
        wait_for(lambda: pair.ask(other, "/ready").status == 200)
        public = ("127.0.0.1", hub.port)
        wait_for(lambda: request(public, "GET", f"{API}/ready", timeout=10).status == 200)
        hub.submit("ann", "late", FOREVER, cpu=0.5, ram=256)
        running = hub.wait_phase("ann", "late", "running")
        os.kill(old, signal.SIGCONT)
        wait_for(lambda: pair.ask(first, "/session", token=hub.token("ann")).status == 503)
        led = pair.ask(other, "/ready").json()
        assert led["leader"] == led["replica"]
        wait_for(lambda: pair.ask(first, "/ready").json()["leader"] == led["replica"])
        assert pair.leader() == other
    finally:
        for pid in (old, hub.pid("supervisor")):
            os.kill(pid, signal.SIGCONT)
    let_end(hub, "steady")
    hub.wait_phase("ann", "steady", "finished")
    assert [p["values"]["loss"] for p in hub.points("ann", "steady")] == list(range(STEPS))
    late = hub.job("ann", "late")
    assert (late["phase"], late["restarts"], late["started_at"]) == ("running", 0, running["started_at"])
    assert len(pair.held()) == 1
    log = (hub.home / "log" / ("service.log" if first == 1 else f"service-{first}.log")).read_text()
    assert "acts no more, and stands by" in log
    assert "Traceback" not in log
    hub.ok("PUT", "/users/ann/jobs/late:cancel", "ann")
    hub.wait_phase("ann", "late", "cancelled")


def test_a_leader_that_ends_in_peace_is_followed_at_once_and_fewer_replicas_need_no_stop(pair: Pair) -> None:
    hub = pair.hub
    first = wait_for(pair.leader)
    old = pair.pid(first)
    os.kill(old, signal.SIGTERM)
    wait_for(lambda: pair.leader() == 3 - first)
    hub.submit("ann", "on", FOREVER, cpu=0.5, ram=256)
    before = hub.wait_phase("ann", "on", "running")
    # the one that ended has been started again
    second = wait_for(lambda: (pid := hub.pids()["service-2"]) not in (None, old) and pid)
    hub.env["MLP_REPLICAS"] = "1"
    hub.up()
    wait_for(lambda: not Path(f"/proc/{second}").exists())
    assert "service-2" not in hub.status()["components"]
    wait_for(lambda: hub.http.get(f"{API}/ready").status_code == 200)
    assert (hub.job("ann", "on")["restarts"], hub.job("ann", "on")["uid"]) == (0, before["uid"])
