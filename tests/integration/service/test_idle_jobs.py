"""Jobs that hold GPUs without use: counted down by their team's policy, suspended at the end, kept within bounds, told to owners and admins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import convert

from mlp_api.jobs.idle_jobs import IdleHolding, IdleJobPolicySet, JobKeep
from mlp_api.jobs.jobs import Job
from mlp_api.platform.notices import NotificationsSet
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.idle_gpus import LONG_S, MOST_KEPT_S
from mlp_hub.domain.jobs.job import Phase
from mlp_hub.domain.notices.notice import Notice
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.idle_policy import IdleKind
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.jobs.idle_jobs import IdleJobs
from mlp_hub.service.jobs.idle_of_teams import IdleOfTeams
from mlp_hub.service.quota.idle_policies import MOST_PASSED_S
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

HOUR, DAY, LOOK = 3600.0, 86_400.0, 60.0
LONG = {"DURATION": 1e6, "GPU": 0.0, "CPU": 0.01}


class Idle:
    """The platform with a node of GPUs, and a steady clock that the test moves."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.now = rig, 0.0

    @property
    def jobs(self) -> IdleJobs:
        return self.rig.platform.idle_jobs

    @property
    def teams(self) -> IdleOfTeams:
        return self.rig.platform.idle_of_teams

    def begin(self) -> None:
        """Make the platform use the clock; once again after its restart."""
        self.jobs._monotonic = self.teams._monotonic = lambda: self.now
        self.rig.platform.idle_servers._monotonic = lambda: self.now
        self.jobs._looked = None

    async def crash(self) -> None:
        self.rig.crash()
        await self.rig.start()
        self.begin()

    async def submit(self, name: str, user: str = "ann", **more: object) -> Job:
        sim = {**LONG, **more.pop("sim", {})}  # type: ignore[dict-item]
        job = await self.rig.submit(name, user, **{"gpu": 1, "sim": sim, **more})

        async def known() -> bool:
            # whoever reads the database may know that it runs before the board does, of which looks are
            found = self.rig.platform.board.holding.get(job.uid)
            return found is not None and found.phase is Phase.RUNNING

        await until(known, what=f"{name} to run")
        return await self.get(user, name)

    async def policy(self, after: int = 120, grace: int = 10, tenant: str = "default") -> None:
        asked = IdleJobPolicySet(after_minutes=after, grace_minutes=grace)
        await self.rig.platform.idle_policies.put(IdleKind.JOB, tenant, asked, actor="lea")

    def does(self, job: Job, gpu: float | None, cpu: float | None = 0.01) -> None:
        """Let the ranks of a job do something from now on."""
        executor = self.rig.executor
        attempt = executor._attempts[f"{job.uid}.{job.restarts}"]
        executor._change(replace(attempt, script=replace(attempt.script, gpu=gpu, cpu=cpu)))

    async def later(self, seconds: float, user: str = "ann", name: str = "train") -> Job:
        """Return the job after looks of a minute over some seconds."""
        for _ in range(int(seconds // LOOK)):
            self.now += LOOK
            await self.jobs.look()
        return await self.get(user, name)

    async def get(self, user: str = "ann", name: str = "train") -> Job:
        return await self.rig.platform.jobs.get(SYSTEM, user, name)

    async def notices(self, user: str) -> list[Notice]:
        return await self.rig.db.read(lambda tx: tx.notices.after(user, 0, 100))

    async def subscribe(self, user: str, *kinds: str) -> None:
        asked = convert({"browser": list(kinds)}, NotificationsSet)
        await self.rig.platform.notices.store_choices(user, asked, user)


@asynccontextmanager
async def idle(root: Path) -> AsyncIterator[Idle]:
    async with running_rig(root, node(cpu=8, gpu=4)) as rig:
        made = Idle(rig)
        made.begin()
        yield made


def left(job: Job) -> float | None:
    return None if job.idle is None else job.idle.left_s


async def test_unused_gpus_end_a_job_after_its_grace_as_a_suspend(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train")
        await made.jobs.look()
        job = await made.later(2 * HOUR - LOOK)
        assert (left(job), job.phase) == (None, "running")
        job = await made.later(LOOK)
        assert job.idle is not None
        assert (job.idle.idle_s, job.idle.left_s, job.idle.ends) == (2 * HOUR, 600, "suspend")
        assert left(await made.later(9 * LOOK)) == 60
        await made.later(LOOK)
        ended = await made.rig.until("train", "suspended")
        assert (ended.reason, ended.idle) == ("IdleGpus", None)
        assert "did not use its GPUs for 2.2 h, and the policy of default" in str(ended.message)
        why = await made.rig.platform.jobs.why(SYSTEM, "ann", "train")
        assert why.reasons[0].reason == "IdleGpus"
        steps = [e.kind for e in await made.rig.platform.jobs.events(SYSTEM, "ann", "train")]
        assert steps[-4:] == ["idle", "asked", "suspending", "suspended"]
        assert made.rig.held().gpu == 0
        # it goes on as any suspended job does
        resumed = await made.rig.platform.jobs.resume(SYSTEM, "ann", "train")
        assert resumed.reason is None
        again = await made.rig.until("train", "running")
        assert (again.restarts, again.idle) == (1, None)


async def test_nothing_ends_without_a_policy_and_nothing_that_works(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        job = await made.submit("train")
        assert (await made.later(50 * HOUR)).idle is None
        await made.policy()
        job = await made.later(LOOK)
        assert left(job) == 600
        for gpu, cpu in ((0.01, 0.0), (0.0, 0.05), (0.0, 3.0), (1.0, 3.0)):
            made.does(job, gpu, cpu)
            job = await made.later(5 * HOUR)
            assert (job.idle, job.phase) == (None, "running")
            made.does(job, 0.0)
            job = await made.later(2 * HOUR)
            assert (left(job), job.phase) == (600, "running")


async def test_a_report_of_work_that_nobody_measures_is_said_and_saves_nothing_but_the_moment(
    tmp_path: Path,
) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        job = await made.submit("train", sim={"GPU_REPORTED": 1})
        await made.jobs.look()
        assert left(await made.later(2 * HOUR)) == 600
        made.does(
            job, 1.0, 0.0
        )  # its program writes that its GPUs work; its processors are seen to do nothing
        job = await made.later(10 * HOUR)
        assert job.idle is not None
        assert (job.idle.left_s, job.idle.claims, job.phase) == (600, True, "running")
        (held,) = await made.teams.of_team("default")
        assert (held.name, held.claims) == ("train", True)
        made.does(job, 1.0, 2.0)  # and now they are seen to work
        assert (await made.later(LOOK)).idle is None
        assert await made.teams.of_team("default") == []
        made.does(job, 1.0, 0.0)  # a claim from the first look on is listed as well
        job = await made.later(LOOK)
        assert job.idle is not None
        assert (job.idle.idle_s, job.idle.claims) == (0, True)
        await made.crash()
        assert [(one.name, one.claims) for one in await made.teams.of_team("default")] == [("train", True)]


async def test_work_in_the_last_moment_saves_a_job(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        job = await made.submit("train")
        await made.jobs.look()
        assert left(await made.later(2 * HOUR + 9 * LOOK)) == 60
        made.does(job, 0.01)
        job = await made.later(LOOK)
        assert (job.phase, job.idle) == ("running", None)


async def test_a_job_that_nobody_measures_is_never_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        job = await made.submit("train")
        made.does(job, None, None)
        assert (await made.later(20 * HOUR)).idle is None
        made.does(job, 0.0)
        assert left(await made.later(2 * HOUR)) == 600

        async def away(*_: object) -> None:
            raise OSError("the driver does not answer")

        with monkeypatch.context() as patched:
            patched.setattr(SimulatedExecutor, "work_of", away)
            assert left(await made.later(20 * HOUR)) == 600


async def test_apps_and_jobs_without_gpus_are_not_counted(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("plain", gpu=0)
        assert (await made.later(5 * HOUR, name="plain")).idle is None
        with pytest.raises(Refused, match="no GPUs"):
            await made.jobs.keep(SYSTEM, "ann", "plain", JobKeep(hours=1), actor="ann")


async def test_a_trial_is_cancelled_with_its_reason_because_a_sweep_would_wait_for_ever(
    tmp_path: Path,
) -> None:
    from mlp_api.jobs.sweeps import SweepCreate

    async with idle(tmp_path) as made:
        await made.policy()
        env = {f"SIM_{name}": str(value) for name, value in LONG.items()}
        asked = SweepCreate(name="s", code="x", grid={"lr": [0.1]}, cpu=1.0, ram=100, gpu=1, env=env)
        await made.rig.platform.sweeps.create(SYSTEM, "ann", asked)

        async def runs() -> bool:
            found, _ = await made.rig.platform.jobs.list(SYSTEM, "ann", name="s.0")
            return bool(found) and found[0].phase == "running"

        await until(runs, what="the trial to run")
        await made.jobs.look()
        job = await made.later(2 * HOUR, name="s.0")
        assert job.idle is not None
        assert job.idle.ends == "cancel"
        await made.later(10 * LOOK, name="s.0")
        ended = await made.rig.until("s.0", "cancelled")
        assert (ended.reason, "did not use its GPUs" in str(ended.message)) == ("IdleGpus", True)


async def test_a_crash_and_a_machine_that_boots_lose_no_countdown(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train")
        await made.jobs.look()
        assert left(await made.later(2 * HOUR + 3 * LOOK)) == 420
        await made.crash()
        made.now = -5e6
        await made.jobs.look()
        assert left(await made.get()) == 420
        assert left(await made.later(LOOK)) == 360
        await made.rig.platform.idle_jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=2), actor="ann")
        await made.crash()
        found = (await made.get()).idle
        assert found is not None
        assert (found.left_s, found.kept_s) == (None, 2 * HOUR)


async def test_a_countdown_that_was_over_when_the_service_died_needs_to_be_seen_once_more(
    tmp_path: Path,
) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        job = await made.submit("train")
        await made.jobs.look()
        await made.later(2 * HOUR + 9 * LOOK)
        stored = made.jobs._idle[job.uid][1]

        def over(tx, changes):
            found = tx.jobs.get(SYSTEM, job.uid)
            changes.update(tx, replace(found, idle=replace(stored, left_s=0.0)))

        await made.rig.platform.board.commit(over)
        await made.crash()
        made.does(job, None, None)
        assert (await made.later(HOUR)).phase == "running"
        made.does(job, 0.5)
        job = await made.later(LOOK)
        assert (job.phase, job.idle) == ("running", None)


async def test_clocks_that_jump_end_nobody(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train")
        await made.jobs.look()
        assert left(await made.later(2 * HOUR)) == 600
        made.rig.ahead += 30 * DAY
        assert left(await made.later(LOOK)) == 540
        made.rig.ahead -= 60 * DAY
        assert left(await made.later(LOOK)) == 480
        made.now += 8 * HOUR  # the machine slept
        await made.jobs.look()
        assert left(await made.get()) == 480 - MOST_PASSED_S


async def test_a_job_is_kept_within_bounds_and_work_resets_them(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        job = await made.submit("train")
        with pytest.raises(Refused, match="no policy"):
            await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=1), actor="ann")
        await made.policy()
        await made.jobs.look()
        assert left(await made.later(2 * HOUR)) == 600
        kept = await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=20), actor="ann")
        assert kept.idle is not None
        assert (kept.idle.left_s, kept.idle.kept_s) == (None, 20 * HOUR)
        assert left(await made.later(20 * HOUR - LOOK)) is None
        assert left(await made.later(LOOK)) == 600
        with pytest.raises(Refused, match="4 h are left"):
            await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=5), actor="ann")
        await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=4), actor="ann")
        assert left(await made.later(4 * HOUR)) == 600
        for hours in (1, 24):  # nobody keeps it without end
            with pytest.raises(Refused, match="all there is"):
                await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=hours), actor="ann")
        assert left(await made.get()) == 600
        made.does(job, 0.3)
        await made.later(LOOK)
        made.does(job, 0.0)
        kept = await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=24), actor="ann")
        assert kept.idle is not None
        assert kept.idle.kept_s == MOST_KEPT_S
        entries = await made.rig.db.read(lambda tx: [e.action for e in tx.audit.page()[0]])
        assert entries.count("job.keep") == 3


