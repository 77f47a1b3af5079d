"""What the benchmarks of a cluster share: which one it is, and a hub in it."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench_common import ROOT
from mlp_hub.in_cluster import address_of
from mlp_hub.settings import Settings
from support.cluster.kube import Kube
from support.cluster.pod_stack import leave
from support.hubs.live_hub import LiveHub, free_port

IMAGE = os.environ.get("BENCH_IMAGE", "mlp.local/notebook:dev")
RUNS = int(os.environ.get("BENCH_RUNS", "10"))


def kubeconfig() -> Path:
    """Return that of a cluster that somebody else runs, else of this clone's."""
    sys.path.append(str(ROOT / "cluster"))
    from mlp_cluster.place import brought, clone_name, find

    if given := brought():
        return Path(given)
    place = find(clone_name())
    if place is None or not place.kubeconfig.exists():
        raise FileNotFoundError("no cluster runs: sudo make cluster")
    return place.kubeconfig


def environment(name: str, config: Path | None = None) -> dict[str, str]:
    """Return the settings of a hub in the cluster that is called so there, by a kubeconfig of its own if given."""
    real = kubeconfig()
    host = address_of(Settings.load({"MLP_EXECUTOR": "kubernetes", "MLP_KUBERNETES_CONFIG": str(real)}))
    return {
        "MLP_EXECUTOR": "kubernetes",
        "MLP_KUBERNETES_CONFIG": str(config or real),
        "MLP_KUBERNETES_NAME": name,
        "MLP_KUBERNETES_IMAGE": IMAGE,
        "MLP_KUBERNETES_ADDRESS": host,
        "MLP_HUB_LISTEN_TENANTS": f"{host}:{free_port()}",
        "MLP_SERVICE_LISTEN_TENANTS": f"{host}:{free_port()}",
        "MLP_DATA_LISTEN_TENANTS": f"{host}:{free_port()}",
    }


def new_name() -> str:
    """Return a name that no other hub of the cluster has."""
    return f"b{uuid.uuid4().hex[:6]}"


@contextlib.contextmanager
def hub_in_cluster(name: str, config: Path | None = None) -> Iterator[LiveHub]:
    """Start a hub whose notebooks and jobs are pods, hand it out, and remove all that it has made."""
    home = Path(tempfile.mkdtemp(prefix="mlp-b", dir="/tmp"))
    home.chmod(0o755)
    hub = LiveHub(home, **environment(name, config))
    try:
        hub.up()
        hub.add_user("bench")
        hub.token("bench")
        yield hub
    finally:
        hub.destroy()
        leave(Kube(kubeconfig()), name)


def seconds_of(config: Path) -> dict[str, float]:
    """Return the processor seconds so far of the cluster's own processes on this machine, by program; none of a cluster elsewhere."""
    folder, found = str(config.parent), dict[str, float]()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            if argv and any(folder in word for word in argv[1:]):
                times = process.cpu_times()
                name = Path(argv[0]).name
                found[name] = found.get(name, 0.0) + times.user + times.system
    return found


def load() -> str:
    """Say how busy the machine is with whatever else."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
