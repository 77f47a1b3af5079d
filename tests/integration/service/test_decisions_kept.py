"""Each admission and preemption is kept with its reasons, in the transaction that stores it."""

from __future__ import annotations

from pathlib import Path

from mlp_api.localized import Text
from mlp_api.platform.whatif import Decision
from mlp_api.types import TenantCreate
from mlp_hub.api.edge import answers
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import DAY_S
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until


async def test_an_admission_records_the_wait_the_change_and_the_alternative_places(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node("n1", 4), node("n2", 4)) as rig:
        await rig.submit("first", cpu=4.0, sim={"DURATION": 600})
        await rig.submit("also", cpu=3.0, sim={"DURATION": 600})
        job = await rig.until("first", "running")
        await rig.until("also", "running")
        await rig.submit("second", cpu=4.0, sim={"DURATION": 0.1})
        await rig.until("second", "queued")
        rig.end(job)
        await rig.until("second", "finished")
        (first,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "first")
        assert first.kind == "admitted"
        assert texts(first.changed) == ["it entered the queue, and there was room at once"]
        assert [n.node for n in first.nodes if n.chosen]
        assert [n.node for n in first.nodes if not n.chosen]
        assert first.policy == "fair"
        (second,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "second")
        assert "1 rank" in str(second.waited_for)
        assert texts(second.changed) == ["job first of ann ended"]
        assert second.only
        assert str(second.summary).endswith("no other place had room")


async def test_a_decision_on_a_single_node_mentions_no_other_places(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await rig.submit("first", workers=2, sim={"DURATION": 0.1})
        await rig.until("first", "finished")
        (first,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "first")
        assert str(first.summary) == "admitted on node n1"


async def test_a_preemption_tells_who_could_have_been_stopped_and_why_this_one(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("dear", workers=2, priority="low", sim={"DURATION": 30})
        await rig.until("dear", "running")
        await rig.submit("cheap", workers=1, priority="low", sim={"DURATION": 30})
        await rig.until("cheap", "running")
        await rig.submit("equal", workers=1, priority="high", sim={"DURATION": 30})
        await rig.until("equal", "running")
        await rig.submit("urgent", workers=1, priority="high", sim={"DURATION": 0.2})
        await rig.until("urgent", "running", "finished")
        (told,) = [
            d
            for d in await rig.platform.decisions.decisions_of(SYSTEM, "ann", "cheap")
            if d.kind == "preempted"
        ]
        assert "Stopped for job urgent of ann" in str(told.summary)
        assert [(v.job, v.chosen) for v in told.victims] == [("cheap", True), ("dear", False)]
        assert str(told.victims[1].why) == "more work would have been lost"
        assert told.victims[0].lost_work < told.victims[1].lost_work
        assert texts(told.spared) == ["1 job has no lower priority"]
        (urgent,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "urgent")
        assert "room was made by the end of job cheap of ann" in str(urgent.summary)
        assert texts(urgent.changed) == ["it was submitted"]


def texts(said: list[Text]) -> list[str]:
    return [str(text) for text in said]


async def told_of(rig: Rig, user: str, name: str) -> list[Decision]:
    return await rig.platform.decisions.decisions_of(SYSTEM, user, name)


async def test_a_resize_and_the_admission_after_it_record_beneficiary_loss_and_number_of_workers(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("wide", workers="1:4", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("wide", "running")
        await rig.submit("other", workers=2, sim={"DURATION": 0.3, "STOP": 0.05})
        await rig.until("other", "finished")
        await until(lambda: has_ranks(rig, "wide", 4))
        admitted, shrunk, grown = await told_of(rig, "ann", "wide")
        assert str(admitted.summary).startswith("admitted on node n1 with 4 workers, its most")
        assert (shrunk.kind, grown.kind) == ("resized", "resized")
        assert str(shrunk.summary).startswith(
            "continues with 2 workers instead of 4; the rest goes to job other of ann. "
            "It was the only one that could be stopped. That loses "
        )
        assert texts(shrunk.changed) == ["job other of ann waits, and can get the workers beyond the minimum"]
        assert [(v.job, v.gives, v.chosen) for v in shrunk.victims] == [("wide", 2, True)]
        assert [(n.node, n.ranks, n.chosen) for n in shrunk.nodes] == [("n1", 2, True)]
        assert (
            str(grown.summary)
            == "continues with 4 workers, its most, instead of 2: no job waits for the room that it gets"
        )
        assert texts(grown.changed) == ["job other of ann ended"]
        (other,) = await told_of(rig, "ann", "other")
        assert other.kind == "admitted"
        assert str(other.summary) == "admitted on node n1; room was made by 2 workers of job wide of ann"
        assert texts(other.changed) == ["it was submitted"]
        assert [(v.job, v.gives) for v in other.victims] == [("wide", 2)]


async def has_ranks(rig: Rig, name: str, ranks: int) -> bool:
    return len((await rig.platform.jobs.get(SYSTEM, "ann", name)).ranks) == ranks


async def test_names_of_other_tenants_are_for_platform_admins_only(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="crimson"))
        await rig.platform.tenants.set_member("crimson", "bob", "member")
        await rig.submit("secret", "bob", tenant="crimson", cpu=4.0, sim={"DURATION": 600}, time_limit=600)
        secret = await rig.until("secret", "running", user="bob")
        await rig.submit("mine", cpu=4.0, sim={"DURATION": 0.1})
        rig.end(secret)
        await rig.until("mine", "finished")
        (whole,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "mine")
        assert texts(whole.changed) == ["job secret of bob ended"]
        viewer = await rig.platform.visibility.viewer_of("ann")
        (own,) = await rig.platform.decisions.decisions_of(SYSTEM, "ann", "mine", viewer)
        told = answers.encode([own], viewer=viewer).decode()
        assert "a job of another team ended" in told
        for word in ("secret", "bob", "crimson"):
            assert word not in told


async def test_explanations_go_after_two_weeks_and_with_their_job(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("old", sim={"DURATION": 0.05})
        await rig.submit("gone", sim={"DURATION": 0.05})
        for name in ("old", "gone"):
            done = await rig.until(name, "finished")
        await rig.platform.jobs.delete(SYSTEM, "ann", "gone")
        uids = (done.uid, (await rig.platform.jobs.get(SYSTEM, "ann", "old")).uid)

        async def kept() -> list[int]:
            return [len(await rig.db.read(lambda tx, u=uid: tx.decisions.last_of_job(u, 10))) for uid in uids]

        while await kept() != [0, 1]:
            pass
        now = done.submitted_at.timestamp()
        await rig.db.write(lambda tx: tx.decisions.delete_before(now + 3600 - 14 * DAY_S))
        assert await kept() == [0, 1]
        await rig.db.write(lambda tx: tx.decisions.delete_before(now + 3600))
        assert await kept() == [0, 0]
