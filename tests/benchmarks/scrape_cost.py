"""What scrapes cost the service: processor time and memory with 1,000 running jobs and 200 tenants, scraped by a Prometheus, beside without."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import psutil

from bench_common import Context, Figure, quantile
from bench_kueue import CONNECTIONS, Class, Connection, Load, Service, all_tenants
from mlp_hub.api.auth import scopes
from mlp_hub.cli.state import state_dir
from mlp_hub.domain.apps.app_usage import AppUse, StoredUse
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from proc import pss_of_tree
from support.hubs.fake_hub import FakeHub
from support.monitoring.prometheus import Prometheus, running
from support.ports import free_port

LOAD = Load(10, 20, (Class("long", 5, 0, 86_400, 100, 1),), nominal=4)
"""200 tenants of 10 cohorts; each has 5 jobs that run until the end, one more than its own quota has room for."""
LENDER = 64
"""Quota of the first tenant of each cohort, which lends it to the others."""
EVERY_S, SETTLE_S, WINDOW_S, ROUNDS = 5, 15, 60, 2
ASKED, PAUSE_S = 200, 0.6
"""Scrapes of which the quantile is, and the seconds between two of them, more than one text is shared for."""
WANTED_CORE, WANTED_MB, WANTED_MS, WANTED_KB = 2.0, 15.0, 50.0, 500.0
TOKEN = "scrapers-token"
COMMAND = "make bench ONLY=watch"
NODES = """nodes:
  - {name: cpu, count: 16, cpu: 64, ram: 524288}
  - {name: gpu, count: 4, cpu: 64, ram: 524288, gpu: 8, gpu_kind: a100}
