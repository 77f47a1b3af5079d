"""Each write that is stored makes its service sure of the lease: a busy one need not ask the database once more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mlp_hub.service.state.leadership import NAME, Leadership
from mlp_hub.store import StoreUnavailable, Tx
from mlp_hub.store.database import Database
from mlp_hub.store.records import Lease
from support.waiting import PATIENCE_S, wait_for

LENGTH_S = 10.0


class BusyService:
    """One that has the lease and a timer that never comes; both clocks are moved by hand."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.wall, self.steady = 90_000.0, 0.0
        self.lease = self.another()

    def another(self) -> Leadership:
        """Return the lease as another service sees it, by the same clocks."""
        return Leadership(
            self.db,
            lambda: self.wall,
            length_s=LENGTH_S,
            poll_s=0.01,
            alone=False,
            steady=lambda: self.steady,
        )

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def sure_for(self) -> float:
        return self.lease._held_until - self.steady

    async def row(self) -> Lease | None:
        return await self.db.read(lambda tx: tx.leases.get(NAME))


@asynccontextmanager
async def busy_service(tmp_path: Path) -> AsyncIterator[BusyService]:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    service = BusyService(db)
    try:
        await service.lease.acquire_lease()
        await service.lease.forget()
        async with asyncio.timeout(PATIENCE_S):
            yield service
    finally:
        await asyncio.to_thread(db.close)


def write(tx: Tx) -> None:
    tx.settings.put("a", 1)


def refuse(_tx: Tx) -> None:
    raise KeyError


def fail(tx: Tx) -> None:
    """Fail with all that is written together with this, as when the disk is full."""
    tx.connection.exec_driver_sql("ROLLBACK")
    raise OSError


async def test_a_service_that_writes_is_sure_of_the_lease_without_asking_for_it(tmp_path: Path) -> None:
    async with busy_service(tmp_path) as service:
        for _ in range(10):
            service.pass_time(5)
            await service.db.write(write)
            assert service.sure_for() == LENGTH_S
        assert service.lease.is_sure


async def test_it_is_sure_once_that_is_stored_however_late_its_event_loop_hears_of_it(tmp_path: Path) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(5)
        written = asyncio.ensure_future(service.db.write(write))
        await asyncio.sleep(0)
        wait_for(lambda: service.sure_for() == LENGTH_S)  # nothing else goes on in this loop
        assert not written.done()
        await written


async def test_it_is_not_sure_before_that_is_stored(tmp_path: Path) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(5)
        assert await service.db.write(lambda _tx: service.sure_for()) == LENGTH_S - 5


async def test_one_that_was_stopped_in_the_middle_of_a_write_is_sure_only_from_before_it_on(
    tmp_path: Path,
) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(5)
        await service.db.write(lambda _tx: service.pass_time(LENGTH_S))
        assert service.sure_for() == 0
        assert not service.lease.is_sure


@pytest.mark.parametrize(("work", "raised"), [(refuse, KeyError), (fail, StoreUnavailable)])
async def test_a_write_that_is_not_stored_proves_nothing(
    tmp_path: Path, work: Callable[[Tx], None], raised: type[Exception]
) -> None:
    async with busy_service(tmp_path) as service:
        before = await service.row()
        service.pass_time(5)
        with pytest.raises(raised):
            await service.db.write(work)
        assert (await service.row(), service.sure_for()) == (before, LENGTH_S - 5)


async def test_the_write_beside_one_that_is_refused_proves_it(tmp_path: Path) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(5)
        refused, _ = await asyncio.gather(
            service.db.write(refuse), service.db.write(write), return_exceptions=True
        )
        assert isinstance(refused, KeyError)
        assert service.sure_for() == LENGTH_S
        assert await service.row() == Lease(service.lease.holder, service.wall + LENGTH_S, 1)


async def test_a_write_that_leaves_the_lease_unchanged_delays_nobody_who_waits_for_it(tmp_path: Path) -> None:
    async with busy_service(tmp_path) as service:
        other = service.another()
        seen = await service.db.read(other._look)
        for _ in range(3):
            service.pass_time(1)
            await service.db.write(write)
            service.wall -= 1  # to the wall clock no time passes at all
        assert await service.db.read(other._look) == seen
        assert service.sure_for() == LENGTH_S - 3
        service.pass_time(1)
        await service.db.write(write)
        assert await service.db.read(other._look) != seen
        assert service.sure_for() == LENGTH_S


async def test_a_renewal_whose_answer_never_came_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(5)
        with monkeypatch.context() as cut_off:
            cut_off.setattr(service.lease, "_note_stored", lambda *_: None)
            await service.db.write(write)
        renewed = await service.row()
        service.pass_time(1)
        await service.db.write(write)
        assert service.sure_for() == LENGTH_S
        assert await service.row() == Lease(service.lease.holder, service.wall + LENGTH_S, 1) != renewed


async def test_an_act_waits_for_an_answer_that_comes_before_another_may_have_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_service(tmp_path) as service:
        service.pass_time(LENGTH_S)
        note, late = service.lease._note_stored, iter([LENGTH_S, 1.0])

        def answer_late(lease: Lease, until: float) -> None:
            service.pass_time(next(late))
            note(lease, until)

        monkeypatch.setattr(service.lease, "_note_stored", answer_late)
        await service.lease.ensure_held()
        assert service.lease.is_sure
        assert service.sure_for() == LENGTH_S - 1
