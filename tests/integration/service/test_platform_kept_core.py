"""The scheduling core is told what changes and never made anew without a reason; what it has is what is stored."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import HOLDING
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.service.admission import loop
from mlp_hub.service.admission.cache import KeptCore
from mlp_hub.store.errors import StoreUnavailable
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until


def books_balance(tx: Tx) -> bool:
    """Whether exactly the jobs in holding phases hold something, and no node gives out more than it has."""
    now = time.time()
    held = {r.id for r in tx.ledger.held(now, applier="jm")}
    jobs = [job for job in tx.jobs.active(SYSTEM) if job.phase in HOLDING]
    used = tx.ledger.node_use(now)
    return held == {job.attempt for job in jobs} and all(amount.cpu <= 4000 for amount in used.values())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[KeptCore]:
    """Every core that the admission loop makes."""
    cores: list[KeptCore] = []

    class Noted(KeptCore):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            cores.append(self)

    monkeypatch.setattr(loop, "KeptCore", Noted)
    return cores


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_happens_and_whatever_is_killed_the_core_that_is_kept_is_the_one_that_would_be_made(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)

    policy = replace(FAST, scheduling=SchedulingPolicy(min_run_s=0.02, aging_s=0.5))
    rig = Rig(tmp_path, node("n1", 4), node("n2", 4), node("n3", 4), policy=policy)
    await rig.start()
    names: list[str] = []
    tries = 0
    for step in range(60):
        what = rng.random()
        if what < 0.55:
            names.append(f"j{step}")
            least = rng.choice([1, 1, 2, 3])
            workers = rng.choice([least, f"{least}:{least + 2}"])
            sim = {"DURATION": rng.uniform(0.01, 0.2), "STOP": rng.choice([0, 0.03])}
            await rig.submit(
                names[-1],
                workers=workers,
                priority=rng.choice(["low", "normal", "high"]),
                sim=sim,
                retries=3,
            )
        elif what < 0.65 and names:
            act = rng.choice([rig.platform.jobs.cancel, rig.platform.jobs.suspend, rig.platform.jobs.resume])
            with contextlib.suppress(Refused):
                await act(SYSTEM, "ann", rng.choice(names))
        elif what < 0.75:
            tries += 1
            key = {"applier": "sp", "id": f"s{tries}"}
            with contextlib.suppress(Refused):
                await rig.platform.ledger.try_(
                    ResourceRequestTry(**key, tenant="default", request_type="request", cpu=1, ram=100)
                )
            await rig.platform.ledger.cancel(ResourceRequestKey(**key))
        elif what < 0.8:
            name = rng.choice(["n1", "n2"])
            rig.executor.lose_node(name)
            await asyncio.sleep(0.01)
            rig.executor.restore_node(name)
        elif what < 0.9:
            rig.crash()
            await asyncio.sleep(0)
            assert await rig.db.read(books_balance)
            await rig.start()
        await asyncio.sleep(rng.uniform(0, 0.02))
        assert await rig.db.read(books_balance)
    for name in names:
        with contextlib.suppress(Refused):
            await rig.platform.jobs.resume(SYSTEM, "ann", name)
    for name in names:
        await rig.until(name, "finished", "failed", "cancelled")
    assert rig.held() == ZERO
    assert len(rig.executor.starts) == len(set(rig.executor.starts))
    await rig.close()


async def test_the_core_is_made_once_and_then_told(tmp_path: Path, made: list[KeptCore]) -> None:
    async with running_rig(tmp_path) as rig:
        for i in range(20):
            await rig.submit(f"j{i}", sim={"DURATION": 0.02})
        for i in range(20):
            await rig.until(f"j{i}", "finished")
        assert len(made) == 1


async def test_a_quota_that_grows_and_a_node_that_comes_back_start_what_waits(
    tmp_path: Path, made: list[KeptCore]
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=1))
        await rig.platform.tenants.set_member("red", "ann")
        sim = {"DURATION": 0.2}
        await rig.submit("first", tenant="red", sim={"DURATION": 30})
        await rig.submit("second", tenant="red", sim=sim)
        await rig.until("first", "running")
        wait = await rig.platform.jobs.why(SYSTEM, "ann", "second")
        assert [r.reason for r in wait.reasons] == ["WaitingForQuota"]
        await rig.platform.tenants.update("red", TenantUpdate(cpu=2))
        await rig.until("second", "finished")
        rig.executor.lose_node("n1")
        await rig.submit("third", tenant="red", sim=sim)
        await rig.until("first", "queued")
        rig.executor.restore_node("n1")
        await rig.until("third", "finished")
        assert len(made) == 1


async def test_room_that_a_notebook_takes_and_gives_back_is_heard_of(
    tmp_path: Path, made: list[KeptCore]
) -> None:
    async with running_rig(tmp_path) as rig:
        ask = ResourceRequestTry(
            applier="sp", id="nb", tenant="default", request_type="request", cpu=4, ram=100
        )
        await rig.platform.ledger.try_(ask)
        await rig.platform.ledger.confirm(ResourceRequestKey(applier="sp", id="nb"))
        job = await rig.submit("j", sim={"DURATION": 0.05})
        assert job.phase == "queued"

        async def said() -> bool:
            return any(e.kind == "waiting" for e in await rig.platform.jobs.events(SYSTEM, "ann", "j"))

        await until(said)
        back = ResourceRequestTry(applier="sp", id="nb", tenant="default", request_type="release")
        await rig.platform.ledger.try_(back)
        await rig.platform.ledger.confirm(ResourceRequestKey(applier="sp", id="nb"))
        await rig.until("j", "finished")
        assert len(made) == 1


async def test_an_idle_platform_runs_no_cycles(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=replace(FAST, cycle_every_s=60, look_every_s=60))
    await rig.start()
    await rig.submit("j", sim={"DURATION": 0.01})
    await rig.until("j", "finished")

    async def rests() -> bool:
        cycles = rig.platform.admission.cycles
        await asyncio.sleep(0.5)
        return rig.platform.admission.cycles == cycles

    await until(rests, what="half a second without a cycle")
    await rig.close()


async def test_decisions_that_fail_to_be_stored_rebuild_the_core(
    tmp_path: Path, made: list[KeptCore]
) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    whole = rig.platform.admission._board.commit
    broken = 2

    async def commit(fn):  # type: ignore[no-untyped-def]
        nonlocal broken
        if fn.__qualname__.startswith("store_apart") and broken:
            broken -= 1
            raise StoreUnavailable("the database does not answer")
        return await whole(fn)

    rig.platform.admission._board.commit = commit  # type: ignore[method-assign]
    await rig.submit("j", sim={"DURATION": 0.01})
    await rig.until("j", "finished")
    assert not broken
    assert len(made) == 3
    await rig.close()


async def test_a_quicker_server_request_for_the_same_node_makes_the_job_wait_without_overcommitment(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        changed = rig.platform.ledger.changed
        rig.platform.ledger.changed = lambda: None  # the core is not told in time
        ask = ResourceRequestTry(
            applier="sp", id="nb", tenant="default", request_type="request", cpu=3, ram=100, node="n1"
        )
        await rig.platform.ledger.try_(ask)
        await rig.submit("j", workers=2, sim={"DURATION": 0.05})
        await asyncio.sleep(0.2)
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "j")).phase == "queued"
        assert rig.held() == Resources(3000, 0, 100)
        rig.platform.ledger.changed = changed
        await rig.platform.ledger.cancel(ResourceRequestKey(applier="sp", id="nb"))
        await rig.until("j", "finished")


async def test_a_burst_of_jobs_is_handled_in_batches_and_each_job_gets_all_its_events(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        sim = {"DURATION": 0.05}
        taken = asyncio.gather(
            *(rig.submit(f"j{i % 60}", sim=sim) for i in range(80)), return_exceptions=True
        )
        refused = [r for r in await taken if isinstance(r, Refused)]
        assert len(refused) == 20
        for i in range(60):
            await rig.until(f"j{i}", "finished")
        told = [e.kind for e in await rig.platform.jobs.events(SYSTEM, "ann", "j59")]
        assert [k for k in told if k != "waiting"] == [
            "submitted",
            "admitted",
            "starting",
            "running",
            "ended",
            "finished",
        ]
        seqs = [e.seq for e in await rig.platform.jobs.events(SYSTEM, "ann", "j59")]
        assert seqs == list(range(1, len(seqs) + 1))
        assert rig.held() == ZERO
        commits, works = rig.db.group_commit
        assert commits <= works
