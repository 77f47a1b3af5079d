"""Jobs from submission to their end, on real SQLite and simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import Heartbeat, JobCreate, Resubmit
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.errors import OutOfReach, Reason, Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import CannotStart, LaunchSpec
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until


async def refused(what: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await what
    return caught.value


async def test_a_job_runs_finishes_and_gives_back_what_it_held(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        made = await rig.submit("digits", workers=2, sim={"DURATION": 600})
        assert (made.phase, made.state, made.runtime, made.tenant) == ("queued", "creating", "mpi", "default")
        running = await rig.until("digits", "running")
        assert rig.held().cpu == 2000
        assert [(r.rank, r.node, r.state) for r in running.ranks] == [
            (0, "n1", "running"),
            (1, "n1", "running"),
        ]
        rig.end(running)
        done = await rig.until("digits", "finished")
        assert (done.state, done.progress, done.failure) == ("finished", 100, None)
        assert rig.held() == ZERO
        kinds = [e.kind for e in await rig.platform.jobs.events(SYSTEM, "ann", "digits")]
        assert kinds == ["submitted", "admitted", "starting", "running", "ended", "finished"]
        assert (tmp_path / "jobs/ann/digits/ckpt").is_dir()


async def test_a_failing_rank_fails_the_job_with_its_cause(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("bad", workers=2, sim={"DURATION": 0.05, "EXIT": 3, "RANK": 1})
        job = await rig.until("bad", "failed")
        assert job.failure is not None
        assert (job.state, job.reason, job.failure.rank, job.failure.exit_code) == (
            "error",
            "program-error",
            1,
            3,
        )
        assert str(job.message) == "rank 1 failed with exit code 3"
        assert rig.held() == ZERO


async def test_retries_are_used_up_and_age_is_kept(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        made = await rig.submit("bad", retries=2, sim={"DURATION": 0.02, "EXIT": 1})
        job = await rig.until("bad", "failed")
        assert (job.restarts, job.queued_at) == (2, made.queued_at)
        assert rig.executor.starts == [f"{job.uid}.{i}" for i in range(3)]


async def has_restarted(rig: Rig) -> bool:
    return (await rig.platform.jobs.get(SYSTEM, "ann", "j")).restarts > 0


async def test_a_lost_node_uses_up_no_retry(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1"), node("n2")) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        first = await rig.until("j", "running")
        rig.executor.lose_node(first.ranks[0].node)
        await until(lambda: has_restarted(rig))
        rig.end(await rig.until("j", "running"))
        other = {"n1": "n2", "n2": "n1"}[first.ranks[0].node]
        job = await rig.until("j", "finished")
        assert (job.restarts, [r.node for r in job.ranks]) == (1, [other])


async def test_a_job_waits_for_quota_with_the_numbers_and_starts_when_it_is_raised(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red", cpu=2))
        await p.tenants.set_member("red", "ann", "member")
        await rig.submit("first", workers=2, tenant="red", sim={"DURATION": 30})
        await rig.until("first", "running")
        await rig.submit("second", workers=2, tenant="red", sim={"DURATION": 0.05})

        async def waits() -> bool:
            job = await p.jobs.get(SYSTEM, "ann", "second")
            return job.position == 1 and job.reason == "WaitingForQuota" and "2" in str(job.message)

        await until(waits)
        why = await p.jobs.why(SYSTEM, "ann", "second")
        assert why.reasons[0].numbers["cpu_limit"] == 2
        assert [q.name for q in await p.cluster_queue.entries("red")] == ["first", "second"]
        await p.tenants.update("red", TenantUpdate(cpu=4))
        await rig.until("second", "finished")
        await p.jobs.cancel(SYSTEM, "ann", "first")
        job = await rig.until("first", "cancelled")
        assert job.state == "error"
        assert rig.held("red") == ZERO


async def test_suspend_frees_the_quota_and_resume_starts_a_new_attempt(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("j", sim={"DURATION": 600, "STOP": 0.05})
        await rig.until("j", "running")
        await p.jobs.suspend(SYSTEM, "ann", "j")
        job = await rig.until("j", "suspended")
        assert (rig.held(), job.state, job.restarts) == (ZERO, "creating", 1)
        why = await p.jobs.why(SYSTEM, "ann", "j")
        assert [r.reason for r in why.reasons] == ["Suspended"]
        assert (await p.jobs.resume(SYSTEM, "ann", "j")).phase == "queued"
        rig.end(await rig.until("j", "running"))
        await rig.until("j", "finished")
        assert rig.executor.starts == [f"{job.uid}.0", f"{job.uid}.1"]


async def test_a_waiting_job_can_be_suspended_resumed_and_cancelled_at_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("blocker", workers=4, sim={"DURATION": 30})
        await rig.until("blocker", "running")
        await rig.submit("j")
        assert (await p.jobs.suspend(SYSTEM, "ann", "j")).phase == "suspended"
        assert (await p.jobs.resume(SYSTEM, "ann", "j")).phase == "queued"
        assert (await p.jobs.cancel(SYSTEM, "ann", "j")).phase == "cancelled"
        assert (await p.jobs.cancel(SYSTEM, "ann", "j")).phase == "cancelled"
        assert (await refused(p.jobs.suspend(SYSTEM, "ann", "j"))).reason is Reason.WRONG_STATE
        assert (await refused(p.jobs.resume(SYSTEM, "ann", "j"))).reason is Reason.WRONG_STATE
        assert (await refused(p.jobs.delete(SYSTEM, "ann", "blocker"))).reason is Reason.WRONG_STATE


async def test_deleting_removes_the_directory_and_frees_the_name(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("j", sim={"DURATION": 0.01})
        await rig.until("j", "finished")
        assert (await p.jobs.delete(SYSTEM, "ann", "j")).state == "deleting"

        async def gone() -> bool:
            return (await p.jobs.list(SYSTEM, "ann"))[0] == []

        await until(gone)
        assert not (tmp_path / "jobs/ann/j").exists()
        assert (await rig.submit("j")).phase == "queued"


async def test_starts_that_fail_are_tried_again_and_then_given_up(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        rig.executor.failing_starts = 3
        await rig.submit("lucky", sim={"DURATION": 0.01})
        await rig.until("lucky", "finished")
        rig.executor.failing_starts = 100
        await rig.submit("unlucky")
        job = await rig.until("unlucky", "failed")
        assert (job.reason, "5 tries" in str(job.message)) == ("start-failed", True)
        assert "does not answer" in str(job.message)
        assert rig.held() == ZERO


async def test_a_start_waits_for_an_unreachable_cluster_however_long_it_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    async with running_rig(tmp_path) as rig:
        begin = rig.executor.start

        async def start(spec: LaunchSpec, epoch: int) -> None:
            tries.append(spec.attempt)
            if len(tries) <= 8:
                raise OutOfReach(msg("the cluster at {host} does not answer: {why}", host="h", why="gone"))
            await begin(spec, epoch)

        monkeypatch.setattr(rig.executor, "start", start)
        await rig.submit("patient", sim={"DURATION": 0.01})
        await rig.until("patient", "finished")
    assert len(tries) == 9


async def test_a_job_that_can_never_start_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    async def start(spec: LaunchSpec, epoch: int) -> None:
        tries.append(spec.attempt)
        raise CannotStart("there is no file train.py in the home directory")

    async with running_rig(tmp_path) as rig:
        monkeypatch.setattr(rig.executor, "start", start)
        made = await rig.submit("digits", retries=3)
        job = await rig.until("digits", "failed")
        assert tries == [f"{made.uid}.0"]
        assert (job.reason, job.restarts) == ("start-failed", 0)
        assert str(job.message) == "cannot be started: there is no file train.py in the home directory"
        assert rig.held() == ZERO


async def test_a_time_limit_ends_it_without_a_retry(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("slow", time_limit=1, retries=3, sim={"DURATION": 60})
        job = await rig.until("slow", "failed")
        assert (job.reason, job.restarts) == ("time-limit", 0)


async def test_an_idempotency_key_submits_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        asked = JobCreate(name="once", code="x", cpu=1.0, ram=100)
        made = await asyncio.gather(*(p.jobs.submit("ann", asked, idempotency_key="k1") for _ in range(5)))
        assert len({job.uid for job in made}) == 1
        other = JobCreate(name="other", code="x", cpu=1.0, ram=100)
        assert (await refused(p.jobs.submit("ann", other, idempotency_key="k1"))).reason is Reason.CONFLICT


async def test_resubmit_is_the_next_run_in_another_size_where_one_is_given(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        await rig.submit("j")
        error = await refused(jobs.resubmit(SYSTEM, "ann", "j"))
        assert error.reason is Reason.CONFLICT
        assert error.msg.startswith("j run 1 has not ended")
        await rig.until("j", "finished")
        again = await jobs.resubmit(SYSTEM, "ann", "j")
        assert (again.name, again.run) == ("j", 2)
        await rig.until("j@2", "finished")
        other = await jobs.resubmit(
            SYSTEM, "ann", "j@1", Resubmit(workers=2, ram=200, time_limit=60, priority="high")
        )
        assert (other.name, other.run, other.workers, other.ram, other.time_limit) == ("j", 3, 2, 200, 60)
        assert (other.priority, (await jobs.get(SYSTEM, "ann", "j@1")).priority) == ("high", "normal")
        same = await jobs.get(SYSTEM, "ann", "j@1")
        assert (same.workers, same.cpu, other.cpu) == (1, 1.0, 1.0)
        await rig.until("j", "finished")
        much = await refused(jobs.resubmit(SYSTEM, "ann", "j@1", Resubmit(workers=1000)))
        assert much.reason is Reason.EXCEEDS_MAX_QUOTA


async def test_a_resubmit_that_is_repeated_with_its_key_makes_one_run(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        await rig.submit("j")
        await rig.until("j", "finished")
        asked = Resubmit(ram=200)
        made = await asyncio.gather(
            *(jobs.resubmit(SYSTEM, "ann", "j", asked, idempotency_key="k") for _ in range(5))
        )
        assert {(job.run, job.ram) for job in made} == {(2, 200)}
        await rig.until("j@2", "finished")
        assert (await jobs.resubmit(SYSTEM, "ann", "j", asked, idempotency_key="k")).run == 2
        for other in (
            jobs.resubmit(SYSTEM, "ann", "j", idempotency_key="k"),
            jobs.resubmit(SYSTEM, "ann", "j@1", asked, idempotency_key="k"),
        ):
            assert (await refused(other)).reason is Reason.CONFLICT
        assert (await jobs.resubmit(SYSTEM, "ann", "j", asked, idempotency_key="new")).run == 3


async def test_a_job_that_can_never_run_is_refused_at_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red", cpu=2))
        await p.tenants.set_member("red", "ann", "member")
        await p.tenants.set_member("default", "ann", "member")
        error = await refused(rig.submit("big", workers=3, tenant="red"))
        assert (error.reason, "2" in error.msg) == (Reason.EXCEEDS_MAX_QUOTA, True)
        error = await refused(rig.submit("big", workers=9, tenant="default"))
        assert error.reason is Reason.EXCEEDS_MAX_QUOTA
        error = await refused(rig.submit("gpu", gpu=1.0, gpu_kind="h100", tenant="default"))
        assert error.reason is Reason.NO_MATCHING_FLAVOR or error.reason is Reason.EXCEEDS_MAX_QUOTA
        missing = await refused(rig.submit("j", tenant="blue"))
        await p.tenants.create(TenantCreate(name="blue"))
        foreign = await refused(rig.submit("j", tenant="blue"))
        assert (missing.reason, missing.msg) == (foreign.reason, foreign.msg)


async def test_an_elastic_job_starts_with_as_many_workers_as_fit(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("wide", workers="2:10", sim={"DURATION": 600})
        job = await rig.until("wide", "running")
        assert (len(job.ranks), job.workers) == (4, "2:10")
        assert rig.held().cpu == 4000


async def test_a_job_token_lives_as_long_as_its_job_runs(tmp_path: Path) -> None:
    import hashlib

    async with running_rig(tmp_path) as rig:
        specs = []
        start = rig.executor.start

        async def spy(spec, epoch):  # type: ignore[no-untyped-def]
            specs.append(spec)
            await start(spec, epoch)

        rig.executor.start = spy  # type: ignore[method-assign]
        made = await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        env = specs[0].env
        sha = hashlib.sha256(env["MLP_JOB_TOKEN"].encode()).hexdigest()
        assert await rig.platform.jobs.job_of_token(sha) == ("ann", "j@1", made.uid)
        assert (env["MLP_JOB"], env["MLP_USER"], env["MLP_TENANT"]) == ("j", "ann", "default")
        assert (env["MLP_CHECKPOINT_DIR"], env["MLP_RESTART_COUNT"]) == ("/workspace/ckpt", "0")
        rig.end(job)
        await rig.until("j", "finished")
        assert await rig.platform.jobs.job_of_token(sha) is None
        assert await rig.platform.jobs.job_of_token("nonsense") is None


async def test_an_offer_says_what_a_job_would_get_and_stores_nothing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        now = await p.jobs.offer("ann", JobCreate(name="x", code="x", workers=3, cpu=1.0, ram=100))
        assert (now.fits_now, now.placement, now.cpu) == (True, {"n1": 3}, 3.0)
        assert (now.gives_way, now.grace) == ([], 0.0)
        await rig.submit("j", workers=3, time_limit=100, sim={"DURATION": 60})
        await rig.until("j", "running")
        later = await p.jobs.offer("ann", JobCreate(name="x", code="x", workers=3, cpu=1.0, ram=100))
        assert (later.fits_now, later.would_start_now[0]) == (False, "--workers 1")
        assert later.expected_start is not None
        never = await p.jobs.offer("ann", JobCreate(name="x", code="x", workers=30, cpu=1.0, ram=100))
        assert [r.reason for r in never.reasons] == ["ExceedsMaxQuota"]
        assert len((await p.jobs.list(SYSTEM, "ann"))[0]) == 1


async def test_a_heartbeat_moves_progress_and_a_job_that_does_not_run_has_none(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("j", sim={"DURATION": 30})
        await rig.until("j", "running")
        await p.jobs.heartbeat(SYSTEM, "ann", "j", Heartbeat(state="running", progress=42))

        async def moved() -> bool:
            return (await p.jobs.get(SYSTEM, "ann", "j")).progress == 42

        await until(moved)
        await p.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelled")
        beat = Heartbeat(state="running", progress=50)
        assert (await refused(p.jobs.heartbeat(SYSTEM, "ann", "j", beat))).reason is Reason.WRONG_STATE


async def test_lists_come_in_pages_and_by_state(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for i in range(5):
            await rig.submit(f"j{i}", sim={"DURATION": 0.01})
        for i in range(5):
            await rig.until(f"j{i}", "finished")
        first, cursor = await rig.platform.jobs.list(SYSTEM, "ann", limit=3)
        rest, end = await rig.platform.jobs.list(SYSTEM, "ann", limit=3, cursor=cursor)
        assert [j.name for j in (*first, *rest)] == ["j4", "j3", "j2", "j1", "j0"]
        assert end is None
        assert len((await rig.platform.jobs.list(SYSTEM, None, state="finished"))[0]) == 5
        assert (await rig.platform.jobs.list(SYSTEM, "ann", state="running"))[0] == []
        assert (await refused(rig.platform.jobs.list(SYSTEM, "ann", state="odd"))).reason is Reason.INVALID


async def test_fifty_jobs_at_the_limit_never_hold_more_than_the_quota(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red", cpu=3))
        await p.tenants.set_member("red", "ann", "member")
        most = 0

        async def measure() -> None:
            nonlocal most
            while True:
                most = max(most, rig.held("red").cpu)
                await asyncio.sleep(0.002)

        task = asyncio.ensure_future(measure())
        await asyncio.gather(*(rig.submit(f"j{i}", tenant="red", sim={"DURATION": 0.02}) for i in range(50)))
        for i in range(50):
            await rig.until(f"j{i}", "finished")
        task.cancel()
        assert 0 < most <= 3000
        assert rig.held("red") == ZERO


async def test_a_cancelled_job_is_named_so_once_it_has_ended(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        await rig.submit("long", sim={"DURATION": 600})
        await rig.until("long", "running")
        await jobs.cancel(SYSTEM, "ann", "long")
        await rig.until("long", "cancelled")
        for steered in (jobs.suspend, jobs.resume):
            with pytest.raises(Refused) as refused:
                await steered(SYSTEM, "ann", "long")
            assert "job long is cancelled" in str(refused.value)
