"""Datasets that are read through: jobs have what they name of them while they are not over, charged, and whatever is killed."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.stored.datasets import Dataset, DatasetCreate, DatasetHeartbeat, DatasetSource, SourceOpen
from mlp_api.types import TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import StoredPlace
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.stores.object_stores import KEYS, FalseStore, RealStore
from support.waiting import PATIENCE_S, until

MIB = 2**20
LONG = {"DURATION": 600}
THROUGH = "read-through"


@pytest.fixture(scope="module")
def store(store: RealStore) -> RealStore:
    """Give one with photos."""
    store.make("photos")
    for name in ("cats/one", "cats/deep/two", "catsup", "dogs/three"):
        store.put("photos", f"pets/{name}", name.encode())
    store.put("photos", "other/secret", b"of somebody else")
    return store


def policy(*allowed: str) -> Any:
    return replace(FAST, data_endpoints=allowed)


def here(rig: Rig) -> set[str]:
    top = rig.directories.stored(StoredPlace("dataset", "ann", "pets"))
    return {str(p.relative_to(top)) for p in top.rglob("*")}


async def add(rig: Rig, url: str, endpoint: str, secret: str | None = None) -> Dataset:
    """Make one, and return it once it was looked at."""
    source = DatasetSource(url=url, endpoint=endpoint, secret=secret, mode=THROUGH)
    await rig.platform.datasets.create("ann", DatasetCreate(name="pets", size=0, source=source))
    await until(lambda: became(rig, "ready", "error"), what="the source to be looked at")
    return await rig.platform.datasets.get(SYSTEM, "ann", "pets")


async def became(rig: Rig, *states: str, used: int | None = None) -> bool:
    now = await rig.platform.datasets.get(SYSTEM, "ann", "pets")
    return now.state in states and (used is None or (now.used, now.size) == (used, used))


async def evicted(rig: Rig) -> bool:
    await rig.platform.datasets.end_silent_uploads()
    return await became(rig, "ready", used=0) and not await asyncio.to_thread(here, rig)


async def why(rig: Rig, name: str) -> str:
    """Return why a job did not start."""
    job = await rig.until(name, "failed")
    assert job.failure is not None
    assert job.failure.cause == Cause.START_FAILED
    return str(job.failure.message)


async def test_a_job_has_what_it_names_until_it_is_over(tmp_path: Path, store: RealStore) -> None:
    async with running_rig(tmp_path, policy=policy(store.host)) as rig:
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        made = await add(rig, "s3://photos/pets", store.url, "store")
        assert (made.state, made.size, made.source and made.source.mode) == ("ready", 0, THROUGH)
        assert await asyncio.to_thread(here, rig) == set(), "nothing is copied"
        await rig.submit("one", sim=LONG, data=["ann/pets/cats"])
        await rig.until("one", "running")
        assert await asyncio.to_thread(here, rig) == {"cats", "cats/one", "cats/deep", "cats/deep/two"}
        await until(lambda: became(rig, "ready", used=21), what="it to be charged")
        await rig.submit("two", sim=LONG, data=["ann/pets/dogs/three:/mnt/pets"])
        await rig.until("two", "running")
        assert "dogs/three" in await asyncio.to_thread(here, rig)
        assert "cats/one" in await asyncio.to_thread(here, rig), "others' stays"
        await rig.platform.jobs.cancel(SYSTEM, "ann", "one")
        await rig.until("one", "cancelled")
        await rig.platform.datasets.end_silent_uploads()
        assert "cats/one" in await asyncio.to_thread(here, rig), "it is one dataset, that a job reads"
        await rig.platform.jobs.cancel(SYSTEM, "ann", "two")
        await rig.until("two", "cancelled")
        await until(lambda: evicted(rig), what="what no job needs to be gone")
        await rig.submit("all", sim=LONG, data=["pets"])
        await rig.until("all", "running")
        assert {"catsup", "dogs/three", "cats/deep/two"} <= await asyncio.to_thread(here, rig)


async def test_missing_data_and_missing_room_end_the_job_with_the_reason(
    tmp_path: Path, store: RealStore
) -> None:
    async with running_rig(tmp_path, policy=policy(store.host)) as rig:
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        await add(rig, "s3://photos/pets/", store.url, "store")
        await rig.submit("none", data=["ann/pets/birds"])
        assert "the source has nothing below pets/birds" in await why(rig, "none")
        await rig.submit("half", data=["ann/pets/cat"])
        assert (await why(rig, "half")).endswith("the source has nothing below pets/cat"), (
            "which only begins so"
        )
        await rig.platform.tenants.update("default", TenantUpdate(rom=5))
        await rig.submit("large", data=["ann/pets/cats"])
        assert "storage" in await why(rig, "large")
        await until(lambda: evicted(rig), what="nothing to be left over")


async def test_a_service_killed_while_it_fetches_continues_and_starts_the_job(
    tmp_path: Path, false: FalseStore
) -> None:
    body = os.urandom(3 * MIB)
    begun = asyncio.Event()
    false.listed = [("all", len(body), "0" * 8)]

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        loop = asyncio.get_running_loop()

        def cut(_key: str, headers: dict[str, str]) -> Any:
            if "Range" not in headers:
                loop.call_soon_threadsafe(begun.set)
                return 200, {"Content-Length": str(len(body))}, body[:MIB]
            begin = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
            return 206, {"Content-Range": f"bytes {begin}-{len(body) - 1}/{len(body)}"}, body[begin:]

        false.answer = cut
        await add(rig, "s3://photos/", false.url)
        await rig.submit("one", sim=LONG, data=["pets"])
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
        rig.crash()
        await rig.start()
        await rig.until("one", "running")
        await until(lambda: became(rig, "ready", used=3 * MIB), what="it to be charged exactly")
        await rig.restart()
        assert (await rig.until("one", "running")).restarts == 0


async def test_a_job_that_is_cancelled_while_its_data_come_leaves_nothing(
    tmp_path: Path, false: FalseStore
) -> None:
    false.listed = [("all", 10, "0" * 8)]

    async def on_its_way(rig: Rig) -> bool:
        said = str((await rig.platform.jobs.get(SYSTEM, "ann", "one")).message)
        return said == "files of dataset pets that it reads are being fetched from s3://photos/: 0 %"

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await add(rig, "s3://photos/", false.url)
        false.hangs = True
        await rig.submit("one", data=["pets"])
        found = await until(lambda: on_its_way(rig), what="the job to say what it waits for")
        assert found
        await rig.platform.jobs.cancel(SYSTEM, "ann", "one")
        await rig.until("one", "cancelled")
        await until(lambda: evicted(rig), what="nothing to be left over")


async def refused(of: Any) -> tuple[Reason, str]:
    with pytest.raises(Refused) as found:
        await of
    return found.value.reason, str(found.value.message)


async def test_only_datasets_read_through_have_parts_and_they_are_read_only(
    tmp_path: Path, store: RealStore
) -> None:
    async with running_rig(tmp_path, policy=policy(store.host)) as rig:
        datasets = rig.platform.datasets
        await datasets.create("ann", DatasetCreate(name="own", size=0))
        await datasets.heartbeat(SYSTEM, "ann", "own", DatasetHeartbeat(state="ready", progress=100))
        reason, said = await refused(rig.submit("one", data=["ann/own/cats"]))
        assert (reason, "leave out cats" in said) == (Reason.INVALID, True)
        for bad in ("ann/pets/../other", "ann/pets//x", "ann/pets/.", "ann/pets/a\0b"):
            assert (await refused(rig.submit("one", data=[bad])))[0] is Reason.INVALID, bad
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        made = await add(rig, "s3://photos/pets/", store.url, "store")
        assert made.state == "ready"
        reason, said = await refused(datasets.access(SYSTEM, "ann", "pets", write=True))
        assert (reason, said) == (
            Reason.WRONG_STATE,
            "dataset pets is read through from s3://photos/pets/: write to it there",
        )
        access = await datasets.access(SYSTEM, "ann", "pets", write=False)
        assert access.through
        assert (await refused(datasets.grant_bytes(access.uid, 1)))[0] is Reason.WRONG_STATE
        for path in ("../other/secret", "a/../../other/secret", "./x"):
            asked = SourceOpen(uid=access.uid, path=path)
            assert (await refused(datasets.open_source(asked)))[0] is Reason.INVALID, path
        address = await datasets.open_source(SourceOpen(uid=access.uid, path="cats/one"))
        assert KEYS["secret_access_key"] not in address.url


@pytest.mark.parametrize("wrong", ["bucket", "prefix", "private"])
async def test_a_source_that_cannot_be_read_is_in_error_with_the_reason(
    tmp_path: Path, store: RealStore, wrong: str
) -> None:
    async with running_rig(tmp_path, policy=policy(*() if wrong == "private" else (store.host,))) as rig:
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        url = {"bucket": "s3://nothere/", "prefix": "s3://photos/nothing"}.get(wrong, "s3://photos/pets")
        made = await add(rig, url, store.url, "store")
        said = {
            "bucket": "has no bucket nothere",
            "prefix": "the source has nothing below nothing/",
            "private": "private address",
        }[wrong]
        assert (made.state, said in str(made.message)) == ("error", True), str(made.message)
        again = await rig.platform.datasets.sync(SYSTEM, "ann", "pets", actor="ann")
        assert again.state == "creating"