async def test_attacks_on_others_jobs_find_nothing(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train")
        for user, name in (("bob", "train"), ("ann", "other"), ("ann", "train@7")):
            with pytest.raises(Refused) as refused:
                await made.jobs.keep(SYSTEM, user, name, JobKeep(hours=1), actor="bob")
            assert refused.value.reason is Reason.NOT_FOUND
        with pytest.raises(Refused):
            await made.policy(tenant="nowhere")
        await made.rig.platform.jobs.suspend(SYSTEM, "ann", "train")
        await made.rig.until("train", "suspended")
        with pytest.raises(Refused, match="running"):
            await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=1), actor="ann")


async def test_requests_at_one_time_keep_a_job_no_longer_than_one_after_the_other(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.submit("train")
        await made.policy()
        await made.jobs.look()
        await made.later(2 * HOUR)

        async def keep(hours: int) -> bool:
            try:
                await made.jobs.keep(SYSTEM, "ann", "train", JobKeep(hours=hours), actor="ann")
            except Refused as refused:
                return refused.reason is not Reason.WRONG_STATE
            return True

        looks = [made.later(LOOK) for _ in range(5)]
        for _ in range(4):  # to bank hours: a short one gives nothing back
            await asyncio.gather(*(keep(hours) for hours in (24, 1, 23, 24, 2, 24, 1)))
        await asyncio.gather(*looks, *(keep(24) for _ in range(20)))
        assert await keep(1) is False
        assert left(await made.later(25 * HOUR)) is not None, "a day at most"
        await made.later(HOUR)
        await made.rig.until("train", "suspended")
        assert await keep(1) is False


async def test_a_user_who_cancels_reads_another_reason(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train")
        await made.jobs.look()
        await made.later(2 * HOUR + 10 * LOOK)
        await made.rig.until("train", "suspended")
        await made.rig.platform.jobs.cancel(SYSTEM, "ann", "train")
        ended = await made.rig.until("train", "cancelled")
        assert (ended.reason, str(ended.message).partition(";")[0]) == (None, "cancelled while suspended")


async def test_owners_and_admins_are_told_once_and_admins_once_a_day_whatever_is_idle(
    tmp_path: Path,
) -> None:
    async with idle(tmp_path) as made:
        platform = made.rig.platform
        await platform.tenants.create(TenantCreate(name="red", cpu=8, gpu=4, ram=8000), actor="root")
        for user, role in (("ann", Role.MEMBER), ("lea", Role.ADMIN), ("max", Role.ADMIN)):
            await platform.users.ensure(user)
            await platform.tenants.set_member("red", user, role)
        await made.subscribe("ann", "idle_job")
        await made.subscribe("lea", "idle_team")
        await made.policy(tenant="red")
        for name in ("train", "more", "third"):
            await made.submit(name, tenant="red")
        await made.jobs.look()
        await made.later(2 * HOUR + 2 * LOOK)
        told = await made.notices("ann")
        assert sorted((one.kind.value, one.name) for one in told) == [
            ("idle_job", name) for name in ("more", "third", "train")
        ]
        for _ in range(30):
            await made.teams.tell()
        (one,) = await made.notices("lea")
        assert "Team red holds 3 jobs with 3 GPUs that nobody used for 60 min or longer" in str(one.text)
        assert await made.notices("max") == []
        # neither a restart nor a clock that is set back repeats it
        await made.crash()
        made.rig.ahead -= 3 * DAY
        await made.later(2 * HOUR)
        await made.teams.tell()
        assert len(await made.notices("lea")) == 1


async def test_the_list_of_a_team_has_all_that_is_idle_and_nothing_of_others(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        platform = made.rig.platform
        await platform.tenants.create(TenantCreate(name="red", cpu=8, gpu=4, ram=8000), actor="root")
        await platform.users.ensure("bob")
        await platform.tenants.set_member("red", "bob", Role.MEMBER)
        await made.submit("train", "bob", tenant="red", gpu=0.5, workers=2)
        await made.submit("theirs")
        busy = await made.submit("busy", "bob", tenant="red")
        made.does(busy, 0.9)
        await made.jobs.look()
        await made.later(LONG_S - LOOK, "bob")
        assert await made.teams.of_team("red") == []
        assert dict(made.jobs.gpus_by_node()) == {}
        await made.later(LOOK, "bob")
        (found,) = await made.teams.of_team("red")
        assert isinstance(found, IdleHolding)
        assert (found.kind, found.user, found.name, found.run) == ("job", "bob", "train", 1)
        assert (found.idle_s, found.gpu, found.cpu, found.left_s, found.ends) == (
            LONG_S,
            1.0,
            2.0,
            None,
            None,
        )
        assert dict(made.jobs.gpus_by_node()) == {"n1": 2.0}
        assert [one.user for one in await made.teams.of_team("default")] == ["ann"]
        await made.policy(after=90, tenant="red")
        await made.later(HOUR / 2, "bob")
        (found,) = await made.teams.of_team("red")
        assert (found.left_s, found.ends) == (600, "suspend")


async def test_the_alert_counts_what_the_list_shows(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.submit("train", gpu=2)
        monitoring = made.rig.platform.monitoring
        name = frozenset({"mlp_node_idle_gpus"})
        labels = (("node", "n1"),)
        assert (await monitoring.samples(name))["mlp_node_idle_gpus"] == {labels: 0.0}
        await made.jobs.look()
        await made.later(HOUR)
        assert (await monitoring.samples(name))["mlp_node_idle_gpus"] == {labels: 2.0}


async def test_a_resume_before_the_end_leaves_no_trace_of_it(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.submit("train", sim={"STOP": 30})
        await made.jobs.look()
        await made.later(2 * HOUR + 10 * LOOK)

        async def asked() -> bool:
            return (await made.get()).reason == "IdleGpus"

        await until(asked, what="the end to be asked for")
        await made.rig.platform.jobs.resume(SYSTEM, "ann", "train")
        job = await made.rig.until("train", "running")
        assert (job.reason, job.idle) == (None, None)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (IdleJobPolicySet, {"after_minutes": -1}),
        (IdleJobPolicySet, {"after_minutes": 10, "grace_minutes": 0}),
        (IdleJobPolicySet, {"after_minutes": 10**9}),
        (IdleJobPolicySet, {"after_minutes": 1.5}),
        (IdleJobPolicySet, {"after_minutes": "never"}),
        (JobKeep, {"hours": 0}),
        (JobKeep, {"hours": 25}),
        (JobKeep, {"hours": -1}),
        (JobKeep, {}),
    ],
)
def test_bad_input_is_refused(kind: type, body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        convert(body, kind)
