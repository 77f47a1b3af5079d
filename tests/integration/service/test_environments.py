"""Environments as their team sees them: how they stand, what they share and hold, who is refused; and whatever dies, nothing is left."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import Resubmit
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime.environment import digest_of
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import Space
from mlp_hub.service.config import DiskPolicy
from support.rigs.environment_rig import (
    ONLINE,
    SIZE,
    Maker,
    at_rest,
    create,
    delete,
    detail,
    gone,
    left,
    running_rig,
    unresolvable,
    with_maker,
)
from support.rigs.platform_rig import FAST, Rig
from support.waiting import until


@asynccontextmanager
async def with_its_maker(root: Path) -> AsyncIterator[tuple[Rig, Maker]]:
    rig = Rig(root, policy=ONLINE)
    maker = with_maker(rig)
    async with running_rig(rig):
        yield rig, maker


async def charged(rig: Rig, size: int, tenant: str = "default") -> None:
    async def look() -> bool:
        return (await asyncio.to_thread(rig.held, tenant)).rom == size

    await until(look, what=f"{tenant} to hold {size} bytes")


async def there(rig: Rig) -> list[str]:
    return await asyncio.to_thread(left, rig)


async def refusal(doing: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as refused:
        await doing
    return refused.value


async def test_it_is_made_charged_listed_and_deleted(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        with maker.held("install") as waits:
            made = await create(rig, "Tools", "iniconfig  # small\n\npandas[excel]>=2; python_version>'3'")
            assert (made.state, made.user, made.tenant) == ("creating", "ann", "default")
            await until(waits, what="its installation to begin")
            going = await detail(rig, "Tools")
            assert going.environment.packages == {"iniconfig": "1.0", "pandas": "1.0"}
            assert going.log == "install of default"
        ready = await at_rest(rig, "Tools")
        found = await detail(rig, "Tools")
        assert (ready.state, ready.size) == ("ready", SIZE)
        assert ready.lock == digest_of(found.lock)
        assert found.requirements.splitlines()[0] == "iniconfig"
        await charged(rig, SIZE)
        listed = await rig.platform.environments.list("default")
        assert [each.name for each in listed] == ["Tools"]
        assert len(await there(rig)) == 1
        assert (await there(rig))[0].startswith("default/tools-")
        await delete(rig, "Tools")
        await gone(rig, "Tools")
        await charged(rig, 0)
        assert await there(rig) == []


async def test_a_second_one_of_the_same_lock_has_the_same_files_and_costs_nothing(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        with maker.held("install") as waits:
            await create(rig, "one")
            await until(waits, what="the first to be installed")
            await create(rig, "two")
            await create(rig, "other", "numpy")
        first, second, other = [await at_rest(rig, name) for name in ("one", "two", "other")]
        assert (first.shared_with, second.shared_with, other.shared_with) == (["two"], ["one"], [])
        assert [did for did, _ in maker.did].count("install") == 2
        await charged(rig, 2 * SIZE)
        await delete(rig, "one")
        await gone(rig, "one")
        await charged(rig, 2 * SIZE)
        await create(rig, "one")
        assert (await at_rest(rig, "one")).shared_with == ["two"]
        for name in ("one", "two", "other"):
            await delete(rig, name)
        for name in ("one", "two", "other"):
            await gone(rig, name)
        await charged(rig, 0)
        assert await there(rig) == []


async def test_an_environment_that_cannot_be_built_shows_the_reason_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        maker.fails.append(unresolvable())
        await create(rig)
        failed = await at_rest(rig)
        assert (failed.state, str(failed.message)) == (
            "error",
            "No solution found when resolving dependencies",
        )
        assert str((await refusal(rig.submit("digits", env_name="tools"))).message) == (
            "environment tools is in error; a job can use it when it is ready"
        )
        await delete(rig)
        await gone(rig)
        maker.fails += [OSError(errno.EIO, "a bad disk")] * 2
        await create(rig)
        assert (await at_rest(rig)).state == "ready"
        await delete(rig)
        await gone(rig)
        maker.fails += [OSError(errno.EIO, "a bad disk")] * 4
        await create(rig)
        failed = await at_rest(rig)
        assert "making it failed 4 times" in str(failed.message)
        assert await there(rig) == []
        await charged(rig, 0)


async def test_one_that_a_job_uses_is_not_deleted_before_that_has_ended(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        await create(rig)
        ready = await at_rest(rig)
        await rig.submit("digits", sim={"DURATION": 600}, env_name="tools")
        job = await rig.until("digits", "running")
        assert (job.env_name, job.env_lock) == ("tools", ready.lock)
        assert (await detail(rig)).environment.jobs == ["digits"]
        refused = await refusal(delete(rig))
        assert refused.reason is Reason.CONFLICT
        assert "environment tools is used by job digits of ann, which is running" in str(refused.message)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "digits")
        await rig.until("digits", "cancelled")
        await delete(rig)
        await gone(rig)
        again = await refusal(rig.platform.jobs.resubmit(SYSTEM, "ann", "digits"))
        assert again.reason is Reason.NOT_FOUND
        await create(rig, requirements="numpy")
        await at_rest(rig)
        exactly = await refusal(rig.platform.jobs.resubmit(SYSTEM, "ann", "digits", Resubmit(exactly=True)))
        assert "environment tools had other packages when digits ran" in str(exactly.message)


async def server(rig: Rig, environment: str, tenant: str = "default", user: str = "ann") -> None:
    """Start a notebook server with an environment, as the spawner does."""
    there = (await rig.platform.environments.for_servers([tenant]))[tenant]
    uid = next((each.uid for each in there if each.name == environment), environment)
    key = ResourceRequestKey(id=f"{user}/", applier="sp")
    asked = ResourceRequestTry(
        id=key.id, applier="sp", request_type="request", tenant=tenant, cpu=0.1, ram=100, user=user,
        holder=f"{user}'s notebook", environment=uid,
    )  # fmt: skip
    await rig.platform.ledger.try_(asked)
    await rig.platform.ledger.confirm(key)


async def server_ended(rig: Rig, user: str = "ann") -> None:
    released = ResourceRequestTry(id=f"{user}/", applier="sp", request_type="release")
    await rig.platform.ledger.try_(released)
    await rig.platform.ledger.confirm(ResourceRequestKey(id=f"{user}/", applier="sp"))


async def test_one_that_a_server_was_started_with_is_not_deleted_before_that_has_ended(
    tmp_path: Path,
) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        for name in ("tools", "other"):
            await create(rig, name)
            await at_rest(rig, name)
        await server(rig, "tools")
        assert [str(each) for each in (await detail(rig)).environment.servers] == ["ann's notebook"]
        assert (await detail(rig, "other")).environment.servers == []
        refused = await refusal(delete(rig))
        assert refused.reason is Reason.CONFLICT
        assert "environment tools is used by ann's notebook, which was started with it" in str(
            refused.message
        )
        await delete(rig, "other")
        await gone(rig, "other")
        await server_ended(rig)
        await delete(rig)
        await gone(rig)


async def test_a_server_gets_none_but_those_of_its_team_that_are_ready(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        await rig.platform.tenants.create(TenantCreate(name="red"), actor="root")
        await create(rig, "theirs", tenant="red")
        await at_rest(rig, "theirs", "red")
        maker.fails.append(unresolvable())
        await create(rig, "broken")
        await at_rest(rig, "broken")
        with maker.held("install") as waits:
            await create(rig, "young")
            await until(waits, what="its installation to begin")
            offered = await rig.platform.environments.for_servers(["default", "red"])
            assert {tenant: [each.name for each in found] for tenant, found in offered.items()} == {
                "default": [],
                "red": ["theirs"],
            }
            uids = await rig.db.read(
                lambda tx: [each.uid for t in ("default", "red") for each in tx.environments.of_tenant(t)]
            )
            for uid in (*uids, "", "../x", "never"):
                refused = await refusal(server(rig, uid))
                assert refused.reason is Reason.NOT_FOUND
                assert "is not a ready environment of team default; choose again" in str(refused.message)
                assert (await asyncio.to_thread(rig.held)).cpu == 0
        assert (await at_rest(rig, "young")).state == "ready"
        (young,) = (await rig.platform.environments.for_servers(["default"]))["default"]
        assert (young.name, young.kernel, young.image) == ("young", "mlp-env-young", None)


async def test_deleting_it_twice_is_no_more_than_once(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        with maker.held("install") as waits:
            await create(rig)
            await until(waits, what="its installation to begin")
            await delete(rig)
            again = await rig.platform.environments.delete("default", "tools", actor="ann")
            assert again.state == "deleting"
        await gone(rig)


async def test_where_jobs_are_pods_since_those_of_packages_go_with_their_files_and_none_is_made_for_ever(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, policy=ONLINE)
    maker = with_maker(rig)

    async with running_rig(rig):
        for name in ("tools", "same"):
            await create(rig, name)
            await at_rest(rig, name)
        with maker.held("lock") as waits:
            await create(rig, "half", "numpy")
            await until(waits, what="it to be resolved")
            await rig.platform.stop()
        rig.executor.environments = None  # type: ignore[assignment]
        rig.platform = rig.make()
        await rig.start()
        half = await at_rest(rig, "half")
        assert half.state == "error"
        assert "whose packages are in an image" in str(half.message)
        for name in ("half", "tools"):
            await delete(rig, name)
            await gone(rig, name)
        assert len(await there(rig)) == 1
        await delete(rig, "same")
        await gone(rig, "same")
        assert await there(rig) == []
        await charged(rig, 0)


async def test_an_unauthorized_request_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        await create(rig, "tools")
        await at_rest(rig)
        assert str((await refusal(create(rig, "tools"))).message) == (
            "environment tools already exists; delete it first, or choose another name"
        )
        assert str((await refusal(create(rig, "Tools"))).message) == (
            "environment tools already exists, and Tools differs from it only in case; choose another name"
        )
        await rig.platform.tenants.create(TenantCreate(name="closed", network="none"), actor="root")
        refused = await refusal(create(rig, tenant="closed"))
        assert (refused.reason, "team closed has no network" in str(refused.message)) == (
            Reason.WRONG_STATE,
            True,
        )
        by_another = await refusal(rig.platform.environments.delete("default", "tools", actor="bob"))
        assert by_another.reason is Reason.FORBIDDEN
        await rig.platform.environments.delete("default", "tools", actor="root", admin=True)
        await gone(rig)
        missing = await refusal(rig.submit("digits", env_name="tools"))
        assert missing.reason is Reason.NOT_FOUND


async def test_another_teams_is_not_there(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        await rig.platform.tenants.create(TenantCreate(name="red"), actor="root")
        await create(rig, tenant="red", user="bob")
        theirs = await at_rest(rig, tenant="red")
        assert (await refusal(rig.submit("digits", env_name="tools"))).reason is Reason.NOT_FOUND
        await create(rig)
        mine = await at_rest(rig)
        assert (theirs.lock, mine.shared_with) == (mine.lock, [])
        await charged(rig, SIZE, "red")
        await charged(rig, SIZE)


async def test_those_of_a_tenant_that_is_deleted_are_not_its_namesakes(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        tenants = rig.platform.tenants
        await tenants.create(TenantCreate(name="red"), actor="root")
        await create(rig, tenant="red")
        await at_rest(rig, tenant="red")
        assert "environment tools, made by ann" in str(
            (await refusal(tenants.delete("red", actor="root"))).message
        )
        await delete(rig, tenant="red")
        await gone(rig, tenant="red")
        with maker.held("lock") as waits:  # its sandbox would have been nobody's
            await create(rig, tenant="red")
            await until(waits, what="it to be resolved")
            refused = str((await refusal(tenants.delete("red", actor="root"))).message)
            assert "1 environment that is being made or deleted (tools)" in refused
            await delete(rig, tenant="red")
            await gone(rig, tenant="red")
        maker.fails.append(unresolvable())
        await create(rig, tenant="red")
        await at_rest(rig, tenant="red")
        await tenants.delete("red", actor="root")
        await tenants.create(TenantCreate(name="red"), actor="root")
        assert await rig.platform.environments.list("red") == []


async def test_an_environment_beyond_the_quota_is_not_built(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        await rig.platform.tenants.create(TenantCreate(name="small", rom=SIZE - 1), actor="root")
        await create(rig, tenant="small")
        failed = await at_rest(rig, tenant="small")
        assert failed.state == "error"
        assert "small" in str(failed.message)
        await charged(rig, 0, "small")
        assert await there(rig) == []


async def test_a_build_that_would_fill_the_disk_ends_before_other_work_is_stopped_for_it(
    tmp_path: Path,
) -> None:
    """A tenant without a limit of storage, and packages that are small until they are unpacked."""
    rig = Rig(tmp_path, policy=replace(ONLINE, disk=DiskPolicy(floor=1 << 20)))
    maker = with_maker(rig)
    maker.space = Space(1 << 40, (2 << 20) - 1)

    async with running_rig(rig):
        await create(rig)
        failed = await at_rest(rig)
        assert failed.state == "error"
        assert str(failed.message).startswith("the disk is nearly full: it has 1 MiB left")
        assert await there(rig) == []


async def test_a_hub_whose_jobs_run_elsewhere_refuses_with_the_way_that_it_has(tmp_path: Path) -> None:
    rig = Rig(tmp_path, policy=replace(FAST, job_network="outbound"))

    async with running_rig(rig):
        for doing in (create(rig), rig.submit("digits", env_name="tools")):
            assert "whose packages are in an image" in str((await refusal(doing)).message)


async def test_one_that_is_deleted_while_it_is_made_is_made_no_further(tmp_path: Path) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        for step in ("lock", "install"):
            with maker.held(step) as waits:
                await create(rig)
                await until(waits, what=f"its {step}")
                await delete(rig)
                await gone(rig)
        await charged(rig, 0)
        assert await there(rig) == []
        assert not maker.at_work


class CutError(Exception):
    """The service is dead from here on."""


class CutDatabase:
    """A database whose `cut`-th write is not made, or is made and not answered; nothing works after that."""

    def __init__(self, rig: Rig, cut: int, *, made: bool) -> None:
        self._db, self._cut, self._made = rig.db, cut, made
        self.writes = 0

    async def read(self, fn: object) -> object:
        return await self._db.read(fn)  # type: ignore[arg-type]

    async def write(self, fn: object, **more: object) -> object:
        self.writes += 1
        if self.writes > self._cut or (self.writes == self._cut and not self._made):
            raise CutError
        found = await self._db.write(fn, **more)  # type: ignore[arg-type, call-overload]
        if self.writes == self._cut:
            raise CutError
        return found


WRITES = 8 if os.geteuid() else 10
"""Writes of a life: create, resolved, begun, room, ready, delete, is it the last, gone; and as root whose uid makes it, before each step."""


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(1, WRITES + 1))
async def test_an_environment_killed_at_any_write_continues_and_leaves_nothing(
    tmp_path: Path, cut: int, *, made: bool
) -> None:
    async with with_its_maker(tmp_path) as (rig, maker):
        del maker
        service = rig.platform.environments
        db = CutDatabase(rig, cut, made=made)
        service._db = service._worker._db = db  # type: ignore[assignment]
        killed = False

        async def go_on(step: Callable[[], Awaitable[object]], rests: Callable[[], Awaitable[bool]]) -> None:
            """Take a step and wait until it is done, or the service is dead: then with the next one."""
            nonlocal killed

            async def over() -> bool:
                return await rests() or (not killed and db.writes >= cut)

            try:
                await step()
            except CutError:
                pass
            except Refused as refused:
                assert refused.reason in (Reason.CONFLICT, Reason.NOT_FOUND)  # noqa: PT017 - it was done before
            await until(over, what="the worker to rest")
            if not killed and db.writes >= cut:
                killed = True
                rig.crash()
                await rig.start()
                await go_on(step, rests)

        async def ready() -> bool:
            found = await rig.db.read(lambda tx: tx.environments.find("default", "tools"))
            return found is not None and found.phase == "ready"

        async def away() -> bool:
            return await rig.db.read(lambda tx: tx.environments.find("default", "tools")) is None

        async def ask_to_delete() -> None:
            found = await rig.db.read(lambda tx: tx.environments.find("default", "tools"))
            if found is not None and found.phase != "deleting":
                await delete(rig)

        await go_on(lambda: create(rig), ready)
        await charged(rig, SIZE)
        assert len(await there(rig)) == 1
        await go_on(ask_to_delete, away)
        await charged(rig, 0)
        assert await there(rig) == []
        assert killed, f"there is no write {cut}: {db.writes}"
        assert not await rig.db.read(lambda tx: tx.stored.of_tenant("default"))
