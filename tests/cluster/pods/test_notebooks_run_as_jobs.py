"""A notebook as a job in a pod, and as the trials of a sweep."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.cluster.installs import InACluster
from support.cluster.kube import Kube
from support.files.notebook_files import notebook
from support.waiting import wait_for

CELLS = (
    ("lr = 1.0", "parameters"),
    "import mlp\nmlp.report(loss=lr * lr, step=1)\nprint('lr is', lr, mlp.params.lr)",
)


@pytest.mark.whole
def test_a_notebook_of_the_home_runs_in_a_pod_and_is_swept(kube: Kube, tmp_path: Path) -> None:
    with InACluster(kube).hub(tmp_path / "home") as hub:
        hub.add_user("ann", "default")
        hub.submit("ann", "first", "print('a home is made')", cpu=0.2, ram=256)
        hub.wait_phase("ann", "first", "finished")
        home = hub.homes / "ann"
        owner = home.stat()
        (home / "own.ipynb").write_text(notebook(*CELLS))
        os.chown(home / "own.ipynb", owner.st_uid, owner.st_gid)
        body = {"entry": "own.ipynb", "cpu": 0.5, "ram": 512}
        hub.ok("POST", "/users/ann/jobs", "ann", {**body, "name": "own", "params": {"lr": 0.25}})
        hub.wait_phase("ann", "own", "finished")
        assert "lr is 0.25 0.25" in hub.log("ann", "own")
        copy = hub.call("GET", "/users/ann/jobs/own/files/content", "ann", params={"path": "own.ipynb"})
        outputs = [o for cell in json.loads(copy.content)["cells"] for o in cell["outputs"]]
        assert [o["output_type"] for o in outputs] == ["stream"]

        sweep = {**body, "name": "many", "grid": {"lr": [0.5, -0.25, 2.0]}, "metric": "loss", "goal": "min"}
        hub.ok("POST", "/users/ann/sweeps", "ann", sweep)

        def ended() -> dict[str, object] | None:
            found: dict[str, object] = hub.ok("GET", "/users/ann/sweeps/many", "ann")
            assert found["state"] != "failed", found
            return found if found["state"] == "finished" else None

        found = wait_for(ended, message="for the sweep to end")
        assert found["best"]["value"] == 0.0625
        assert found["counts"]["finished"] == 3
