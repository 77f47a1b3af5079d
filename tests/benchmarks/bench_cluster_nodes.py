"""What it costs to know the nodes of a large cluster: memory, seconds, calls of its API; and a cycle of the scheduler beside it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_common import Context, Figure, quantile
from kube_fill import TOLERATES, all_of, empty, fill
from kube_hub import kubeconfig as the_kubeconfig

NAME = "cluster_nodes"
NODES = int(os.environ.get("BENCH_NODES", "5000"))
PODS = int(os.environ.get("BENCH_PODS", "50000"))
WAITING, TENANTS, CHANGES = 10_000, 500, 200
ABOUT = (
    f"needs a cluster with kwok, that of KUBECONFIG or of `make cluster TIER=api`: {NODES:,} nodes with 8 GPUs and "
    f"{PODS:,} pods on them, half of them the hub's own, are made and taken away again (BENCH_NODES, BENCH_PODS); a "
    f"process of its own learns of them all, then {CHANGES} times of one node that is cordoned or opened, then of 500 at once; "
    f"and plans a cycle of {WAITING:,} waiting jobs after each of them"
)
COMMAND = "make bench ONLY=cluster_nodes"


def run(context: Context) -> list[Figure]:
    """Fill the cluster, measure in another process, and empty it."""
    kubeconfig = the_kubeconfig()
    try:
        made_in = asyncio.run(fill(kubeconfig, range(NODES), range(PODS)))
        done = subprocess.run(
            [sys.executable, __file__, str(kubeconfig)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])},
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        found = json.loads(done.stdout)
    finally:
        empty(kubeconfig)
    size = f"{found['nodes']:,} nodes ({found['ready']:,} ready), {found['pods']:,} pods; made in {made_in:.0f} s"
    calls = ", ".join(f"{n} {what}" for what, n in found["calls"].items())

    def figure(name: str, value: float, unit: str, note: str = "") -> Figure:
        return Figure(f"cluster nodes: {name}", value, unit, note=note, command=COMMAND)

    return [
        figure("until all are known", found["synced_s"], "s", size),
        figure("processor time until then", found["synced_cpu_s"], "s"),
        figure("API calls until then", sum(found["calls"].values()), "", calls),
        figure("memory of it, kept", found["kept_mb"], "MB", f"at most {found['peak_mb']:.0f} MB meanwhile"),
        figure("processor while nothing happens", found["idle_cpu"] * 100, "%", "heartbeats alone"),
        figure("node's change to callback, median", quantile(found["seen_s"], 0.5) * 1000, "ms"),
        figure(
            "node's change to callback, p99",
            quantile(found["seen_s"], 0.99) * 1000,
            "ms",
            "the API's answer included",
        ),
        figure(
            "500 nodes at once to the last callback", found["many_s"], "s", f"{found['many_told']} callbacks"
        ),
        figure(
            "the core hears of one node, median",
            statistics.median(found["hear_s"]) * 1000,
            "ms",
            f"made anew: {found['anew_s'] * 1000:.0f} ms",
        ),
        figure(
            "cycle after it, median",
            statistics.median(found["cycle_s"]) * 1000,
            "ms",
            f"{WAITING:,} jobs wait",
        ),
        figure("cycle after it, p99", quantile(found["cycle_s"], 0.99) * 1000, "ms"),
    ]


# --- the process that is measured


async def _measure(kubeconfig: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with _watching(kubeconfig) as (nodes, client, writer):
        before, cpu = _rss(), time.process_time()
        began, known = time.monotonic(), asyncio.Event()
        nodes.on_nodes(known.set)
        await nodes.open()
        await known.wait()
        found |= {"synced_s": time.monotonic() - began, "synced_cpu_s": time.process_time() - cpu}
        found |= {"calls": dict(client.calls), "nodes": len(nodes.nodes()), "pods": PODS}
        found["ready"] = sum(n.ready for n in nodes.nodes())
        found["kept_mb"] = _rss() - before
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.sleep(30)
        found["idle_cpu"] = (time.process_time() - cpu) / (time.monotonic() - began)
        found |= await _changes(nodes, writer)
    return found


@asynccontextmanager
async def _watching(kubeconfig: Path) -> AsyncIterator[tuple[Any, Any, Any]]:
    from mlp_hub.executors.kubernetes.installation import Installation
    from mlp_hub.executors.kubernetes.nodes.cluster_nodes import ClusterNodes
    from mlp_hub.executors.shared_volume.directories import Directories
    from mlp_hub.kubernetes.client import KubernetesClient

    root = Path("/mlp")
    at = Installation(
        root, Directories(homes=root / "h", jobs=root / "j"), {}, "", ("", 0), tolerations=(TOLERATES,)
    )
    client, writer = await KubernetesClient.connect(kubeconfig), await KubernetesClient.connect(kubeconfig)
    nodes = ClusterNodes(client, at)
    try:
        yield nodes, client, writer
    finally:
        await nodes.close()
        await client.close()
        await writer.close()


async def _changes(nodes: Any, writer: Any) -> dict[str, Any]:
    from mlp_hub.executors.nodes import Condition, ConditionKind
    from mlp_hub.kubernetes.kinds import NODES as NODE_KIND
    from mlp_hub.service.admission.snapshot import Holders, SeenNodes

    told = asyncio.Event()
    count = 0

    def tell() -> None:
        nonlocal count
        count += 1
        told.set()

    nodes.on_nodes(tell)
    holders, seen = Holders((), {}, {}, {}, None), SeenNodes()
    # for the core all are ready: who plays so many may be late with that
    open_nodes = {n.name: replace(n, conditions=()) for n in nodes.nodes()}
    kept, anew_s = _core(seen.seen_nodes(open_nodes.values(), holders))
    out: dict[str, Any] = {"seen_s": [], "hear_s": [], "cycle_s": [], "anew_s": anew_s}
    rng, now = random.Random(1), 100.0

    async def seen_as(name: str, cordoned: bool) -> None:
        while any(n.name == name and _is_cordoned(n) != cordoned for n in nodes.nodes()):
            told.clear()
            await told.wait()

    for _ in range(CHANGES // 2):
        name = rng.choice(nodes.nodes()).name
        for cordoned in (True, False):
            began = time.perf_counter()
            await writer.patch(NODE_KIND, name, {"spec": {"unschedulable": cordoned or None}})
            await seen_as(name, cordoned)
            out["seen_s"].append(time.perf_counter() - began)
            conditions = (Condition(ConditionKind.CORDONED),) if cordoned else ()
            open_nodes[name] = replace(open_nodes[name], conditions=conditions)
            began, now = time.perf_counter(), now + 1
            kept.nodes_are(seen.seen_nodes(open_nodes.values(), holders))
            out["hear_s"].append(time.perf_counter() - began)
            began = time.perf_counter()
            kept.plan(now)
            out["cycle_s"].append(time.perf_counter() - began)
    many = [n.name for n in nodes.nodes()[:500]]
    count, began = 0, time.monotonic()
    await all_of(writer.patch(NODE_KIND, name, {"spec": {"unschedulable": True}}) for name in many)
    while sum(map(_is_cordoned, nodes.nodes())) < len(many):
        told.clear()
        await told.wait()
    return out | {"many_s": time.monotonic() - began, "many_told": count}


def _is_cordoned(node: Any) -> bool:
    return any(c.kind == "Cordoned" for c in node.conditions)


def _core(nodes: list[Any]) -> tuple[Any, float]:
    """Make a core with jobs that wait for more than there is; returns how long it took too."""
    from mlp_hub.domain.resources import Quota, Resources
    from mlp_hub.scheduler.model.types import PendingWorkload, SchedulingPolicy, Snapshot, TenantQueue
    from mlp_hub.service.admission.backoff import JobBackoff
    from mlp_hub.service.admission.cache import KeptCore

    rng = random.Random(1)
    tenants = tuple(TenantQueue(f"t{i}", Quota(), cohort=f"c{i % 20}") for i in range(TENANTS))
    filled = len(nodes)  # gangs that take all GPUs, then those that wait
    waiting = tuple(
        PendingWorkload(
            uid=f"j{i}",
            name=f"j{i}",
            user="ann",
            tenant=f"t{i % TENANTS}",
            per_worker=Resources(4000, 1000 * (8 if i < filled else rng.choice([1, 2, 4, 8])), 16_384),
            workers_min=(workers := 1 if i < filled else rng.choice([1, 2, 4, 8])),
            workers_max=workers,
            queued_at=float(i) / 1000,
        )
        for i in range(filled + WAITING)
    )
    snapshot = Snapshot(tuple(nodes), tenants, waiting, (), SchedulingPolicy(preemption=False))
    began = time.perf_counter()
    kept = KeptCore(snapshot, 0.0, {}, JobBackoff(1.0, 2.0))
    took = time.perf_counter() - began
    for at in range(20):
        kept.plan(float(at))
    return kept, took


def _rss() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_measure(Path(sys.argv[1])))))
