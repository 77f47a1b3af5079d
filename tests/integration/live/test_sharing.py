"""Two teams share idle quota on a real hub: real processes are stopped with grace, and come back."""

from __future__ import annotations

from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

LONG = """
import os, pathlib, signal, sys, time
mark = pathlib.Path(os.environ["MLP_CHECKPOINT_DIR"]) / "saved"
print("restart", os.environ["MLP_RESTART_COUNT"], "found", mark.exists(), flush=True)
def save(*_):
    mark.write_text("here")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
time.sleep(600)
"""
ASKS = {"cpu": 0.5, "ram": 128}


def test_lent_quota_is_taken_back_with_grace_and_borrowed_again(hub: LiveHub) -> None:
    for team, user in (("warm", "ann"), ("cold", "bob")):
        hub.ok("POST", "/tenants", body={"name": team, "cpu": 0.5, "ram": 1024, "cohort": "seasons"})
        hub.ok("PUT", f"/tenants/{team}/members/{user}", body={"role": "member"})
    hub.submit("ann", "own", LONG, tenant="warm", **ASKS)
    hub.wait_phase("ann", "own", "running")
    hub.submit("ann", "guest", LONG, tenant="warm", **ASKS)
    hub.wait_phase("ann", "guest", "running")
    wait_for(lambda: "restart 0" in hub.log("ann", "guest"))
    shown = {t["name"]: t for t in hub.ok("GET", "/tenants")}
    assert (shown["warm"]["borrowed"], shown["cold"]["lent"]) == ({"cpu": 0.5}, {"cpu": 0.5})

    hub.submit("bob", "claim", "print('mine')", tenant="cold", **ASKS)
    hub.wait_phase("bob", "claim", "finished")
    # the first of the two that has run for as long as nobody is stopped
    stopped, other = wait_for(lambda: _stopped_first(hub))
    hub.wait_phase("ann", stopped, "running")
    wait_for(lambda: "restart 1 found True" in hub.log("ann", stopped))
    events = hub.ok("GET", f"/users/ann/jobs/{stopped}/events", "ann")
    assert [e["message"] for e in events if e["kind"] == "preempted"] == [
        "Stopped for a job of team cold: cold takes back what warm borrowed."
    ]
    assert hub.ok("GET", f"/users/ann/jobs/{other}", "ann")["restarts"] == 0

    meant = hub.ok("POST", "/tenants/warm:preview", body={"cpu": 0.2, "ram": 1024})
    assert [(o["dimension"], o["above"]) for o in meant["over"]] == [("cpu", 0.8)]
    assert "no time limit" in meant["back_inside_because"]
    for name in ("own", "guest"):
        hub.ok("PUT", f"/users/ann/jobs/{name}:cancel", "ann")
        hub.wait_phase("ann", name, "cancelled")


def _stopped_first(hub: LiveHub) -> tuple[str, str] | None:
    restarts = {
        name: hub.ok("GET", f"/users/ann/jobs/{name}", "ann")["restarts"] for name in ("own", "guest")
    }
    order = sorted(restarts, key=restarts.__getitem__, reverse=True)
    return (order[0], order[1]) if restarts[order[0]] else None
