"""The image that is made of this tree, in a pod."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from mlp_cluster.__main__ import main
from support.cluster.kube import Namespace

JOBS = Path(__file__).parents[1] / "pods" / "jobs"


def test_jupyterlab_runs_in_a_pod_with_all_that_notebooks_import_and_is_reached_from_here(
    namespace: Namespace,
) -> None:
    assert main(["images"]) == 0
    namespace.apply((JOBS / "lab.yaml").read_text())
    namespace.until("pod/lab", "condition=Ready")
    address = namespace.get("pod", "lab")["status"]["podIP"]
    asked = urllib.request.Request(
        f"http://{address}:8888/lab/api/extensions", headers={"Authorization": "token secret"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(asked) as answer:
        extensions = json.load(answer)
    assert ("mlp-hub", True) in {(one["name"], one["enabled"]) for one in extensions}
    imported = "import ipykernel, ipywidgets, matplotlib.pyplot, mlp, mpi4py.MPI, pandas, sklearn, tensorflow; print(mpi4py.MPI.Get_library_version())"
    assert "Open MPI" in namespace("exec", "lab", "--", "python", "-c", imported)
