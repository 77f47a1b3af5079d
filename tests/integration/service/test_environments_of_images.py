"""Environments where jobs run in containers: an image each, at once ready, of no storage, and what a job keeps of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from mlp_api.jobs.jobs import Resubmit
from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_api.stored.environments import EnvironmentCreate, EnvironmentInfo
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime.runtime import RuntimeState
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from support.rigs.environment_rig import at_rest, delete, detail, gone, with_maker
from support.rigs.environment_rig import create as create_of_packages
from support.rigs.platform_rig import FAST, Rig, running_rig

Story = Callable[[Rig], Awaitable[None]]
DIGEST = "ab" * 32
TRAIN = f"registry.example.org/ml/train:1@sha256:{DIGEST}"
OTHER = "registry.example.org/ml/other:1"
ALLOWING = replace(FAST, environment_images=("registry.example.org/ml",))


@pytest.fixture(autouse=True)
def containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedExecutor, "images", True)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[LaunchSpec]:
    """What the executor was asked to start."""
    found: list[LaunchSpec] = []
    start = SimulatedExecutor.start

    async def noted(self: SimulatedExecutor, spec: LaunchSpec, *more: int) -> None:
        found.append(spec)
        await start(self, spec, *more)

    monkeypatch.setattr(SimulatedExecutor, "start", noted)
    return found


async def create(
    rig: Rig, image: str = TRAIN, name: str = "vision", tenant: str = "default", *, admin: bool = False
) -> EnvironmentInfo:
    asked = EnvironmentCreate(name=name, image=image)
    return await rig.platform.environments.create(tenant, asked, actor="ann", admin=admin)


async def refusal(doing: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as refused:
        await doing
    return refused.value


async def test_it_is_ready_at_once_listed_shown_and_gone_and_takes_no_storage(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        made = await create(rig)
        assert (made.state, made.image, made.lock, made.size) == ("ready", TRAIN, DIGEST, 0)
        found = await detail(rig, "vision")
        assert (found.environment, found.requirements, found.lock, found.log) == (made, "", "", "")
        await create(rig, OTHER, "speech")
        listed = await rig.platform.environments.list("default")
        assert [(each.name, each.lock) for each in listed] == [("vision", DIGEST), ("speech", "")]
        assert (await asyncio.to_thread(rig.held)).rom == 0
        assert "differs from it only in case" in str((await refusal(create(rig, name="Vision"))).message)
        by_another = await refusal(rig.platform.environments.delete("default", "vision", actor="bob"))
        assert by_another.reason is Reason.FORBIDDEN
        await rig.restart()
        assert (await detail(rig, "vision")).environment == made
        gone_now = await rig.platform.environments.delete("default", "vision", actor="ann")
        assert gone_now.state == "deleting"
        assert (await refusal(detail(rig, "vision"))).reason is Reason.NOT_FOUND
        assert (await create(rig)).state == "ready"
        told, _ = await rig.db.read(lambda tx: tx.audit.page(action="environment.create"))
        assert {entry.detail["image"] for entry in told} == {TRAIN, OTHER}


async def test_jobs_of_each_runtime_run_in_it_and_keep_what_it_was(
    tmp_path: Path, launched: list[LaunchSpec]
) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        await create(rig)
        for runtime in ("plain", "mpi", "tf", "torch"):
            workers = 1 if runtime == "plain" else 2
            job = await rig.submit(
                runtime, env_name="vision", runtime=runtime, workers=workers, sim={"DURATION": 0}
            )
            assert (job.env_name, job.env_lock) == ("vision", DIGEST)
            await rig.until(runtime, "finished")
        await rig.submit("usual", sim={"DURATION": 0})
        await rig.until("usual", "finished")
        assert [spec.image for spec in launched] == [TRAIN] * 4 + [None]
        assert not any(spec.environment for spec in launched)
        run = await rig.platform.runs.get(SYSTEM, "ann", "plain")
        assert (run.env_name, run.env_lock, run.env_image) == ("vision", DIGEST, TRAIN)
        # none is fetched beforehand, in the hub's own namespace
        assert not await rig.db.read(lambda tx: tx.jobs.images(0.0, 10))


async def test_one_that_a_job_uses_stays_and_a_namesake_is_another_one(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        await create(rig, OTHER)
        job = await rig.submit("digits", env_name="vision", sim={"DURATION": 600})
        assert (job.env_name, job.env_lock) == ("vision", None)
        assert "is used by job digits of ann" in str((await refusal(delete(rig, "vision"))).message)
        assert (await detail(rig, "vision")).environment.jobs == ["digits"]
        await rig.until("digits", "running")
        rig.end(await rig.platform.jobs.get(SYSTEM, "ann", "digits"))
        await rig.until("digits", "finished")
        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "digits", Resubmit(exactly=True))
        await rig.platform.jobs.cancel(SYSTEM, "ann", again.name)
        await rig.until("digits", "cancelled")
        await delete(rig, "vision")
        assert (await refusal(rig.platform.jobs.resubmit(SYSTEM, "ann", "digits"))).reason is Reason.NOT_FOUND
        await create(rig, "registry.example.org/ml/other:2")
        exactly = await refusal(rig.platform.jobs.resubmit(SYSTEM, "ann", "digits", Resubmit(exactly=True)))
        assert f"had the image {OTHER} when" in str(exactly.message)


async def test_a_server_has_its_image_and_keeps_it_when_it_is_deleted(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        await create(rig)
        ((found,),) = (await rig.platform.environments.for_servers(["default"])).values()
        assert (found.name, found.image, found.kernel) == ("vision", TRAIN, None)
        asked = ResourceRequestTry(
            id="ann/",
            applier="sp",
            request_type="request",
            cpu=0.1,
            ram=100,
            user="ann",
            environment=found.uid,
        )
        await rig.platform.ledger.try_(asked)
        await rig.platform.ledger.confirm(ResourceRequestKey(id="ann/", applier="sp"))
        assert [str(each) for each in (await detail(rig, "vision")).environment.servers] == ["ann's notebook"]
        await delete(rig, "vision")
        assert (await rig.platform.environments.for_servers(["default"])) == {"default": []}
        assert (await asyncio.to_thread(rig.held)).cpu == 100
        # what has gone is no other server's
        other = structs.replace(asked, id="bob/", user="bob")
        assert (await refusal(rig.platform.ledger.try_(other))).reason is Reason.NOT_FOUND


async def test_an_image_that_nobody_allowed_takes_an_administrator(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"), actor="root")
        outside = "evil.example/train:1"
        refused = await refusal(create(rig, outside, tenant="red"))
        assert (refused.reason, "allowed are registry.example.org/ml: ask" in str(refused.message)) == (
            Reason.FORBIDDEN,
            True,
        )
        runtimes, asked = rig.platform.runtimes, RuntimeUpdate(title="Mine", image=outside)
        await runtimes.store_runtime("red", "mine", asked, actor="rita")
        assert (await refusal(create(rig, outside, tenant="red"))).reason is Reason.FORBIDDEN
        await runtimes.set_state("red", "mine", RuntimeState.APPROVED, actor="root")
        assert (await create(rig, outside, tenant="red")).state == "ready"
        for other in ("evil.example/train:2", "evil.example/train/more:1", f"{outside}@sha256:{DIGEST}"):
            assert (await refusal(create(rig, other, "more", "red"))).reason is Reason.FORBIDDEN
        assert (await refusal(create(rig, outside))).reason is Reason.FORBIDDEN
        assert (await create(rig, outside, admin=True)).state == "ready"


async def test_where_nobody_reviews_all_images_will_do(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, runtime_review=False)) as rig:
        assert (await create(rig, "anything:1")).state == "ready"


async def test_another_teams_is_not_there(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"), actor="root")
        await create(rig, tenant="red")
        assert (await refusal(rig.submit("digits", env_name="vision"))).reason is Reason.NOT_FOUND
        assert await rig.platform.environments.list("default") == []
        await rig.platform.tenants.delete("red", actor="root")
        await rig.platform.tenants.create(TenantCreate(name="red"), actor="root")
        assert await rig.platform.environments.list("red") == []


async def test_it_is_one_of_the_two_and_the_one_that_this_hub_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=ALLOWING) as rig:
        service = rig.platform.environments
        for asked in (
            EnvironmentCreate(name="both", requirements="numpy", image=TRAIN),
            EnvironmentCreate(name="neither"),
        ):
            refused = await refusal(service.create("default", asked, actor="ann"))
            assert str(refused.message).endswith("name one of the two")
        assert "--image REGISTRY/NAME:TAG" in str((await refusal(create_of_packages(rig))).message)
        await create(rig)
        # the same database where jobs run on the hub's machine
        monkeypatch.setattr(SimulatedExecutor, "images", False)
        with_maker(rig)
        refused = await refusal(create(rig, name="other"))
        assert str(refused.message).startswith("image: this hub starts no containers")
        assert "-f requirements.txt" in str((await refusal(rig.submit("a", env_name="vision"))).message)


async def test_an_environment_of_packages_is_not_an_image_and_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedExecutor, "images", False)

    async with running_rig(tmp_path, policy=replace(ALLOWING, job_network="outbound")) as rig:
        await rig.platform.stop()
        with_maker(rig)
        await rig.start()
        await create_of_packages(rig)
        await at_rest(rig)
        monkeypatch.setattr(SimulatedExecutor, "images", True)
        assert "--image REGISTRY/NAME:TAG" in str((await refusal(rig.submit("a", env_name="tools"))).message)
        await delete(rig)
        await gone(rig)
