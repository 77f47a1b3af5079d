from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database
from support.stores.admissions import admit_one

NODE = Resources(cpu=100_000, ram=100_000)
STEPS = ("tried", "confirmed", "releasing", "released")


def ledger_on(db: Database, cpu: int) -> Ledger:
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red", Quota(cpu=cpu)), 0)
    return Ledger(db, time.time, lambda: [NodeInfo("n", NODE, NODE)])


def asked(request_id: str, **kw: object) -> api.ResourceRequestTry:
    base = {"applier": "jm", "request_type": "request", "tenant": "red", "cpu": 1}
    return api.ResourceRequestTry(id=request_id, **{**base, **kw})


def in_use(db: Database) -> int:
    with db.reading() as tx:
        return tx.ledger.in_use("red", time.time()).cpu


def test_of_a_hundred_at_once_below_the_limit_exactly_one_gets_the_last_place(db: Database) -> None:
    ledger = ledger_on(db, cpu=10_000)

    async def run() -> list[object]:
        await asyncio.gather(*(ledger.try_(asked(f"before{i}")) for i in range(9)))
        return await asyncio.gather(
            *(ledger.try_(asked(f"r{i}")) for i in range(100)), return_exceptions=True
        )

    results = asyncio.run(run())
    assert sum(isinstance(r, ResourceRequest) for r in results) == 1
    assert {r.reason for r in results if isinstance(r, Refused)} == {Reason.WAITING_FOR_QUOTA}
    assert in_use(db) == 10_000


async def test_of_a_hundred_at_once_of_two_tenants_that_share_exactly_one_gets_the_last_place(
    db: Database, url: str
) -> None:
    """Red and blue have 6 and 4 in one cohort, and 9 are in use: whoever is first borrows the last one."""
    with db.begin() as tx:
        for name, cpu in (("red", 6000), ("blue", 4000)):
            tx.tenants.insert(Tenant(name, Quota(cpu=cpu), cohort="main"), 0)
    ledger = Ledger(db, time.time, lambda: [NodeInfo("n", NODE, NODE)])
    results: list[str] = []

    def work(number: int) -> None:
        own = Database(url)  # a connection of its own, as another process has it
        for i in range(number, 100, 10):
            tenant = ("red", "blue")[i % 2]
            try:
                with own.begin() as tx:
                    ledger.try_in(tx, asked(f"r{i}", tenant=tenant))
                results.append("held")
            except Refused as e:
                results.append(e.reason)
        own.close()

    await asyncio.gather(*(ledger.try_(asked(f"b{i}", tenant="red" if i % 3 else "blue")) for i in range(9)))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == ["WaitingForQuota"] * 99 + ["held"]
    with db.reading() as tx:
        used = tx.ledger.in_use_by_tenant(time.time())
    assert used["red"].cpu + used["blue"].cpu == 10_000


def test_of_a_hundred_processes_own_transactions_exactly_one_gets_the_last_place(
    db: Database, url: str
) -> None:
    ledger = ledger_on(db, cpu=1000)
    results: list[str] = []

    def work(number: int) -> None:
        own = Database(url)  # a connection of its own, as another process has it
        for i in range(number, 100, 10):
            try:
                with own.begin() as tx:
                    ledger.try_in(tx, asked(f"r{i}"))
                results.append("held")
            except Refused as e:
                results.append(e.reason)
        own.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == ["WaitingForQuota"] * 99 + ["held"]
    assert in_use(db) == 1000


def test_the_last_place_on_a_node_goes_to_one_notebook_or_one_job(db: Database) -> None:
    ledger = ledger_on(db, cpu=10**9)
    share = Resources(cpu=60_000)

    async def run() -> list[object]:
        def admit(i: int):
            return db.write(
                lambda tx: admit_one(tx, [NodeInfo("n", NODE, NODE)], f"j{i}.0", "red", share, time.time())
            )

        notebooks = [ledger.try_(asked(f"user{i}", applier="sp", cpu=60)) for i in range(50)]
        return await asyncio.gather(*notebooks, *map(admit, range(50)), return_exceptions=True)

    results = asyncio.run(run())
    assert sum(r is True or isinstance(r, ResourceRequest) for r in results) == 1
    assert all(r in (True, False) or isinstance(r, ResourceRequest | Refused) for r in results)
    with db.reading() as tx:
        assert tx.ledger.node_use(time.time()) == {"n": share}


def test_a_kill_at_any_point_leaves_the_ledger_exact(url: str) -> None:
    """Each round kills the process that works on the ledger; what it was told must be so, and nothing else."""
    setup = Database(url)
    ledger_on(setup, cpu=6000)
    told: dict[str, str] = {}
    for number in range(5):
        command = [sys.executable, str(Path(__file__).with_name("hammer.py")), url, str(number), "12"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]  # it works
            assert lines[0], "the process ended before its first step"
            killer = threading.Timer(0.05 + random.random() * 0.3, process.kill)
            killer.start()
            lines += process.stdout.readlines()
            process.wait()
        for line in lines:
            if line.endswith("\n"):
                request_id, step = line.split()
                told[request_id] = step
        with setup.reading() as tx:
            rows = {r.id: r for r in tx.ledger.held(time.time(), tenant="red")}
            assert tx.ledger.in_use("red", time.time()).cpu == len(rows) * 1000 <= 6000
            for request_id, step in told.items():
                row = tx.ledger.get("jm", request_id)
                assert row is not None, f"{request_id} was told to be {step} and is gone"
                # what was answered is so; one more step may have been taken without an answer getting through
                assert STEPS.index(row.phase) - STEPS.index(step) in (0, 1), (request_id, step, row.phase)
        # what the killed process still held is given back for the next round
        with setup.begin() as tx:
            for row in rows.values():
                tx.ledger.put(replace(row, phase=RequestPhase.RELEASED, expires_at=None))
        told.clear()
    assert in_use(setup) == 0
    setup.close()


def test_a_request_tried_before_a_restart_can_be_confirmed_after_it(db: Database, url: str) -> None:
    ledger = ledger_on(db, cpu=1000)
    asyncio.run(ledger.try_(asked("a")))
    db.close()
    again = Database(url, guard=True)
    after = Ledger(again, time.time, lambda: [NodeInfo("n", NODE, NODE)])
    asyncio.run(after.confirm(api.ResourceRequestKey(id="a", applier="jm")))
    assert in_use(again) == 1000
    again.close()
