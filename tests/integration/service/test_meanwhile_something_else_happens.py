"""A decision that is stored rests on what is stored then, whatever happened since the look that it came from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from mlp_api.accounts.idle_servers import IdleServerPolicySet, ServerKeep, ServerUseReport
from mlp_api.jobs.idle_jobs import IdleJobPolicySet
from mlp_api.platform.nodes import NodeDrainSet
from mlp_api.platform.notices import NotificationsSet
from mlp_api.teams.bookings import BookingCreate
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Target
from mlp_hub.domain.tenants.departure import DeparturePhase, FilesChoice, JobsChoice
from mlp_hub.domain.tenants.relocation import Relocation, RelocationPhase
from mlp_hub.domain.tenants.tenant import DEDICATED, Isolation
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.idle_policy import IdleKind
from mlp_hub.executors.simulated.attempt import DONE
from mlp_hub.service.config import KeepPolicy
from mlp_hub.store.errors import StoreUnavailable
from mlp_language.message import msg
from support.meanwhile import meanwhile
from support.rigs import environment_rig as environments
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until

LONG = {"DURATION": 600}
BY_EVENTS = replace(FAST, cycle_every_s=600.0)


async def server(rig: Rig, user: str, tenant: str = "default") -> None:
    """Let a notebook server of somebody hold a little."""
    asked = ResourceRequestTry(
        id=f"{user}/",
        applier="sp",
        request_type="request",
        tenant=tenant,
        cpu=0.1,
        ram=100,
        user=user,
        holder=f"{user}'s notebook",
    )
    await rig.platform.ledger.try_(asked)
    await rig.platform.ledger.confirm(ResourceRequestKey(id=asked.id, applier="sp"))


async def others_go_on(rig: Rig) -> None:
    """Return when whoever waits for the database has gone on, a few times over."""
    for _ in range(20):
        await rig.db.write(lambda tx: None)
        await rig.db.read(lambda tx: None)


class Hub:
    """Ends servers; while it ends the first one something happens to the `other` of ann and bob."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.happens: Any = None

    async def end(self, user: str, server: str) -> None:
        assert server == ""
        self.ended.append(user)
        if len(self.ended) == 1:
            await self.happens("bob" if user == "ann" else "ann")


async def test_a_quota_that_could_not_be_read_counts_in_the_next_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=1.0))
        await rig.platform.tenants.set_member("red", "ann")
        await rig.submit("first", tenant="red", sim=LONG)
        await rig.until("first", "running")
        await rig.submit("second", tenant="red", sim=LONG)

        async def waits() -> bool:
            return (await rig.platform.jobs.get(SYSTEM, "ann", "second")).position is not None

        async def away() -> None:
            raise StoreUnavailable(msg("the database is away"))

        await until(waits)
        done = meanwhile(monkeypatch, rig.db, "read", "Admission._up_to_date", away)
        await rig.platform.tenants.update("red", TenantUpdate(cpu=2.0))
        await rig.until("second", "running")
        assert done


@pytest.mark.parametrize("what", ["used", "kept", "replaced"])
async def test_an_idle_server_stays_that_is_used_kept_or_replaced_while_others_are_stopped(
    tmp_path: Path, what: str
) -> None:
    async with running_rig(tmp_path) as rig:
        stops, hub, now = rig.platform.idle_servers, Hub(), [0.0]
        stops._monotonic, stops.end = (lambda: now[0]), hub.end
        stops._looked = None
        asked = IdleServerPolicySet(after_minutes=60, grace_minutes=5)
        await rig.platform.idle_policies.put(IdleKind.SERVER, "default", asked, actor="lea")
        tasks: list[asyncio.Task[object]] = []

        async def happens(other: str) -> None:
            if what == "used":
                stops.report(other, ServerUseReport(idle_s=0.0))
            elif what == "kept":
                tasks.append(asyncio.ensure_future(stops.keep(other, ServerKeep(hours=1))))
                await asyncio.sleep(0)
            else:
                for _ in range(2):
                    again = ResourceRequestTry(
                        id=f"{other}/", applier="sp", request_type="release", tenant="default"
                    )
                    await rig.platform.ledger.try_(again)
                    await rig.platform.ledger.confirm(ResourceRequestKey(id=again.id, applier="sp"))
                await server(rig, other)

        hub.happens = happens
        for user in ("ann", "bob"):
            await server(rig, user)
        for _ in range(8):
            now[0] += 60
            for user in ("ann", "bob"):
                stops.report(user, ServerUseReport(idle_s=7200.0))
            if not hub.ended:
                await stops.look()
        assert len(hub.ended) == 1
        await asyncio.gather(*tasks)


