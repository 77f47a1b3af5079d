"""How long a job in a cluster takes to its first line, beside the same objects made by hand (P11)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench_common import Context, Figure, median_of, quantile
from kube_hub import IMAGE, RUNS, hub_in_cluster, kubeconfig, load, new_name
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import (
    JOBS,
    MPI_JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TF_JOBS,
    Kind,
    Object,
    name_of,
    namespace_of,
)
from support.cluster.kube import Kube
from support.cluster.kube_between import KubeBetween
from support.hubs.live_hub import LiveHub
from support.waiting import until

NAME = "kube_jobs"
ABOUT = (
    f"needs a cluster that runs pods: {RUNS} times in turn (BENCH_RUNS) a job through the hub's REST, from before the request, and "
    "the same image, worker count and program as a bare Job, MPIJob and TFJob, from before the one request to the API that makes it; "
    "both to the first line that any rank prints, by the machine's clock; where the cluster has Volcano also by a hub that does not see it. "
    "Medians; stages are until the last pod is there, is bound, its container runs, and the first line"
)
COMMAND = "make bench ONLY=kube_jobs"
CPU = 0.9
CODE = "import time; print(time.time(), flush=True)"
RUNTIMES = {
    name: ranks
    for name, ranks in (("plain", 1), ("mpi", 2), ("tf", 2))
    if name in os.environ.get("BENCH_RUNTIMES", "plain,mpi,tf")
}
VOLCANO = frozenset({"scheduling.volcano.sh", "batch.volcano.sh"})
_KINDS = {"plain": JOBS, "mpi": MPI_JOBS, "tf": TF_JOBS}
_TITLES = {"plain": "Job of one rank", "mpi": "MPIJob of two ranks", "tf": "TFJob of two workers"}
_BARE = {"bare": "AtStartup", "waiting": "WaitForWorkersReady"}
"""Whose: the bare MPIJob comes in two ways, and the better is the anchor."""
Way = tuple[str, str]  # whose, and the runtime


@dataclass
class Took:
    """Seconds from the request to each stage, one list for each stage."""

    made: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    line: list[float] = field(default_factory=list)

    def stages(self) -> str:
        return " ".join(f"{median_of(s):.2f}" for s in (self.made, self.bound, self.running, self.line))


def run(context: Context) -> list[Figure]:
    """Measure all of them."""
    name, kept = new_name(), contextlib.ExitStack()
    with kept:
        hubs = {"ours": kept.enter_context(hub_in_cluster(name))}
        if asyncio.run(_has_volcano()):
            between = kept.enter_context(KubeBetween(kubeconfig(), context.tmp))
            between.lacks = VOLCANO
            hubs["alone"] = kept.enter_context(hub_in_cluster(f"{name}x", between.kubeconfig))
        took = asyncio.run(_measure(hubs, f"{name}-bare"))
    about_kubectl = f"kubectl itself takes {_kubectl():.2f} s until its request, which counts for neither"
    figures = []
    for (whose, runtime), ours in took.items():
        if whose not in _BARE:
            best = min(
                (took[w, runtime] for w in _BARE if (w, runtime) in took), key=lambda t: median_of(t.line)
            )
            figures.append(_figure(whose, runtime, ours, best, about_kubectl))
    return figures


def _figure(whose: str, runtime: str, ours: Took, bare: Took, about_kubectl: str) -> Figure:
    is_p11 = runtime == "mpi"
    return Figure(
        f"{'P11 ' if is_p11 else ''}first line above a bare {_TITLES[runtime]}{', no Volcano' if whose == 'alone' else ''}",
        median_of(ours.line) - median_of(bare.line),
        "s",
        median_of(bare.line),
        "bare",
        f"stages {ours.stages()} s, bare {bare.stages()} s; p90 {quantile(ours.line, 0.9):.2f}, bare {quantile(bare.line, 0.9):.2f} s; "
        f"median of differences {median_of([a - b for a, b in zip(ours.line, bare.line, strict=True)]):+.2f} s; "
        f"{'target <= 0.3; ' if is_p11 else ''}{about_kubectl}; {load()}",
        COMMAND,
    )


async def _has_volcano() -> bool:
    client = await KubernetesClient.connect(kubeconfig())
    try:
        return await client.serves(POD_GROUPS)
    finally:
        await client.close()


class Pods:
    """When pods came to each stage, as a watch tells."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client
        self._at: dict[tuple[str, str], dict[str, float]] = {}

    async def follow(self) -> None:
        version = (await self._client.list(PODS, metadata=True)).version
        while True:
            async for event in self._client.watch(PODS, version):
                version = event.object["metadata"]["resourceVersion"]
                if event.type in ("ADDED", "MODIFIED"):
                    self._seen(event.object)

    def _seen(self, pod: Object) -> None:
        now, at = time.time(), self._at.setdefault((namespace_of(pod), name_of(pod)), {})
        at.setdefault("made", now)
        if pod["spec"].get("nodeName"):
            at.setdefault("bound", now)
        if pod["status"].get("phase") not in (None, "Pending"):
            at.setdefault("running", now)

    def took(self, namespace: str, began: float, line: float, into: Took) -> None:
        """Note the stages of the pods that were made in a namespace since then."""
        mine = [at for (where, _), at in self._at.items() if where == namespace and at["made"] >= began]
        for stage in ("made", "bound", "running"):
            getattr(into, stage).append(max(at[stage] for at in mine) - began)
        into.line.append(line - began)


