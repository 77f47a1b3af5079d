"""Data that come, or are deleted, between the look of a component and its act, count as what they are then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.stored.datasets import DatasetCreate, DatasetHeartbeat
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import Extent
from mlp_hub.service.metrics import service as metrics
from support.meanwhile import meanwhile
from support.rigs.platform_rig import FAST, running_rig
from support.waiting import until

LONG = {"DURATION": 600}


async def test_an_upload_that_is_heard_of_at_the_last_moment_is_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, upload_silent_s=3600)) as rig:
        p = rig.platform
        await p.datasets.create("ann", DatasetCreate(name="images", size=1000))
        rig.ahead += 4000

        async def beats() -> None:
            await p.datasets.heartbeat(
                SYSTEM, "ann", "images", DatasetHeartbeat(state="creating", progress=5)
            )

        done = meanwhile(monkeypatch, rig.db, "write", "DatasetWorker._end_silent", beats)
        await p.datasets.end_silent_uploads()
        assert done
        found = await p.datasets.get(SYSTEM, "ann", "images")
        assert (found.state, found.progress) == ("creating", 5)


async def test_room_of_announced_bytes_stays_where_bytes_come_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.datasets.create("ann", DatasetCreate(name="images", size=1000))
        made = await rig.db.read(lambda tx: tx.datasets.find(SYSTEM, "ann", "images"))
        assert made is not None
        rig.ahead += 1000
        done = meanwhile(
            monkeypatch,
            rig.db,
            "write",
            "DatasetWorker._end_announced",
            lambda: p.datasets.grant_bytes(made.item.uid, 10),
        )
        await p.datasets.end_silent_uploads()
        found = await rig.db.read(lambda tx: tx.datasets.get(SYSTEM, made.item.uid))
        assert done
        assert found is not None
        assert (found.item.reserved, found.item.granted) == (1000, 10)


async def test_progress_is_stored_that_comes_as_the_storing_of_the_last_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        monkeypatch.setattr(metrics, "PROGRESS_EVERY_S", 0.0)
        job = await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        service = rig.platform.metrics
        flush, ends = service._flush_later, list[str]()

        async def flush_then_note(uid: str) -> None:
            await flush(uid)
            if not ends:
                ends.append(uid)
                service.set_progress(uid, 70)

        monkeypatch.setattr(service, "_flush_later", flush_then_note)
        service.set_progress(job.uid, 30)

        async def stored() -> bool:
            return (await rig.platform.jobs.get(SYSTEM, "ann", "digits")).progress == 70

        await until(stored)


async def test_a_copy_that_was_stopped_and_asked_for_once_more_is_made_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = replace(FAST, data_endpoints=("http://127.0.0.1:9",))
    async with running_rig(tmp_path, policy=policy) as rig:
        p, fetched = rig.platform, list[str]()
        copies = p.datasets._worker._copies

        async def fetch(*_args: Any) -> Extent:
            fetched.append("all")
            return Extent(0, 0)

        async def again() -> None:
            await p.datasets.heartbeat(SYSTEM, "ann", "images", DatasetHeartbeat(state="error", progress=0))
            await p.datasets.sync(SYSTEM, "ann", "images", actor="ann")

        monkeypatch.setattr(copies, "opened", lambda _tx, _found: (None, None))
        monkeypatch.setattr(copies._effects, "fetch", fetch)
        done = meanwhile(monkeypatch, rig.db, "write", "SourceCopies._end", again)
        asked = {
            "name": "images",
            "size": 0,
            "source": {"url": "s3://bucket/x", "endpoint": "http://127.0.0.1:9"},
        }
        await p.datasets.create("ann", convert(asked, DatasetCreate))

        async def ready() -> bool:
            return (await p.datasets.get(SYSTEM, "ann", "images")).state == "ready"

        await until(ready)
        assert (done, fetched) == (["SourceCopies._end"], ["all", "all"])


async def test_deleted_points_are_not_summed_up_after_an_earlier_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.summaries.stop()
        job = await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        batch = MetricBatch(source="0.0.a", points=[MetricPoint(n=1, t=1.0, v={"loss": 1.0})])
        await rig.platform.metrics.append(SYSTEM, "ann", "digits", batch)
        rig.end(job)
        await rig.until("digits", "finished")
        summaries = rig.platform.summaries
        summaries._more = True

        async def deleted() -> None:
            await rig.platform.metrics.delete(SYSTEM, "ann", "digits")

        done = meanwhile(monkeypatch, rig.db, "write", "Summaries.turn", deleted)
        await summaries.turn()
        assert done
        assert (await rig.platform.runs.get(SYSTEM, "ann", "digits")).run.metrics == {}
