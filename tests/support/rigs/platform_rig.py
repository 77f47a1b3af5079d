"""A whole platform for tests: real SQLite, simulated nodes, a clock that the test moves or the real one."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlp_api.jobs.jobs import Job, JobCreate
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.executors.workspace import JobRun
from mlp_hub.isolation import tenant_roots
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.platform import Platform
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_hub.store.database import Database
from support import no_files
from support.rigs.tasks import tasks_of
from support.waiting import PATIENCE_S, until

FAST = RunPolicy(
    grace_s=0.2,
    backoff_s=0.01,
    backoff_max_s=0.05,
    look_every_s=0.2,
    cycle_every_s=0.5,
    check_core=True,
    secrets_key="key of this hub",
)


def node(name: str = "n1", cpu: float = 4, ram: int = 8192, gpu: int = 0) -> NodeInfo:
    """Return a node of so many cores, MiB and devices."""
    capacity = Resources(cpu=round(cpu * 1000), ram=ram, gpu=gpu * 1000)
    return NodeInfo(name, capacity, capacity, "sim" if gpu else None)


@functools.cache
def _tables() -> bytes:
    """Return the file of a database with all tables: to make them costs as much as all else of a platform's start."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "mlp.sqlite")
        made = Database(str(file))
        made.create_schema()
        made.close()
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the file alone is the database
        return file.read_bytes()


class Rig:
    """One database and one executor; platforms on them may come and go."""

    def __init__(self, root: Path, *nodes: NodeInfo, policy: RunPolicy = FAST, durable: bool = True) -> None:
        self.root = root
        self.roots = tenant_roots(root, root / "isolation", root / "secrets" / "isolation_key")
        self.directories = Directories(homes=root / "homes", jobs=root / "jobs", own_roots=self.roots)
        self.policy = policy
        self.groups: GroupPolicy | None = None
        self.ahead = 0.0
        self.stands_at: float | None = None
        file = root / "mlp.sqlite"
        if not file.exists():
            root.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_tables())
        self.db = Database(str(file))
        self.db.create_schema()
        self.executor = SimulatedExecutor(
            nodes or (node(),), time.time, self.directories, makes_directories=True
        )
        self.platform = self.make()

    def clock(self) -> float:
        """Return the platform's time: the real one, or that at which it stands, `ahead` seconds later."""
        return (time.time() if self.stands_at is None else self.stands_at) + self.ahead

    def make(self) -> Platform:
        """Return a new platform on the same database and executor; not started."""
        return Platform(self.db, self.executor, self.clock, self.policy, alone=True, groups=self.groups)

    async def start(self) -> Platform:
        """Start the platform."""
        await self.platform.start()
        no_files.watch()
        return self.platform

    def check(self) -> None:
        """The core that was kept is the one that would be made anew."""
        found = self.platform.admission.differences
        assert not found, found[0]

    async def restart(self) -> Platform:
        """Stop the platform and start another one in its place."""
        no_files.ignore()
        await self.platform.stop()
        self.check()
        self.platform = self.make()
        return await self.start()

    def crash(self) -> None:
        """Take the platform away in the middle of whatever it does; what is in its memory is lost."""
        p = self.platform
        self.check()
        p.board.stop()
        p.lease._held = False  # the dead do not stand by
        p.queue.close()
        for task in tasks_of(p):
            task.cancel()
        self.executor._callbacks.clear()
        self.executor._node_callbacks.clear()
        self.platform = self.make()

    async def close(self) -> None:
        """Stop all; on the way to here no file was touched on the event loop."""
        no_files.ignore()
        await self.platform.stop()
        self.check()
        await self.executor.close()
        await asyncio.to_thread(self.db.close)
        no_files.check()

    async def submit(self, name: str, user: str = "ann", **fields: Any) -> Job:
        """Submit a job whose program is some text."""
        env = {f"SIM_{k}": str(v) for k, v in fields.pop("sim", {}).items()}
        fields = {"code": "x", "cpu": 1.0, "ram": 100, "env": env, **fields}
        return await self.platform.jobs.submit(user, JobCreate(name=name, **fields))

    async def until(self, name: str, *phases: str, user: str = "ann") -> Job:
        """Return the job once it is in one of the phases."""

        async def look() -> Job | None:
            job = await self.platform.jobs.get(SYSTEM, user, name)
            return job if job.phase in phases else None

        found: Job = await until(look, what=f"job {name} to be {' or '.join(phases)}")
        return found

    def end(self, job: Job) -> None:
        """Let the ranks of a running job end by themselves now: with a long duration nothing ends before the story says."""
        executor = self.executor
        attempt = executor._attempts[f"{job.uid}.{job.restarts}"]
        lasted = time.time() - attempt.runs_at
        executor._change(replace(attempt, script=replace(attempt.script, duration=lasted)))

    def workspace(self, user: str, name: str, run: int = 1, tenant: str = "") -> Path:
        """Return the directory of a run of a job."""
        return self.directories.at(JobRun(user, name, run, tenant))

    def held(self, tenant: str = "default") -> Resources:
        """Return what the tenant holds by the ledger."""
        return self.db.read_now(lambda tx: tx.ledger.in_use(tenant, time.time()))


@asynccontextmanager
async def running_rig(root: Path, *nodes: NodeInfo, policy: RunPolicy = FAST) -> AsyncIterator[Rig]:
    """Hand out a platform of its own; the timeout only bounds a failing test."""

    rig = Rig(root, *nodes, policy=policy)
    await rig.start()
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield rig
    finally:
        await rig.close()
