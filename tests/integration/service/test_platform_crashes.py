"""The platform is killed at any await; on the same database and executor another one goes on."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import HOLDING
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.service.config import AlertmanagerPolicy, AuditPolicy, DiskPolicy, ExportPolicy, KeepPolicy
from mlp_hub.store.tx import Tx
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig, node
from support.waiting import PATIENCE_S, until


def books_balance(tx: Tx) -> bool:
    """Whether exactly the jobs in holding phases hold something."""
    held = {r.id for r in tx.ledger.held(time.time(), applier="jm")}
    return held == {job.attempt for job in tx.jobs.active(SYSTEM) if job.phase in HOLDING}


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_is_killed_when_all_jobs_end_as_they_should(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    rig = Rig(tmp_path, node("n1", 3), node("n2", 3))
    await rig.start()
    want = {}
    for i in range(12):
        bad = i % 4 == 3
        sim = {"DURATION": rng.uniform(0, 0.1), "START": rng.uniform(0, 0.03), "EXIT": 2 if bad else 0}
        await rig.submit(f"j{i}", workers=rng.choice([1, 2]), retries=i % 2, sim=sim)
        want[f"j{i}"] = "failed" if bad else "finished"
    cancelled = {"j4", "j8"}
    for _ in range(15):
        await asyncio.sleep(rng.uniform(0, 0.04))
        rig.crash()
        await asyncio.sleep(0)
        assert await rig.db.read(books_balance)
        await rig.start()
        if cancelled and rng.random() < 0.3:
            name = cancelled.pop()
            with contextlib.suppress(Refused):  # it has ended already
                await rig.platform.jobs.cancel(SYSTEM, "ann", name)
                want[name] = "cancelled"
    for name, phase in want.items():
        job = await rig.until(name, "finished", "failed", "cancelled")
        assert job.phase in (phase, "finished") if phase == "cancelled" else job.phase == phase, job
    assert rig.held() == ZERO
    assert len(rig.executor.starts) == len(set(rig.executor.starts))
    assert await rig.executor.known() == []
    await rig.close()


async def test_an_exit_while_the_service_was_down_is_not_lost(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    await rig.submit("good", sim={"DURATION": 600})
    await rig.submit("bad", sim={"DURATION": 600, "EXIT": 4})
    await rig.submit("long", sim={"DURATION": 600})
    good, bad, long = [await rig.until(name, "running") for name in ("good", "bad", "long")]
    rig.crash()
    rig.end(good)
    rig.end(bad)
    await rig.start()
    assert (await rig.until("good", "finished", "failed")).phase == "finished"
    failed = await rig.until("bad", "finished", "failed")
    assert failed.failure is not None
    assert failed.failure.exit_code == 4
    rig.end(long)
    assert (await rig.until("long", "finished", "failed")).restarts == 0
    assert len(rig.executor.starts) == 3
    await rig.close()


async def test_holdings_of_missing_jobs_are_released_at_the_start(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    row = ResourceRequest("ghost.0", "jm", "default", Resources(1000), RequestPhase.CONFIRMED, 1.0)
    await rig.db.write(lambda tx: tx.ledger.put(row))
    assert rig.held().cpu == 1000
    await rig.start()
    assert rig.held() == ZERO
    await rig.close()


async def test_leftovers_in_the_executor_are_forgotten_at_the_start(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    await rig.submit("j", sim={"DURATION": 30})
    job = await rig.until("j", "running")
    rig.crash()
    await rig.db.write(lambda tx: tx.jobs.remove(job.uid))
    await rig.start()
    assert await rig.executor.known() == []
    assert rig.held() == ZERO
    await rig.close()


async def test_a_client_that_hangs_up_while_it_submits_loses_no_job(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    for delay in range(8):
        task = asyncio.ensure_future(rig.submit(f"j{delay}", sim={"DURATION": 0.01}))
        await asyncio.sleep(delay / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def all_done() -> bool:
        jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann")
        return all(job.phase == "finished" for job in jobs)

    await rig.submit("last", sim={"DURATION": 0.01})  # one is stored after another: all that will be are
    await until(all_done)
    assert rig.held() == ZERO
    await rig.close()


async def test_nothing_of_a_platform_runs_on_after_a_crash(tmp_path: Path) -> None:
    """Each background task of each component is found, also of those that only some hubs have."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    policy = replace(
        FAST,
        keep=KeepPolicy(job_s=3600.0),
        audit=AuditPolicy(ship_file=tmp_path / "audit"),
        disk=DiskPolicy(floor=1),
        alertmanager=AlertmanagerPolicy(nowhere),
        traces_endpoint=nowhere,
        exports=(ExportPolicy("otlp", nowhere),),
    )
    before = asyncio.all_tasks()
    rig = Rig(tmp_path, policy=policy)
    await rig.start()
    await rig.submit("a", sim={"DURATION": 60})
    await rig.until("a", "running")
    dead = rig.platform
    tasks = asyncio.all_tasks() - before
    names = {getattr(task.get_coro(), "__qualname__", "") for task in tasks}
    assert {
        f"{one}._run" for one in ("AlertDeliveries", "PointExporter", "TraceExport", "_ShippingLine")
    } <= names
    rig.crash()
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE_S)
    assert {task.get_coro() for task in tasks if not task.done()} == set()
    for exporter in (*dead.exports.running, dead.traces, dead.alert_deliveries):
        await exporter.stop()  # the kernel ends their processes
    await rig.start()
    await rig.close()
