"""Reported points: stored exactly once, replayed, swept from the spool at the end."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.jobs.jobs import Job
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume import spool as spool_files
from mlp_hub.executors.shared_volume.spool import ByteAllowance
from mlp_hub.service.metrics.storing import frame_of
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until


def batch(source: str, first: int, last: int, **values: float | None) -> MetricBatch:
    v = values or {"loss": 0.5}
    return MetricBatch(
        source=source, points=[MetricPoint(n=n, t=float(n), v=v) for n in range(first, last + 1)]
    )


async def points(rig: Rig, name: str, since: int = 0) -> list[dict[str, Any]]:
    uid = (await rig.platform.jobs.get(SYSTEM, "ann", name)).uid
    return [frame_of(p) async for page in rig.platform.metrics.pages(uid, since) for p in page]


def spool(root: Path, job: str, source: str, numbers: range, tail: str = "", **values: float) -> None:
    directory = root / "jobs/ann" / job / "metrics"
    with (directory / f"{source}.jsonl").open("a") as f:
        for n in numbers:
            f.write(json.dumps({"n": n, "t": float(n), "v": values or {"loss": 0.25}}) + "\n")
        f.write(tail)


async def test_points_are_stored_once_and_replayed_in_order(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        m = rig.platform.metrics
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 10))).last == 10
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 5, 12))).last == 12
        assert (await m.append(SYSTEM, "ann", "j", batch("1.0.b", 1, 3))).last == 3
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 20, 22))).last == 12  # a gap: go on from 13
        stored = await points(rig, "j")
        assert [p["seq"] for p in stored] == list(range(1, 16))
        assert [p["rank"] for p in stored] == [0] * 12 + [1] * 3
        assert [p["seq"] for p in await points(rig, "j", 13)] == [14, 15]


async def test_values_that_are_not_finite_are_kept_and_delivered_as_null(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        m = rig.platform.metrics
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        await m.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 1, loss=None, step=3))
        await m.append(SYSTEM, "ann", "j", batch("0.0.a", 2, 2, loss=math.inf, progress=math.nan))
        sent = msgspec.json.decode(msgspec.json.encode(await points(rig, "j")))
        assert [p["values"] for p in sent] == [{"loss": None, "step": 3}, {"loss": None, "progress": None}]
        assert sent[0]["step"] == 3


async def test_points_of_a_job_that_does_not_run_are_ignored(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        m = rig.platform.metrics
        await rig.submit("blocker", workers=4, sim={"DURATION": 30})
        await rig.until("blocker", "running")
        await rig.submit("j")
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 3))).last == 0
        assert await points(rig, "j") == []
        with pytest.raises(Refused) as caught:
            await m.append(SYSTEM, "ann", "nobody", batch("0.0.a", 1, 3))
        assert caught.value.reason is Reason.NOT_FOUND


async def test_progress_comes_from_points(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        for n, progress in enumerate((10, 20, 130), 1):
            await rig.platform.metrics.append(SYSTEM, "ann", "j", batch("0.0.a", n, n, progress=progress))

        async def full() -> bool:
            return (await rig.platform.jobs.get(SYSTEM, "ann", "j")).progress == 100

        await until(full)


async def test_spooled_points_that_were_never_delivered_are_stored_once_the_job_has_ended(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", workers=2, retries=1, sim={"DURATION": 600, "EXIT": 1})
        first = await rig.until("j", "running")
        spool(tmp_path, "j", "0.0.a", range(1, 101))
        spool(tmp_path, "j", "1.0.b", range(1, 51), tail='{"n": 51, "t"')  # killed while it wrote
        await rig.platform.metrics.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 40))
        rig.end(first)

        async def second() -> Job | None:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "j")
            return job if job.restarts == 1 and job.phase == "running" else None

        again = await until(second)
        assert len(await points(rig, "j")) == 150
        spool(tmp_path, "j", "0.1.c", range(1, 8))
        rig.end(again)
        await rig.until("j", "failed")
        stored = await points(rig, "j")
        assert [p["seq"] for p in stored] == list(range(1, 158))
        assert (await rig.platform.metrics.append(SYSTEM, "ann", "j", batch("0.1.c", 1, 9))).last == 7


async def test_a_sweep_survives_a_crash_in_its_middle(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        spool(tmp_path, "j", "0.0.a", range(1, 30_001))
        rig.end(job)
        for _ in range(6):
            await asyncio.sleep(0.02)
            rig.crash()
            await rig.start()
        await rig.until("j", "finished")
        assert [p["seq"] for p in await points(rig, "j")] == list(range(1, 30_001))


async def test_no_number_that_was_spooled_holds_up_the_end_of_its_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        directory = tmp_path / "jobs/ann/j/metrics"
        for number in range(20):
            (directory / f"0.{number}.a.jsonl").write_text(
                f'{{"n": 1, "t": 1, "v": {{"progress": {"9" * 400}}}}}\n'
            )
        rig.end(job)
        await rig.until("j", "finished")
        assert [p["values"] for p in await points(rig, "j")] == [{"progress": math.inf}] * 20
    assert "too large" not in caplog.text


async def test_spool_files_that_are_traps_are_passed_by(tmp_path: Path) -> None:
    import os

    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        directory = tmp_path / "jobs/ann/j/metrics"
        secret = tmp_path / "secret"
        secret.write_text('{"n": 1, "t": 0, "v": {"password": 1}}\n')
        (directory / "0.0.link.jsonl").symlink_to(secret)
        os.mkfifo(directory / "0.0.pipe.jsonl")
        (directory / "0.0.dir.jsonl").mkdir()
        (directory / "0.0.odd.jsonl").write_text(
            '[]\n{"n": true}\n{"n": 1, "t": 1, "v": {"x": "y", "z": 2}}\nNaN\n'
        )
        rig.end(job)
        await rig.until("j", "finished")
        assert [p["values"] for p in await points(rig, "j")] == [{"z": 2}]


async def test_points_can_be_deleted_when_the_job_has_ended(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        m = rig.platform.metrics
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        await m.begin(SYSTEM, "ann", "j")
        await m.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 3))
        with pytest.raises(Refused) as caught:
            await m.delete(SYSTEM, "ann", "j")
        assert caught.value.reason is Reason.WRONG_STATE
        await m.finish(SYSTEM, "ann", "j")
        rig.end(job)
        await rig.until("j", "finished")
        await m.delete(SYSTEM, "ann", "j")
        assert await points(rig, "j") == []


async def test_points_per_job_are_limited_and_the_sender_continues(tmp_path: Path) -> None:
    """A million rows of one job would be everybody's disk; what is over is dropped, and said once."""

    async with running_rig(tmp_path, policy=replace(FAST, metric_points_max=10)) as rig:
        m = rig.platform.metrics
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 1, 8))).last == 8
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 9, 12))).last == 10
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 11, 12))).last == 12
        for n in range(20):  # new sources leave nothing behind either
            assert (await m.append(SYSTEM, "ann", "j", batch(f"0.0.b{n}", 1, 5))).last == 5
        assert len(await points(rig, "j")) == 10
        uid = (await rig.platform.jobs.get(SYSTEM, "ann", "j")).uid
        last = rig.db.read_now(lambda tx: [tx.metrics.last(uid, f"0.0.{s}") for s in ("a", "b0", "b19")])
        assert last == [10, 0, 0]
        spool(tmp_path, "j", "0.0.c", range(1, 30))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelled")
        assert len(await points(rig, "j")) == 10
        said = [
            str(e.message)
            for e in await rig.platform.jobs.events(SYSTEM, "ann", "j")
            if e.kind == "metrics-full"
        ]
        assert said == ["10 metric points are stored, which is the limit of a job; later ones are dropped"]


