"""What a job used, and what network it has, on the real platform."""

from __future__ import annotations

import json
import subprocess

import pytest

from mlp_hub.sandbox import capabilities
from support.hubs.live_hub import BIN, LiveHub
from support.waiting import PATIENCE_S

LOOKS_OUT = "import urllib.request\nurllib.request.urlopen('http://example.org')"
EATS = "held = b'1' * (200 << 20)\nimport time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass\n"
INTERFACES = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"
NOBODY_CAN = "jobs of team default have no network; an administrator of the hub can allow it"


def command(hub: LiveHub, user: str, *words: str) -> str:
    """Return what the command `mlp` says to a user."""
    env = {
        **hub.env,
        "MLP_API_URL": f"http://127.0.0.1:{hub.port}/services/mlp/api/v1",
        "MLP_TOKEN": hub.token(user),
        "MLP_USER": user,
    }
    done = subprocess.run(
        [str(BIN / "mlp"), *words], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.stdout + done.stderr


def test_the_usage_of_a_job_is_available_after_its_end_in_rest_and_command(hub: LiveHub) -> None:
    hub.submit("ann", "eats", EATS, cpu=1, ram=1024)
    rank = hub.wait_phase("ann", "eats", "finished")["ranks"][0]
    assert (rank["cpu"], rank["ram"]) == (None, None)
    assert 200 <= rank["ram_peak"] < 300
    assert 0 <= rank["ram_mean"] <= rank["ram_peak"]
    assert 0 < rank["cpu_mean"] <= rank["cpu_peak"] <= 1.2
    said = command(hub, "ann", "job", "eats")
    assert f"Requested 1 GiB, used at most {rank['ram_peak']} MiB; requested 1 cpu, used " in said
    assert json.loads(command(hub, "ann", "job", "eats", "--json"))["job"]["ranks"][0] == rank


def test_a_job_that_looks_for_another_machine_is_told_that_it_has_no_network_and_who_can_allow_it(
    hub: LiveHub,
) -> None:
    hub.add_user("dana")  # who is in no tenant that another test made
    offer = hub.ok("GET", "/offer?cpu=0.2&ram=200", "dana")
    assert (offer["tenant"], offer["network"]) == ("default", "none")
    assert f"{NOBODY_CAN[0].upper()}{NOBODY_CAN[1:]}." in command(hub, "dana", "offer", "--cpu", "0.2")
    hub.submit("dana", "out", LOOKS_OUT, cpu=0.5, ram=256)
    failure = hub.wait_phase("dana", "out", "failed")["failure"]
    assert (failure["cause"], failure["hint"], failure["remedy"]) == (
        "program-error",
        "no-network",
        NOBODY_CAN,
    )
    assert "name resolution" in failure["message"]
    assert NOBODY_CAN in command(hub, "dana", "why", "out")
    assert NOBODY_CAN in command(hub, "dana", "job", "out")


@pytest.mark.skipif(not capabilities().outbound, reason="no outbound network can be made here")
def test_jobs_of_a_tenant_that_may_use_the_network_have_one(hub: LiveHub) -> None:
    hub.ok("POST", "/tenants", body={"name": "open", "network": "outbound"})
    hub.ok("PUT", "/tenants/open/members/bob")
    hub.submit("bob", "way-out", INTERFACES, tenant="open", cpu=0.2, ram=128)
    hub.wait_phase("bob", "way-out", "finished")
    assert "['lo', 'tap0']" in hub.log("bob", "way-out")
    hub.ok("PUT", "/tenants/open", body={"network": "none"})
    hub.submit("bob", "no-way-out", INTERFACES, tenant="open", cpu=0.2, ram=128)
    hub.wait_phase("bob", "no-way-out", "finished")
    assert "['lo']" in hub.log("bob", "no-way-out")