@pytest.mark.parametrize("works", ["a job", "servers"])
async def test_a_node_that_was_given_back_meanwhile_is_not_emptied(
    tmp_path: Path, works: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        drains, hub = rig.platform.drains, Hub()

        async def back(_other: str = "") -> None:
            await drains.give_back("n1", "admin")

        if works == "a job":
            await rig.submit("runs", sim=LONG)
            await rig.until("runs", "running")
            done = meanwhile(monkeypatch, rig.platform.board, "commit", "Drains._evict_jobs", back)
        else:
            done, hub.happens, drains.end_server = hub.ended, back, hub.end
            for user in ("ann", "bob"):
                await server(rig, user)
        await drains.drain("n1", NodeDrainSet(reason="a new kernel", evict=True), "admin")
        assert len(done) == 1
        assert {job.target for job in rig.platform.board.jobs.values()} <= {Target.RUN}


async def test_a_server_stays_whose_owner_is_a_member_again_while_others_are_ended(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        hub, p = Hub(), rig.platform
        await p.tenants.create(TenantCreate(name="red"))
        for user in ("ann", "bob"):
            await p.tenants.set_member("red", user)
            await server(rig, user, "red")
            await p.tenants.remove_member("red", user, actor="root")

        async def happens(other: str) -> None:
            await p.tenants.set_member("red", other)

        hub.happens, p.former_members_servers.end = happens, hub.end
        await p.former_members_servers.end_all()
        assert len(hub.ended) == 1


async def test_a_refused_departure_takes_none_back_that_somebody_else_began(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        offboarding = rig.platform.offboarding
        await rig.submit("runs", sim=LONG)
        await rig.until("runs", "running")
        second: list[asyncio.Task[object]] = []

        async def shut_out(user: str) -> None:
            if second:
                return
            second.append(
                asyncio.ensure_future(
                    offboarding.begin(user, JobsChoice.STOP, FilesChoice.KEEP, actor="another")
                )
            )
            await others_go_on(rig)
            raise Refused(Reason.WRONG_STATE, msg("not now"))

        offboarding.shut_out = shut_out
        with pytest.raises(Refused):
            await offboarding.begin("ann", JobsChoice.FINISH, FilesChoice.KEEP, actor="one")
        await second[0]

        async def has_left() -> bool:
            found = await offboarding.departure_of("ann")
            assert found is not None, "it was begun, and answered"
            return found.phase is DeparturePhase.LEFT

        await until(has_left)
        await rig.until("runs", "cancelled")


async def test_files_of_a_failed_environment_go_before_another_of_the_same_lock_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, policy=environments.ONLINE)
    maker = environments.with_maker(rig)
    async with environments.running_rig(rig):
        workspace, erased = rig.executor.workspace, list[str]()
        erase = workspace.erase_stored

        async def erase_later(*args: Any, **options: Any) -> None:
            """Let another of the same lock come, before the files of the first are removed."""
            if not erased:
                erased.append("first")
                await environments.create(rig, "second")

                async def resolved() -> bool:
                    found = await rig.db.read(lambda tx: tx.environments.of_tenant("default"))
                    return any(each.name == "second" and each.lock for each in found)

                await until(resolved)
                await others_go_on(rig)
                assert [did for did, _ in maker.did].count("install") == 1, "its files are still removed"
            await erase(*args, **options)

        monkeypatch.setattr(workspace, "erase_stored", erase_later)
        with maker.held("lock") as waits:
            await environments.create(rig, "first")
            await until(waits)
            maker.fails.append(environments.unresolvable())  # of its installation
        first = await environments.at_rest(rig, "first")
        second = await environments.at_rest(rig, "second")
        assert (erased, first.state, second.state) == (["first"], "error", "ready")
        assert len(await asyncio.to_thread(environments.left, rig)) == 1


async def test_the_newest_of_two_looks_says_which_tenants_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        worker, answers = rig.platform.storage_migration, asyncio.Event()
        moved = Relocation(
            "default", RelocationPhase.COPYING, Isolation(), Isolation(DEDICATED, "/srv/x"), "root", 1.0
        )
        await rig.db.write(lambda tx: tx.relocations.put(moved))
        read, slow = rig.db.read, list[bool]()

        async def read_late(fn: Any) -> Any:
            found = await read(fn)
            if not slow and fn.__qualname__.startswith("StorageMigrationWorker._hold_moving"):
                slow.append(True)
                await answers.wait()
            return found

        monkeypatch.setattr(rig.db, "read", read_late)
        first = asyncio.ensure_future(worker._hold_moving())
        await until_true(lambda: bool(slow))
        await rig.db.write(lambda tx: tx.relocations.put(replace(moved, phase=RelocationPhase.DONE)))
        second = asyncio.ensure_future(worker._hold_moving())
        await others_go_on(rig)
        answers.set()
        await asyncio.gather(first, second)
        assert rig.platform.admission.hold_of("default") is None
        assert worker._held == {}


async def until_true(look: Any) -> None:
    async def looked() -> bool:
        return bool(look())

    await until(looked)


async def test_of_too_many_runs_none_goes_for_one_that_its_user_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, keep=KeepPolicy(jobs=2))) as rig:
        await rig.platform.retention.stop()
        for name in ("a", "b", "c"):
            await rig.submit(name, cpu=0.1, sim={"DURATION": 0})
            await rig.until(name, "finished")

        async def gone() -> bool:
            jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann")
            return "c" not in {job.name for job in jobs}

        async def deletes() -> None:
            await rig.platform.jobs.delete(SYSTEM, "ann", "c")
            await until(gone)

        done = meanwhile(monkeypatch, rig.platform.board, "commit", "Retention._mark", deletes)
        for _ in range(4):
            rig.platform.retention._more = True
            await rig.platform.retention.turn()
        assert done
        jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann")
        assert {job.name: job.phase for job in jobs} == {"a": "finished", "b": "finished"}


