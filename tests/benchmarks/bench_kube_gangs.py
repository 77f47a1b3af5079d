"""Gangs placed through the whole path on a large cluster that kwok plays: their rate, what they cost whom, and calls for each."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_common import Context, Figure, median_of, quantile
from bench_kueue import Connection, Load, Service
from kube_fill import empty, fill
from kube_hub import environment, kubeconfig, load, new_name, seconds_of
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, Object, name_of, namespace_of
from mlp_hub.settings import Settings
from proc import pss_of_tree
from support.cluster.kube import Kube
from support.cluster.kube_between import KubeBetween
from support.cluster.pod_stack import leave
from support.waiting import PATIENCE_S, until

NAME = "kube_gangs"
STEPS = tuple(
    tuple(int(n) for n in step.split("/"))
    for step in os.environ.get("BENCH_STEPS", "500/5000,2000/20000,5000/50000").split(",")
)
GANGS = int(os.environ.get("BENCH_GANGS", "200"))
RANKS = int(os.environ.get("BENCH_RANKS", "4"))
RUNTIME = os.environ.get("BENCH_RUNTIME", "plain")
WAYS = os.environ.get("BENCH_WAYS", "default,volcano").split(",")
TENANTS = 8
ABOUT = (
    f"needs a cluster with kwok (`make cluster TIER=api`): {GANGS} gangs of {RANKS} one-core ranks (BENCH_GANGS, BENCH_RANKS) of "
    f"{TENANTS} tenants are submitted through REST of one service process, as fast as it takes them, on so many nodes and with so "
    f"many pods of others there as BENCH_STEPS says; from the first submission until all pods of all gangs have their nodes. kwok "
    f"ends the pods at once, so that gangs go as fast as they come. With Kubernetes' own scheduler, and with Volcano's (BENCH_WAYS)"
)
COMMAND = "make bench ONLY=kube_gangs"
KUEUES_CAP = 50
VOLCANO = frozenset({"scheduling.volcano.sh", "batch.volcano.sh"})


def run(context: Context) -> list[Figure]:
    """Fill the cluster step by step, and measure at each."""
    config = kubeconfig()
    taints = [{"key": "tenant", "value": f"t{i}", "effect": "NoSchedule"} for i in range(TENANTS)]
    figures: list[Figure] = []
    nodes = pods = 0
    try:
        for to_nodes, to_pods in STEPS:
            made_in = asyncio.run(fill(config, range(nodes, to_nodes), range(pods, to_pods), taints=taints))
            nodes, pods = to_nodes, to_pods
            playing = asyncio.run(_played(config, pods))
            print(
                f"  {nodes} nodes, {pods} pods: made in {made_in:.0f} s, played in {playing:.0f} s more",
                flush=True,
            )
            for way in WAYS:
                result = _at(context, config, way)
                figures += result.figures(f"{nodes:,} nodes, {pods:,} pods, {way} scheduler")
                for figure in figures[-3:]:
                    print(f"  {figure.line()}", flush=True)
    finally:
        empty(config)
    return figures


@dataclass
class Result:
    """What came of one run."""

    placed: int = 0
    seconds: float = 0.0
    best: float = 0.0
    waits: list[float] = field(default_factory=list)
    finished_s: float | None = None
    calls: dict[str, int] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    service_s: float = 0.0
    rest_mb: float = 0.0
    peak_mb: float = 0.0
    submitted_s: float = 0.0

    def figures(self, where: str) -> list[Figure]:
        most = sorted(self.used.items(), key=lambda each: -each[1])
        per = ", ".join(
            f"{name} {seconds / max(1, self.placed) * 1000:.0f}" for name, seconds in most if seconds > 0.2
        )
        calls = ", ".join(
            f"{n / GANGS:.2g} {what}" for what, n in sorted(self.calls.items(), key=lambda e: -e[1])[:8]
        )
        ended = (
            "not all ended"
            if self.finished_s is None
            else f"all ended and cleared after {self.finished_s:.1f} s"
        )
        return [
            Figure(
                f"gangs of {RANKS} placed, {where}",
                self.placed / self.seconds if self.seconds else 0.0,
                "1/s",
                KUEUES_CAP,
                "Kueue's cap",
                f"{self.placed} of {GANGS}; best 2 s: {self.best:.0f}/s; last submission after {self.submitted_s:.1f} s, {ended}; submit to "
                f"bound median {median_of(self.waits) if self.waits else 0:.1f} s, p99 {quantile(self.waits, 0.99) if self.waits else 0:.1f} s; {load()}",
                COMMAND,
            ),
            Figure(
                f"API calls for a gang, {where}",
                sum(n for what, n in self.calls.items() if not what.startswith("watch")) / GANGS,
                "",
                note=calls,
                command=COMMAND,
            ),
            Figure(
                f"processor ms of the service for a gang, {where}",
                self.service_s / max(1, self.placed) * 1000,
                "ms",
                note=f"of the cluster: {per}; memory of the service {self.rest_mb:.0f} MB before, {self.peak_mb:.0f} MB after",
                command=COMMAND,
            ),
        ]


def _at(context: Context, config: Path, way: str) -> Result:
    name = new_name()
    with KubeBetween(config, context.tmp) as between:
        between.lacks = VOLCANO if way == "default" else frozenset()
        try:
            with ClusterService(Path(tempfile.mkdtemp(prefix="mlp-b", dir="/tmp")), name, between) as service:
                return asyncio.run(_play(service, name, between, config))
        finally:
            leave(Kube(config), name)


class ClusterService(Service):
    """A service process whose executor is the cluster's, with a stand-in for the hub."""

    def __init__(self, home: Path, name: str, between: KubeBetween, tenants: int = TENANTS) -> None:
        home.rmdir()
        super().__init__(home, Load(tenants, 1, ()))
        home.chmod(0o755)
        self.environ |= environment(name, between.kubeconfig) | {"MLP_KUBERNETES_IMAGE": "nothing/runs:here"}
        del self.environ["MLP_SIMULATED_NODES"]
        self.settings = Settings.load(self.environ)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def prepare(
    service: ClusterService, client: KubernetesClient, name: str, tenants: int = TENANTS
) -> list[Connection]:
    """Make tenants with a user each, and wait until the cluster has what they need; return the users' connections."""
    path = service.settings.service_socket
    admin = await Connection(path, "admin-token").open()
    users = []
    for i in range(tenants):
        user = await Connection(path, f"user-{i}-token").open()
        await user.call("GET", "/session")
        await admin.call(
            "POST", "/tenants", {"name": f"t{i}", "cpu": 1_000_000, "gpu": 100_000, "ram": 1_000_000_000}
        )
        await admin.call("PUT", f"/tenants/t{i}/members/user-{i}", {"role": "member"})
        users.append(user)
    admin.close()

    async def bound() -> bool:
        found = [
            await client.get(PERSISTENT_VOLUME_CLAIMS, "mlp-files", f"{name}-t{i}") for i in range(tenants)
        ]
        return all(each is not None and each.get("status", {}).get("phase") == "Bound" for each in found)

    await until(bound, what="the tenants' volumes", every=0.5)
    return users


