"""A tenant that is idle for long has its guarantee lowered, and has it back as soon as it asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.types import ResourceRequestTry, Tenant, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.quota.idle import IdlePolicy
from mlp_hub.service.quota.idle import IdleQuota
from mlp_hub.store.repos.audit import Audit
from support.rigs.platform_rig import FAST, Rig, node, running_rig

LONG = {"DURATION": 60, "STOP": 0.1}
HOUR = 3600.0
IDLE = replace(FAST, idle=IdlePolicy(after_s=HOUR, floor=0.0))
HALF = replace(FAST, idle=IdlePolicy(after_s=HOUR, floor=0.5))


async def cohort(rig: Rig) -> None:
    """Make red (ann's) and blue (bob's) of four cores, of which blue keeps back three."""
    for name, user, more in (("red", "ann", {}), ("blue", "bob", {"lending_limit": {"cpu": 1}})):
        await rig.platform.tenants.create(TenantCreate(name=name, cpu=4, cohort="main", **more))
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(name, user)


def notebook(tenant: str, name: str, cpu: float) -> ResourceRequestTry:
    return ResourceRequestTry(
        id=name, applier="sp", request_type="request", tenant=tenant, cpu=cpu, ram=100, user=name
    )


async def pass_time(rig: Rig, seconds: float) -> None:
    """Let time go by, with a sweep before and after."""
    await rig.platform.idle.review_idle()
    rig.ahead += seconds
    await rig.platform.idle.review_idle()


async def blue(rig: Rig) -> Tenant:
    return await rig.platform.tenants.get("blue")


def notes(rig: Rig, tenant: str = "blue") -> list[str]:
    """Return the actions of the audit log about guarantees, the oldest first."""
    page, _ = rig.db.read_now(lambda tx: tx.audit.page(tenant=tenant))
    return [e.action for e in reversed(page) if e.action in ("quota.lower", "quota.restore")]


async def test_quota_kept_back_by_an_idle_tenant_is_borrowed_and_returns_when_one_of_its_jobs_waits(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=8), policy=IDLE) as rig:
        await cohort(rig)
        await rig.submit("base", workers=4, sim=LONG)
        await rig.until("base", "running")
        await rig.submit("extra", workers=1, sim=LONG)
        await rig.submit("more", workers=1, sim=LONG)
        await rig.until("extra", "running")
        await rig.platform.admission.cycle()
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "more")).phase == "queued"

        await pass_time(rig, HOUR + 1)
        lowered = await blue(rig)
        assert lowered.lowered is not None
        assert lowered.lending_limit == {"cpu": 1.0}, "what is configured stays"
        assert lowered.lowered.lending_limit == {"cpu": 4.0}
        assert "it keeps back 0 instead of 3 cpu" in str(lowered.lowered.message)
        await rig.until("more", "running")
        await rig.submit("wide", workers=2, sim=LONG)
        await rig.until("wide", "running")
        assert notes(rig) == ["quota.lower"]

        await rig.submit("own", user="bob", workers=3, sim={"DURATION": 0.3})
        await rig.until("own", "running", "finished", user="bob")
        assert (await blue(rig)).lowered is None
        assert notes(rig) == ["quota.lower", "quota.restore"]
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "base")).restarts == 0, (
            "only what was borrowed is taken back"
        )
        await rig.until("own", "finished", user="bob")
        # restored: what it keeps back is not lent again, though it is idle now
        await rig.platform.idle.review_idle()
        await rig.platform.admission.cycle()
        held = sum(j.phase != "queued" for j in (await rig.platform.jobs.list(SYSTEM, "ann"))[0])
        assert held < 4


async def test_a_notebook_server_of_the_idle_tenant_restores_it_even_when_it_is_refused(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=4), policy=IDLE) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"))
        await rig.platform.tenants.create(TenantCreate(name="blue", cpu=4, reserved={"cpu": 4}))
        await pass_time(rig, HOUR + 1)
        assert (await blue(rig)).lowered is not None
        assert await rig.platform.ledger.try_(notebook("red", "a", 4)) is not None
        with pytest.raises(Refused):
            await rig.platform.ledger.try_(notebook("blue", "b", 1))
        assert (await blue(rig)).lowered is None
        with pytest.raises(Refused):
            await rig.platform.ledger.try_(notebook("red", "c", 0.1))
        assert notes(rig) == ["quota.lower", "quota.restore"]


async def test_a_guarantee_is_lowered_only_once_and_stays_so_after_a_restart(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=8), policy=HALF) as rig:
        await cohort(rig)
        await pass_time(rig, HOUR + 1)
        for _ in range(3):
            await rig.platform.idle.review()
            rig.ahead += HOUR
        before = await blue(rig)
        assert before.lowered is not None
        assert before.lowered.lending_limit == {"cpu": 2.5}
        rig.crash()
        await rig.start()
        assert (await blue(rig)).lowered == before.lowered
        assert notes(rig) == ["quota.lower"]


async def test_killed_before_it_is_stored_nothing_is_lowered_and_afterwards_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, node(cpu=8), policy=IDLE) as rig:
        await cohort(rig)
        await rig.platform.idle.review_idle()
        rig.ahead += HOUR + 1
        with monkeypatch.context() as patch:

            def dies(*_: Any, **__: Any) -> None:
                raise OSError("killed")

            patch.setattr(Audit, "add", dies)  # the last line before it is durable
            with pytest.raises(OSError, match="killed"):
                await rig.platform.idle.review()
        assert (await blue(rig)).lowered is None
        rig.crash()
        await rig.start()
        assert (await blue(rig)).lowered is not None
        assert notes(rig) == ["quota.lower"]

        # killed after a job of it was stored, before anybody heard of it
        with monkeypatch.context() as patch:
            patch.setattr(IdleQuota, "job_changed", lambda *_: None)
            rig.crash()
            await rig.start()
            await rig.submit("own", user="bob", workers=1, sim=LONG)
            rig.crash()
        await rig.start()
        assert (await blue(rig)).lowered is None
        assert notes(rig) == ["quota.lower", "quota.restore"]


async def test_a_quota_that_changes_meanwhile_is_lowered_from_its_current_value(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8), policy=HALF) as rig:
        await cohort(rig)
        await pass_time(rig, HOUR + 1)
        since = (await blue(rig)).lowered
        assert since is not None
        limit = {"cpu": 0}
        asked = TenantUpdate(cpu=8, cohort="main", lending_limit=limit)
        before = await rig.platform.previews.preview_update("red", TenantUpdate(cpu=4, cohort="main"))
        assert before.notes
        changed = await rig.platform.tenants.update("blue", asked)
        assert changed.lending_limit == {"cpu": 0.0}
        assert changed.lowered is not None
        assert changed.lowered.lending_limit == {"cpu": 4.0}
        assert changed.lowered.since == since.since
        nothing = await rig.platform.tenants.update("blue", TenantUpdate(cpu=8, cohort="main"))
        assert (nothing.lowered, nothing.lending_limit) == (None, None)
        assert notes(rig) == ["quota.lower", "quota.lower", "quota.restore"]


async def test_without_the_policy_nothing_is_lowered_and_what_was_comes_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8), policy=IDLE) as rig:
        await cohort(rig)
        await pass_time(rig, HOUR + 1)
        assert (await blue(rig)).lowered is not None
        rig.policy = FAST
        await rig.restart()
        assert (await blue(rig)).lowered is None
        await pass_time(rig, 100 * HOUR)
        assert (await blue(rig)).lowered is None
        idle = rig.db.read_now(lambda tx: [t.idle_since for t in tx.tenants.all()])
        assert idle == [None] * len(idle)


async def test_a_child_that_works_keeps_its_parent_from_being_idle(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4), policy=IDLE) as rig:
        await rig.platform.tenants.create(TenantCreate(name="org", cpu=4, reserved={"cpu": 2}))
        await rig.platform.tenants.create(TenantCreate(name="lab", parent="org"))
        await rig.platform.tenants.create(TenantCreate(name="red"))
        await rig.platform.ledger.try_(notebook("lab", "x", 1))
        await pass_time(rig, 60)
        await rig.platform.idle.review_idle()
        assert rig.db.read_now(lambda tx: tx.tenants.get("org")).idle_since is None

        rig.ahead += 600  # its try has expired
        await rig.platform.ledger.expire_requests()
        await pass_time(rig, HOUR + 1)
        await rig.platform.idle.review()
        assert rig.db.read_now(lambda tx: tx.tenants.get("org")).lowered is not None
        await rig.platform.ledger.try_(notebook("lab", "y", 1))
        assert rig.db.read_now(lambda tx: tx.tenants.get("org")).lowered is None
