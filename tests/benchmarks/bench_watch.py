"""The cost of watching: scrapes of a service with 1,000 running jobs, and samples over time of 200 busy tenants with their answers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import scrape_cost
from bench_common import Context, Figure
from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.over_time.grains import GRAINS
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.admission.reason_counts import ReasonCounts
from mlp_hub.service.monitoring.look import DatabaseLook, look_at
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.over_time.service import OverTimeService
from mlp_hub.service.state.tallies import Tallies
from mlp_hub.store.database import Database

NAME = "watch"
ABOUT = (
    "a service process with 1,000 running jobs of 200 tenants on simulated nodes, scraped each 5 s by a Prometheus, beside without: processor time and "
    "memory, services in turn; quantiles and size of scrapes; then samples over time of 200 tenants that all hold, wait and have apps: processor time of a sample with its look at the database, in a "
    "run of six hours of samples and five weeks of hours; bytes on the disk; medians of answers"
)
COMMAND = "make bench ONLY=watch"
TENANTS, JOBS, ASKED = 200, 5, 9
FINE, FIVE, HOUR = GRAINS
BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
NODES = [
    NodeInfo(f"n{i}", Resources(64_000, 8000, 262_144), Resources(64_000, 8000, 262_144)) for i in range(20)
]


def run(context: Context) -> list[Figure]:
    """Have a service scraped; sample and ask."""
    return [*scrape_cost.figures(context), *asyncio.run(_figures(context.tmp / "watch"))]


class _Busy:
    """Stand-in of the parts that a sample reads: numbers as the platform keeps them."""

    def __init__(self, db: Database, clock: list[float]) -> None:
        self.clock, self.chance = clock, random.Random(3)
        self.tallies, self.reasons = Tallies(), ReasonCounts()
        self.apps = {f"t{i}": AppUse(0.0, bounds_ms=BOUNDS, latency=(0,) * 13) for i in range(TENANTS)}
        for i in range(TENANTS):
            for job in range(JOBS):
                self.reasons.put(
                    f"{i}-{job}", ("WaitingForQuota", "WaitingForResources")[job % 2], 0.0, f"t{i}"
                )
        board = SimpleNamespace(tallies=self.tallies, on_moves=[])
        admission = SimpleNamespace(reason_counts=self.reasons)
        self.parts = SimpleNamespace(db=db, board=board, admission=admission, nodes=lambda: NODES)

    def change(self) -> None:
        """Have some of it be another than at the last sample."""
        for name, use in self.apps.items():
            self.tallies.waiting[name], self.tallies.running[name] = JOBS, self.chance.randrange(9)
            self.tallies.cpu[name], self.tallies.ram[name] = (
                self.chance.randrange(9000),
                self.chance.randrange(9000),
            )
            latency = tuple(n + self.chance.randrange(9) * (self.chance.random() < 0.5) for n in use.latency)
            self.apps[name] = replace(use, requests=sum(latency), errors=use.errors + 1, latency=latency)

    async def look_around(self, *, newly: bool = False) -> DatabaseLook:
        """Look as the metrics do."""
        del newly
        look = await self.parts.db.read(lambda tx: look_at(tx, NODES, self.clock[0]))
        return replace(look, apps=dict(self.apps))

    async def node_uses(self, *, known: bool = False) -> Sequence[Any]:
        """Return nothing."""
        del known
        return ()


async def _figures(root: Path) -> list[Figure]:
    root.mkdir(parents=True)
    file = root / "mlp.sqlite"
    db = Database(str(file))
    db.create_schema()
    clock = [1_900_000_800.0 + 7]
    db.clock = lambda: clock[0]
    await db.write(_fill)
    before = _bytes(file)
    busy = _Busy(db, clock)
    service = OverTimeService(cast("Monitoring", busy), lambda: clock[0])
    look = await _processor(20, busy.look_around)
    took: list[float] = []
    for at in range(6 * 120):
        clock[0] += FINE.seconds
        busy.change()
        if at % 10 == 0:  # an admission a tenant and 5 minutes
            for i in range(TENANTS):
                service.sampler._events.waits.setdefault(f"t{i}", Counter())[20 + i % 30] += 1
        begun = time.process_time()
        await service.sampler.sample()
        took.append(time.process_time() - begun)
    rows = await db.read(lambda tx: tx.over_time.between(HOUR.seconds, 0, 2**31))
    hour = {one.tenant: one.sums for one in rows}
    row = await db.read(_row_bytes)
    now = int(clock[0] // HOUR.seconds)
    five = {
        one.tenant: one.sums for one in await db.read(lambda tx: tx.over_time.between(FIVE.seconds, 0, 2**31))
    }
    for back in range(80, HOUR.kept + 1):
        await db.write(lambda tx, n=now - back: tx.over_time.add(HOUR.seconds, n, hour), durable=False)
    last = int(clock[0] // FIVE.seconds)
    for back in range(80, FIVE.kept + 1):
        await db.write(lambda tx, n=last - back: tx.over_time.add(FIVE.seconds, n, five), durable=False)
    kept = (_bytes(file) - before) / (TENANTS + 1)
    per_day = sum(86_400 / grain.seconds * row[grain.seconds] for grain in GRAINS)
    figures = [
        _figure("a sample of 200 tenants, processor time", statistics.mean(took) * 1000, "ms", (
            f"of it {look * 1000:.1f} ms the look at the database that scrapes share; median {statistics.median(took) * 1000:.1f} ms, "
            f"slowest (an hour and its 5 minutes rolled up) {max(took) * 1000:.0f} ms; {statistics.mean(took) / FINE.seconds * 100:.2f} % of a core"
        )),
        _figure("stored a day by a tenant that is never idle", per_day, "bytes", (
            f"rows of {row[FINE.seconds]:.0f} bytes each 30 s, {row[FIVE.seconds]:.0f} each 5 min, {row[HOUR.seconds]:.0f} each hour"
        )),
        _figure("kept by a tenant that is never idle, on the disk", kept, "bytes", "all that is ever kept of it: 2 h, 2 days, 5 weeks"),
    ]  # fmt: skip
    for span in ("hour", "day", "week", "month"):
        answers = [await _took(service.of_tenant("t7", span, None)) for _ in range(ASKED)]
        note = f"slowest of {ASKED}: {max(answers) * 1000:.0f} ms; of the cluster {await _took(service.of_cluster(span, None)) * 1000:.0f} ms"
        figures.append(
            _figure(f"the last {span} of one tenant", statistics.median(answers) * 1000, "ms", note)
        )
    db.close()
    return figures


def _figure(title: str, value: float, unit: str, note: str) -> Figure:
    return Figure(title, value, unit, note=note, command=COMMAND)


def _fill(tx: Any) -> None:
    for i in range(TENANTS):
        tx.tenants.insert(Tenant(f"t{i}", Quota(64_000, 8000, 262_144)), 0.0)
        amount = Resources(cpu=1000 * JOBS, ram=4096 * JOBS)
        tx.ledger.put(
            ResourceRequest(f"r{i}", "jm", f"t{i}", amount, RequestPhase.CONFIRMED, 0.0, holder="j", user="u")
        )


def _row_bytes(tx: Any) -> dict[int, float]:
    """Return the mean bytes of a row by grain: its sums, the tenant's name and the numbers of the key."""
    query = "SELECT grain, avg(length(sums) + length(tenant) + 12) FROM over_time WHERE tenant <> '' GROUP BY grain"
    return {int(grain): float(mean) for grain, mean in tx.connection.exec_driver_sql(query)}


async def _processor(times: int, what: Any) -> float:
    begun = time.process_time()
    for _ in range(times):
        await what()
    return (time.process_time() - begun) / times


async def _took(answer: Any) -> float:
    begun = time.perf_counter()
    await answer
    return time.perf_counter() - begun


def _bytes(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size
