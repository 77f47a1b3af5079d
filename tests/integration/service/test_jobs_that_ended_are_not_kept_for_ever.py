"""Jobs that ended are deleted after a time, and when one user has too many of them; nothing else is touched."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume import workspace as shared_volume
from mlp_hub.service.config import DAY_S, KeepPolicy
from mlp_hub.service.lifecycle import retention
from mlp_hub.store.records import EndedSize
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

SHORT = {"DURATION": 0.01}
LONG = {"DURATION": 60, "STOP": 0.05}


def kept(**limits: float) -> object:
    return replace(FAST, keep=KeepPolicy(**limits))  # type: ignore[arg-type]


async def ended(rig: Rig, *names: str, user: str = "ann") -> None:
    for name in names:
        await rig.submit(name, user=user, cpu=0.1, sim=SHORT)
        await rig.until(name, "finished", user=user)


async def names(rig: Rig, user: str = "ann") -> list[str]:
    jobs, _ = await rig.platform.jobs.list(SYSTEM, user)
    return sorted(job.name for job in jobs)


async def settled(rig: Rig) -> None:
    """Take turns until nothing more is to be deleted."""

    async def look() -> bool:
        await rig.platform.retention.turn()
        waits = rig.platform.retention
        return not waits._going and not waits._users and not waits._ended

    await until(look, what="what is due to be gone")


def grow_old(rig: Rig, name: str, seconds: float) -> None:
    """Let a job have ended so much earlier."""
    with rig.db.begin() as tx:
        job = tx.jobs.find(SYSTEM, "ann", name)
        assert job is not None
        assert job.finished_at is not None
        tx.jobs.update(replace(job, finished_at=job.finished_at - seconds))
        tx.ended.put(tx.ended.measure([job.uid]))


def told(rig: Rig) -> list[tuple[str, str, dict[str, object]]]:
    entries, _ = rig.db.read_now(lambda tx: tx.audit.page(action="jobs.expire"))
    return [(e.actor, e.name, {**e.detail, "why": str(e.detail["why"])}) for e in reversed(entries)]


async def test_an_ended_job_is_deleted_with_its_directory_after_the_retention_time(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(job_s=DAY_S)) as rig:
        await ended(rig, "old")
        workspace = rig.workspace("ann", "old", 1)
        assert workspace.is_dir()
        await ended(rig, "young")
        await settled(rig)
        grow_old(rig, "old", DAY_S - 600)
        await settled(rig)
        assert await names(rig) == ["old", "young"]
        assert told(rig) == []

        grow_old(rig, "old", 600)
        await settled(rig)
        assert await names(rig) == ["young"]
        assert not workspace.exists()
        assert told(rig) == [("system", "ann", {"jobs": ["old"], "why": "ended more than 24 h ago"})]
        with pytest.raises(Refused):
            await rig.platform.jobs.get(SYSTEM, "ann", "old")
        await ended(rig, "old")  # the name is free again


async def test_running_waiting_and_suspended_jobs_are_kept_however_old_they_are(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(job_s=DAY_S, jobs=1, job_bytes=1)) as rig:
        await rig.submit("runs", cpu=3, sim=LONG)
        await rig.until("runs", "running")
        await rig.submit("rests", cpu=0.5, sim=LONG)
        await rig.until("rests", "running")
        await rig.platform.jobs.suspend(SYSTEM, "ann", "rests")
        await rig.until("rests", "suspended")
        await rig.submit("waits", cpu=3, sim=LONG)
        await ended(rig, "over", "last")
        rig.ahead += 10 * DAY_S
        await settled(rig)
        assert await names(rig) == ["rests", "runs", "waits"]


async def test_of_a_user_who_has_too_many_those_go_that_ended_first_and_others_keep_theirs(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=kept(jobs=2)) as rig:
        await ended(rig, "v", user="vic")
        await ended(rig, *(f"a{i}" for i in range(9)))
        await settled(rig)
        assert await names(rig) == ["a7", "a8"]
        assert await names(rig, "vic") == ["v"]
        assert {why for _, _, d in told(rig) for why in [d["why"]]} == {"one user has more than 2 ended jobs"}
        gone = [name for _, _, d in told(rig) for name in d["jobs"]]  # type: ignore[attr-defined]
        assert gone == [f"a{i}" for i in range(7)]


async def test_of_a_user_of_whom_too_much_is_stored_the_oldest_go_and_the_last_one_stays(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=kept(job_bytes=50_000)) as rig:
        await ended(rig, "small")
        await settled(rig)
        for name in ("large", "larger"):
            await rig.submit(name, cpu=0.1, code="#" * 60_000, sim=SHORT)
            await rig.until(name, "finished")
        await settled(rig)
        assert await names(rig) == ["larger"], "60 kB are more than 50, but its user has hardly seen it"
        await ended(rig, "new")
        await settled(rig)
        assert await names(rig) == ["new"]


async def test_metrics_count_until_their_user_deletes_them(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(job_bytes=10**6)) as rig:
        await rig.submit("digits", cpu=0.1, sim=LONG)
        await rig.until("digits", "running")
        points = [MetricPoint(n=n, t=1.0 * n, v={"loss": 1.0 / n}) for n in range(1, 2001)]
        await rig.platform.metrics.append(SYSTEM, "ann", "digits", MetricBatch(source="0.0.a", points=points))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "digits")
        await rig.until("digits", "cancelled")
        await settled(rig)
        _, size = rig.db.read_now(lambda tx: tx.ended.total("ann"))
        assert 20_000 < size < 100_000
        await rig.platform.metrics.delete(SYSTEM, "ann", "digits")
        _, rest = rig.db.read_now(lambda tx: tx.ended.total("ann"))
        assert rest < size - 20_000


async def test_deleting_a_job_does_not_cost_another_one(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(jobs=3)) as rig:
        await ended(rig, "a", "b", "c")
        await settled(rig)
        await rig.platform.jobs.delete(SYSTEM, "ann", "c")
        assert rig.db.read_now(lambda tx: tx.ended.total("ann"))[0] == 2
        await ended(rig, "d")
        await settled(rig)
        assert set(await names(rig)) - {"c"} == {"a", "b", "d"}


async def test_without_limits_nothing_is_deleted_or_even_measured(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await ended(rig, "a", "b")
        assert not rig.platform.retention._task.is_started
        rig.ahead += 10_000 * DAY_S
        assert rig.db.read_now(lambda tx: tx.ended.first()) is None
        assert await names(rig) == ["a", "b"]


async def test_jobs_that_ended_before_the_limits_were_set_are_found_after_a_start(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await ended(rig, "a", "b", "c")
        rig.policy = kept(jobs=1)  # type: ignore[assignment]
        await rig.restart()
        await settled(rig)
        assert await names(rig) == ["c"]


async def test_a_job_that_is_marked_goes_also_when_the_service_dies_at_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(job_s=DAY_S)) as rig:
        await ended(rig, "a", "b")
        await until_measured(rig, 2)
        rig.ahead += 2 * DAY_S
        await rig.platform.retention.turn()
        rig.crash()
        await rig.start()

        async def gone() -> bool:
            return await names(rig) == []

        await until(gone, what="both to be gone")


async def until_measured(rig: Rig, count: int) -> None:
    async def look() -> bool:
        await rig.platform.retention.turn()
        return rig.db.read_now(lambda tx: tx.ended.total("ann"))[0] == count

    await until(look, what="jobs to be measured")


async def test_directories_of_one_user_that_take_for_ever_hold_up_no_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    real = shared_volume.remove_directory

    def slow(workspace: Path, check_cancelled: Callable[[], None]) -> None:
        while "mal" in workspace.parts and not free.wait(0.005):
            check_cancelled()
        real(workspace, check_cancelled)

    monkeypatch.setattr(shared_volume, "remove_directory", slow)

    async with running_rig(tmp_path, policy=kept(job_s=DAY_S)) as rig:
        await ended(rig, *(f"m{i}" for i in range(12)), user="mal")
        await ended(rig, "v0", "v1", "v2", user="vic")
        rig.ahead += 2 * DAY_S

        async def gone() -> bool:
            await rig.platform.retention.turn()
            return await names(rig, "vic") == []

        await until(gone, what="vic's jobs to be gone")
        stuck = [job for job in rig.platform.board.jobs.values() if job.spec.user == "mal"]
        assert len(stuck) == retention.MOST_OF_USER
        free.set()
        await settled(rig)
        assert await names(rig, "mal") == []


async def test_a_turn_that_finds_nothing_comes_again_only_when_the_oldest_is_due(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=kept(job_s=2 * DAY_S)) as rig:
        keeper = rig.platform.retention
        assert await keeper.turn() == retention.LONGEST_S
        await ended(rig, "a")
        await settled(rig)

        async def wait_s() -> float:  # what its end still changes of the job is measured in a turn of its own
            while (found := await keeper.turn()) == retention.SOON_S:
                pass
            return found

        assert await wait_s() == retention.LONGEST_S
        rig.ahead += 2 * DAY_S - 600
        assert 500 < await wait_s() <= 600


async def test_one_that_cannot_be_removed_is_looked_for_less_and_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(workspace: Path, check_cancelled: Callable[[], None]) -> None:
        raise PermissionError(13, "no", str(workspace))

    async with running_rig(tmp_path, policy=kept(job_s=DAY_S)) as rig:
        await ended(rig, "a")
        await settled(rig)
        monkeypatch.setattr(shared_volume, "remove_directory", refuse)
        rig.ahead += 2 * DAY_S
        keeper = rig.platform.retention
        waits = [await keeper.turn() for _ in range(9)]
        assert waits[0] == retention.LOOK_S
        assert waits == sorted(waits)
        assert waits[-1] == retention.LOOK_MOST_S
        assert len(told(rig)) == 1, "it is marked once"
        monkeypatch.undo()
        await settled(rig)


async def test_a_job_that_ends_wakes_the_loop_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SETTLE_S", 0.01)
    monkeypatch.setattr(retention, "LOOK_S", 0.01)

    async with running_rig(tmp_path, policy=kept(jobs=1)) as rig:
        await asyncio.sleep(0.1)  # the first turn is over
        await ended(rig, "a", "b", "c")

        async def gone() -> bool:
            return await names(rig) == ["c"]

        await until(gone, what="all but the last to be gone")


async def test_a_failing_turn_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "LOOK_MOST_S", 0.05)
    failed = threading.Event()
    real = retention.Retention._mark

    async def once(self: retention.Retention) -> tuple[list[Job], set[str]]:
        if not failed.is_set():
            failed.set()
            raise OSError(28, "the disk is full")
        return await real(self)

    monkeypatch.setattr(retention.Retention, "_mark", once)
    monkeypatch.setattr(retention, "SETTLE_S", 0.01)

    async with running_rig(tmp_path, policy=kept(jobs=1)) as rig:
        await ended(rig, "a", "b")

        async def gone() -> bool:
            return await names(rig) == ["b"]

        await until(gone, what="the first to be gone")
        assert "the disk is full" in caplog.text


async def test_a_job_that_meanwhile_runs_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=kept(job_s=DAY_S)) as rig:
        await rig.submit("runs", cpu=1, sim=LONG)
        job = await rig.until("runs", "running")
        due = retention._Due(EndedSize(job.uid, "ann", 0.0, 1), "a mistake")
        monkeypatch.setattr(rig.platform.retention, "_choose", lambda _: ([due], set()))
        assert await rig.platform.retention._mark() == ([], set())
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "runs")).phase == "running"
        assert told(rig) == []
