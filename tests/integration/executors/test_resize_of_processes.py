"""An elastic job of real processes is resized: it saves, ends, and goes on from there with other workers."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.platform import Platform
from mlp_hub.store.database import Database
from support.executors.executor_lab import ROOT, Lab
from support.rigs.platform_rig import FAST
from support.waiting import until

PROGRAM = """
import os, pathlib, signal, sys, time
saved = pathlib.Path(os.environ["MLP_CHECKPOINT_DIR"]) / "step"
step = int(saved.read_text()) if saved.exists() else 0
print("attempt", os.environ["MLP_RESTART_COUNT"], "of", os.environ["MLP_WORLD_SIZE"], "from", step, flush=True)
if step:
    sys.exit(0)
def save(*_):
    saved.write_text("7")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
time.sleep(600)
"""


async def test_a_job_of_processes_saves_and_continues_with_fewer_workers(lab: Lab) -> None:
    db = Database(str(lab.base / "mlp.sqlite"))
    db.create_schema()
    room = Resources(2000, 0, 4000)
    executor = lab.executor(nodes=(NodeInfo("here", room, room),))
    policy = replace(FAST, grace_s=10.0, first_uid=300_000 if ROOT else None)
    platform = Platform(db, executor, time.time, policy, alone=True)
    await platform.start()
    try:
        for user in ("ann", "bob"):
            number = (await platform.users.ensure(user)).number
            home = lab.base / "homes" / user
            home.mkdir(parents=True, mode=0o700)
            if ROOT:
                os.chown(home, 300_000 + number, 300_000 + number)
        ask = {"cpu": 1.0, "ram": 200, "runtime": "plain"}
        await platform.jobs.submit("ann", JobCreate(name="wide", code=PROGRAM, workers="1:2", **ask))

        async def is_up() -> bool:
            chunk = await platform.jobs.log_chunk(SYSTEM, "ann", "wide", 0)
            return bool(chunk.lines)

        await until(is_up)
        await platform.jobs.submit("bob", JobCreate(name="other", code="import time; time.sleep(600)", **ask))

        async def phases(*wanted: str) -> bool:
            jobs = [await platform.jobs.get(SYSTEM, *key) for key in (("ann", "wide"), ("bob", "other"))]
            assert not [j for j in jobs if j.phase == "failed"], jobs
            return tuple(j.phase for j in jobs) == wanted

        # the other one stays until the resized one has ended, which would grow again without it
        await until(lambda: phases("finished", "running"))
        await platform.jobs.cancel(SYSTEM, "bob", "other")
        await until(lambda: phases("finished", "cancelled"))
        wide = await platform.jobs.get(SYSTEM, "ann", "wide")
        assert (wide.restarts, len(wide.ranks)) == (1, 1)
        lines = [line.text for line in (await platform.jobs.log_chunk(SYSTEM, "ann", "wide", 0)).lines]
        assert lines == ["attempt 0 of 2 from 0", "attempt 1 of 1 from 7"]
        assert await db.read(lambda tx: tx.ledger.in_use("default", time.time())) == ZERO
    finally:
        await platform.stop()
        await executor.close()
        await asyncio.to_thread(db.close)
