"""Jobs that people made past the hub are taken in once, refused with a sentence, cancelled when they go, removed when cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.domain.jobs.job import ExternalJob
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.external import ObservedExternalJob
from mlp_language.message import Message, msg
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


class Door:
    """What people bring, and what was written down on it."""

    def __init__(self) -> None:
        self.there: dict[str, ObservedExternalJob] = {}
        self.said: dict[str, str] = {}
        self.explained: list[str] = []
        self.fails = 0
        self._told: list[Callable[[str], None]] = []

    def bring(self, name: str, **more: Any) -> ExternalJob:
        what = ExternalJob("MPIJob", "mlp-red", name, f"uid-{name}-{len(self.there)}")
        fields: dict[str, Any] = {
            "user": "ann",
            "tenant": "red",
            "runtime": "mpi",
            "workers": 2,
            "ps": 0,
            "per_worker": Resources(cpu=500, ram=100),
        }
        self.there[what.uid] = ObservedExternalJob(what, **(fields | more))
        self.tell(what.uid)
        return what

    def take_away(self, what: ExternalJob) -> None:
        del self.there[what.uid]
        self.tell(what.uid)

    def tell(self, uid: str) -> None:
        for callback in self._told:
            callback(uid)

    def all(self) -> Sequence[ObservedExternalJob]:
        return list(self.there.values())

    def find(self, uid: str) -> ObservedExternalJob | None:
        return self.there.get(uid)

    def is_there(self, uid: str) -> bool:
        return uid in self.there

    async def seen(self) -> None: ...

    def on_news(self, callback: Callable[[str], None]) -> None:
        self._told.append(callback)

    async def accept(self, what: ExternalJob, job: str, name: str, epoch: int = 0) -> None:
        self.fails -= 1
        if self.fails >= 0:
            raise Unavailable(msg("the cluster is away"))
        self.said[what.uid] = name
        self.there[what.uid] = replace(self.there[what.uid], job=job)

    async def refuse(self, what: ExternalJob, why: Message, epoch: int = 0) -> None:
        self.said[what.uid] = str(why)
        self.there[what.uid] = replace(self.there[what.uid], refused=True)

    async def explain(self, what: ExternalJob, why: str, epoch: int = 0) -> None:
        if what.uid in self.there:
            self.explained.append(why)
            self.there[what.uid] = replace(self.there[what.uid], waits=why)

    async def remove(self, what: ExternalJob, epoch: int = 0) -> None:
        self.take_away(what)


@asynccontextmanager
async def at_door(root: Path) -> AsyncIterator[tuple[Rig, Door]]:
    async with running_rig(root) as rig:
        door = Door()
        rig.executor.external_jobs = door  # type: ignore[assignment]
        await rig.restart()
        await rig.platform.users.approve("ann", actor="admin")
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=4.0, ram=1000))
        await rig.platform.tenants.set_member("red", "ann")
        yield rig, door


async def told(door: Door, what: ExternalJob) -> str:
    async def look() -> str | None:
        return door.said.get(what.uid)

    found: str = await until(look, what=f"word of {what.title}")
    return found


async def test_it_is_a_job_of_its_users_with_all_that_its_pods_ask_for(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        what = door.bring("train")
        assert await told(door, what) == "train"
        job = await rig.until("train", "running", "finished")
        assert (job.tenant, job.runtime, job.workers, job.cpu) == ("red", "mpi", 2, 0.5)
        assert job.source == "MPIJob mlp-red/train"
        with pytest.raises(
            Refused, match=r"was made with kubectl, as MPIJob mlp-red/train: create it again there"
        ):
            await rig.platform.jobs.resubmit(SYSTEM, "ann", "train")


async def test_it_is_taken_in_once_though_that_could_not_be_written_down(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        door.fails = 2
        await told(door, door.bring("train"))
        jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann")
        assert [job.name for job in jobs] == ["train"]


async def test_of_one_name_there_may_be_several(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        waits = JobCreate(name="train", code="x", cpu=1.0, ram=100, tenant="red", env={"SIM_DURATION": "600"})
        await rig.platform.jobs.submit("ann", waits)
        assert (await told(door, door.bring("train"))).startswith("train-uid-trai")


async def test_an_unknown_user_a_non_member_and_an_oversized_request_are_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    async with at_door(tmp_path) as (rig, door):
        await rig.platform.users.approve("bob", actor="admin")
        for more, says in (
            ({"user": "eve"}, "the hub has no user eve"),
            ({"user": "bob"}, "bob is not a member of team red"),
            ({"per_worker": Resources(cpu=9000, ram=100)}, "18"),
            ({"fault": msg("it has no pods; ask for one or more")}, "it has no pods"),
        ):
            assert says in await told(door, door.bring("train", **more))
        assert (await rig.platform.jobs.list(SYSTEM))[0] == []


async def test_deleting_the_object_cancels_its_job_even_while_nobody_watches(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        fills = JobCreate(name="fills", code="x", cpu=4.0, ram=100, tenant="red", env={"SIM_DURATION": "600"})
        await rig.platform.jobs.submit("ann", fills)
        await rig.until("fills", "running")
        one, other = door.bring("one"), door.bring("other")
        await told(door, one)
        await told(door, other)
        door.take_away(one)
        await rig.until("one", "cancelled")
        rig.crash()
        door.take_away(other)
        await rig.start()
        await rig.until("other", "cancelled")
        events = [str(e.message) for e in await rig.platform.jobs.events(SYSTEM, "ann", "one")]
        assert events[-1] == "cancelled before it started"


async def test_cancelling_or_deleting_a_job_in_the_hub_removes_its_object(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        fills = JobCreate(name="fills", code="x", cpu=4.0, ram=100, tenant="red", env={"SIM_DURATION": "600"})
        await rig.platform.jobs.submit("ann", fills)
        await rig.until("fills", "running")
        what = door.bring("waits")
        await told(door, what)
        await rig.until("waits", "queued")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "waits")

        async def gone() -> bool:
            return not door.is_there(what.uid)

        await until(gone, what="its object to go")
        left = door.bring("left", job="01UNKNOWN")
        await until(lambda: _gone(door, left), what="the object of a job that is no more to go")


async def _gone(door: Door, what: ExternalJob) -> bool:
    return not door.is_there(what.uid)


async def test_its_object_says_why_it_waits_once_for_each_kind_of_reason(tmp_path: Path) -> None:
    async with at_door(tmp_path) as (rig, door):
        fills = JobCreate(name="fills", code="x", cpu=4.0, ram=100, tenant="red", env={"SIM_DURATION": "600"})
        await rig.platform.jobs.submit("ann", fills)
        await rig.until("fills", "running")
        what = door.bring("waits")

        async def words() -> str:
            return door.there[what.uid].waits

        assert "cpu" in await until(words, what="the reason on its object")
        written = len(door.explained)
        for _ in range(3):
            door.tell(what.uid)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "fills")
        await rig.until("waits", "running", "finished")

        async def silent() -> bool:
            return not door.there[what.uid].waits

        await until(silent, what="the reason to go")
        assert len(door.explained) == written + 1
