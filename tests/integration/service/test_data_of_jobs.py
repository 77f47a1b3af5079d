"""Datasets that jobs read: held while a job has not ended, looked at again at each start, and named by what comes of the job."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import Resubmit
from mlp_api.stored.datasets import DatasetCreate, DatasetHeartbeat, DatasetSource
from mlp_api.stored.models import ModelCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import DataMount, LaunchSpec
from mlp_hub.executors.workspace import StoredPlace
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

LONG = {"DURATION": 600}
READY = DatasetHeartbeat(state="ready", progress=100)


async def dataset(rig: Rig, name: str = "pets", user: str = "ann", *, ready: bool = True) -> None:
    await rig.platform.datasets.create(user, DatasetCreate(name=name, size=1000))
    if ready:
        await rig.platform.datasets.heartbeat(SYSTEM, user, name, READY)


async def refusal(of: Any) -> tuple[Reason, str]:
    with pytest.raises(Refused) as refused:
        await of
    return refused.value.reason, str(refused.value.message)


def starts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[LaunchSpec]:
    """Return the list that every start is put into."""
    seen: list[LaunchSpec] = []
    start = rig.executor.start

    async def noted(spec: LaunchSpec, epoch: int = 0) -> None:
        seen.append(spec)
        await start(spec, epoch)

    monkeypatch.setattr(rig.executor, "start", noted)
    return seen


async def test_one_that_is_not_ready_is_refused_with_its_state(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig, ready=False)
        said = await refusal(rig.submit("train", data=["pets"]))
        assert said == (
            Reason.WRONG_STATE,
            "dataset pets is being uploaded; a job can read it when it is ready",
        )
        await rig.platform.datasets.heartbeat(
            SYSTEM, "ann", "pets", DatasetHeartbeat(state="error", progress=1)
        )
        assert "dataset pets is in error" in (await refusal(rig.submit("train", data=["pets"])))[1]
        assert await refusal(rig.submit("train", data=["cats"])) == (
            Reason.NOT_FOUND,
            "dataset cats does not exist",
        )
        assert (await rig.platform.jobs.list(SYSTEM, "ann"))[0] == []


@pytest.mark.parametrize(("mode", "words"), [("copy", "being copied"), ("read-through", "being examined")])
async def test_one_that_comes_from_a_source_is_not_said_to_be_uploaded(
    tmp_path: Path, mode: str, words: str
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.datasets.create("ann", DatasetCreate(name="pets", size=0, source=DatasetSource(url="s3://photos/pets", mode=mode)))  # fmt: skip
        said = await refusal(rig.submit("train", data=["pets"]))
        assert said == (
            Reason.WRONG_STATE,
            f"dataset pets is {words}; a job can read it when it is ready",
        )


async def test_of_others_there_is_nothing_where_the_tenant_shares_none(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig)
        theirs = await refusal(rig.submit("train", user="bob", data=["ann/pets"]))
        missing = await refusal(rig.submit("train", user="bob", data=["ann/none"]))
        assert (theirs[0], theirs[1].replace("pets", "none")) == missing


async def test_it_is_held_by_jobs_that_wait_run_or_are_suspended(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        datasets, jobs = rig.platform.datasets, rig.platform.jobs
        await dataset(rig)
        await rig.submit("full", cpu=4.0, sim=LONG)
        await rig.until("full", "running")
        await rig.submit("train", sim=LONG, data=["pets"])
        said = (
            "dataset pets is read by job train of ann, which is {}, and cannot be {} before that job has ended; wait for it or "
            "cancel it"
        )
        delete = (Reason.CONFLICT, said.format("queued", "deleted"))
        assert await refusal(datasets.delete(SYSTEM, "ann", "pets", actor="ann")) == delete
        anew = DatasetHeartbeat(state="creating", progress=0)
        assert await refusal(datasets.heartbeat(SYSTEM, "ann", "pets", anew)) == (
            Reason.CONFLICT,
            said.format("queued", "uploaded again"),
        )
        await jobs.cancel(SYSTEM, "ann", "full")
        await rig.until("train", "running")
        assert "which is running" in (await refusal(datasets.delete(SYSTEM, "ann", "pets", actor="ann")))[1]
        await jobs.suspend(SYSTEM, "ann", "train")
        await rig.until("train", "suspended")
        assert "which is suspended" in (await refusal(datasets.delete(SYSTEM, "ann", "pets", actor="ann")))[1]
        await jobs.cancel(SYSTEM, "ann", "train")
        await rig.until("train", "cancelled")
        assert (await datasets.delete(SYSTEM, "ann", "pets", actor="ann")).state == "deleting"


async def test_file_state_at_the_start_is_recorded_and_an_exact_rerun_is_refused_once_files_differ(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig)
        files = rig.directories.stored(StoredPlace("dataset", "ann", "pets"))
        files.mkdir(parents=True, exist_ok=True)
        (files / "a.csv").write_text("1,2\n")
        await rig.submit("full", cpu=4.0, sim=LONG)
        await rig.until("full", "running")
        await rig.submit("train", sim={"DURATION": 0.05}, data=["pets"])
        (waiting,) = (await rig.platform.runs.get(SYSTEM, "ann", "train")).data
        assert (waiting.digest, waiting.files) == (None, 0)
        (files / "b.csv").write_text("3,4\n")  # while it waits: it is read as it is at the start
        await rig.platform.jobs.cancel(SYSTEM, "ann", "full")
        await rig.until("train", "finished")
        (read,) = (await rig.platform.runs.get(SYSTEM, "ann", "train")).data
        assert (read.files, read.checked, len(read.digest or "")) == (2, 0, 64)
        exactly = Resubmit(exactly=True)
        await rig.platform.jobs.resubmit(SYSTEM, "ann", "train@1", exactly)
        await rig.until("train@2", "finished")
        (again,) = (await rig.platform.runs.get(SYSTEM, "ann", "train@2")).data
        assert again == read
        (files / "b.csv").write_text("3,4,5\n")
        reason, said = await refusal(rig.platform.jobs.resubmit(SYSTEM, "ann", "train@1", exactly))
        assert reason is Reason.CONFLICT
        assert (
            f"dataset pets has changed since train ran: it had 2 files with the checksum {(read.digest or '')[:12]}"
            in said
        )
        await rig.platform.jobs.resubmit(SYSTEM, "ann", "train@1", Resubmit())
        await rig.until("train@3", "finished")
        (other,) = (await rig.platform.runs.get(SYSTEM, "ann", "train@3")).data
        assert other.digest != read.digest


async def test_every_attempt_sees_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig)
        await dataset(rig, "cats")
        seen = starts(rig, monkeypatch)
        await rig.submit("train", sim=LONG, data=["pets", "cats:/mnt/cats"])
        await rig.until("train", "running")
        await rig.platform.jobs.suspend(SYSTEM, "ann", "train")
        await rig.until("train", "suspended")
        await rig.restart()
        await rig.platform.jobs.resume(SYSTEM, "ann", "train")
        await rig.until("train", "running")
        first, *_, last = seen
        assert first.attempt != last.attempt
        assert first.data == last.data
        assert set(first.data) == {
            DataMount(StoredPlace("dataset", "ann", "pets"), "/data/pets"),
            DataMount(StoredPlace("dataset", "ann", "cats"), "/mnt/cats"),
            DataMount(StoredPlace("dataset", "ann", "cats"), "/data/cats"),
        }
        env = {name: last.env[name] for name in ("MLP_DATA", "MLP_DATASETS", "MLP_DATA_PATHS")}
        assert env == {
            "MLP_DATA": "/data",
            "MLP_DATASETS": "pets:cats",
            "MLP_DATA_PATHS": "/data/pets:/mnt/cats",
        }


@pytest.mark.parametrize("again", [False, True], ids=["gone", "another of its name"])
async def test_a_job_whose_data_went_before_it_started_fails_and_holds_nothing(
    tmp_path: Path, again: bool
) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig)
        await rig.submit("full", user="bob", cpu=4.0, sim=LONG)
        await rig.until("full", "running", user="bob")
        await rig.submit("train", sim=LONG, data=["pets"])

        async def gone() -> bool:
            return await rig.platform.datasets.remove("ann")  # as all of somebody who leaves goes

        await until(gone, what="the dataset to be gone")
        if again:
            await dataset(rig)
        await rig.platform.jobs.cancel(SYSTEM, "bob", "full")
        job = await rig.until("train", "failed")
        assert job.failure is not None
        assert job.failure.cause == "start-failed"
        said = "dataset pets was deleted, and another one" if again else "dataset pets does not exist"
        assert said in str(job.failure.message.message)
        assert rig.held().cpu == 0


async def test_one_that_is_deleted_while_a_job_is_taken_in_lets_only_one_of_both_through(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        for number in range(8):
            name = f"pets{number}"
            await dataset(rig, name)
            submitted, deleted = await asyncio.gather(
                rig.submit(f"train{number}", sim=LONG, data=[name]),
                rig.platform.datasets.delete(SYSTEM, "ann", name, actor="ann"),
                return_exceptions=True,
            )
            assert isinstance(submitted, Refused) != isinstance(deleted, Refused), (submitted, deleted)


async def test_a_model_from_a_jobs_output_names_its_data(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await dataset(rig)
        await rig.submit("train", sim=LONG, data=["pets:train"])
        await rig.until("train", "running")

        def write() -> None:
            ckpt = rig.workspace("ann", "train") / "ckpt"
            ckpt.mkdir(parents=True, exist_ok=True)
            (ckpt / "net.pt").write_bytes(b"weights")

        await asyncio.to_thread(write)
        asked = ModelCreate(name="net", src="jobs/train/ckpt", any_files=True)
        made = await rig.platform.models.register(SYSTEM, "ann", asked)
        assert made.lineage.data == ["pets"]
