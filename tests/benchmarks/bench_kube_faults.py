"""A cluster's API that was away for a minute, and one that is slow and refuses: what becomes of jobs, and of the service's own REST."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench_common import Context, Figure, median_of, quantile
from bench_kube_gangs import VOLCANO, ClusterService, prepare
from bench_kueue import Connection
from kube_fill import empty, fill
from kube_hub import kubeconfig, load, new_name
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, PODS, labels_of
from support.cluster.kube import Kube
from support.cluster.kube_between import KubeBetween
from support.cluster.pod_stack import leave
from support.waiting import until

NAME = "kube_faults"
JOBS = int(os.environ.get("BENCH_JOBS", "200"))
AWAY_S = float(os.environ.get("BENCH_AWAY_S", "60"))
OURS = ("run", "late", "wait")
SLOW_S = 0.2
REFUSED = 10
ASKED = 100
ABOUT = (
    f"needs a cluster with kwok (`make cluster TIER=api`): of {JOBS} TFJobs of two ranks (BENCH_JOBS) half run, a quarter waits for "
    f"quota, and a quarter is submitted just before the API is away for {AWAY_S:g} s (BENCH_AWAY_S): a server between it and the service "
    f"cuts all connections. Then the API takes {SLOW_S * 1000:.0f} ms more for each answer and refuses one request of {REFUSED} with 429, while "
    f"{ASKED} requests of each kind go to the service's REST"
)
COMMAND = "make bench ONLY=kube_faults"


def run(context: Context) -> list[Figure]:
    """Make the cluster, and measure both."""
    config, name = kubeconfig(), new_name()
    taint = {"key": "tenant", "value": "t0", "effect": "NoSchedule"}
    try:
        asyncio.run(fill(config, range(max(20, JOBS // 3)), range(0), taints=[taint]))
        with KubeBetween(config, context.tmp) as between:
            between.lacks = VOLCANO
            home = Path(tempfile.mkdtemp(prefix="mlp-b", dir="/tmp"))
            with ClusterService(home, name, between, tenants=1) as service:
                return asyncio.run(_measure(service, name, between, config))
    finally:
        leave(Kube(config), name)
        empty(config)


async def _measure(service: ClusterService, name: str, between: KubeBetween, config: Path) -> list[Figure]:
    client = await KubernetesClient.connect(config)
    try:
        (user,) = await prepare(service, client, name, tenants=1)
        watcher = await Connection(service.settings.service_socket, "user-0-token").open()
        before = await _rest(user, "before")
        figures = await _away(service, name, between, client, watcher)
        await _allow(service, 1_000_000)  # all begin now
        between.slow_s, between.refuse_every, between.refused = SLOW_S, REFUSED, 0
        during = await _rest(user, "slow")
        between.slow_s, between.refuse_every = 0.0, 0
        for what, (now, then) in {k: (during[k], before[k]) for k in during}.items():
            figures.append(
                Figure(
                    f"REST while the cluster's API is slow: {what}, p99",
                    quantile(now, 0.99) * 1000,
                    "ms",
                    quantile(then, 0.99) * 1000,
                    "before",
                    f"median {median_of(now) * 1000:.1f}, before {median_of(then) * 1000:.1f} ms; {between.refused} requests "
                    f"of the service were refused; {load()}",
                    COMMAND,
                )
            )
        user.close()
        watcher.close()
        return figures
    finally:
        await client.close()


def _job(name: str) -> dict[str, Any]:
    # a gpu, which only nodes that kwok plays have
    return {
        "name": name,
        "tenant": "t0",
        "code": "pass",
        "workers": 2,
        "runtime": "tf",
        "cpu": 1,
        "gpu": 1,
        "ram": 100,
    }


async def _away(
    service: ClusterService, name: str, between: KubeBetween, client: KubernetesClient, user: Connection
) -> list[Figure]:
    running, late = JOBS // 2, JOBS // 4
    # room for those that run and those that start; the rest waits
    await _allow(service, 2 * (running + late))
    await _submit(user, "run", running)
    await until(lambda: _phases_are(user, {"running": running}), timeout=500, what="jobs to run", every=1.0)
    await _submit(user, "late", late)
    await _submit(user, "wait", JOBS - running - late)
    made = len(await _claims(client, name))
    between.away = True
    cut = time.monotonic()
    slowest = await _ask_meanwhile(user, cut + AWAY_S)
    between.calls.clear()
    cpu, began = service.cpu_s(), time.monotonic()
    between.away = False
    waiting = JOBS - running - late
    seen = {"running": running + late, "queued": waiting}
    started = {"claims": 0.0}

    async def all_started() -> bool:
        if len(await _claims(client, name)) >= running + late:
            started["claims"] = started["claims"] or time.monotonic() - began
        return await _phases_are(user, seen)

    await until(all_started, timeout=500, what=f"all jobs to be seen again: {seen}", every=0.5)
    took, used = time.monotonic() - began, service.cpu_s() - cpu
    claims = await _claims(client, name)
    attempts = Counter(labels_of(c)["mlp-hub/attempt"] for c in claims)
    pods = await client.list(PODS, labels=f"app.kubernetes.io/instance={name},mlp-hub/job", metadata=True)
    jobs = await user.call("GET", "/users/user-0/jobs?limit=1000")
    calls = {what: n for what, n in between.calls.items() if not what.startswith("watch")}
    told = ", ".join(f"{n} {what}" for what, n in sorted(between.calls.items(), key=lambda e: -e[1])[:8])
    return [
        Figure(
            f"{JOBS} jobs seen and started again after {AWAY_S:g} s without the API",
            took,
            "s",
            note=f"all claims were there after {started['claims']:.1f} s (a rank of kwok's writes nothing, so that it counts as running 20 s "
            f"after its pod does); {made} of {running + late} claims stood when it went; {len(claims) - len(attempts)} attempts doubled, "
            f"{sum(j['restarts'] for j in jobs)} restarted, {len(pods.items)} pods of {2 * (running + late)}; {load()}",
            command=COMMAND,
        ),
        Figure("API calls until then", sum(calls.values()), "", note=told, command=COMMAND),
        Figure("processor time of the service until then", used, "s", command=COMMAND),
        Figure("REST while the API is away, slowest answer", slowest * 1000, "ms", command=COMMAND),
    ]


async def _allow(service: ClusterService, cpu: int) -> None:
    admin = await Connection(service.settings.service_socket, "admin-token").open()
    await admin.call("PUT", "/tenants/t0", {"cpu": cpu})
    admin.close()


async def _submit(user: Connection, kind: str, number: int) -> None:
    for i in range(number):
        await user.call("POST", "/users/user-0/jobs", _job(f"{kind}-{i}"))


async def _phases_are(user: Connection, wanted: dict[str, int]) -> bool:
    jobs = [j for j in await user.call("GET", "/users/user-0/jobs?limit=1000") if j["name"].startswith(OURS)]
    ended = [j for j in jobs if j["phase"] in ("failed", "finished", "cancelled")]
    if ended:
        raise RuntimeError(f"{len(ended)} jobs ended, one: {ended[0]}")
    found = Counter(j["phase"] for j in jobs)
    return all(found[phase] == n for phase, n in wanted.items())


async def _claims(client: KubernetesClient, name: str) -> list[Any]:
    labels = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=attempt"
    return list((await client.list(CONFIG_MAPS, labels=labels, metadata=True)).items)


async def _ask_meanwhile(user: Connection, end: float) -> float:
    slowest = 0.0
    while time.monotonic() < end:
        began = time.perf_counter()
        await user.call("GET", "/users/user-0/jobs?limit=1000")
        slowest = max(slowest, time.perf_counter() - began)
        await asyncio.sleep(0.5)
    return slowest


async def _rest(user: Connection, kind: str) -> dict[str, list[float]]:
    """Ask for jobs, for one, and submit one, so many times each."""
    took: dict[str, list[float]] = {"the list of jobs": [], "submit": [], "cancel": []}
    for i in range(ASKED):
        for what, method, path, body in (
            ("submit", "POST", "/users/user-0/jobs", _job(f"{kind}-{i}")),
            ("the list of jobs", "GET", "/users/user-0/jobs?limit=100", None),
            ("cancel", "PUT", f"/users/user-0/jobs/{kind}-{i}:cancel", None),
        ):
            began = time.perf_counter()
            await user.call(method, path, body)
            took[what].append(time.perf_counter() - began)
    return took
