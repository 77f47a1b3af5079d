"""What a service that lost its lease still does outside the database: nothing that the next one must suffer from."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.jobs.job import Failure
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import LaunchSpec, Superseded
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.platform import Platform
from mlp_hub.service.state.leadership import NAME, Leadership, LeaseLost
from mlp_hub.store.database import Database
from mlp_hub.store.records import Lease
from support.rigs.platform_rig import FAST, node
from support.waiting import PATIENCE_S, until

POLICY = replace(FAST, lease_s=2.5)
OTHER = Lease("elsewhere/4711/abcdef01", 0.0, 50)  # it has been there, and has left


class Slow(SimulatedExecutor):
    """Acts of the first epoch reach it late: their service was stopped in its tracks right before."""

    def __init__(self, directories: Directories) -> None:
        super().__init__([node("n1", 8)], time.time, directories)
        self.gate = asyncio.Event()
        self.gate.set()
        self.held_up: list[str] = []
        self.refused: list[str] = []

    async def _late(self, what: str, epoch: int, act: Awaitable[None]) -> None:
        if epoch == 1 and not self.gate.is_set():
            self.held_up.append(what)
            await self.gate.wait()
        try:
            await act
        except Superseded:
            self.refused.append(what)
            raise

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        await self._late("start", epoch, super().start(spec, epoch))

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        await self._late("stop", epoch, super().stop(attempt, grace_s, epoch, failure))

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        await self._late("forget", epoch, super().forget(attempt, epoch))


class Hub:
    """One database and one executor, for platforms that come and go."""

    def __init__(self, root: Path) -> None:
        self.dbs = [Database(str(root / "mlp.sqlite")), Database(str(root / "mlp.sqlite"))]
        self.dbs[0].create_schema()
        self.executor = Slow(Directories(root / "homes", root / "jobs"))

    def platform(self, which: int = 0) -> Platform:
        return Platform(self.dbs[which], self.executor, time.time, POLICY)


@asynccontextmanager
async def running_hub(root: Path) -> AsyncIterator[Hub]:
    hub = Hub(root)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield hub
    finally:
        await hub.executor.close()
        for db in hub.dbs:
            await asyncio.to_thread(db.close)


def ask(name: str, **sim: float) -> JobCreate:
    return JobCreate(name=name, code="x", cpu=1.0, ram=100, env={f"SIM_{k}": str(v) for k, v in sim.items()})


async def reaches(p: Platform, name: str, *phases: str) -> None:
    async def look() -> bool:
        return (await p.jobs.get(SYSTEM, "ann", name)).phase in phases

    await until(look, what=f"{name} to be {phases}")


async def silent(p: Platform) -> None:
    """Renew its lease no more, as a process that is stopped does not."""
    await p.lease.forget()


async def test_a_start_that_comes_too_late_begins_nothing(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        first, second = hub.platform(0), hub.platform(1)
        await first.start()
        hub.executor.gate.clear()
        await first.jobs.submit("ann", ask("a", DURATION=600))
        await until(lambda: _true(hub.executor.held_up))
        await silent(first)
        await second.start()
        assert second.lease.epoch == 2
        await reaches(second, "a", "running")
        await second.jobs.cancel(SYSTEM, "ann", "a")
        await reaches(second, "a", "cancelled")
        hub.executor.gate.set()  # the first goes on where it was: its attempt was removed, and it does not know
        await until(lambda: _true(hub.executor.refused))
        assert hub.executor.refused == ["start"]
        assert await hub.executor.known() == []
        assert len(hub.executor.starts) == 1
        await until(lambda: _true(not first.lease.is_held))
        await second.stop()
        await first.stop()


async def test_a_stop_that_comes_too_late_ends_nothing(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        first, second = hub.platform(0), hub.platform(1)
        await first.start()
        await first.jobs.submit("ann", ask("a", DURATION=600))
        await reaches(first, "a", "running")
        hub.executor.gate.clear()
        await first.jobs.suspend(SYSTEM, "ann", "a")
        await until(lambda: _true("stop" in hub.executor.held_up))
        await silent(first)
        await second.start()
        await reaches(second, "a", "suspended")
        await second.jobs.resume(SYSTEM, "ann", "a")
        await reaches(second, "a", "running")
        running = await hub.executor.known()
        hub.executor.gate.set()
        await until(lambda: _true(hub.executor.refused))
        assert await hub.executor.known() == running
        seen = await hub.executor.observe(running)
        assert [str(o.phase) for o in seen.values()] == ["running"]
        assert (await second.jobs.get(SYSTEM, "ann", "a")).phase == "running"
        await second.stop()
        await first.stop()


async def test_members_do_not_read_on_which_machine_another_service_is_and_the_log_says_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with running_hub(tmp_path) as hub:
        p = hub.platform()
        await p.start()
        await hub.dbs[0].write(lambda tx: tx.leases.put(NAME, replace(OTHER, expires_at=time.time() + 600)))
        with pytest.raises(LeaseLost) as refused:
            await p.jobs.submit("ann", ask("late"))
        said = str(refused.value)
        assert said == "this part of the hub is on standby while another one decides; ask again in a moment"
        for secret in ("elsewhere", "4711", socket.gethostname(), str(os.getpid())):
            assert secret not in said
        await until(lambda: _true(not p.lease.is_held))
        assert OTHER.holder in caplog.text
        await p.stop()


async def test_a_lease_that_is_lost_again_while_it_is_taken_over_makes_no_second_standby(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path) as hub:
        p = hub.platform()
        await p.start()
        load, loading, most, losses = p.board.load, 0, 0, 2

        async def load_and_lose() -> None:
            nonlocal loading, most, losses
            loading += 1
            most = max(most, loading)
            if losses:
                losses -= 1
                await hub.dbs[0].write(lambda tx: tx.leases.put(NAME, OTHER))
                for _ in range(3):  # the more who notice
                    with pytest.raises(LeaseLost):
                        await p.lease.confirm()
            await load()
            await asyncio.sleep(0.05)
            loading -= 1

        p.board.load = load_and_lose  # type: ignore[method-assign]
        await hub.dbs[0].write(lambda tx: tx.leases.put(NAME, OTHER))
        said = await asyncio.gather(*(p.lease.confirm() for _ in range(3)), return_exceptions=True)
        assert isinstance(said[0], LeaseLost)
        await until(lambda: _true(losses == 0 and p._leads))
        assert most == 1
        assert p.lease.epoch > OTHER.epoch
        await p.jobs.submit("ann", ask("a", DURATION=0.05))
        await reaches(p, "a", "finished")
        assert len(hub.executor.starts) == 1
        await p.stop()


async def test_a_database_older_than_the_last_epoch_does_not_keep_its_service_from_acting(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path) as hub:
        await hub.executor.fence(30, 1.0)
        p = hub.platform()
        await p.start()
        assert p.lease.epoch == 31
        await p.jobs.submit("ann", ask("a", DURATION=0.05))
        await reaches(p, "a", "finished")
        await p.stop()


async def test_a_service_refused_by_the_executor_does_not_give_up_the_job(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        p = hub.platform()
        await p.start()
        await hub.executor.fence(30, 1.0)  # whose it is the database does not know
        await p.jobs.submit("ann", ask("a", DURATION=0.05))
        await until(lambda: _true(len(hub.executor.refused) > POLICY.start_tries))
        job = await p.jobs.get(SYSTEM, "ann", "a")
        assert (job.phase, str(job.message)) == (
            "starting",
            "trying again: another part of the hub runs jobs now",
        )
        await p.stop()
        again = hub.platform(1)
        await again.start()
        await reaches(again, "a", "finished")
        assert len(hub.executor.starts) == 1
        await again.stop()


async def test_right_before_an_act_the_database_is_asked_once_the_lease_may_have_run_out(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path) as hub:
        now = 1000.0
        mine = Leadership(hub.dbs[0], lambda: now, length_s=3600, poll_s=0.01, alone=False)
        with pytest.raises(LeaseLost):
            await mine.ensure_held()
        await mine.acquire_lease()
        await mine.ensure_held()
        now += 3600
        await mine.ensure_held()  # nobody has taken it: it is renewed
        found = await hub.dbs[0].read(lambda tx: tx.leases.get(NAME))
        assert found == Lease(mine.holder, now + 3600, 1)
        other = Leadership(hub.dbs[1], lambda: now, length_s=3600, poll_s=0.01, alone=False)
        assert not (await hub.dbs[1].read(other._look))[1]
        now += 3600
        await other.acquire_lease()
        assert other.epoch == 2
        with pytest.raises(LeaseLost):
            await mine.ensure_held()
        await mine.give_up()
        await other.give_up()


async def _true(value: object) -> bool:
    return bool(value)
