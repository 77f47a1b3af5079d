"""After `make down` and what the documentation says to remove, nothing of a hub is in the cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.cluster.installs import InACluster
from support.cluster.kube import Kube
from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "kubernetes.md"


def told(name: str) -> list[str]:
    """Return the two blocks that the page says to type, for a hub of this name."""
    section = PAGE.read_text().split("## Remove the hub from the cluster\n")[1].split("\n## ")[0]
    blocks = [part for part in section.split("\n\n") if part.startswith("    ")]
    return [
        block.replace("instance=mlp", f"instance={name}").replace(" mlp--", f" {name}--") for block in blocks
    ]


def all_of(kube: Kube, name: str) -> list[str]:
    """List whatever the cluster has of a hub: by its labels, by its name, and in namespaces of its name."""
    kinds = kube("api-resources", "--verbs=list", "--output=name").split()
    listed = ",".join(kind for kind in kinds if not kind.startswith(("events", "componentstatuses")))
    labelled = kube(
        "get", listed, "-A", "--ignore-not-found", "-o", "name", "-l", f"app.kubernetes.io/instance={name}"
    )
    everything = kube("get", listed, "-A", "--ignore-not-found", "-o", "name").split()
    return [*labelled.split(), *(one for one in everything if one.partition("/")[2].startswith(f"{name}-"))]


def start_server(hub: LiveHub, user: str) -> None:
    headers = {"Authorization": f"token {hub.token(user)}"}
    answer = hub.http.post(f"/hub/api/users/{user}/server", headers=headers)
    assert answer.is_success, answer.text

    def ready() -> bool:
        found = hub.http.get(f"/hub/api/users/{user}", headers=headers).json()["servers"]
        assert "" in found, "the start was given up: see the hub's log"
        return found[""]["ready"]

    wait_for(ready, 900, every=0.5)


def test_the_documented_removal_deletes_everything_the_hub_made(kube: Kube, tmp_path: Path) -> None:
    with InACluster(kube).hub(tmp_path / "home") as hub:
        name = hub.env["MLP_KUBERNETES_NAME"]
        hub.add_user("ann")
        hub.ok("POST", "/tenants", body={"name": "red"})
        start_server(hub, "ann")
        hub.submit("ann", "endless", "import time; time.sleep(10_000)")
        hub.submit(
            "ann", "both", "import time; time.sleep(10_000)", runtime="mpi", workers=2, cpu=0.2, ram=200
        )
        for job in ("endless", "both"):
            hub.wait_phase("ann", job, "running")
        assert len(kube.get("pods", "-n", f"{name}-default")["items"]) == 4

        hub.down(jobs="stop")
        notebooks = ["-n", f"{name}-default", "-l", "app.kubernetes.io/component=notebook"]
        assert kube.get("pods", *notebooks)["items"] == []  # the command waits for them
        wait_for(lambda: not kube.get("pods", "-n", f"{name}-default")["items"])
        assert all_of(kube, name)

        away = "\n".join(told(name)[1:])
        env = {**os.environ, "KUBECONFIG": str(kube.kubeconfig)}
        env["PATH"] = f"{Path(kube.program).parent}:{env['PATH']}"
        done = subprocess.run(["bash", "-ec", away], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert all_of(kube, name) == []
        assert (hub.homes / "ann").is_dir(), "files stay"
