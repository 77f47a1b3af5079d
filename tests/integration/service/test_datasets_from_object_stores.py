"""Datasets that are copies of what is in an object store: whole, charged, gone on with, and from no place that is none of a user's."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.stored.datasets import Dataset, DatasetCreate, DatasetHeartbeat, DatasetSource
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.dataset import Dataset as DatasetRow
from mlp_hub.domain.stored.dataset import DatasetPhase, ObjectSource
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.service.datasets.fetch_turns import HELD_S, FetchTurns
from mlp_hub.service.datasets.sources import DataSources
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.stores.object_stores import KEYS, FalseStore, RealStore
from support.waiting import PATIENCE_S, until

MIB = 2**20


def policy(*allowed: str) -> Any:
    return replace(FAST, secrets_key="key of this hub", data_endpoints=allowed)


def at(rig: Rig, name: str = "pets") -> Path:
    return rig.directories.stored(StoredPlace("dataset", "ann", name))


def files(rig: Rig, name: str = "pets") -> dict[str, bytes]:
    top = at(rig, name)
    return {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}


def arriving(rig: Rig) -> list[Path]:
    return [p for p in (at(rig).parent / ".arriving").rglob("*") if p.is_file()]


async def add(rig: Rig, url: str, endpoint: str, secret: str | None = None) -> Dataset:
    source = DatasetSource(url=url, endpoint=endpoint, secret=secret)
    return await rig.platform.datasets.create("ann", DatasetCreate(name="pets", size=0, source=source))


async def ended(rig: Rig) -> Dataset:
    """Wait until it is copied or in error, and charged exactly."""

    async def look() -> bool:
        now = await rig.platform.datasets.get(SYSTEM, "ann", "pets")
        return now.state != "creating" and now.size == now.used

    await until(look, what="the copy to end")
    return await rig.platform.datasets.get(SYSTEM, "ann", "pets")


async def refused(rig: Rig) -> str:
    found = await ended(rig)
    assert found.state == "error"
    return str(found.message)


def tag(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


async def test_a_bucket_becomes_a_dataset_and_what_changed_is_fetched_again(
    tmp_path: Path, store: RealStore
) -> None:
    big = os.urandom(3 * MIB)

    async with running_rig(tmp_path, policy=policy(store.host)) as rig:

        def fill() -> None:
            store.make("photos")
            store.put("photos", "cats/one.jpg", b"one")
            store.put("photos", "cats/deep/er/two.jpg", big)
            store.put("photos", "cats/empty", b"")
            store.put("photos", "catsup", b"of another name")

        await asyncio.to_thread(fill)
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        made = await add(rig, "s3://photos/cats", store.url, "store")
        assert (made.state, made.source and made.source.secret) == ("creating", "store")
        done = await ended(rig)
        assert (done.state, done.used, str(done.message)) == ("ready", 3 * MIB + 3, "")
        want = {"one.jpg": b"one", "deep/er/two.jpg": big, "empty": b""}
        assert await asyncio.to_thread(files, rig) == want
        assert await asyncio.to_thread(arriving, rig) == []

        def change() -> None:
            store.put("photos", "cats/one.jpg", b"another")
            store.remove("photos", "cats/empty")
            (at(rig) / "mine").write_bytes(b"put beside it by its owner")

        before = (at(rig) / "deep/er/two.jpg").stat().st_ino
        await asyncio.to_thread(change)
        assert (await rig.platform.datasets.sync(SYSTEM, "ann", "pets", actor="ann")).state == "creating"
        assert (await ended(rig)).state == "ready"
        want = {"one.jpg": b"another", "deep/er/two.jpg": big, "mine": b"put beside it by its owner"}
        assert await asyncio.to_thread(files, rig) == want
        assert (at(rig) / "deep/er/two.jpg").stat().st_ino == before, "what did not change stays"


async def test_a_copy_whose_service_is_killed_continues_from_the_received_bytes(
    tmp_path: Path, false: FalseStore
) -> None:
    body = os.urandom(5 * MIB)
    half, begun = 3 * MIB, asyncio.Event()
    false.listed = [("all", len(body), tag(body))]

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        loop = asyncio.get_running_loop()

        def cut(_key: str, headers: dict[str, str]) -> Any:
            if "Range" not in headers:
                loop.call_soon_threadsafe(begun.set)
                return 200, {"Content-Length": str(len(body))}, body[:half]
            begin = int(headers["Range"].removeprefix("bytes=").removesuffix("-"))
            said = {"Content-Range": f"bytes {begin}-{len(body) - 1}/{len(body)}"}
            return 206, said, body[begin:]

        false.answer = cut
        await add(rig, "s3://photos/", false.url)
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
        rig.crash()
        await rig.start()
        assert (await ended(rig)).state == "ready"
        assert await asyncio.to_thread(files, rig) == {"all": body}
    whole = [headers for headers in false.asked if headers.startswith("/photos/all")]
    assert len(whole) > 1


async def test_a_key_that_is_not_a_path_writes_nothing(tmp_path: Path, false: FalseStore) -> None:
    false.listed = [("fine", 1, tag(b"x")), ("a/../../out", 1, tag(b"x"))]
    false.answer = lambda _key, _headers: (200, {}, b"x")

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await add(rig, "s3://photos/", false.url)
        assert "cannot become files: a/../../out" in await refused(rig)
        assert await asyncio.to_thread(files, rig) == {}


async def test_a_hundred_thousand_keys_that_the_quota_has_no_room_for_are_refused_in_time(
    tmp_path: Path, false: FalseStore
) -> None:
    false.listed = [(f"d{n // 1000}/k{n}", MIB, "0" * 32) for n in range(100_000)]

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await rig.platform.tenants.update("default", TenantUpdate(rom=MIB))
        await add(rig, "s3://photos/", false.url)
        assert "default" in await refused(rig)
        assert not [key for key in false.asked if "/d" in key], "nothing was fetched"


@pytest.mark.parametrize("said", ["more", "less", "other"])
async def test_a_file_that_differs_from_its_listing_is_not_kept(
    tmp_path: Path, false: FalseStore, said: str
) -> None:
    sent = {"more": b"12345", "less": b"12", "other": b"abc"}[said]
    false.listed = [("k", 3, tag(b"123"))]

    def answer(_key: str, headers: dict[str, str]) -> Any:
        length = str(len(sent)) if said == "more" else "3"
        return (
            200,
            {
                "Content-Length": length,
                "ETag": f'"{tag(b"123")}"',
                "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            },
            sent,
        )

    false.answer = answer

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await add(rig, "s3://photos/", false.url)
        assert "k is cut or changes at each fetch" in await refused(rig)
        assert await asyncio.to_thread(files, rig) == {}


async def test_an_object_that_changes_while_it_is_copied_comes_as_it_is_then(
    tmp_path: Path, false: FalseStore
) -> None:
    false.listed = [("k", 6, tag(b"before"))]

    def answer(_key: str, headers: dict[str, str]) -> Any:
        if headers.get("If-Match") == f'"{tag(b"before")}"':
            return 412, {}, b"<Error><Code>PreconditionFailed</Code></Error>"
        return 200, {"ETag": f'"{tag(b"after")}"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}, b"after"

    false.answer = answer

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await add(rig, "s3://photos/", false.url)
        assert (await ended(rig)).state == "ready"
        assert await asyncio.to_thread(files, rig) == {"k": b"after"}


@pytest.mark.parametrize("endpoint", ["private", "redirect"])
async def test_no_private_address_is_spoken_to_unless_the_operator_names_it(
    tmp_path: Path, false: FalseStore, endpoint: str
) -> None:
    with FalseStore() as other:
        allowed = ()
        if endpoint == "redirect":
            false.elsewhere, allowed = f"{other.url}/photos/", (false.host,)

        async with running_rig(tmp_path, policy=policy(*allowed)) as rig:
            await add(rig, "s3://photos/", false.url)
            said = await refused(rig)
            assert endpoint == "redirect" or "private address" in said

        assert other.asked == []
        assert endpoint == "redirect" or false.asked == []


async def test_a_copy_gives_way_to_another_team_and_continues_from_there(
    tmp_path: Path, false: FalseStore
) -> None:
    small, check_cancelled = b"small", threading.Event()
    false.listed = [("a.txt", 5, tag(small)), ("b.txt", 5, tag(small))]

    def answer(key: str, _: dict[str, str]) -> Any:
        if key == "b.txt":
            check_cancelled.wait()
        return 200, {}, small

    false.answer = answer

    try:
        async with running_rig(tmp_path, policy=policy(false.host)) as rig:
            now = 0.0
            worker = rig.platform.datasets._worker
            turns = worker._copies.turns = FetchTurns(1, 0, 1, clock=lambda: now)
            await rig.platform.tenants.create(TenantCreate(name="blue"))
            await rig.platform.tenants.set_member("blue", "bob")
            await add(rig, "s3://photos/", false.url)

            async def one_is_here() -> bool:
                return "a.txt" in await asyncio.to_thread(files, rig) and any(
                    "b.txt" in u for u in false.asked
                )

            await until(one_is_here, what="the first object to be copied")
            source = DatasetSource(url="s3://photos/a.txt", endpoint=false.url)
            await rig.platform.datasets.create(
                "bob", DatasetCreate(name="cats", size=0, tenant="blue", source=source)
            )
            now += 2 * HELD_S

            async def is_ready() -> bool:
                return (await rig.platform.datasets.get(SYSTEM, "bob", "cats")).state == "ready"

            await until(is_ready, what="the copy of the other team")
            assert (await rig.platform.datasets.get(SYSTEM, "ann", "pets")).state == "creating"
            check_cancelled.set()
            assert (await ended(rig)).state == "ready"
            assert not turns._held
            assert sum("/a.txt" in url for url in false.asked) == 2  # once of each team
    finally:
        check_cancelled.set()


async def test_a_stopped_copy_from_a_hanging_endpoint_can_be_deleted(
    tmp_path: Path, false: FalseStore
) -> None:
    false.hangs = True

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await add(rig, "s3://photos/", false.url)

        async def asked() -> bool:
            return bool(false.asked)

        await until(asked, what="the endpoint to be asked")
        datasets = rig.platform.datasets
        with pytest.raises(Refused, match="being copied from s3://photos/"):
            await datasets.access(SYSTEM, "ann", "pets", write=True)
        with pytest.raises(Refused, match="being copied"):
            await datasets.heartbeat(SYSTEM, "ann", "pets", DatasetHeartbeat(state="ready", progress=100))
        await datasets.heartbeat(SYSTEM, "ann", "pets", DatasetHeartbeat(state="error", progress=0))
        await datasets.delete(SYSTEM, "ann", "pets", actor="ann")

        async def gone() -> bool:
            return await rig.db.read(lambda tx: tx.datasets.find(SYSTEM, "ann", "pets")) is None

        await until(gone, what="the dataset to be gone")
        assert not await asyncio.to_thread(arriving, rig)


async def test_wrong_credentials_are_told_without_them_and_kept_sealed(
    tmp_path: Path, false: FalseStore, caplog: pytest.LogCaptureFixture
) -> None:
    false.listed = [("k", 1, tag(b"x"))]
    false.page = lambda _after: b"<Error><Code>InvalidAccessKeyId</Code></Error>"  # type: ignore[method-assign]

    async with running_rig(tmp_path, policy=policy(false.host)) as rig:
        await rig.platform.secrets.store_secret("store", KEYS, user="ann", actor="ann")
        await add(rig, "s3://photos/", false.url, "store")
        said = await refused(rig)
        secret = KEYS["secret_access_key"]
        stored = b"".join(p.read_bytes() for p in rig.root.glob("mlp.sqlite*"))
        assert secret not in said
        assert secret.encode() not in stored
        assert secret not in caplog.text
    assert all(KEYS["secret_access_key"] not in one for one in false.authorizations)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("file:///etc/passwd", None),
        ("s3://", None),
        ("s3://Bad_Bucket/x", None),
        ("s3://photos/x\0y", None),
        ("s3://photos/x", "file:///etc"),
        ("s3://photos/x", "http://user:word@host"),
        ("s3://photos/x", "http://host/path"),
        ("s3://photos/x", "gopher://host"),
        ("s3://photos/x", "http://[::1"),
    ],
)
async def test_a_url_without_a_bucket_is_refused_at_once(
    tmp_path: Path, url: str, endpoint: str | None
) -> None:
    async with running_rig(tmp_path, policy=policy()) as rig:
        with pytest.raises(Refused, match=r"; write (s3|https)://") as bad:
            await add(rig, url, endpoint or "")
        assert bad.value.reason is Reason.INVALID
        assert "word" not in str(bad.value)


async def test_a_secret_that_is_not_there_or_anothers_opens_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=policy()) as rig:
        await rig.platform.secrets.store_secret("store", KEYS, user="bob", actor="bob")
        with pytest.raises(Refused, match="secret store does not exist"):
            await add(rig, "s3://photos/", "", "store")
        await rig.platform.secrets.store_secret("half", {"access_key_id": "A"}, user="ann", actor="ann")
        with pytest.raises(Refused, match="cannot open an object store"):
            await add(rig, "s3://photos/", "", "half")
        await rig.platform.secrets.store_secret("store", KEYS, tenant="default", actor="admin")

        def move(tx: Any) -> None:
            row = tx.secrets.get("default", "", "store")
            tx.secrets.put(replace(row, tenant="", user="ann"))

        await rig.db.write(move)  # as who writes to the database might
        with pytest.raises(Refused, match="encrypted with another key"):
            await add(rig, "s3://photos/", "", "store")


async def test_a_former_member_can_no_longer_open_secrets_of_the_tenant(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=policy()) as rig:
        p = rig.platform
        for tenant in ("red", "blue"):
            await p.tenants.create(TenantCreate(name=tenant))
            await p.tenants.set_member(tenant, "ann")
        await p.secrets.store_secret("store", KEYS, tenant="red", actor="admin")
        item = StoredItem("set", StoredKind.DATASET, "red", "ann", "pets", 0.0)
        source = ObjectSource("photos", "", "", "", "store")
        found = DatasetRow(item, DatasetPhase.READY, 100, source=source)
        sources = DataSources(p.secrets, ())
        assert (await rig.db.read(lambda tx: sources.opened(tx, found))).key_id == KEYS["access_key_id"]
        await p.tenants.remove_member("red", "ann")
        with pytest.raises(Refused, match="secret store does not exist"):
            await rig.db.read(lambda tx: sources.opened(tx, found))