async def test_a_job_is_not_resumed_in_a_team_that_its_user_leaves_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await p.tenants.create(TenantCreate(name="red"))
        await p.tenants.set_member("red", "ann")
        await rig.submit("mine", tenant="red", sim=LONG)
        await p.jobs.suspend(SYSTEM, "ann", "mine")
        await rig.until("mine", "suspended")

        async def leaves() -> None:
            await p.tenants.remove_member("red", "ann", actor="root")

        done = meanwhile(monkeypatch, p.board, "commit", "JobService.", leaves)
        with pytest.raises(Refused) as refused:
            await p.jobs.resume(SYSTEM, "ann", "mine")
        assert (done, refused.value.reason) == (["JobService."], Reason.FORBIDDEN)
        assert (await p.jobs.get(SYSTEM, "ann", "mine")).phase == "suspended"


async def test_a_policy_that_was_taken_away_meanwhile_ends_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, node(gpu=1)) as rig:
        p, now = rig.platform, [0.0]
        p.idle_jobs._monotonic, p.idle_jobs._looked = (lambda: now[0]), None

        async def policy(after: int) -> None:
            asked = IdleJobPolicySet(after_minutes=after, grace_minutes=5)
            await p.idle_policies.put(IdleKind.JOB, "default", asked, actor="lea")

        await policy(60)
        await rig.submit("train", gpu=1, sim={"DURATION": 1e6, "GPU": 0.0, "CPU": 0.01})
        await rig.until("train", "running")
        await p.idle_jobs.look()
        while p.idle_jobs._of(next(iter(p.board.holding.values()))).left_s != 60.0:
            now[0] += 60
            await p.idle_jobs.look()
        done = meanwhile(monkeypatch, p.board, "commit", "IdleJobs.look", lambda: policy(0))
        now[0] += 60
        await p.idle_jobs.look()
        assert done
        assert (await p.jobs.get(SYSTEM, "ann", "train")).phase == "running"
        assert next(iter(p.board.holding.values())).target is Target.RUN


async def test_a_job_that_ends_while_a_service_takes_over_has_its_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        asked = convert({"browser": ["finished"]}, NotificationsSet)
        await rig.platform.notices.store_choices("ann", asked, "ann")
        job = await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        rig.crash()
        attempt, p = f"{job.uid}.0", rig.platform
        rig.end(job)

        async def over() -> bool:
            return (await rig.executor.observe([attempt]))[attempt].phase in DONE

        await until(over)
        start = p.notices.start

        async def start_later() -> None:
            p.reconciler._executor_says(attempt)
            await until_true(lambda: not p.queue.depth["active"])
            await start()

        monkeypatch.setattr(p.notices, "start", start_later)
        await rig.start()
        await rig.until("digits", "finished")
        notices: Sequence[Any] = await rig.db.read(lambda tx: tx.notices.after("ann", 0, 10))
        assert [(one.kind.value, one.name) for one in notices] == [("finished", "digits")]


async def test_a_window_that_is_booked_during_a_review_is_looked_at_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=4))
        bookings, looks = rig.platform.bookings, list[str]()
        now = rig.clock()

        async def books() -> None:
            times = [datetime.fromtimestamp(now + seconds, UTC) for seconds in (60, 120)]
            asked = BookingCreate(name="demo", start=times[0], end=times[1], amount={"cpu": 1.0})
            await bookings.create("red", asked, actor="root")

        read = rig.db.read

        async def read_then_book(fn: Any) -> Any:
            found = await read(fn)
            if fn.__qualname__.startswith("BookingService.review"):
                looks.append("look")
                if len(looks) == 1:
                    await books()
            return found

        monkeypatch.setattr(rig.db, "read", read_then_book)
        bookings._seen = None
        await bookings.review()
        await bookings.review()
        assert len(looks) == 2
        await bookings.review()
        assert len(looks) == 2, "nothing has changed since"
