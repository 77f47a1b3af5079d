"""A member's cap on a real hub: a notebook server holds a part of it, and one that is too much is refused on its page."""

from __future__ import annotations

import pytest

from support.hubs.hub_stack import Browser, text_of
from support.hubs.live_hub import LiveHub
from support.hubs.notebooks import start_notebook, stop_notebook
from support.waiting import wait_for

SLEEPS = "import time\ntime.sleep(600)\n"
ASKS = {"cpu": 0.3, "ram": 128, "tenant": "capped"}


@pytest.mark.whole
def test_a_notebook_and_jobs_share_their_owners_cap(hub: LiveHub) -> None:
    hub.ok("POST", "/tenants", body={"name": "capped", "cpu": 1, "ram": 2048})
    hub.add_user("cleo", "capped")
    hub.ok("PUT", "/tenants/capped/caps", body={"user": "cleo", "cpu": 0.5})
    kernel = start_notebook(hub, "cleo")
    hub.submit("cleo", "first", SLEEPS, **ASKS)
    hub.wait_phase("cleo", "first", "running")
    hub.submit("cleo", "second", SLEEPS, **ASKS)
    wait_for(lambda: "The cap of cleo in capped: 0.5 cpu; 0.5 cpu in use." in message(hub, "second"))

    hub.wait_back("service", hub.kill("service"))
    assert kernel.run("1 + 1") == "2"
    wait_for(lambda: "The cap of cleo in capped" in message(hub, "second"))
    assert hub.job("cleo", "first")["phase"] == "running"

    kernel.close()
    stop_notebook(hub, "cleo")
    hub.ok("PUT", "/users/cleo/jobs/second:cancel", "cleo")
    hub.wait_phase("cleo", "second", "cancelled")
    person = Browser(hub)
    person.login("cleo")
    refused = person.spawn("cleo", tenant="capped", cpu="0.4", ram="512")
    assert refused.status_code == 403
    assert (
        "cleo may hold 0.5 cpu in capped, which is the cap there; 0.3 cpu in use by job first of cleo (0.3). "
        "This request asks for 0.4 cpu. End a job, choose a smaller server, or ask an admin of capped to raise the cap."
    ) in text_of(refused)
    person.http.headers["Accept-Language"] = "zh-CN"
    assert "cleo 在 capped 最多可占用" in text_of(person.spawn("cleo", tenant="capped", cpu="0.4", ram="512"))
    start_notebook(hub, "cleo").close()
    stop_notebook(hub, "cleo")
    hub.ok("PUT", "/users/cleo/jobs/first:cancel", "cleo")
    hub.wait_phase("cleo", "first", "cancelled")


def message(hub: LiveHub, name: str) -> str:
    return str(hub.job("cleo", name)["message"])
