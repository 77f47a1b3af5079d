"""Jobs of people who were taken out of a tenant: nothing of theirs starts there any more, and nobody there is named to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate, Why
from mlp_api.types import TenantCreate
from mlp_hub.api.edge import answers
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.model.types import Verdict, Wait
from mlp_hub.service.admission.commit import Decided, store
from mlp_hub.service.jobs import intake
from mlp_hub.store.tx import Tx
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


async def red(rig: Rig, *users: str) -> None:
    await rig.platform.tenants.create(TenantCreate(name="red"))
    for user in users:
        await rig.platform.tenants.set_member("red", user)


async def full(rig: Rig) -> None:
    """Let ann's job hold the whole node."""
    await rig.submit("secret", tenant="red", cpu=4.0, sim={"DURATION": 60, "STOP": 0})
    await rig.until("secret", "running")


def text_of(why: Why) -> str:
    last = "" if why.stopped is None else str(why.stopped.message)
    return " ".join([*(str(r.message) for r in why.reasons), str(why.expected_because) or "", last])


@pytest.mark.parametrize("how", ["by hand", "by a group", "altogether"])
async def test_waiting_jobs_are_suspended_when_their_user_leaves_and_start_after_the_return(
    tmp_path: Path, how: str
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await red(rig, "ann")
        await (
            p.tenants.sync_groups("bob", ["red"])
            if how == "by a group"
            else p.tenants.set_member("red", "bob")
        )
        await full(rig)
        for n in range(7):
            await rig.submit(f"w{n}", user="bob", tenant="red")
        await rig.submit("other", user="bob2")
        leave = {
            "by hand": lambda: p.tenants.remove_member("red", "bob", actor="root"),
            "by a group": lambda: p.tenants.sync_groups("bob", [], actor="root"),
            "altogether": lambda: p.tenants.forget_user("bob", actor="root"),
        }[how]
        await leave()
        for n in range(7):
            job = await p.jobs.get(SYSTEM, "bob", f"w{n}")
            assert job.phase == "suspended"
            assert "bob is no longer a member of team red" in str(job.message)
            why = await p.jobs.why(SYSTEM, "bob", f"w{n}")
            assert "no longer a member of team red" in text_of(why)
            assert not re.search(r"\bann\b", text_of(why))
            assert "secret" not in text_of(why)
            last = (await p.jobs.events(SYSTEM, "bob", f"w{n}"))[-1]
            assert (last.kind, last.reason) == ("suspended", "Suspended")
        entry = (await p.audit.entries(action="member.remove"))[0][0]
        assert entry.detail["suspended_jobs"] == 7
        assert (await p.jobs.get(SYSTEM, "bob2", "other")).phase == "queued"

        await p.jobs.cancel(SYSTEM, "ann", "secret")
        await rig.until("other", "running", "finished", user="bob2")
        assert (await p.jobs.get(SYSTEM, "bob", "w0")).phase == "suspended"
        await p.tenants.set_member("red", "bob")
        assert "resume it to continue" in text_of(await p.jobs.why(SYSTEM, "bob", "w0"))
        await p.jobs.resume(SYSTEM, "bob", "w0")
        await rig.until("w0", "running", "finished", user="bob")


async def test_why_a_job_waits_is_not_written_down_once_it_is_suspended(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await red(rig, "ann", "bob")
        await full(rig)
        await rig.submit("w", user="bob", tenant="red")
        await rig.submit("v", user="carl")
        uids = [uid for uid, job in p.board.waiting.items() if job.spec.name in ("v", "w")]
        assert len(uids) == 2
        await p.tenants.remove_member("red", "bob")
        verdict = Verdict(Reason.WAITING_FOR_QUOTA, msg("decided before"))
        late = Decided([], [], [], [Wait(uid, verdict, 1) for uid in uids], {}, {}, [], rig.clock())
        await p.board.commit(lambda tx, changes: store(tx, changes, late))
        told = "first in its queue: decided before"
        assert told in [str(e.message) for e in await p.jobs.events(SYSTEM, "carl", "v")]
        assert told not in [str(e.message) for e in await p.jobs.events(SYSTEM, "bob", "w")]


async def test_a_running_job_of_a_former_member_continues_but_does_not_return_after_preemption(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await red(rig, "ann", "bob")
        sim = {"DURATION": 60, "STOP": 0}
        await rig.submit("mine", user="bob", tenant="red", cpu=4.0, priority="low", sim=sim)
        await rig.until("mine", "running", user="bob")
        await p.tenants.remove_member("red", "bob")
        assert (await p.jobs.get(SYSTEM, "bob", "mine")).phase == "running"
        await rig.submit("secret", tenant="red", cpu=4.0, priority="high", sim=sim)
        await rig.until("secret", "running")
        job = await rig.until("mine", "suspended", user="bob")
        assert "no longer a member of team red" in str(job.message)
        timeline = await p.jobs.events(SYSTEM, "bob", "mine")
        assert "preempted" in [e.kind for e in timeline]
        assert [e.kind for e in timeline[-2:]] == ["requeued", "suspended"]
        viewer = await p.visibility.viewer_of("bob")
        told = answers.encode([*timeline, await p.jobs.why(SYSTEM, "bob", "mine")], viewer=viewer).decode()
        assert "secret" not in told
        assert not re.search(r"\bann\b", told)
        assert (
            await p.decisions.decisions_of(
                SYSTEM, "bob", "mine", await p.visibility.viewer_of("bob"), asker="bob"
            )
            == []
        )
        assert await p.decisions.decisions_of(SYSTEM, "bob", "mine", asker="root")
        await p.jobs.cancel(SYSTEM, "ann", "secret")
        await rig.until("secret", "cancelled")
        assert rig.held("red").cpu == 0
        assert (await p.jobs.get(SYSTEM, "bob", "mine")).phase == "suspended"


async def test_a_running_job_of_a_former_member_does_not_return_after_node_loss_or_for_a_retry(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await red(rig, "bob")
        await rig.submit("fails", user="bob", tenant="red", retries=2, sim={"DURATION": 1, "EXIT": 1})
        await rig.submit("lost", user="bob", tenant="red", sim={"DURATION": 60})
        await rig.until("fails", "running", user="bob")
        await rig.until("lost", "running", user="bob")
        await p.tenants.remove_member("red", "bob")
        rig.executor.lose_node("n1")
        await rig.until("lost", "suspended", user="bob")
        await rig.until("fails", "suspended", user="bob")
        rig.executor.restore_node("n1")
        await rig.submit("next")
        await rig.until("next", "running", "finished")
        assert {(await p.jobs.get(SYSTEM, "bob", n)).phase for n in ("lost", "fails")} == {"suspended"}


async def test_a_user_who_leaves_between_check_and_storage_of_a_submission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await red(rig, "bob")
        await rig.submit("before", user="bob", tenant="red")
        insert: Callable[..., list[object]] = intake._insert

        def later(tx: Tx, *rest: object) -> list[object]:
            tx.members.remove("red", "bob")
            return insert(tx, *rest)

        monkeypatch.setattr(intake, "_insert", later)
        for key in (None, "k"):
            asked = JobCreate(name="late", code="x", tenant="red")
            with pytest.raises(Refused) as caught:
                await p.jobs.submit("bob", asked, idempotency_key=key)
            assert caught.value.reason is Reason.FORBIDDEN
            assert "no longer a member of team red" in caught.value.msg
        assert {j.name for j in (await p.jobs.list(SYSTEM, "bob"))[0]} == {"before"}


async def test_jobs_that_an_older_hub_left_waiting_are_put_aside_when_the_service_starts(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await red(rig, "ann", "bob")
        await full(rig)
        await rig.submit("w", user="bob", tenant="red")
        await rig.platform.stop()
        await rig.db.write(lambda tx: tx.members.remove("red", "bob"))
        rig.platform = rig.make()
        await rig.start()
        assert (await rig.platform.jobs.get(SYSTEM, "bob", "w")).phase == "suspended"


async def test_a_first_team_does_not_affect_jobs_waiting_in_default(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        await rig.submit("big", cpu=4.0, sim={"DURATION": 60, "STOP": 0})
        await rig.until("big", "running")
        await rig.submit("w", user="bob")
        await red(rig, "bob")
        await p.jobs.suspend(SYSTEM, "bob", "w")
        await p.jobs.resume(SYSTEM, "bob", "w")
        assert (await p.jobs.get(SYSTEM, "bob", "w")).phase == "queued"
        await p.jobs.cancel(SYSTEM, "ann", "big")

        async def ran() -> bool:
            return (await p.jobs.get(SYSTEM, "bob", "w")).phase in ("running", "finished")

        await until(ran)
