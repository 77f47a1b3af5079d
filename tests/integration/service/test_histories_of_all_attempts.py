"""What a job waited and ran is told over all its attempts: in the job, the queue, previews, what-ifs and exports."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import Heartbeat, Job
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.platform.whatif import WhatIfHistory, WhatIfWindow
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


async def requeued(rig: Rig, name: str = "low") -> Job:
    """A job that ran for more than a second and waits again behind `urgent`."""
    await rig.submit(name, workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
    first = await rig.until(name, "running")
    assert first.started_at is not None
    await until(lambda: ran_for(rig, first, 1.1))
    await rig.submit("urgent", workers=4, priority="high", sim={"DURATION": 60, "STOP": 0.05})
    await rig.until("urgent", "running")
    return await rig.until(name, "queued")


async def ran_for(rig: Rig, job: Job, seconds: float) -> bool:
    assert job.started_at is not None
    return rig.clock() - job.started_at.timestamp() >= seconds


async def test_a_preempted_job_waits_since_its_preemption_and_counts_as_having_run(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        job = await requeued(rig)
        back = [e for e in await rig.platform.jobs.events(SYSTEM, "ann", "low") if e.kind == "requeued"][-1]
        assert job.waiting_since is not None
        assert job.submitted_at + timedelta(seconds=1.1) < job.waiting_since <= back.time
        assert job.ran_s >= 1.1
        assert job.queued_at == job.submitted_at  # its age in the order stays
        (line,) = [e for e in await rig.platform.cluster_queue.entries() if e.name == "low"]
        assert (line.waiting_since, line.waited_s, line.ran_s) == (job.waiting_since, job.waited_s, job.ran_s)
        (urgent,) = [e for e in await rig.platform.cluster_queue.entries() if e.name == "urgent"]
        assert urgent.waiting_since is None
        rig.crash()
        await rig.start()
        kept = await rig.platform.jobs.get(SYSTEM, "ann", "low")
        assert (kept.waiting_since, kept.waited_s, kept.ran_s) == (job.waiting_since, job.waited_s, job.ran_s)


async def test_the_preview_of_a_quota_tells_since_when_it_waits_this_time(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=4))
        await rig.platform.users.ensure("ann")
        await rig.platform.tenants.set_member("red", "ann")
        await rig.submit("low", tenant="red", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("low", "running")
        await rig.submit("urgent", tenant="red", workers=4, priority="high", sim={"DURATION": 60})
        job = await rig.until("low", "queued")
        shown = await rig.platform.previews.preview_update("red", TenantUpdate(cpu=3))
        (wait,) = [w for w in shown.waiting if w.name == "low"]
        assert wait.since == job.waiting_since
        assert wait.since != job.submitted_at


async def test_a_requeued_job_that_is_cancelled_counts_as_having_run_also_in_the_history(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        ran = (await requeued(rig)).ran_s
        await rig.platform.jobs.cancel(SYSTEM, "ann", "low")
        done = await rig.until("low", "cancelled")
        assert tenths(done, "cancelled while it waited to continue; it had run for {} s") == [near(ran)]
        assert (done.started_at, done.waiting_since, done.ran_s) == (None, None, ran)
        assert done.waited_s > 0
        await rig.submit("never", workers=4, priority="low")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "never")
        export = await rig.platform.whatif.export("admin", 1.0)
        assert [(j["name"], j["duration"]) for j in export["jobs"]] == [
            ("ann/low", pytest.approx(ran, abs=0.06))
        ]
        assert "Left out: 1 that never started." in map(str, export["remarks"])


async def test_a_resized_job_has_waited_only_in_the_queue_and_run_in_all_its_attempts(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("wide", workers="1:4", sim={"DURATION": 600, "STOP": 0.05})
        first = await rig.until("wide", "running")
        await until(lambda: ran_for(rig, first, 0.5))
        await rig.submit("other", user="bob", workers=2, sim={"DURATION": 600})

        async def resized() -> Job | None:
            job = await rig.platform.jobs.get(SYSTEM, "ann", "wide")
            return job if job.phase == "running" and job.restarts == 1 else None

        job = await until(resized)
        assert (job.waited_s, job.waiting_since) == (first.waited_s, None)
        assert job.ran_s >= 0.5
        await until(lambda: ran_for(rig, job, 0.3))
        rig.end(job)
        done = await rig.until("wide", "finished")
        assert done.started_at is not None
        assert done.finished_at is not None
        last = (done.finished_at - done.started_at).total_seconds()
        assert done.ran_s == pytest.approx(job.ran_s + last, abs=0.002)
        assert done.waited_s == first.waited_s
        said = tenths(done, "finished after {} s, {} s of it in its last attempt")
        assert said == [near(done.ran_s), near(last)]
        window = WhatIfHistory(history=WhatIfWindow(since=first.submitted_at - timedelta(seconds=1)))
        _, recording = await rig.platform.whatif.recording(window)
        (recorded,) = recording.jobs
        assert recorded.waited == pytest.approx(done.waited_s, abs=0.001)
        # how much of it was four ranks' work and how much two's says the timeline, which has when either was seen
        four, two = await seconds_of_attempts(rig, "wide")
        assert recorded.length == pytest.approx(
            done.ran_s * (4 * four + 2 * two) / (four + two) / 4, abs=0.002
        )
        assert recorded.attempts == 2


def tenths(job: Job, template: str) -> list[float]:
    """Return the numbers that stand in the holes of a job's message."""
    told = re.fullmatch(re.escape(template).replace(r"\{\}", r"(\d+\.\d)"), str(job.message))
    assert told, job.message
    return [float(x) for x in told.groups()]


