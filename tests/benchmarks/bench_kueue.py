"""Kueue's own scheduler performance test, through the whole durable path: REST, database, admission, executor, finish."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from tornado.httpserver import HTTPServer

from bench_common import Context, Figure
from mlp_hub.api.edge.listeners import bind_socket
from mlp_hub.cli.state import state_dir
from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from support.hubs.fake_hub import SERVICE_TOKEN, FakeHub

NAME = "kueue"
ABOUT = (
    "Kueue's generator against one service process (SQLite, fsync at each commit, simulated executor) over its UNIX socket: "
    "jobs are submitted one a request at their times, by one user a cohort over 8 connections each; all done is the last end, "
    "wait is admission less submission. The hub that names users is a stand-in; 16 nodes of 2,048 cores hold up nobody, as Kueue's "
    "test has no nodes either. Kueue's own runs were limited to 50 API calls a second"
)
BASE = "/services/mlp/api/v1"
NODES = "nodes:\n  - {name: sim, count: 16, cpu: 2048, ram: 8388608}\n"
CONNECTIONS = 8
PRIORITY = {50: "low", 100: "normal", 200: "high"}
COMMAND = "make bench ONLY=kueue"


@dataclass(frozen=True, slots=True)
class Class:
    """One kind of job of each queue: `count` of them, one every `every` seconds."""

    name: str
    count: int
    every: float
    runs: float
    priority: int
    cpu: int


@dataclass(frozen=True, slots=True)
class Load:
    """A generator's parameters, as in Kueue's files."""

    cohorts: int
    queues: int
    classes: tuple[Class, ...]
    nominal: int = 20
    borrowing: int = 100

    @property
    def jobs(self) -> int:
        return self.cohorts * self.queues * sum(c.count for c in self.classes)


# baseline-generator.yaml and large-scale-generator.yaml of Kueue's test/performance/scheduler/configs
BASELINE = Load(
    5,
    6,
    (
        Class("small", 350, 0.1, 0.2, 50, 1),
        Class("medium", 100, 0.5, 0.5, 100, 5),
        Class("large", 50, 1.2, 1.0, 200, 20),
    ),
)
LARGE_SCALE = Load(
    10,
    100,
    (
        Class("small", 35, 0.06, 0.15, 50, 1),
        Class("medium", 11, 0.3, 0.35, 100, 5),
        Class("large", 4, 0.7, 0.7, 200, 20),
    ),
)
CAPPED = Load(1, 6, BASELINE.classes)  # a fifth of the baseline: one cohort of the five
CALLS = 50.0


@dataclass(slots=True)
class Result:
    """What came of a run: seconds until all were done, mean waits by class, admissions per second."""

    seconds: float
    waits: dict[str, float]
    rate: float
    peak: float
    restarts: int
    submitted: float


def run(context: Context) -> list[Figure]:
    """Run the baseline, the baseline at 50 calls a second (scaled down), and the large scale; `KUEUE` may name some."""
    figures = []
    wanted = os.environ.get("KUEUE", "baseline,capped,large").split(",")
    if "baseline" in wanted:
        r = measure(context.tmp / "kueue-baseline", BASELINE)
        figures += [
            Figure(
                "P1 Kueue baseline, 15,000 jobs, all done",
                r.seconds,
                "s",
                351,
                "Kueue",
                f"target 100; ideal 67, with preemption 77; last submit after {r.submitted:.1f} s, {r.restarts} restarts; no cap of API calls here",
                COMMAND,
            ),
            *(
                Figure(
                    f"P1 mean wait, {name}", r.waits[name], "s", theirs, "Kueue", f"ideal {ideal}", COMMAND
                )
                for name, theirs, ideal in (
                    ("large", 16.5, "0.67; 0.02 s with preemption"),
                    ("medium", 76.8, "16.1; 39.4 s with preemption"),
                    ("small", 215, "19.5; 52.8 s with preemption"),
                )
            ),
        ]
    if "capped" in wanted:
        r = measure(context.tmp / "kueue-capped", CAPPED, calls=CALLS)
        figures.append(
            Figure(
                f"P1 at 50 calls/s, one cohort of five, {CAPPED.jobs:,} jobs",
                r.seconds,
                "s",
                351,
                "Kueue, all five",
                f"scaled down to a fifth; last submit after {r.submitted:.1f} s, ideal 67; a job is one call here, several of Kueue's",
                COMMAND,
            )
        )
    if "large" in wanted:
        r = measure(context.tmp / "kueue-large", LARGE_SCALE)
        figures.append(
            Figure(
                "P2 Kueue large scale, 50,000 jobs, admissions",
                r.rate,
                "1/s",
                42,
                "Kueue",
                f"all done after {r.seconds:.1f} s, last submit after {r.submitted:.1f} s; best 5 s: {r.peak:.0f}/s; target 1000; "
                f"waits {r.waits['large']:.1f} / {r.waits['medium']:.1f} / {r.waits['small']:.1f} s (Kueue 106 / 256 / 700)",
                COMMAND,
            )
        )
    return figures


def measure(home: Path, load: Load, calls: float | None = None) -> Result:
    """Start a service, play the load, wait until all is done, stop the service."""
    with Service(home, load) as service:
        return asyncio.run(_play(service, load, calls))


class Service:
    """A service process with a state directory of its own, and a stand-in for the hub it asks who users are."""

    def __init__(self, home: Path, load: Load) -> None:
        self.home = home
        self.load = load
        home.mkdir()
        (home / "nodes.yaml").write_text(NODES)
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTERHUB_"))},
            "MLP_HOME": str(home),
            "MLP_EXECUTOR": "simulated",
            "MLP_SIMULATED_NODES": str(home / "nodes.yaml"),
            "MLP_LOG_LEVEL": "WARNING",
        }
        self.settings = Settings.load(self.environ)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        state_dir.prepare(self.settings)
        migrate.upgrade(self.settings.service_db_url)
        self.settings.secret_file("service_token").write_text(SERVICE_TOKEN)
        hub = FakeHub()
        hub.user("admin", "admin-token", admin=True)
        for c in range(self.load.cohorts):
            hub.user(f"user-{c}", f"user-{c}-token")
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(hub), self._loop).result(10)
        log = (self.home / "service.out").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlp_hub.app"],
            env=self.environ,
            cwd=self.home,
            stdout=log,
            stderr=log,
        )
        deadline = time.monotonic() + 30
        while not self.settings.service_socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"the service did not start: {(self.home / 'service.out').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        return self

    async def _serve(self, hub: FakeHub) -> None:
        server = HTTPServer(hub.application())
        server.add_socket(bind_socket(self.settings.hub_socket, 0o600))

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        out = (self.home / "service.out").read_text()
        if out:
            sys.stdout.write(f"  the service said: {out[-15000:]}\n")


class Connection:
    """One connection that is kept open; requests go one after the other."""

    def __init__(self, path: Path, token: str) -> None:
        self._path = path
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_unix_connection(str(self._path), limit=2**26)
        return self

    async def call(self, method: str, path: str, body: object = None) -> Any:
        status, content, _ = await self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path} gave {status}: {content[:300]!r}")
        return json.loads(content) if content else None

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes, dict[str, str]]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {BASE}{path} HTTP/1.1\r\n{self._head}Content-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:]) if k}
        content = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0].split(" ")[1]), content, headers

    def close(self) -> None:
        self._writer.close()


async def _play(service: Service, load: Load, calls: float | None) -> Result:
    path = service.settings.service_socket
    admin = await Connection(path, "admin-token").open()
    users = [
        [await Connection(path, f"user-{c}-token").open() for _ in range(CONNECTIONS)]
        for c in range(load.cohorts)
    ]
    for c in range(load.cohorts):
        await users[c][0].call("GET", "/session")
        for q in range(load.queues):
            tenant = f"t-{c}-{q}"
            await admin.call(
                "POST",
                "/tenants",
                {
                    "name": tenant,
                    "cpu": load.nominal,
                    "cohort": f"cohort-{c}",
                    "borrowing_limit": {"cpu": load.borrowing},
                },
            )
            await admin.call("PUT", f"/tenants/{tenant}/members/user-{c}", {"role": "member"})
    began = time.time()
    lines: list[asyncio.Queue[tuple[float, dict[str, Any]] | None]] = [asyncio.Queue() for _ in users]
    clock = Cap(calls)
    for c, line in enumerate(lines):
        for when, body in sorted(_jobs(load, c), key=lambda job: job[0]):
            line.put_nowait((began + when, body))
        for _ in users[c]:
            line.put_nowait(None)
    await asyncio.gather(
        *(_submit(f"user-{c}", con, lines[c], clock) for c in range(load.cohorts) for con in users[c])
    )
    submitted = time.time() - began
    jobs = await _all_done(admin, users, load)
    for connections in users:
        for connection in connections:
            connection.close()
    admin.close()
    return _result(jobs, began, submitted)


class Cap:
    """At most so many calls a second, or no limit."""

    def __init__(self, calls: float | None) -> None:
        self._every = 0.0 if calls is None else 1 / calls
        self._next = 0.0

    async def turn(self) -> None:
        if self._every:
            now = time.time()
            self._next = max(self._next + self._every, now)
            await asyncio.sleep(self._next - now)


def _jobs(load: Load, cohort: int) -> Iterator[tuple[float, dict[str, Any]]]:
    for q in range(load.queues):
        for cls in load.classes:
            for i in range(cls.count):
                yield (
                    i * cls.every,
                    {
                        "name": f"{cls.name}-{q}-{i}",
                        "tenant": f"t-{cohort}-{q}",
                        "code": "x",
                        "cpu": cls.cpu,
                        "ram": 100,
                        "priority": PRIORITY[cls.priority],
                        "env": {"SIM_DURATION": str(cls.runs)},
                    },
                )


async def _submit(
    user: str, connection: Connection, line: asyncio.Queue[tuple[float, dict[str, Any]] | None], cap: Cap
) -> None:
    while (job := await line.get()) is not None:
        wait = job[0] - time.time()
        if wait > 0:
            await asyncio.sleep(wait)
        await cap.turn()
        await connection.call("POST", f"/users/{user}/jobs", job[1])


async def _all_done(admin: Connection, users: list[list[Connection]], load: Load) -> list[dict[str, Any]]:
    """Wait until nothing waits or runs, asking seldom, then read every job."""
    while await _active(admin):  # noqa: ASYNC110 - another process does the work
        await asyncio.sleep(1)
    jobs: list[dict[str, Any]] = []
    for c, connections in enumerate(users):
        cursor = ""
        while True:
            _, content, headers = await connections[0].ask("GET", f"/users/user-{c}/jobs?limit=1000{cursor}")
            jobs += json.loads(content)
            if "x-next-cursor" not in headers:
                break
            cursor = f"&cursor={headers['x-next-cursor']}"
    if len(jobs) != load.jobs or any(j["phase"] != "finished" for j in jobs):
        raise RuntimeError(f"{len(jobs)} jobs of {load.jobs}, not all finished")
    return jobs


async def all_tenants(admin: Connection) -> list[dict[str, Any]]:
    """Return all tenants, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        _, content, headers = await admin.ask("GET", f"/tenants?limit=1000{cursor}")
        found += json.loads(content)
        if "x-next-cursor" not in headers:
            return found
        cursor = f"&cursor={headers['x-next-cursor']}"


async def _active(admin: Connection) -> bool:
    """Whether any tenant still has a job that waits or runs: few and cheap calls."""
    return any(t["running"] or t["waiting"] for t in await all_tenants(admin))


def _result(jobs: list[dict[str, Any]], began: float, submitted: float) -> Result:
    def at(job: dict[str, Any], field: str) -> float:
        return datetime.fromisoformat(job[field]).timestamp()

    waits: dict[str, list[float]] = {}
    for job in jobs:
        waits.setdefault(job["name"].partition("-")[0], []).append(
            at(job, "admitted_at") - at(job, "submitted_at")
        )
    admitted = sorted(at(j, "admitted_at") for j in jobs)
    seconds = max(at(j, "finished_at") for j in jobs) - began
    span = 5.0
    peak, first = 0, 0
    for last, when in enumerate(admitted):
        while admitted[first] < when - span:
            first += 1
        peak = max(peak, last - first + 1)
    return Result(
        seconds,
        {name: sum(w) / len(w) for name, w in waits.items()},
        len(jobs) / (admitted[-1] - began),
        peak / span,
        sum(j["restarts"] for j in jobs),
        submitted,
    )
