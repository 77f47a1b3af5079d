"""A copy of a state directory is a hub of its own, and the original does not notice that there is one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.hubs.live_hub import LiveHub, live_hub
from support.waiting import wait_for

FOREVER = "import time\nwhile True: time.sleep(0.1)"


@pytest.mark.whole
def test_status_down_and_up_in_a_copy_leave_the_original_alone(tmp_path: Path) -> None:
    with live_hub(tmp_path / "original") as hub:
        hub.add_user("ann")
        hub.submit("ann", "long", FOREVER, runtime="plain")
        hub.wait_phase("ann", "long", "running")
        headers = {"Authorization": f"Bearer {hub.token('ann')}"}
        assert hub.http.post("/hub/api/users/ann/server", headers=headers).status_code in (201, 202)

        def server(of: LiveHub) -> dict[str, object]:
            me = of.http.get("/hub/api/users/ann", headers={"Authorization": f"Bearer {of.token('ann')}"})
            return dict(me.json()["servers"]) if me.status_code == 200 else {}

        wait_for(lambda: server(hub).get("", {}).get("ready"))  # type: ignore[attr-defined]
        before, job = hub.pids(), hub.job("ann", "long")
        # as an operator copies: the directory of a hub that runs
        subprocess.run(["cp", "-a", str(hub.home), str(tmp_path / "copy")], check=True)
        copy = LiveHub(tmp_path / "copy")
        try:
            told = copy.run("status", check=False)
            assert told.returncode == 1
            assert f"this is a copy of {hub.home}, and nothing of it runs" in told.stdout
            assert set(copy.pids().values()) == {None}
            assert copy.status()["copy_of"] == str(hub.home)
            assert f"{hub.home} is left alone" in copy.run("down", "--jobs", "stop").stdout
            assert hub.pids() == before

            text = copy.up()
            assert f"is a copy of {hub.home}: it is a hub of its own from now on" in text
            assert "1 job(s) begin again here" in text
            assert "1 notebook server(s) are not running here" in text
            assert copy.status()["copy_of"] is None
            assert not set(copy.pids().values()) & set(before.values())
            again = copy.wait_phase("ann", "long", "running")
            assert (again["uid"], again["restarts"]) == (job["uid"], job["restarts"] + 1)
            wait_for(lambda: server(copy) == {}, message="for the server to be seen as gone in the copy")
            assert "already running" in copy.up()
            copy.down(jobs="stop")
        finally:
            copy.destroy()
        assert hub.pids() == before
        after = hub.job("ann", "long")
        assert (after["phase"], after["restarts"], after["started_at"]) == (
            "running", job["restarts"], job["started_at"],
        )  # fmt: skip
        assert server(hub)[""]["ready"]  # type: ignore[index]
        hub.ok("PUT", "/users/ann/jobs/long:cancel", "ann")
