"""Components that live and do not answer: ended and started again, told everywhere, and nobody waits for them for long."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from support.hubs.live_hub import BIN, LiveHub, live_hub
from support.waiting import wait_for

HEALTH = "/services/mlp/api/v1/health"
FOREVER = "import time\nwhile True: time.sleep(0.1)"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with live_hub(tmp_path_factory.mktemp("hub") / "home") as hub:
        hub.token("admin")
        wait_for(lambda: hub.http.get(HEALTH).status_code == 200)
        yield hub


def refused(hub: LiveHub, path: str) -> bool:
    """Whether a request is refused; the first ones wait until the proxy is sure."""
    return httpx.get(hub.url + path, timeout=40, trust_env=False).status_code == 503


def replaced(hub: LiveHub, name: str, pid: int) -> bool:
    return hub.pids()[name] not in (None, pid)


def ended_in_the_audit_log(hub: LiveHub, name: str) -> bool:
    """Whether the audit log has a component's end; of a command each look would be a process."""
    found = hub.ok("GET", "/audit", params={"action": "component.end", "object": name})
    return any("has not answered" in str(entry) for entry in found)


def test_a_stopped_hub_and_service_are_refused_at_once_and_replaced(hub: LiveHub) -> None:
    hub.submit("admin", "long", FOREVER, runtime="plain")
    job = hub.wait_phase("admin", "long", "running")
    stopped = {name: hub.pid(name) for name in ("service", "hub")}
    others = {name: hub.pid(name) for name in ("supervisor", "proxy")}
    for pid in stopped.values():
        os.kill(pid, signal.SIGSTOP)
    assert refused(hub, HEALTH)
    assert refused(hub, "/hub/login")
    proxy_log = (hub.home / "log" / "proxy.log").read_text()
    assert proxy_log.count(".sock does not answer") == 2
    # who comes now is told by the proxy itself, and no part of it waits
    log = hub.home / "log" / "proxy.log"
    for path in (HEALTH, "/hub/login", "/hub/api/users/admin"):
        assert refused(hub, path)
    assert "does not answer" in log.read_text().splitlines()[-1]

    for name, pid in stopped.items():
        wait_for(lambda name=name, pid=pid: replaced(hub, name, pid), message=f"for another {name}")
    wait_for(lambda: hub.http.get(HEALTH).json().get("status") == "ok", message="for the health to be ok")
    wait_for(lambda: hub.call("GET", "/session").status_code == 200)
    assert {name: hub.pid(name) for name in others} == others
    components = hub.status()["components"]
    for name, pid in stopped.items():
        assert components[name]["last_death"]["why"].startswith("has not answered for ")
        assert f"the {name} ended at " in hub.run("status").stdout
        assert f"{name}, process {pid}, has not answered" in (hub.home / "log" / "supervisor.log").read_text()
        wait_for(lambda name=name: ended_in_the_audit_log(hub, name), message="for the audit log to have it")
        assert "has not answered" in hub.run("audit", "--action", "component.end", "--object", name).stdout
    after = hub.job("admin", "long")
    assert (after["phase"], after["restarts"]) == ("running", job["restarts"])
    hub.ok("PUT", "/users/admin/jobs/long:cancel")


@pytest.mark.whole
def test_a_stopped_proxy_is_replaced(hub: LiveHub) -> None:
    before = {name: hub.pid(name) for name in ("service", "hub", "proxy")}
    os.kill(before["proxy"], signal.SIGSTOP)
    wait_for(lambda: replaced(hub, "proxy", before["proxy"]), message="for another proxy")
    hub.wait_back("proxy", before["proxy"])  # it is noted down before it listens
    assert {name: hub.pid(name) for name in ("service", "hub")} == {n: before[n] for n in ("service", "hub")}


def test_a_hub_that_is_away_is_named_by_health_and_status(hub: LiveHub) -> None:
    pid = hub.pid("hub")
    os.kill(hub.pid("supervisor"), signal.SIGKILL)  # or it would be back at once
    os.kill(pid, signal.SIGKILL)
    answer = wait_for(lambda: (a := hub.http.get(HEALTH)).json()["status"] == "failing" and a)
    assert [p["component"] for p in answer.json()["problems"]] == ["hub"]
    told = hub.run("status", check=False)
    assert told.returncode == 1
    assert "the supervisor is not running: nothing restarts failed parts" in told.stdout
    assert "hub: the hub does not answer" in told.stdout
    assert "found again" in hub.up()
    assert hub.http.get(HEALTH).json() == {
        "status": "ok",
        "version": answer.json()["version"],
        "problems": [],
    }


def test_up_names_a_supervisor_that_dies_meanwhile_and_does_not_wait(hub: LiveHub) -> None:
    hub.down()
    code = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print('', flush=True); input()"
    with subprocess.Popen(
        [str(BIN / "python"), "-c", code, str(hub.home / "supervisor.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:  # a supervisor that starts now ends at once
        assert holder.stdout is not None
        holder.stdout.readline()
        done = hub.run("up", check=False)
        holder.communicate(b"\n")
    assert done.returncode == 1
    assert "The supervisor ended with status 3" in done.stderr
    assert "another supervisor is at work" in done.stderr
    hub.up()
