"""A lease written before the clock was put back runs no longer than others do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mlp_hub.service.state.leadership import NAME, Leadership
from mlp_hub.store.database import Database
from waiting import PATIENCE_S


def test_a_clock_that_was_put_back_does_not_leave_a_lease_that_outlasts_its_holder(tmp_path: Path) -> None:
    async def story() -> None:
        db = Database(str(tmp_path / "mlp.sqlite"))
        db.create_schema()
        now = 90_000.0
        first = Leadership(db, lambda: now, length_s=10, poll_s=0.01, alone=False)
        second = Leadership(db, lambda: now, length_s=10, poll_s=0.01, alone=False)
        await first.take()
        now = 3_600.0  # a day back
        await db.write(first.check)
        found = await db.read(lambda tx: tx.leases.get(NAME))
        assert found is not None
        assert found.expires_at == 3_610.0
        await first.forget()  # it dies
        now += 11
        async with asyncio.timeout(PATIENCE_S):
            await second.take()
        assert second.is_held
        await second.give_up()
        await asyncio.to_thread(db.close)

    asyncio.run(story())
