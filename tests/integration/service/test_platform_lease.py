"""Two platforms on one database: one decides, the other waits, and nothing is done twice whoever is killed when."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mlp_api.jobs import JobCreate
from mlp_hub.domain.job import HOLDING
from mlp_hub.domain.resources import ZERO
from mlp_hub.executors.simulated import SimulatedExecutor
from mlp_hub.service import lease
from mlp_hub.service.config import Paths
from mlp_hub.service.lease import LeaseLost
from mlp_hub.service.platform import Platform
from mlp_hub.store.database import Database
from platform_rig import FAST, node, until
from postgres import PostgresServer, postgres_server

_numbers = itertools.count()
POLICY = replace(FAST, lease_s=2.5)


@dataclass
class Two:
    """Two platforms, each with its own connection, on one database and one executor."""

    dbs: list[Database]
    executor: SimulatedExecutor
    paths: Paths

    def platform(self, which: int) -> Platform:
        return Platform(self.dbs[which], self.executor, time.time, self.paths, POLICY)


def kill(p: Platform) -> None:
    """Take a platform away as a power failure does; its lease stays."""
    p.board.stop()
    p.lease._held = False
    p.reconciler._stopped = True
    tasks = [*p.reconciler._queue.active.values(), *p.board._tasks, p.reconciler._scan, p.admission._task]
    for task in (
        *tasks,
        p._sweeper,
        p.lease._renewing,
        p.jobs._intake._lots._task,
        p.reconciler._moves._task,
        *p.metrics._flushes.values(),
    ):
        if task is not None:
            task.cancel()
    p.reconciler._queue.waiting.clear()


def play(url: str, root: Path, story: Callable[[Two], Awaitable[None]]) -> None:
    async def go() -> None:
        dbs = [Database(url), Database(url)]
        dbs[0].create_schema()
        executor = SimulatedExecutor([node("n1", 3), node("n2", 3)], time.time)
        try:
            await asyncio.wait_for(story(Two(dbs, executor, Paths(root / "homes", root / "jobs"))), 60)
        finally:
            await executor.close()
            for db in dbs:
                await asyncio.to_thread(db.close)

    asyncio.run(go())


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return str(tmp_path / "mlp.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"lease{next(_numbers)}"
    server.run("CREATE DATABASE {}", name)
    return server.url(name)


def ask(name: str, **sim: float) -> JobCreate:
    return JobCreate(name=name, code="x", cpu=1.0, ram=100, env={f"SIM_{k}": str(v) for k, v in sim.items()})


def test_the_second_waits_and_goes_on_where_the_killed_first_was(url: str, tmp_path: Path) -> None:
    async def story(two: Two) -> None:
        rng = random.Random(4)
        first, second = two.platform(0), two.platform(1)
        await first.start()
        waiting = asyncio.ensure_future(second.start())
        for i in range(15):
            await first.jobs.submit("ann", ask(f"j{i}", DURATION=rng.uniform(0.05, 0.3)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert second.lease.waits_for == first.lease.holder
        kill(first)
        await waiting
        assert (await two.dbs[1].read(lease.read)).holder == second.lease.holder  # type: ignore[union-attr]

        async def all_done() -> bool:
            held, active = await two.dbs[1].read(
                lambda tx: ({r.id for r in tx.ledger.held(time.time(), applier="jm")}, tx.jobs.active())
            )
            assert held == {j.attempt for j in active if j.phase in HOLDING}
            return not active

        await until(all_done)
        jobs, _ = await second.jobs.list("ann")
        assert {j.phase for j in jobs} == {"finished"}
        assert len(two.executor.starts) == len(set(two.executor.starts)) == 15
        assert await two.dbs[1].read(lambda tx: tx.ledger.in_use("default", time.time())) == ZERO
        await second.stop()

    play(url, tmp_path, story)


def test_who_was_silent_for_too_long_changes_nothing_any_more_and_stands_by(url: str, tmp_path: Path) -> None:
    async def story(two: Two) -> None:
        first, second = two.platform(0), two.platform(1)
        await first.start()
        assert first.lease._renewing is not None
        first.lease._renewing.cancel()  # it is stopped in its tracks, as by SIGSTOP
        await first.jobs.submit("ann", ask("early", DURATION=0.1))
        await asyncio.sleep(0.2)
        await second.start()
        with pytest.raises(LeaseLost, match="stands by"):
            await first.jobs.submit("ann", ask("late"))
        await second.jobs.submit("ann", ask("next", DURATION=0.1))

        async def done() -> bool:
            return (await second.jobs.get("ann", "next")).phase == "finished"

        await until(done)
        assert (await second.jobs.get("ann", "early")).phase == "finished"
        assert len(two.executor.starts) == len(set(two.executor.starts)) == 2
        await second.stop()  # gives the lease back, so that the other need not wait

        async def leads() -> bool:
            found = await two.dbs[0].read(lease.read)
            return found is not None and found.holder == first.lease.holder and first.lease.is_held

        await until(leads)
        await first.jobs.submit("ann", ask("last", DURATION=0.05))

        async def last() -> bool:
            return (await first.jobs.get("ann", "last")).phase == "finished"

        await until(last)
        await first.stop()

    play(url, tmp_path, story)