async def _play(service: ClusterService, name: str, between: KubeBetween, config: Path) -> Result:
    client = await KubernetesClient.connect(config)
    result, bound = Result(), Bound(name)
    users = await prepare(service, client, name)
    following = asyncio.ensure_future(bound.follow(client))
    await asyncio.sleep(3)
    result.rest_mb = pss_of_tree(service.process.pid)
    between.calls.clear()
    used, own = seconds_of(config), service.cpu_s()
    submitted: dict[str, float] = {}
    began = time.time()

    async def submit(number: int) -> None:
        for i in range(number, GANGS, TENANTS):
            job = f"g{i:05d}"
            submitted[job] = time.time()
            body = {"name": job, "tenant": f"t{number}", "code": "pass", "workers": RANKS, "runtime": RUNTIME}
            await users[number].call(
                "POST", f"/users/user-{number}/jobs", body | {"cpu": 1, "gpu": 1, "ram": 100}
            )

    await asyncio.gather(*map(submit, range(TENANTS)))
    result.submitted_s = time.time() - began
    end = time.monotonic() + PATIENCE_S
    while bound.gangs < GANGS and time.monotonic() < end:  # noqa: ASYNC110 - others do the work
        await asyncio.sleep(0.2)
    result.placed = bound.gangs
    at = sorted(when for when in bound.whole.values())
    result.seconds = at[-1] - began if at else 0.0
    result.best = max((sum(1 for b in at if a - 2 < b <= a) / 2 for a in at), default=0.0)
    result.waits = [when - submitted[job] for job, when in bound.whole.items()]

    async def ended() -> bool:
        admin = await Connection(service.settings.service_socket, "admin-token").open()
        tenants = await admin.call("GET", "/tenants")
        admin.close()
        claims = await client.list(PODS, labels=f"app.kubernetes.io/instance={name}", metadata=True)
        return not any(t["running"] or t["waiting"] for t in tenants) and not claims.items

    try:
        await until(ended, what="the end of all gangs", every=1.0)
        result.finished_s = time.time() - began
    except AssertionError:
        result.finished_s = None
    after = seconds_of(config)
    result.used = {what: after[what] - used.get(what, 0.0) for what in after}
    result.service_s, result.peak_mb = service.cpu_s() - own, pss_of_tree(service.process.pid)
    result.calls = dict(between.calls)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    for user in users:
        user.close()
    await client.close()
    return result


class Bound:
    """When gangs of a hub had nodes for all of their pods, by the names of their jobs."""

    def __init__(self, name: str) -> None:
        self._labels = f"app.kubernetes.io/instance={name},mlp-hub/job"
        self._pods: dict[str, set[tuple[str, str]]] = {}
        self.whole: dict[str, float] = {}

    @property
    def gangs(self) -> int:
        return len(self.whole)

    async def follow(self, client: KubernetesClient) -> None:
        version = (await client.list(PODS, labels=self._labels, metadata=True)).version
        while True:
            async for event in client.watch(PODS, version, labels=self._labels):
                version = event.object["metadata"]["resourceVersion"]
                if event.type in ("ADDED", "MODIFIED"):
                    self._seen(event.object)

    def _seen(self, pod: Object) -> None:
        if pod["spec"].get("nodeName"):
            job: str = pod["metadata"]["labels"]["mlp-hub/job"]
            pods = self._pods.setdefault(job, set())
            pods.add((namespace_of(pod), name_of(pod)))
            if len(pods) >= RANKS:
                self.whole.setdefault(job, time.time())


async def _played(config: Path, pods: int) -> float:
    """Wait until kwok runs nearly all pods; return the seconds."""
    began, client = time.monotonic(), await KubernetesClient.connect(config)

    async def few_pending() -> bool:
        found: Mapping[str, Any] = await client._ask(
            "GET",
            PODS.path("mlp-bench"),
            "count",
            query={"limit": "500", "fieldSelector": "status.phase=Pending"},
        )
        return len(found["items"]) < max(10, pods // 200)

    try:
        await until(few_pending, timeout=600, what="kwok", every=2.0)
    except AssertionError:
        pass
    finally:
        await client.close()
    return time.monotonic() - began