"""
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
FLEETING = {"finished": {"SIM_DURATION": "0.1"}, "failed": {"SIM_DURATION": "0.1", "SIM_EXIT": "1"}}
"""Jobs that end at once, one of each a tenant: a metric has no series before its first event."""


class Window(NamedTuple):
    """What one service took in one window: parts of a core, MB of memory, seconds of each scrape, and the load of the machine."""

    core: float
    memory: float
    scrapes: list[float]
    load: float


class Scrapes(NamedTuple):
    """What a client saw: seconds of each scrape, and of a small answer after it; bytes of the text, and of it on the wire."""

    took: list[float]
    small: list[float]
    size: int
    packed: int


def figures(context: Context) -> list[Figure]:
    """Measure services without and with a scraper in turn; each has the same jobs, and nothing is asked of it otherwise."""
    found: dict[bool, list[Window]] = {False: [], True: []}
    seen: Scrapes | None = None
    for number in range(ROUNDS):
        for scraped in (False, True):
            with WatchedService(context.tmp / f"scrapes-{number}-{scraped}", LOAD) as service:
                asyncio.run(_fill(service))
                window = _measured(service, scraped=scraped)
                found[scraped].append(window)
                sys.stdout.write(
                    f"  {'scraped' if scraped else 'alone'}: {window.core:.2f} % of a core, {window.memory:.1f} MB, load {window.load:.1f}\n"
                )
                sys.stdout.flush()
                if scraped and number == ROUNDS - 1:
                    seen = _asked(service)
    assert seen is not None
    alone, scraped_too = found[False], found[True]
    by_prometheus = [s for window in scraped_too for s in window.scrapes]
    load = f"load {statistics.mean(w.load for w in (*alone, *scraped_too)):.1f}"
    in_turn = f"{ROUNDS} services of {WINDOW_S} s each in turn"
    core = statistics.mean(w.core for w in scraped_too) - statistics.mean(w.core for w in alone)
    memory = statistics.mean(w.memory for w in scraped_too) - statistics.mean(w.memory for w in alone)
    who = "Prometheus" if shutil.which("prometheus") else "a client of HTTP, as there is no Prometheus here,"
    return [
        _figure("scraped each 5 s: more of a core", core, "%", WANTED_CORE, (
            f"{_listed(w.core for w in scraped_too)} % scraped by {who} beside {_listed(w.core for w in alone)} %; {in_turn}; {load}"
        )),
        _figure("scraped each 5 s: more memory", memory, "MB", WANTED_MB, (
            f"PSS {_listed(w.memory for w in scraped_too)} MB scraped beside {_listed(w.memory for w in alone)} MB; {in_turn}"
        )),
        _figure("a scrape, p99", quantile(seen.took, 0.99) * 1000, "ms", WANTED_MS, (
            f"median {statistics.median(seen.took) * 1000:.0f} ms of {len(seen.took)} scrapes, one each {PAUSE_S} s; after each GET /ready took "
                f"{statistics.median(seen.small) * 1000:.0f} ms, p99 {quantile(seen.small, 0.99) * 1000:.0f} ms: what the machine adds; "
            f"{who} each {EVERY_S} s: median {statistics.median(by_prometheus) * 1000:.0f}, slowest of {len(by_prometheus)} "
            f"{max(by_prometheus) * 1000:.0f} ms; {load}"
        )),
        _figure("a scrape of 200 tenants", seen.size / 1000, "kB", WANTED_KB, f"{seen.packed / 1000:.0f} kB on the wire"),
    ]  # fmt: skip


class WatchedService(Service):
    """Service whose metrics have a port, and whose tenants all had requests to their apps."""

    def __init__(self, home: Path, load: Load) -> None:
        super().__init__(home, load)
        (home / "nodes.yaml").write_text(NODES)
        self.metrics = free_port()
        self.environ["MLP_METRICS_LISTEN"] = str(self.metrics)
        self.settings = Settings.load(self.environ)

    def __enter__(self) -> Self:
        state_dir.prepare(self.settings)
        migrate.upgrade(self.settings.service_db_url)
        db = Database(str(self.settings.service_db_url).removeprefix("sqlite:///"))
        with db.begin() as tx:
            _had_requests(tx, self.load)
        db.close()
        return super().__enter__()

    async def _serve(self, hub: FakeHub) -> None:
        hub.user("prometheus", TOKEN, held=(scopes.ACCESS, scopes.METRICS_READ))
        await super()._serve(hub)

    @property
    def url(self) -> str:
        """Address of its metrics."""
        return f"http://127.0.0.1:{self.metrics}/services/mlp/api/v1/metrics"


def _tenants(load: Load) -> Iterator[tuple[int, int, str]]:
    for c in range(load.cohorts):
        for q in range(load.queues):
            yield c, q, f"team-{c}-{q:02}"


def _had_requests(tx: Tx, load: Load) -> None:
    latency = tuple(range(1, len(BOUNDS_MS) + 2))
    for _, _, tenant in _tenants(load):
        use = AppUse(time.time(), sum(latency), 3, 10**9, 10**10, time.time(), BOUNDS_MS, latency)
        tx.app_uses.put(StoredUse("bench", use), kind="tenant", name=tenant)


async def _fill(service: WatchedService) -> None:
    """Make the tenants and submit their jobs; return when all of them run, or have ended."""
    path, load = service.settings.service_socket, service.load
    admin = await Connection(path, "admin-token").open()
    users = [
        [await Connection(path, f"user-{c}-token").open() for _ in range(CONNECTIONS)]
        for c in range(load.cohorts)
    ]
    for connections in users:
        await connections[0].call("GET", "/session")
    for c, q, tenant in _tenants(load):
        quota = {
            "cpu": load.nominal if q else LENDER,
            "ram": 65_536,
            "gpu": 2,
            "rom": 10**12,
            "cohort": f"cohort-{c}",
        }
        await admin.call("POST", "/tenants", {"name": tenant, **quota, "gpu_kinds": {"a100": 2}})
        await admin.call("PUT", f"/tenants/{tenant}/members/user-{c}", {"role": "member"})
    bodies: list[list[dict[str, Any]]] = [[] for _ in users]
    for c, q, tenant in _tenants(load):
        shape = {"tenant": tenant, "code": "x", "cpu": 1, "ram": 100}
        for cls in load.classes:
            for i in range(cls.count):
                bodies[c].append(
                    {"name": f"{cls.name}-{q}-{i}", **shape, "env": {"SIM_DURATION": str(cls.runs)}}
                )
        bodies[c] += [{"name": f"{name}-{q}", **shape, "env": env} for name, env in FLEETING.items()]

    async def submit(cohort: int, connection: Connection) -> None:
        while bodies[cohort]:
            await connection.call("POST", f"/users/user-{cohort}/jobs", bodies[cohort].pop())

    await asyncio.gather(*(submit(c, each) for c, connections in enumerate(users) for each in connections))
    while True:
        tenants = await all_tenants(admin)
        running = sum(t["running"] for t in tenants)
        if running == load.jobs and not any(t["waiting"] for t in tenants):
            break
        await asyncio.sleep(1)
    for each in (admin, *(connection for connections in users for connection in connections)):
        each.close()


def _measured(service: WatchedService, *, scraped: bool) -> Window:
    if not scraped:
        return _window(service)[0]
    with _scraper(service) as scrapes:
        window, began = _window(service)
        return window._replace(scrapes=scrapes(began))


def _window(service: WatchedService) -> tuple[Window, float]:
    """Let the service settle, and measure it; return also the window's begin, in seconds since the epoch."""
    time.sleep(SETTLE_S)
    began, before = time.time(), _spent(service)
    time.sleep(WINDOW_S)
    took, spent = time.time() - began, _spent(service) - before
    memory = pss_of_tree(service.process.pid)
    return Window(spent / took * 100, memory, [], os.getloadavg()[0]), began


