"""What is stored together: an admission with its start, an end with its finish; and quota trees that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlp_hub.domain.resources import ZERO, Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.quota.accounting import Quotas
from mlp_hub.store import Database, Tx
from support.rigs.platform_rig import running_rig

ONE = Resources(cpu=1000)


STEPS = ["submitted", "admitted", "starting", "running", "ended", "finished"]


@pytest.mark.parametrize("leaves", [True, False])
async def test_steps_stored_together_still_all_appear_in_the_timeline(tmp_path: Path, leaves: bool) -> None:
    async with running_rig(tmp_path) as rig:
        rig.executor.makes_directories = leaves
        await rig.submit("a", sim={"DURATION": 0.05})
        job = await rig.until("a", "finished")
        steps = await rig.platform.jobs.events(SYSTEM, "ann", "a")
        assert [s.kind for s in steps] == STEPS
        assert steps[1].time == steps[2].time
        assert job.version == (5 if leaves else 4)  # so often it was written
        assert rig.held() == ZERO
        assert rig.executor.starts == [f"{job.uid}.0"]


async def test_an_admission_that_was_stored_and_not_acted_on_is_started_once_by_the_next_process(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        rig.platform.queue.close()  # it dies before it looks at the job
        await rig.submit("a", sim={"DURATION": 0.05})
        await rig.until("a", "starting")
        assert rig.executor.starts == []
        rig.crash()
        await rig.start()
        job = await rig.until("a", "finished")
        assert rig.executor.starts == [f"{job.uid}.0"]
        assert (job.restarts, rig.held()) == (0, ZERO)


async def test_traces_of_an_attempt_whose_end_was_stored_are_removed_by_the_next_process(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        rig.executor.makes_directories = False
        forget = rig.executor.forget

        async def dies(attempt: str, epoch: int) -> None:
            raise OSError(f"{attempt} stays in epoch {epoch}")

        rig.executor.forget = dies  # type: ignore[method-assign]
        await rig.submit("a", sim={"DURATION": 0.05})
        job = await rig.until("a", "finished")
        assert rig.held() == ZERO
        assert await rig.executor.known() == [f"{job.uid}.0"]
        rig.crash()
        rig.executor.forget = forget  # type: ignore[method-assign]
        await rig.start()
        assert await rig.executor.known() == []
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "a")).phase == "finished"


def _opened(tmp_path: Path) -> Database:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    return db


async def test_a_changed_limit_counts_in_the_next_transaction(tmp_path: Path) -> None:
    db = _opened(tmp_path)
    small = Tenant("a", Quota(cpu=1000), cohort="c")

    def fits(tx: Tx) -> bool:
        return Quotas(tx, 0.0, ()).fits("a", ONE + ONE)

    await db.write(lambda tx: tx.tenants.insert(small, 0.0))
    await db.write(lambda tx: tx.tenants.insert(Tenant("b", Quota(cpu=0), cohort="c"), 0.0))
    assert not await db.write(fits)
    await db.write(lambda tx: tx.tenants.update(replace(small, quota=Quota(cpu=2000))))
    assert await db.write(fits)
    await db.write(lambda tx: tx.tenants.remove("a"))
    assert not await db.write(lambda tx: Quotas(tx, 0.0, ()).knows("a"))
    db.close()


async def test_a_change_of_a_tenant_that_is_undone_leaves_nothing_behind(tmp_path: Path) -> None:
    db = _opened(tmp_path)
    tenant = Tenant("a", Quota(cpu=1000))

    def tries(tx: Tx) -> None:
        tx.tenants.update(replace(tenant, quota=Quota(cpu=9000)))
        assert Quotas(tx, 0.0, ()).fits("a", ONE + ONE)
        raise ValueError("undone")

    await db.write(lambda tx: tx.tenants.insert(tenant, 0.0))
    with pytest.raises(ValueError, match="undone"):
        await db.write(tries)
    assert not await db.write(lambda tx: Quotas(tx, 0.0, ()).fits("a", ONE + ONE))
    assert await db.write(lambda tx: Quotas(tx, 0.0, ()).fits("a", ONE))
    db.close()


async def test_held_resources_are_read_in_each_transaction(tmp_path: Path) -> None:
    db = _opened(tmp_path)
    await db.write(lambda tx: tx.tenants.insert(Tenant("a", Quota(cpu=1000)), 0.0))

    def takes(tx: Tx) -> bool:
        quotas = Quotas(tx, 0.0, ())
        fitted = quotas.fits("a", ONE)
        quotas.charge_amount("a", ONE)
        return fitted and not quotas.fits("a", ONE)

    assert await db.write(takes)
    assert await db.write(takes)  # nothing was stored by the first, and its tree was its own
    db.close()
