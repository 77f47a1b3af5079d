"""Where ranks go: gangs placed per second, the time of one decision, and GPUs allocated on the openb traces."""

from __future__ import annotations

import csv
import random
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from bench_common import Context, Figure, Stopwatch, data_path, quantile
from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes.index import NodeIndex

NAME = "placement"
ABOUT = (
    "in one process, without a hub: (a) 5,000 nodes of 8 GPUs, gangs of 4-16 ranks come and go at about 90 % load; (b) 10,000 nodes "
    "that all differ, take, place and give after one change; (c) openb: pods by name, shuffled with seeds 42-51, random ones appended "
    "to 1.3 x the GPUs, no departures, allocated GPU % at the end"
)
TRACES = ("default", "cpu100", "gpushare40", "multigpu20")
SEEDS = range(42, 52)
RULES = {
    "random": "01-Random",
    "bestfit": "05-BestFit",
    "packing": "04-GpuPacking",
    "fgd-plain": "06-FGD",
    "fgd": "06-FGD",
}
COMMAND = "make bench ONLY=placement"


def run(context: Context) -> list[Figure]:
    """Measure all three."""
    figures = [gangs(), decision()]
    data = data_path("alibaba-openb")
    if data is None:
        sys.stdout.write("  openb skipped: no alibaba-openb in MLP_BENCH_DATA or ../shared/data\n")
        return figures
    return figures + openb(data)


def gangs() -> Figure:
    """Place gangs on 5,000 nodes for some seconds, others leaving all the time."""
    rng = random.Random(7)
    nodes = [
        Node(f"n-{i}", Resources(96_000, 8000, 786_432), gpu_kind="a100", labels={"rack": f"r{i // 40}"})
        for i in range(5000)
    ]
    index = NodeIndex(nodes)
    demands = [
        Demand(cpu, ram, 0, whole, part)
        for cpu, ram, whole, part in (
            (8000, 32768, 1, 0),
            (4000, 16384, 1, 0),
            (16000, 131072, 2, 0),
            (48000, 262144, 4, 0),
            (96000, 524288, 8, 0),
            (2000, 8192, 0, 500),
            (2000, 8192, 0, 250),
        )
    ]
    held: list[tuple[Demand, tuple[str, ...], tuple[tuple[int, ...], ...]]] = []
    gpus = ranks = placed = 0
    watch = Stopwatch()
    began = busy = 0.0
    while placed == 0 or watch.seconds - began < 5:
        demand = rng.choice(demands)
        n = rng.randint(4, 16)
        while gpus + demand.gpu * n > 0.9 * 40_000_000:
            if not began:  # full: from here on gangs come and go, and time counts
                began, busy, placed, ranks = watch.seconds, time.process_time(), 0, 0
            at = rng.randrange(len(held))
            held[at], held[-1] = held[-1], held[at]
            gone = held.pop()
            index.release_ranks(*gone)
            gpus -= gone[0].gpu * len(gone[1])
        seats = index.place(demand, n)
        if seats is None:
            continue
        held.append((demand, seats, index.reserve_ranks(demand, seats)))
        gpus += demand.gpu * n
        if began:
            placed += 1
            ranks += n
    seconds, busy = watch.seconds - began, time.process_time() - busy
    return Figure(
        "gang pods placed per second, 5,000 nodes",
        ranks / seconds,
        "1/s",
        630,
        "kube-scheduler gangs",
        f"{placed / seconds:.0f} gangs/s at 90 % load, each leaves as well; {ranks / busy:,.0f} per second of processor time; target 10,000; in memory, theirs binds through the API server",
        COMMAND,
    )


def decision() -> Figure:
    """Time one decision on 10,000 nodes of which no two are alike."""
    rng = random.Random(3)
    nodes = [
        Node(
            f"n-{i}",
            Resources(
                rng.randrange(16_000, 129_000),
                rng.choice((0, 1, 2, 4, 8)) * 1000,
                rng.randrange(65_536, 1_048_576),
            ),
            gpu_kind=rng.choice(("a", "b", "c")),
        )
        for i in range(10_000)
    ]
    index = NodeIndex(nodes)
    demands = [
        Demand(rng.randrange(1, 16) * 1000, rng.randrange(4, 64) * 1024, 0, *shape)
        for shape in ((1, 0), (2, 0), (4, 0), (0, 500), (0, 250), (0, 0))
        for _ in range(4)
    ]
    first, after, busy = [], [], []
    for demand in demands:
        watch = Stopwatch()
        index.place(demand, 1)
        first.append(watch.seconds)
    for _ in range(3000):
        changed = rng.choice(demands)
        there = index.place(changed, 1)
        assert there is not None
        held = index.reserve_ranks(changed, there)
        watch, cpu = Stopwatch(), time.process_time()
        demand = rng.choice(demands)
        seats = index.place(demand, 1)
        assert seats is not None
        index.release_ranks(demand, seats, index.reserve_ranks(demand, seats))
        after.append(watch.seconds)
        busy.append(time.process_time() - cpu)
        if rng.random() < 0.5:
            index.release_ranks(changed, there, held)
    return Figure(
        "place, take, give after one change, p99",
        quantile(after, 0.99) * 1000,
        "ms",
        10,
        "target",
        f"10,000 differing nodes; median {quantile(after, 0.5) * 1000:.2f} ms; p99 of processor time {quantile(busy, 0.99) * 1000:.2f} ms; a shape never seen before {quantile(first, 0.5) * 1000:.0f} ms",
        COMMAND,
    )