def near(seconds: float) -> object:
    """Equal what was rounded to a tenth, by whichever way of two roundings."""
    return pytest.approx(seconds, abs=0.051)


async def seconds_of_attempts(rig: Rig, name: str) -> list[float]:
    """Return how long each attempt of a job was seen running."""
    steps = await rig.platform.jobs.events(SYSTEM, "ann", name)
    begins = [e.time for e in steps if e.kind == "running"]
    ends = [e.time for e in steps if e.kind in ("resized", "ended")]
    return [(end - begin).total_seconds() for begin, end in zip(begins, ends, strict=True)]


async def test_progress_of_a_later_attempt_counts_from_its_starting_point(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        await rig.submit("low", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        job = await rig.until("low", "running")
        assert (job.progress_from, job.progress_since) == (0, job.started_at)
        await jobs.heartbeat(SYSTEM, "ann", "low", Heartbeat(state="running", progress=60))
        await until(lambda: has_progress(rig, 60))
        assert (await jobs.get(SYSTEM, "ann", "low")).progress_since == job.started_at
        await rig.submit("urgent", workers=4, priority="high", sim={"DURATION": 0.1})
        waiting = await rig.until("low", "queued")
        assert waiting.progress == 0, "the attempt that it waits for has done nothing yet"
        await rig.until("urgent", "finished")
        again = await rig.until("low", "running")
        assert (again.progress, again.restarts, again.progress_since) == (0, 1, None)
        await report(rig, 61)
        await until(lambda: has_progress(rig, 61))
        began = await jobs.get(SYSTEM, "ann", "low")
        assert began.progress_from == 61
        assert began.progress_since is not None
        await report(rig, 70, 2)
        await until(lambda: has_progress(rig, 70))
        later = await jobs.get(SYSTEM, "ann", "low")
        assert (later.progress_from, later.progress_since) == (61, began.progress_since)


async def has_progress(rig: Rig, progress: int) -> bool:
    return (await rig.platform.jobs.get(SYSTEM, "ann", "low")).progress == progress


async def report(rig: Rig, progress: int, n: int = 1) -> None:
    point = MetricPoint(n=n, t=rig.clock(), v={"progress": progress})
    await rig.platform.metrics.append(SYSTEM, "ann", "low", MetricBatch(source="0.1.a", points=[point]))
