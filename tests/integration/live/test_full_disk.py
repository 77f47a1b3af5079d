"""A hub whose disk is full: its components are kept alive, it says what is wrong, and it goes on by itself."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import httpx
import pytest

from support.executors.small_disk import small_disk
from support.hubs.live_hub import LiveHub, live_hub
from support.waiting import wait_for

HEALTH = "/services/mlp/api/v1/health"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


def health(hub: LiveHub) -> dict[str, object]:
    try:
        answer = hub.http.get(HEALTH)
        return dict(answer.json()) if answer.headers["content-type"] == "application/json" else {}
    except (httpx.TransportError, ValueError):
        return {}


def named(hub: LiveHub, component: str) -> dict[str, str] | None:
    """Return the problem of a component, if the health tells of one."""
    problems = health(hub).get("problems", [])
    assert isinstance(problems, list)
    return next((problem for problem in problems if problem["component"] == component), None)


def alive(hub: LiveHub, name: str) -> int | None:
    return hub.pids()[name]


def test_the_supervisor_outlives_a_full_disk_and_all_comes_back_by_itself(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 120) as disk, live_hub(disk.root / "home") as hub:
        hub.token("admin")
        supervisor = hub.pid("supervisor")
        disk.fill()
        told = wait_for(lambda: named(hub, "disk"), message="for the health to say it")
        assert "disk full" in told["message"]
        assert "disk full" in hub.run("status", check=False).stdout

        def no_room_at_all() -> object:
            disk.fill()  # also what was kept for the last words
            return named(hub, "database")

        wait_for(no_room_at_all, message="for the database to take no writes")
        assert hub.http.get(HEALTH).json()["status"] == "failing"
        assert "the database accepts no writes" in hub.run("status", check=False).stdout
        refused = hub.call("POST", "/users/admin/jobs", body={"name": "a", "code": "1"})
        assert not refused.is_success
        hub.kill("service")  # which comes back, with no byte left, and says why it takes nothing
        wait_for(no_room_at_all, message="for a service that was killed to answer")
        assert alive(hub, "service")
        assert "disk full" in hub.run("status", check=False).stdout
        for name in ("proxy", "service", "hub"):
            os.kill(hub.pid(name), signal.SIGKILL)
        log = hub.home / "log" / "supervisor.log"
        # each has been started again, whether it can work or not
        wait_for(lambda: len(_children(supervisor)) >= 1)
        with contextlib.suppress(ProcessLookupError):  # it may end by itself, for want of room
            os.kill(wait_for(lambda: alive(hub, "proxy")), signal.SIGKILL)
        wait_for(lambda: alive(hub, "proxy"))
        assert alive(hub, "supervisor") == supervisor
        disk.free()
        wait_for(lambda: health(hub).get("status") == "ok", 120, message="for all of it to be back")
        assert alive(hub, "supervisor") == supervisor
        hub.submit("admin", "after", "print(1)", runtime="plain")
        hub.wait_phase("admin", "after", "finished")
        state = wait_for(lambda: hub.status()["components"])
        assert all(state[name]["pid"] for name in ("supervisor", "proxy", "service", "hub"))
        assert state["service"]["restarts"] >= 1
        assert "Traceback" not in log.read_text()


def test_reads_are_answered_when_the_disk_is_full_and_token_use_cannot_be_recorded(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.py"
    config.write_text("c.JupyterHub.activity_resolution = 0\n")  # each use of a token would be noted
    with (
        small_disk(tmp_path / "disk", 120) as disk,
        live_hub(disk.root / "home", MLP_CONFIG=str(config)) as hub,
    ):
        hub.submit("admin", "before", "print(1)", runtime="plain")
        hub.wait_phase("admin", "before", "finished")

        def no_room_at_all() -> object:
            disk.fill()
            return named(hub, "database")

        wait_for(no_room_at_all, message="for the database to take no writes")
        hub.kill("service")  # and with it what it remembered of tokens
        wait_for(no_room_at_all, message="for the service to be back")
        found = hub.call("GET", "/users/admin/jobs", "admin")
        assert found.is_success, found.text
        assert [job["name"] for job in found.json()] == ["before"]
        assert named(hub, "hub") is None
        refused = hub.call("POST", "/users/admin/jobs", "admin", {"name": "a", "code": "1"})
        assert refused.status_code == 503
        assert "the disk of the database is full" in refused.text


def test_up_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        disk.fill()
        hub = LiveHub(disk.root / "home")
        done = hub.run("up", check=False)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "No space left on device" in done.stderr or "no room left" in done.stderr


def _children(pid: int) -> set[int]:
    return {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
