"""From the click to a notebook server that is ready, as a pod: ours beside plain KubeSpawner."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench_common import Context, Figure, anchor_proxy, median_of, quantile
from kube_hub import IMAGE, RUNS, hub_in_cluster, kubeconfig, load, new_name
from mlp_hub.in_cluster import address_of
from mlp_hub.settings import Settings
from support.cluster.kube import Kube
from support.hubs.live_hub import BIN, free_port
from support.waiting import wait_for

NAME = "kube_spawn"
ABOUT = (
    f"needs a cluster that runs pods: {RUNS} times in turn (BENCH_RUNS) a server of this hub and one of a JupyterHub alone with "
    "KubeSpawner, the same image, command and resources, the home on the same kind of volume; from the request that a click is to "
    "the server being ready, asked every 50 ms; medians"
)
COMMAND = "make bench ONLY=kube_spawn"
TOKEN = "a-benchmarks-own-token"
_PLAIN = """
import os
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = "http://{host}:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.db_url = "sqlite:///{dir}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{dir}/cookie"
c.JupyterHub.services = [{{"name": "bench", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "bench", "scopes": ["admin:users", "admin:servers"], "services": ["bench"]}}]
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.namespace = "{namespace}"
c.KubeSpawner.image = "{image}"
c.KubeSpawner.image_pull_policy = "IfNotPresent"
c.KubeSpawner.cmd = ["python", "-P", "-c", open("{launcher}").read()]
c.KubeSpawner.storage_pvc_ensure = False
c.KubeSpawner.uid = c.KubeSpawner.gid = 1000
c.KubeSpawner.working_dir = "/home/bench"
c.KubeSpawner.environment = {{"HOME": "/home/bench"}}
c.KubeSpawner.volumes = [
    {{"name": "files", "persistentVolumeClaim": {{"claimName": "files"}}}},
    {{"name": "tmp", "emptyDir": {{"medium": "Memory"}}}},
]
c.KubeSpawner.volume_mounts = [
    {{"name": "files", "mountPath": "/home/bench", "subPath": "bench"}},
    {{"name": "tmp", "mountPath": "/tmp"}},
]
c.KubeSpawner.cpu_guarantee = 0.5
c.KubeSpawner.mem_guarantee = c.KubeSpawner.mem_limit = "1G"
c.KubeSpawner.start_timeout = c.KubeSpawner.http_timeout = 300
"""


def run(context: Context) -> list[Figure]:
    """Start servers of both, in turn."""
    name = new_name()
    ours, plain = [], []
    with hub_in_cluster(name) as hub, _plain(context.tmp, f"{name}-plain") as other:
        mine = httpx.Client(
            base_url=f"http://127.0.0.1:{hub.port}/hub/api",
            headers={"Authorization": f"Bearer {hub.token('bench')}"},
            trust_env=False,
        )
        for i in range(RUNS + 1):
            options = {"cpu": 0.5, "ram": 1000}
            took = _spawn(mine, options), _spawn(other, {})
            if i:  # the first of each is not counted
                ours.append(took[0])
                plain.append(took[1])
        mine.close()
    return [
        Figure(
            "notebook server in a cluster, click to ready",
            median_of(ours),
            "s",
            median_of(plain),
            "plain KubeSpawner, same run",
            f"p90 {quantile(ours, 0.9):.2f}, plain {quantile(plain, 0.9):.2f} s; median of differences "
            f"{median_of([a - b for a, b in zip(ours, plain, strict=True)]):+.2f} s; {load()}",
            COMMAND,
        )
    ]


def _spawn(api: httpx.Client, options: dict[str, float]) -> float:
    """Start a server, wait until it is ready, and stop it; return the seconds of the first two."""
    began = time.perf_counter()
    answer = api.post("/users/bench/server", json=options, timeout=300)
    assert answer.status_code in (201, 202), answer.text

    def ready() -> bool:
        found = api.get("/users/bench", timeout=60).json()["servers"].get("")
        assert found, "the server has gone"
        return bool(found["ready"])

    wait_for(ready, every=0.05)
    took = time.perf_counter() - began
    answer = api.delete("/users/bench/server", timeout=300)
    assert answer.status_code in (202, 204), answer.text
    wait_for(lambda: not api.get("/users/bench", timeout=60).json()["servers"], every=0.2)
    return took


@contextlib.contextmanager
def _plain(directory: Path, namespace: str) -> Iterator[httpx.Client]:
    """Run a JupyterHub alone whose servers are KubeSpawner's, with a volume of its own."""
    import mlp_spawner.launcher

    kube, config = Kube(kubeconfig()), directory / "plain.py"
    homes = directory / "plain-homes"
    (homes / "bench").mkdir(parents=True)
    for path in (directory, homes):
        path.chmod(0o755)
    os.chown(homes / "bench", 1000, 1000)
    _volume(kube, namespace, homes)
    port = free_port()
    host = address_of(
        Settings.load({"MLP_EXECUTOR": "kubernetes", "MLP_KUBERNETES_CONFIG": str(kube.kubeconfig)})
    )
    config.write_text(
        _PLAIN.format(
            port=port,
            host=host,
            hub_port=free_port(),
            api_port=free_port(),
            proxy=anchor_proxy(),
            dir=directory,
            token=TOKEN,
            namespace=namespace,
            image=IMAGE,
            launcher=mlp_spawner.launcher.__file__,
        )
    )
    log = (directory / "plain.log").open("wb")
    child = subprocess.Popen(
        [str(BIN / "jupyterhub"), "-f", str(config)],
        cwd=directory,
        stdout=log,
        stderr=log,
        env={**os.environ, "KUBECONFIG": str(kube.kubeconfig)},
    )
    api = httpx.Client(
        base_url=f"http://127.0.0.1:{port}/hub/api",
        headers={"Authorization": f"token {TOKEN}"},
        trust_env=False,
    )

    def up() -> bool:
        assert child.poll() is None, (directory / "plain.log").read_text()[-3000:]
        with contextlib.suppress(httpx.TransportError):
            return api.get("/").status_code == 200
        return False

    try:
        wait_for(up, every=0.2)
        api.post("/users/bench").raise_for_status()
        yield api
    except Exception:
        sys.stdout.write((directory / "plain.log").read_text()[-3000:])
        raise
    finally:
        api.close()
        child.terminate()
        child.wait(60)
        log.close()
        kube("delete", "namespace", namespace, "--wait=false")
        kube("delete", "pv", namespace, "--wait=false")


def _volume(kube: Kube, namespace: str, homes: Path) -> None:
    shape = "accessModes: [ReadWriteMany], storageClassName: ''"
    kube("create", "namespace", namespace)
    kube(
        *("apply", "--server-side", "-f", "-"),
        given=f"""
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}}}
spec: {{{shape}, capacity: {{storage: 1Gi}}, hostPath: {{path: {homes}, type: Directory}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: files, namespace: {namespace}}}
spec: {{{shape}, volumeName: {namespace}, resources: {{requests: {{storage: 1Gi}}}}}}
""",
    )
    claim = ("get", "pvc", "files", "-n", namespace, "-o", "jsonpath={.status.phase}")
    wait_for(lambda: kube(*claim) == "Bound", every=0.2)
