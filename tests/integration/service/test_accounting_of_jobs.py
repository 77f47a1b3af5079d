"""Jobs of a real platform are accounted for from their admission to their end, whoever is killed in between."""

from __future__ import annotations

from pathlib import Path

from mlp_api.platform.accounting import UsageLines
from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.workload.ledger import RequestPhase
from mlp_hub.service.accounting.sums import UsageAsked
from support.rigs.platform_rig import Rig, running_rig

LONG = {"DURATION": 600}


async def use(rig: Rig, *by: str) -> UsageLines:
    today = int(rig.clock() // DAY_S)
    return await rig.platform.accounting.lines(UsageAsked(today - 3, today + 3, by), limit=100, nodes=True)


async def test_a_job_counts_from_its_admission_to_its_end_over_a_kill(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        rig.stands_at = 22_000.0 * DAY_S + DAY_S - 100  # before a midnight
        job = await rig.submit("digits", cpu=2.0, sim=LONG)
        await rig.until("digits", "running")
        rig.ahead += 60
        rig.crash()
        await rig.start()
        await rig.until("digits", "running")
        rig.ahead += 100
        await rig.platform.accounting.roll_up.roll_up()
        rig.ahead += 40
        rig.end(job)
        await rig.until("digits", "finished")
        for _ in range(2):
            lines = await use(rig, "day", "work", "name", "user")
            found = {line.day: line for line in lines.lines if line.work == "job"}
            assert {day: line.core_s for day, line in found.items()} == {
                "2030-03-27": 200.0,
                "2030-03-28": 200.0,
            }
            assert {(line.name, line.user) for line in found.values()} == {("digits", "ann")}
            await rig.platform.accounting.roll_up.roll_up()
        rig.ahead += 1000  # nobody holds anything but files
        assert (await use(rig)).total.core_s == 400.0


async def test_each_held_row_of_the_ledger_knows_since_when(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        rows = rig.db.read_now(
            lambda tx: tx.connection.exec_driver_sql("SELECT phase, since FROM resource_request").all()
        )
        assert all(row.since is not None for row in rows if row.phase == RequestPhase.CONFIRMED.value)
        lines = await use(rig, "work")
        assert lines.total.core_s >= 0
        await rig.platform.accounting.roll_up.roll_up()
        rig.ahead += 10
        after = await use(rig)
        assert after.nodes is not None
        assert after.nodes.core_s >= 40.0