def openb(data: Path) -> list[Figure]:
    """Replay the traces with each rule, two at a time."""
    with (data / "published_allocation_at_130.csv").open() as f:
        published = {
            (row["trace"], row["policy"]): float(row["mean_allocated_gpu_percent"])
            for row in csv.DictReader(f)
        }
    jobs = [(str(data), trace, rule, seed) for trace in TRACES for rule in RULES for seed in SEEDS]
    watch = time.perf_counter()
    with ProcessPoolExecutor(
        2, mp_context=get_context("spawn"), initializer=_paths, initargs=(sys.path,)
    ) as pool:
        results = dict(zip(jobs, pool.map(allocated, jobs, chunksize=5), strict=True))
    seconds = time.perf_counter() - watch
    figures = []
    for trace in TRACES:
        for rule, name in RULES.items():
            values = [results[str(data), trace, rule, seed] for seed in SEEDS]
            figures.append(
                Figure(
                    f"openb {trace}: GPU allocated, {'ours' if rule == 'fgd' else rule}",
                    statistics.mean(values),
                    "%",
                    published[trace, name],
                    f"{name[3:]} published",
                    f"s.d. {statistics.stdev(values):.2f} over {len(values)} seeds"
                    + (f"; all in {seconds:.0f} s" if figures == [] else ""),
                    COMMAND,
                )
            )
    return figures


def _paths(paths: list[str]) -> None:
    sys.path[:] = paths


@cache
def _nodes(data: str) -> tuple[Node, ...]:
    with (Path(data) / "openb_node_list_gpu_node.csv").open() as f:
        return tuple(
            Node(
                row["sn"],
                Resources(int(row["cpu_milli"]), int(row["gpu"]) * 1000, int(row["memory_mib"])),
                gpu_kind=row["model"],
            )
            for row in sorted(csv.DictReader(f), key=lambda row: row["sn"])
        )


@cache
def _pods(data: str, trace: str) -> tuple[Demand, ...]:
    with (Path(data) / f"openb_pod_list_{trace}.csv").open() as f:
        rows = sorted(csv.DictReader(f), key=lambda row: row["name"])
    pods = []
    for row in rows:
        count, milli = int(row["num_gpu"]), int(row["gpu_milli"])
        whole, part = (count, 0) if milli == 1000 else (0, milli)
        if part and count != 1:
            raise ValueError(f"{row['name']}: {count} GPUs of {milli} each")
        kinds = row.get("gpu_spec") or None  # kinds it may have, as in the simulator of FGD
        if not count:
            whole = part = 0
        pods.append(
            Demand(int(row["cpu_milli"]), int(row["memory_mib"]), 0, whole, part, kinds if count else None)
        )
    return tuple(pods)


@cache
def _index(data: str, trace: str, rule: str) -> NodeIndex:
    typical = [(demand, float(n)) for demand, n in Counter(_pods(data, trace)).most_common()]
    return NodeIndex(_nodes(data), typical, rule)


def allocated(job: tuple[str, str, str, int]) -> float:
    """Return the allocated GPU % at the end of one trace, rule and seed."""
    data, trace, rule, seed = job
    index = _index(data, trace, rule).fork()
    index.seed = seed
    pods = _pods(data, trace)
    rng = random.Random(seed)
    order = list(pods)
    rng.shuffle(order)
    asked = sum(d.gpu for d in order)
    while asked < 1.3 * index.total.gpu:
        order.append(rng.choice(pods))
        asked += order[-1].gpu
    held = 0
    for demand in order:
        seats = index.place(demand, 1)
        if seats is not None:
            index.reserve_ranks(demand, seats)
            held += demand.gpu
    return 100 * held / index.total.gpu