def _spent(service: WatchedService) -> float:
    process = psutil.Process(service.process.pid)
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system


@contextmanager
def _scraper(service: WatchedService) -> Iterator[Any]:
    """Scrape each 5 s; yield a function that returns the seconds of all scrapes since a time."""
    if shutil.which("prometheus") is None:
        with _client(service) as found:
            yield found
        return
    config = {
        "global": {"scrape_interval": f"{EVERY_S}s", "scrape_timeout": f"{EVERY_S}s"},
        "scrape_configs": [
            {
                "job_name": "mlp",
                "metrics_path": "/services/mlp/api/v1/metrics",
                "authorization": {"credentials": TOKEN},
                "static_configs": [{"targets": [f"127.0.0.1:{service.metrics}"]}],
            }
        ],
    }
    with running(service.home / "prometheus", config) as prometheus:
        yield lambda since: _of_prometheus(prometheus, since)


def _of_prometheus(prometheus: Prometheus, since: float) -> list[float]:
    if set(prometheus.targets().values()) != {"up"}:
        raise RuntimeError(f"Prometheus could not scrape: {prometheus.targets()}")
    ((series),) = prometheus.get("query", query=f"scrape_duration_seconds[{WINDOW_S + SETTLE_S}s]")["result"]
    return [float(value) for at, value in series["values"] if at >= since]


@contextmanager
def _client(service: WatchedService) -> Iterator[Any]:
    found: list[tuple[float, float]] = []
    ended = threading.Event()

    def scrape() -> None:
        with _http() as client:
            while not ended.wait(EVERY_S):
                at, begun = time.time(), time.perf_counter()
                client.get(service.url).raise_for_status()
                found.append((at, time.perf_counter() - begun))

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield lambda since: [took for at, took in found if at >= since]
    finally:
        ended.set()
        thread.join()


def _asked(service: WatchedService) -> Scrapes:
    """Scrape often, but never so soon that the text of the scrape before is the answer."""
    took, small, size, packed = [], list[float](), 0, 0
    with _http() as client:
        for _ in range(ASKED):
            time.sleep(PAUSE_S)
            begun = time.perf_counter()
            answer = client.get(service.url).raise_for_status()
            took.append(time.perf_counter() - begun)
            size, packed = len(answer.content), answer.num_bytes_downloaded
            begun = time.perf_counter()
            client.get(service.url.replace("/metrics", "/ready"))
            small.append(time.perf_counter() - begun)
    return Scrapes(took, small, size, packed)


def _http() -> httpx.Client:
    """Return a client that asks as Prometheus does."""
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
        "Accept-Encoding": "gzip",
    }
    return httpx.Client(headers=headers, trust_env=False)


def _listed(values: Iterator[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _figure(title: str, value: float, unit: str, wanted: float, note: str) -> Figure:
    return Figure(title, value, unit, wanted, "target, at most", note, COMMAND)
