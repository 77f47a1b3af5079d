"""A tenant's runtime: who may use it, in which state, and what its jobs keep when it changes or goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.runtime.runtime import BUILT_IN, RuntimeState
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.service.support.limits import DEFAULTS
from support.rigs.platform_rig import Rig, node, running_rig

PS = {"roles": [{"name": "chief", "count": 1}, {"name": "worker"}, {"name": "ps"}]}


def described(**fields: Any) -> RuntimeUpdate:
    return msgspec.convert({"title": "Mine", **fields}, RuntimeUpdate)


async def team(rig: Rig, tenant: str = "red", user: str = "ann", **quota: Any) -> None:
    await rig.platform.tenants.create(TenantCreate(name=tenant, **quota))
    await rig.platform.tenants.set_member(tenant, user)


async def registered(rig: Rig, name: str = "mine", tenant: str = "red", **fields: Any) -> None:
    await rig.platform.runtimes.store_runtime(tenant, name, described(**fields), actor="root", reviewer=True)


def started(rig: Rig) -> list[LaunchSpec]:
    """Note what the executor is told of each attempt."""
    seen: list[LaunchSpec] = []
    start = rig.executor.start

    async def noting(spec: LaunchSpec, epoch: int = 0) -> None:
        seen.append(spec)
        await start(spec, epoch)

    rig.executor.start = noting  # type: ignore[method-assign]
    return seen


async def test_a_runtime_registered_by_a_tenant_admin_is_usable_once_it_is_approved(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await team(rig)
        runtimes = rig.platform.runtimes
        made = await runtimes.store_runtime("red", "mine", described(**PS), actor="rita")
        assert (made.state, made.ps, made.changed_by) == ("submitted", True, "rita")
        with pytest.raises(Refused, match="mine waits for an administrator's review"):
            await rig.submit("early", tenant="red", runtime="mine", workers=2)
        assert "mine" not in [r.name for r in await runtimes.offered("ann")]
        await runtimes.set_state("red", "mine", RuntimeState.APPROVED, actor="root")
        assert [r.name for r in await runtimes.offered("ann")] == [*BUILT_IN, "mine"]
        seen = started(rig)
        await rig.submit("used", tenant="red", runtime="mine", workers=2, ps=1, sim={"DURATION": 0.05})
        job = await rig.until("used", "finished")
        assert [r.role for r in job.ranks] == ["chief", "worker", "ps"]
        assert seen[0].runtime.roles[0].name == "chief"
        # changed again, and so not approved any more; the same once more changes nothing
        changed = await runtimes.store_runtime("red", "mine", described(**PS, env={"A": "1"}), actor="rita")
        assert changed.state == "submitted"
        await runtimes.set_state("red", "mine", RuntimeState.APPROVED, actor="root")
        again = await runtimes.store_runtime("red", "mine", described(**PS, env={"A": "1"}), actor="rita")
        assert again.state == "approved"
        entries, _ = await rig.platform.audit.entries(action="runtime.")
        assert [(e.action, e.actor, e.tenant) for e in reversed(entries)] == [
            ("runtime.create", "rita", "red"),
            ("runtime.approve", "root", "red"),
            ("runtime.update", "rita", "red"),
            ("runtime.approve", "root", "red"),
        ]
        assert [e.detail.get("env") for e in entries] == [{"A": "1"}, {"A": "1"}, None, None]
        await rig.restart()
        assert [r.state for r in await rig.platform.runtimes.list("red")] == ["approved"]


async def test_another_tenants_runtime_is_neither_seen_nor_used(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await team(rig)
        await team(rig, "blue", "bob")
        await registered(rig)
        assert "mine" not in [r.name for r in await rig.platform.runtimes.offered("bob")]
        for tenant in ("blue", "red"):
            with pytest.raises(Refused) as caught:
                await rig.submit("taken", "bob", tenant=tenant, runtime="mine")
            assert "Mine" not in str(caught.value)
        with pytest.raises(
            Refused, match=r"runtime mine does not exist; choose one of mpi, tf, torch, plain$"
        ):
            await rig.platform.jobs.offer("bob", JobCreate(name="x", code="x", tenant="blue", runtime="mine"))
        # each tenant has its own of a name
        await registered(rig, tenant="blue", title="Other")
        seen = started(rig)
        await rig.submit("own", "bob", tenant="blue", runtime="mine", sim={"DURATION": 0.05})
        await rig.until("own", "finished", user="bob")
        assert seen[0].runtime.title == "Other"


async def test_all_ranks_of_all_roles_count_against_the_quota_and_start_together(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await team(rig, cpu=4)
        await registered(rig, **PS)
        await rig.submit("fits", tenant="red", runtime="mine", workers=3, ps=1)
        job = await rig.until("fits", "running")
        assert [r.role for r in job.ranks] == ["chief", "worker", "worker", "ps"]
        assert rig.held("red").cpu == 4000
        with pytest.raises(Refused, match="cpu"):
            await rig.submit("wide", tenant="red", runtime="mine", workers=3, ps=2)
        await registered(rig, "crowd", roles=[{"name": "many", "count": 1000}, {"name": "worker"}])
        with pytest.raises(Refused, match="ask for --workers 1001 or more, not 1"):
            await rig.submit("crowd", tenant="red", runtime="crowd")
        with pytest.raises(Refused, match="parameter servers"):
            await rig.submit("servers", tenant="red", runtime="crowd", workers=1001, ps=1)


async def test_a_job_keeps_the_definition_that_it_was_submitted_with(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await team(rig, cpu=1)
        await registered(rig, title="First")
        seen = started(rig)
        await rig.submit("runs", tenant="red", runtime="mine", retries=1, sim={"DURATION": 600})
        runs = await rig.until("runs", "running")
        await rig.submit("waits", tenant="red", runtime="mine", sim={"DURATION": 0.05})
        await registered(rig, title="Second")
        await rig.platform.runtimes.remove("red", "mine", actor="rita")
        (told,) = [e for e in await rig.platform.jobs.events(SYSTEM, "ann", "waits") if e.kind == "runtime"]
        assert str(told.message).startswith(
            "runtime mine of red was removed; this job still starts by the definition"
        )
        assert not [e for e in await rig.platform.jobs.events(SYSTEM, "ann", "runs") if e.kind == "runtime"]
        await rig.restart()
        rig.end(runs)
        await rig.until("runs", "finished")
        await rig.until("waits", "finished")
        with pytest.raises(Refused, match="runtime mine does not exist"):
            await rig.submit("new", tenant="red", runtime="mine")
        await rig.platform.jobs.resubmit(SYSTEM, "ann", "waits")
        await rig.until("waits", "finished")
        assert {spec.runtime.title for spec in seen} == {"First"}


async def test_a_disabled_runtime_starts_nothing_new_and_only_hub_administrators_enable_it_again(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await team(rig)
        await registered(rig)
        await rig.submit("old", tenant="red", runtime="mine", sim={"DURATION": 0.05})
        await rig.until("old", "finished")
        runtimes = rig.platform.runtimes
        await runtimes.set_state("red", "mine", RuntimeState.DISABLED, actor="root")
        for attempt in (
            rig.submit("new", tenant="red", runtime="mine"),
            rig.platform.jobs.resubmit(SYSTEM, "ann", "old"),
            runtimes.store_runtime("red", "mine", described(), actor="rita"),
            runtimes.remove("red", "mine", actor="rita"),
        ):
            with pytest.raises(Refused, match="was disabled by an administrator of the hub"):
                await attempt
        await runtimes.set_state("red", "mine", RuntimeState.APPROVED, actor="root")
        await rig.platform.jobs.resubmit(SYSTEM, "ann", "old")


async def test_a_tenant_has_no_end_of_runtimes_and_they_go_with_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"))
        for number in range(DEFAULTS.runtimes_per_tenant):
            await registered(rig, f"r{number}")
        with pytest.raises(
            Refused, match=f"red has {DEFAULTS.runtimes_per_tenant} runtimes, which is the limit"
        ):
            await registered(rig, "more")
        await registered(rig, "r1", title="Changed")
        await rig.platform.tenants.delete("red")
        await rig.platform.tenants.create(TenantCreate(name="red"))
        assert await rig.platform.runtimes.list("red") == []


async def test_a_refused_description_changes_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await team(rig)
        await registered(rig)
        before = await rig.platform.runtimes.list("red")
        with pytest.raises(Refused):
            await registered(rig, program=["{nothing}"])
        with pytest.raises(Refused, match="plain is a runtime of the platform"):
            await registered(rig, "plain")
        assert await rig.platform.runtimes.list("red") == before
