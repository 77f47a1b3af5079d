"""How long a lease lasts is measured by steady clocks: no wall clock that is set ends one, or makes one last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.service.state.leadership import NAME, Leadership
from mlp_hub.store.database import Database
from support.waiting import PATIENCE_S, until


class Clocks:
    """The wall clock, and a steady one."""

    def __init__(self) -> None:
        self.wall = 90_000.0
        self.steady = 0.0

    def lease(self, db: Database) -> Leadership:
        return Leadership(
            db, lambda: self.wall, length_s=10, poll_s=0.01, alone=False, steady=lambda: self.steady
        )


@contextmanager
def database(tmp_path: Path) -> Iterator[Database]:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    try:
        yield db
    finally:
        db.close()


async def test_a_clock_that_was_put_back_does_not_leave_a_lease_that_outlasts_its_holder(
    tmp_path: Path,
) -> None:
    with database(tmp_path) as db:
        clocks = Clocks()
        first, second = clocks.lease(db), clocks.lease(db)
        await first.acquire_lease()
        clocks.wall = 3_600.0  # a day back
        await db.write(first.check)
        found = await db.read(lambda tx: tx.leases.get(NAME))
        assert found is not None
        assert found.expires_at == 3_610.0
        await first.forget()  # it dies
        waits = asyncio.ensure_future(second.acquire_lease())

        async def stands_by() -> bool:
            return second.waits_for == first.holder

        await until(stands_by)
        clocks.steady += 11
        async with asyncio.timeout(PATIENCE_S):
            await waits
        assert second.is_held
        await second.give_up()


async def test_a_clock_that_was_put_forward_ends_no_lease(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        clocks = Clocks()
        first, second = clocks.lease(db), clocks.lease(db)
        await first.acquire_lease()
        looked = await db.read(second._look)
        clocks.wall += 3600
        assert await db.read(second._look) == looked == (looked[0], False)
        assert first.is_sure
        await first.ensure_held()
        clocks.steady += 9.9
        assert await db.read(second._look) == looked
        clocks.steady += 0.2
        assert (await db.read(second._look))[1]
        assert not first.is_sure
        await first.give_up()


def test_a_renewal_that_fails_in_an_unforeseen_way_is_followed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(db: Database) -> None:
        lease = Leadership(db, time.time, length_s=0.2, poll_s=0.01, alone=False)
        write, fails = db.write, [RuntimeError("who knows"), TypeError("or this")]

        async def unlucky(work: Any, **how: Any) -> Any:
            if fails:
                raise fails.pop()
            return await write(work, **how)

        await lease.acquire_lease()
        monkeypatch.setattr(db, "write", unlucky)
        begun = time.time()

        async def renewed_since() -> bool:
            return not fails and lease.is_sure and lease._held_until > begun + 0.2

        await until(renewed_since)
        await lease.give_up()

    with database(tmp_path) as db:
        asyncio.run(story(db))
