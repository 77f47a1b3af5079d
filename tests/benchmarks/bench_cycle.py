"""The time of one scheduling cycle after one event, with much waiting."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from bench_common import Context, Figure, quantile
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.gc_tuning import spare_the_collector
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Node, PendingWorkload, SchedulingPolicy, TenantQueue

NAME = "cycle"
NODES, TENANTS, WAITING, EVENTS = 10_000, 1_000, 100_000, 600
ABOUT = (
    f"in one process, without a hub: {WAITING:,} jobs wait in {TENANTS:,} tenants of 50 cohorts for {NODES:,} nodes, half of "
    f"them with 8 GPUs, all full; then {EVENTS} times a job ends, one is submitted, or both, and one cycle runs"
)
SHAPES = (
    *((Resources(1000, 0, 4096), n) for n in (1, 2, 4, 8, 16)),
    *((Resources(4000, 0, 8192), n) for n in (1, 4, 8)),
    *((Resources(4000, gpus * 1000, 16_384), n) for gpus in (1, 2, 4, 8) for n in (1, 2, 4, 8)),
    (Resources(2000, 500, 8192), 1),
    (Resources(16_000, 0, 65_536), 2),
)


def run(context: Context) -> list[Figure]:
    """Fill the cluster, then measure one cycle for each event."""
    spare_the_collector()  # as the service does
    rng = random.Random(1)
    core = Core(SchedulingPolicy(), _nodes(rng), _tenants(rng))
    now, serial = 100.0, 0
    while len(core.state.waiting) < WAITING:
        for _ in range(WAITING // 10):
            serial += 1
            core.submit(_job(rng, serial))
        core.plan(now)
        now += 1
    spans: list[float] = []
    admitted = 0
    for event in range(EVENTS):
        now += 0.1
        if event % 3 != 1:
            core.end(rng.choice(list(core.state.running)), now)
        if event % 3:
            serial += 1
            core.submit(_job(rng, serial))
        before = len(core.state.running)
        began = time.perf_counter()
        core.plan(now)
        spans.append((time.perf_counter() - began) * 1000)
        admitted += len(core.state.running) - before
    note = f"{len(core.state.running):,} jobs run, {len(core.state.waiting):,} wait"
    command = "make bench ONLY=cycle"
    return [
        Figure(
            "P3 one cycle after one event, p99", quantile(spans, 0.99), "ms", 50.0, "target", note, command
        ),
        Figure("P3 one cycle after one event, median", quantile(spans, 0.5), "ms", command=command),
    ]


def _nodes(rng: random.Random) -> list[Node]:
    plain = Node("", Resources(96_000, 0, 393_216))
    nodes = []
    for i in range(NODES):
        labels = {"rack": f"r-{i // 32}", "zone": f"z-{i // 1000}"}
        if i % 2:
            kind = rng.choice(["a100", "h100"])
            nodes.append(Node(f"n-{i}", Resources(64_000, 8000, 262_144), gpu_kind=kind, labels=labels))
        else:
            nodes.append(replace(plain, name=f"n-{i}", labels=labels))
    return nodes


def _tenants(rng: random.Random) -> list[TenantQueue]:
    """Quotas add up to 1.2 times what there is."""
    cpu, gpu = NODES * 80_000 * 6 // 5 // TENANTS, NODES * 4000 * 6 // 5 // TENANTS
    return [
        TenantQueue(f"t-{i}", Quota(cpu=cpu, gpu=gpu), weight=rng.choice([1, 1, 2, 4]), cohort=f"c-{i % 50}")
        for i in range(TENANTS)
    ]


def _job(rng: random.Random, serial: int) -> PendingWorkload:
    per_worker, workers = rng.choice(SHAPES)
    return PendingWorkload(
        uid=f"j-{serial}",
        name=f"j-{serial}",
        user="ann",
        tenant=f"t-{rng.randrange(TENANTS)}",
        per_worker=per_worker,
        workers_min=workers,
        workers_max=workers,
        queued_at=serial / 1000,
        priority=rng.choice([50, 100, 100, 100, 200]),
        time_limit=rng.choice([None, 3600.0, 7200.0, 86_400.0]),
    )