async def _measure(hubs: Mapping[str, LiveHub], namespace: str) -> dict[Way, Took]:
    client = await KubernetesClient.connect(kubeconfig())
    took = {
        (whose, runtime): Took()
        for runtime, ranks in RUNTIMES.items()
        for whose in (*hubs, *_BARE)
        if ranks > 1 or whose != "alone"  # of one rank nobody but the cluster itself sees to anyway
        if runtime == "mpi" or whose != "waiting"
    }
    pods = Pods(client)
    following = asyncio.ensure_future(pods.follow())
    try:
        await client.create(NAMESPACES.named(namespace), NAMESPACES)
        for i in range(RUNS + 1):
            for (whose, runtime), stages in took.items():
                if whose in _BARE:
                    began, line = await _bare(
                        client, namespace, runtime, f"{runtime}-{whose}-{i}", _BARE[whose]
                    )
                    where = namespace
                else:
                    began, line = await asyncio.to_thread(_ours, hubs[whose], runtime, i)
                    where = f"{hubs[whose].env['MLP_KUBERNETES_NAME']}-default"
                if i:  # the first of each is not counted
                    pods.took(where, began, line, stages)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await client.delete(NAMESPACES, namespace)
        await client.close()
    return took


def _ours(hub: LiveHub, runtime: str, i: int) -> tuple[float, float]:
    began = time.time()
    job, ranks = f"{runtime}-{i}", RUNTIMES[runtime]
    hub.submit("bench", job, CODE, runtime=runtime, workers=ranks, cpu=CPU, ram=200)
    hub.wait_phase("bench", job, "finished")
    lines = (hub.log("bench", job, rank).split() for rank in range(ranks))
    return began, min(float(line[-1]) for line in lines if line)


async def _bare(
    client: KubernetesClient, namespace: str, runtime: str, name: str, policy: str
) -> tuple[float, float]:
    kind = _KINDS[runtime]
    wanted = kind.named(name, namespace, spec=_spec(runtime, policy))
    began = time.time()
    await client.create(wanted, kind)
    await until(lambda: _ended(client, kind, wanted), what=f"the bare {kind.kind}", every=0.1)
    pods = (await client.list(PODS, namespace)).items
    told = [
        await client.read(f"/api/v1/namespaces/{namespace}/pods/{name_of(pod)}/log")
        for pod in pods
        if name_of(pod).startswith(f"{name}-")
    ]
    first = min(float(word) for text in told for word in text.decode().split() if is_time(word, began))
    await client.delete(kind, name_of(wanted), namespace)
    await until(lambda: _gone(client, namespace), what="the bare pods' end", every=0.2)
    return began, first


def is_time(word: str, began: float) -> bool:
    """Whether a word of a log is a time of this run, in seconds since the epoch: a day at most after it began."""
    number = word.count(".") == 1 and word.replace(".", "").isdigit()
    return number and -1.0 <= float(word) - began < 86_400.0


async def _ended(client: KubernetesClient, kind: Kind, wanted: Object) -> bool:
    found = await client.get(kind, name_of(wanted), wanted["metadata"]["namespace"])
    assert found is not None
    conditions = {c["type"]: c["status"] for c in found.get("status", {}).get("conditions") or ()}
    if conditions.get("Failed") == "True":
        raise RuntimeError(f"the bare {kind.kind} failed: {found['status']}")
    return conditions.get("Succeeded") == "True" or conditions.get("Complete") == "True"


async def _gone(client: KubernetesClient, namespace: str) -> bool:
    return not (await client.list(PODS, namespace, metadata=True)).items


def _spec(runtime: str, policy: str) -> dict[str, Any]:
    if runtime == "plain":
        return {"template": _pod("c", ["python3", "-c", CODE])}
    if runtime == "tf":
        one = {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": _pod("tensorflow", ["python3", "-c", CODE]),
        }
        return {"runPolicy": {"cleanPodPolicy": "None"}, "tfReplicaSpecs": {"Chief": one, "Worker": one}}
    mpirun = ["mpirun", "-n", "2", "--mca", "btl", "tcp,self", "python3", "-c", CODE]
    sshd = ["/usr/sbin/sshd", "-De", "-f", "/home/mlp/.sshd_config"]
    worker, launcher = _pod("worker", sshd, restart=None), _pod("launcher", mpirun, "OnFailure")
    return {
        "slotsPerWorker": 1,
        "sshAuthMountPath": "/home/mlp/.ssh",
        "runLauncherAsWorker": True,
        "launcherCreationPolicy": policy,
        "runPolicy": {"cleanPodPolicy": "None"},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": launcher},
            "Worker": {"replicas": 1, "template": worker},
        },
    }


def _pod(name: str, command: list[str], restart: str | None = "Never") -> dict[str, Any]:
    amount = {"cpu": f"{CPU}", "memory": "200Mi"}
    container = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": amount, "limits": amount},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    user = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000}
    spec = {"terminationGracePeriodSeconds": 1, "securityContext": user, "containers": [container]}
    return {"spec": spec | ({"restartPolicy": restart} if restart else {})}


def _kubectl() -> float:
    kube = Kube(kubeconfig())
    wanted = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none, namespace: default}\n"
    took = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(
            [kube.program, f"--kubeconfig={kube.kubeconfig}", "apply", "--dry-run=client", "-f", "-"],
            input=wanted,
            text=True,
            capture_output=True,
            check=True,
        )
        took.append(time.perf_counter() - began)
    return median_of(took)
