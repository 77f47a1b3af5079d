"""Groups of a login's provider on a whole platform: tenants made on first sight, roles, places that people put, people taken away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.platform import Platform
from mlp_hub.service.tenants.groups import GroupPolicy, policy_of
from support.rigs.platform_rig import Rig, running_rig

RULES = ("/ml/{tenant} -> {tenant}", "/ml/{tenant}/admins -> {tenant}:admin")
KEPT = policy_of(RULES, title="Keycloak")
MADE = policy_of(RULES, title="Keycloak", make=True, quota=["cpu=2", "weight=3"])


async def under(rig: Rig, policy: GroupPolicy) -> Platform:
    """Start the hub anew with other rules."""
    rig.groups = policy
    return await rig.restart()


async def places(p: Platform, user: str) -> dict[str, tuple[str, str]]:
    return {m.tenant: (m.role.value, m.source) for m in await p.tenants.of_user(user)}


async def told(p: Platform, action: str) -> Sequence[dict[str, object]]:
    return await p.db.read(lambda tx: [e.detail for e in tx.audit.page(action=action)[0]])


async def test_two_groups_give_two_tenants_a_role_follows_its_group_and_what_is_lost_goes(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = await under(rig, KEPT)
        for name in ("red", "blue"):
            await p.tenants.create(TenantCreate(name=name))
        await p.tenants.sync_groups("ann", ["/ml/red", "/ml/blue", "/ml/blue/admins", "/other"])
        assert await places(p, "ann") == {"red": ("member", "group"), "blue": ("admin", "group")}
        await p.tenants.sync_groups("ann", ["/ml/blue"])
        assert await places(p, "ann") == {"blue": ("member", "group")}
        await p.tenants.sync_groups("ann", [])
        assert await places(p, "ann") == {"default": ("member", "default")}


async def test_a_tenant_is_made_on_first_sight_from_the_template_or_told_as_left_out(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = await under(rig, KEPT)
        for _ in range(3):
            await p.tenants.sync_groups("ann", ["/ml/red", "/ml/Bad Name"])
        assert await places(p, "ann") == {"default": ("member", "default")}
        said = [str(d["message"]) for d in await told(p, "group.left_out")]
        assert len(said) == 2
        assert any("team red does not exist" in s for s in said)
        assert any("Bad Name cannot be a team's name" in s for s in said)
        p = await under(rig, MADE)
        await p.tenants.sync_groups("ann", ["/ml/red/admins"])
        assert await places(p, "ann") == {"red": ("admin", "group")}
        red = await p.tenants.get("red")
        assert (red.cpu, red.weight, red.members) == (2, 3, 1)
        assert [d["source"] for d in await told(p, "tenant.create")] == ["group"]


async def test_a_group_whose_tenant_cannot_be_made_breaks_no_login(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="main", cohort="pool"))
        p = await under(rig, MADE)
        await p.tenants.sync_groups("ann", ["/ml/pool", "/ml/red"])  # `pool` is the name of a cohort
        assert await places(p, "ann") == {"red": ("member", "group")}
        assert "pool" in str((await told(p, "group.left_out"))[0]["message"])


async def test_manual_memberships_stay_and_changes_of_group_memberships_are_refused_with_the_provider(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = await under(rig, KEPT)
        for name in ("red", "blue"):
            await p.tenants.create(TenantCreate(name=name))
        await p.tenants.set_member("red", "ann", "admin")
        await p.tenants.sync_groups("ann", ["/ml/red", "/ml/blue"])
        assert await places(p, "ann") == {"red": ("admin", "local"), "blue": ("member", "group")}
        shown = {m.tenant: m.managed_by for t in ("red", "blue") for m in await p.tenants.members(t)}
        assert shown == {"red": "", "blue": "Keycloak"}
        for change in (
            lambda: p.tenants.set_member("blue", "ann", "admin"),
            lambda: p.tenants.remove_member("blue", "ann"),
        ):
            with pytest.raises(
                Refused, match="a group of Keycloak, which manages this membership"
            ) as refused:
                await change()
            assert refused.value.reason is Reason.WRONG_STATE
        await p.tenants.sync_groups("ann", [])
        assert await places(p, "ann") == {"red": ("admin", "local")}


@pytest.mark.parametrize("policy", ["finish", "stop"])
@pytest.mark.parametrize("how", ["group", "disabled"])
async def test_running_jobs_of_a_removed_member_follow_the_tenants_policy_and_waiting_ones_are_suspended(
    tmp_path: Path, policy: str, how: str
) -> None:
    async with running_rig(tmp_path) as rig:
        p = await under(rig, KEPT)
        await p.tenants.create(TenantCreate(name="red"))
        await p.tenants.update("red", TenantUpdate(leavers=policy))  # type: ignore[arg-type]
        await p.tenants.sync_groups("ann", ["/ml/red"])
        await rig.submit("runs", tenant="red", cpu=4.0, sim={"DURATION": 600, "STOP": 0})
        await rig.until("runs", "running")
        await rig.submit("waits", tenant="red")
        if how == "group":
            await p.tenants.sync_groups("ann", [])
        else:
            await p.tenants.account_ended("ann")
            await p.tenants.account_ended("ann")  # said again and again
        assert (await p.jobs.get(SYSTEM, "ann", "waits")).phase == "suspended"
        if policy == "stop":
            await rig.until("runs", "cancelled")
        else:
            assert (await p.jobs.get(SYSTEM, "ann", "runs")).phase == "running"


async def test_a_disabled_user_has_no_waiting_jobs_and_keeps_manual_memberships(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = await under(rig, KEPT)
        await p.tenants.create(TenantCreate(name="red"))
        await p.tenants.set_member("red", "ann")
        await p.tenants.set_member("default", "ann")
        await rig.submit("full", user="bob", cpu=4.0, sim={"DURATION": 600, "STOP": 0})
        await rig.until("full", "running", user="bob")
        await rig.submit("one", tenant="red")
        await rig.submit("two", tenant="default")
        await p.tenants.account_ended("ann")
        for name in ("one", "two"):
            job = await p.jobs.get(SYSTEM, "ann", name)
            assert job.phase == "suspended"
            assert "the account of ann was removed" in str(job.message)
        assert set(await places(p, "ann")) == {"red", "default"}
        [detail] = await told(p, "user.ended")
        assert (detail["stopped_jobs"], detail["suspended_jobs"]) == (0, 2)
        assert await p.db.read(lambda tx: tx.jobs.users_active(limit=10)) == ["ann", "bob"]