async def test_bytes_and_names_of_metrics_per_job_are_limited(tmp_path: Path) -> None:
    def wide(n: int) -> MetricBatch:
        values = {f"m{100 * n + k}": 0.5 for k in range(100)}
        return MetricBatch(source="0.0.a", points=[MetricPoint(n=n, t=float(n), v=values)])

    async with running_rig(tmp_path, policy=replace(FAST, metric_bytes_max=2**20)) as rig:
        await rig.submit("j", sim={"DURATION": 300})
        await rig.until("j", "running")
        m = rig.platform.metrics
        for n in range(1, 12):
            assert (await m.append(SYSTEM, "ann", "j", wide(n))).last == n
        values = {f"m{100 + k}": 0.5 for k in range(6)}
        for source in ("0.0.b", "0.0.c"):
            assert (await m.append(SYSTEM, "ann", "j", batch(source, 1, 20_000, **values))).last == 20_000
        uid = (await rig.platform.jobs.get(SYSTEM, "ann", "j")).uid
        found = rig.db.read_now(lambda tx: tx.metrics.last_seq(uid))
        assert found == 11 + 20_000, "the batch with which it has them is the last"
        told = {e.kind: str(e.message) for e in await rig.platform.jobs.events(SYSTEM, "ann", "j")}
        assert told["metrics-names"].startswith("this job has 1000 metric names")
        assert told["metrics-full"].startswith("1 MiB of metric points are stored")


async def test_points_that_could_not_be_written_are_reported_once_for_each_attempt(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        directory = tmp_path / "jobs/ann/j/metrics"
        (directory / "0.0.a.jsonl").write_text('{"lost":7                   }\n')
        (directory / "1.0.b.jsonl").write_text('{"lost":1                   }\n')
        (directory / "2.0.c.jsonl").touch()
        (directory / "0.7.d.jsonl").write_text('{"lost":5                   }\n')  # of another attempt
        uid = (await rig.platform.jobs.get(SYSTEM, "ann", "j")).uid
        job = rig.db.read_now(lambda tx: tx.jobs.get(SYSTEM, uid))
        assert job is not None
        await rig.platform.metrics.store_spooled(job, rig.executor.workspace)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelled")
        events = await rig.platform.jobs.events(SYSTEM, "ann", "j")
        lost, unknown = [str(e.message) for e in events if e.kind == "metrics-lost"]
        assert lost.startswith("8 metric points could not be written and are lost")
        assert unknown.startswith("1 process has no metric points on disk")


async def test_points_beyond_the_read_limit_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's processes may leave any number of bytes; the timeline says that not all of them were taken in."""
    monkeypatch.setattr(spool_files, "ByteAllowance", lambda: ByteAllowance(2000))

    async with running_rig(tmp_path) as rig:
        for name, count in (("long", 1000), ("short", 5)):
            await rig.submit(name, sim={"DURATION": 30})
            await rig.until(name, "running")
            spool(tmp_path, name, "0.0.a", range(1, count + 1))
            spool(tmp_path, name, "1.0.a", range(1, count + 1))
            await rig.platform.jobs.cancel(SYSTEM, "ann", name)
            await rig.until(name, "cancelled")
        stored = [p["seq"] for p in await points(rig, "long")]
        assert stored == list(range(1, len(stored) + 1))
        assert 10 < len(stored) < 100
        events = await rig.platform.jobs.events(SYSTEM, "ann", "long")
        assert [str(e.message) for e in events if e.kind == "metrics-lost"] == [
            "its processes left more than 512 MiB of metric points; the rest was not read"
        ]
        assert len(await points(rig, "short")) == 10
        assert "metrics-lost" not in [e.kind for e in await rig.platform.jobs.events(SYSTEM, "ann", "short")]
