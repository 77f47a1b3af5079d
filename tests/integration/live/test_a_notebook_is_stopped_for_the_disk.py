"""A notebook in a real hub fills the disk with a file that has no name: it ends, its user reads why, and all goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.executors.small_disk import small_disk
from support.hubs.hub_stack import Browser, text_of
from support.hubs.live_hub import LiveHub, live_hub
from support.hubs.notebooks import start_notebook
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
FLOOD = """
import os, time
out = open(os.path.expanduser("~/big"), "wb")
os.unlink(out.name)
while True:
    out.write(bytes(4 << 20)); out.flush()
    time.sleep(0.05)
"""


def is_ended(hub: LiveHub, user: str) -> bool:
    answer = hub.call("GET", f"/users/{user}")
    if answer.status_code == 503:  # the hub, whose disk it is too, may be late with its part of the answer
        return False
    assert answer.status_code == 200, answer.text
    return not answer.json()["servers"]


@pytest.mark.whole
@pytest.mark.differs("Writers while the disk fills up", only="local")
def test_it_ends_and_its_user_reads_why(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 700, "ext4") as disk,
        live_hub(disk.root / "home", MLP_DISK_FLOOR="200", MLP_HOME_DISK_MAX="0") as hub,
    ):
        for user in ("ann", "bob"):
            hub.add_user(user)
        kernel, quiet = start_notebook(hub, "ann"), start_notebook(hub, "bob")
        kernel.send(FLOOD)
        wait_for(lambda: is_ended(hub, "ann"), message="for the notebook to be ended")
        (entry,) = hub.ok("GET", "/audit?action=server.stop")
        assert entry["object"] == "ann's notebook"
        assert "the notebook of ann had written" in entry["detail"]["message"]
        person = Browser(hub)
        person.login("ann")
        why = "The notebook server was stopped by the platform: the disk had"
        wait_for(lambda: why in text_of(person.get("/hub/home")), message="for its user to read why")
        assert quiet.run("1 + 1") == "2"

        def is_well() -> bool:
            return "disk" not in [p["component"] for p in hub.ok("GET", "/health")["problems"]]

        wait_for(is_well, message="for the room to be back")
        again = start_notebook(hub, "ann")
        assert again.run("1 + 1") == "2"
        assert "was stopped by the platform" not in text_of(person.get("/hub/home"))
