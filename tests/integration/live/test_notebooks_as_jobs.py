"""Notebooks as jobs on the real platform: by the command from another machine, and one of the home over REST."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support.files.notebook_files import notebook
from support.hubs.live_hub import BIN, LiveHub
from support.hubs.notebooks import client_of, start_notebook
from support.waiting import PATIENCE_S

CELLS = (
    ("lr = 1.0", "parameters"),
    "import mlp\nmlp.report(loss=lr, step=1)\nprint('lr is', lr, mlp.params.lr)",
)


def command(hub: LiveHub, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command `mlp` as a user, from outside of the hub."""
    env = {
        **hub.env,
        "MLP_API_URL": f"http://127.0.0.1:{hub.port}/services/mlp/api/v1",
        "MLP_TOKEN": hub.token(user),
        "MLP_USER": user,
    }
    return subprocess.run(
        [str(BIN / "mlp"), *words], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_the_command_carries_a_notebook_along_and_its_end_is_the_cell_s(hub: LiveHub, tmp_path: Path) -> None:
    path = tmp_path / "work.ipynb"
    path.write_text(notebook(*CELLS, "1 / 0", "print('never')"))
    words = ("submit", str(path), "--name", "carried", "--param", "lr=0.1", "--cpu", "0.5", "--ram", "512")
    done = command(hub, "ann", *words, "--wait")
    assert done.returncode == 1, done.stderr
    assert "cell 3 of 4 failed: ZeroDivisionError: division by zero" in done.stdout + done.stderr
    job = hub.job("ann", "carried")
    assert job["params"] == {"lr": 0.1}
    assert "lr is 0.1 0.1" in hub.log("ann", "carried")
    points = hub.points("ann", "carried")
    assert [p["values"]["loss"] for p in points if "loss" in p["values"]] == [0.1]
    assert [p["values"]["progress"] for p in points if "progress" in p["values"]] == [0, 20, 40, 60]
    got = command(hub, "ann", "get", "carried", "work.ipynb", str(tmp_path / "copy.ipynb"))
    assert got.returncode == 0, got.stderr
    outputs = [
        o for cell in json.loads((tmp_path / "copy.ipynb").read_text())["cells"] for o in cell["outputs"]
    ]
    assert [o["output_type"] for o in outputs] == ["stream", "error"]
    refused = command(hub, "ann", "submit", str(path), "--workers", "2")
    assert (refused.returncode, "one kernel" in refused.stderr) == (2, True)


def test_a_notebook_of_the_home_is_a_program(hub: LiveHub) -> None:
    home = hub.homes / "ann"
    (home / "own.ipynb").write_text(notebook(*CELLS))
    owner = home.stat()
    os.chown(home / "own.ipynb", owner.st_uid, owner.st_gid)
    body = {"name": "own", "entry": "own.ipynb", "cpu": 0.5, "ram": 512}
    for more, why in (
        ({"workers": 2, "runtime": "plain"}, "one kernel"),
        ({"runtime": "mpi"}, "has its own launcher"),
        ({"args": ["--lr", "1"]}, "takes no arguments"),
    ):
        answer = hub.call("POST", "/users/ann/jobs", "ann", {**body, **more})
        assert (answer.status_code, why in answer.json()["msg"]) == (403, True), answer.text
    hub.ok("POST", "/users/ann/jobs", "ann", {**body, "params": {"lr": 0.25}})
    hub.wait_phase("ann", "own", "finished")
    assert "lr is 0.25 0.25" in hub.log("ann", "own")
    assert hub.log("ann", "own").rstrip().endswith("executed copy: /workspace/own.ipynb")


def test_a_server_shows_what_its_own_sandbox_takes_and_submits_a_notebook(hub: LiveHub) -> None:
    hub.add_user("nora")
    kernel = start_notebook(hub, "nora")
    home = hub.homes / "nora"
    (home / "own.ipynb").write_text(notebook(*CELLS))
    owner = home.stat()
    os.chown(home / "own.ipynb", owner.st_uid, owner.st_gid)
    kernel.run("held = b'1' * (150 << 20)")
    url = f"{hub.notebooks('nora')}/user/nora/api/metrics/v1"
    told = client_of(hub, "nora").get(url).json()
    limits = told["limits"]
    assert (limits["memory"]["rss"], limits["cpu"]["cpu"]) == (512 << 20, 0.2)
    assert (
        150 << 20 < told["rss"] < 512 << 20
    )  # the kernel is among what is counted, and nobody else's processes are
    kernel.run("%mlp submit own.ipynb --param lr=0.5 --cpu 0.5 --ram 512 --name shown --detach")
    hub.wait_phase("nora", "shown", "finished")
    assert "lr is 0.5 0.5" in hub.log("nora", "shown")
