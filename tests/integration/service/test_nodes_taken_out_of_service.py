"""Nodes that an administrator takes out of service: nothing new comes, what runs goes where that is wanted, whatever is killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import QueueEntry
from mlp_api.platform.nodes import NodeDrainPreview, NodeDrainSet
from mlp_api.types import ResourceRequestKey, ResourceRequestTry
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.drain import NodeDrain
from mlp_hub.executors.base import LaunchSpec
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until

BY_EVENTS = replace(FAST, cycle_every_s=600.0)
LONG = {"DURATION": 60}


async def drained(rig: Rig, name: str = "n1", *, evict: bool = False) -> NodeDrainPreview:
    return await rig.platform.drains.drain(name, NodeDrainSet(reason="a new kernel", evict=evict), "admin")


async def goes_to(rig: Rig, name: str, node: str) -> None:
    async def there() -> bool:
        jobs = [job for job in rig.platform.board.holding.values() if job.spec.name == name]
        return bool(jobs) and {n for job in jobs for n in job.placement} == {node}

    await until(there, what=f"{name} to be on {node}")


async def waits(rig: Rig, name: str) -> None:
    async def told() -> bool:
        return (await rig.platform.jobs.get(SYSTEM, "ann", name)).position is not None

    await until(told, what=f"{name} to wait")


def stops(found: NodeDrainPreview) -> list[tuple[str, str, str, int, int]]:
    return [(s.kind, s.user, s.name, s.ranks, s.of) for s in found.stops]


async def test_a_drained_node_keeps_what_runs_takes_nothing_new_and_comes_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("runs", workers=2, sim=LONG)
        await rig.until("runs", "running")
        before = await rig.platform.drains.preview("n1")
        assert (before.drain, before.others, stops(before)) == (None, 0, [("job", "ann", "runs", 2, 2)])
        found = await drained(rig)
        assert found.drain is not None
        assert (found.drain.reason, found.drain.actor, found.drain.evict) == ("a new kernel", "admin", False)
        [shown] = await rig.platform.nodes.list()
        assert [(c.kind, c.message) for c in shown.conditions] == [("Drained", "a new kernel")]
        assert (shown.up, shown.schedulable) == (True, False)
        await rig.submit("later", sim=LONG)
        await waits(rig, "later")
        why = await rig.platform.jobs.why(SYSTEM, "ann", "later")
        assert "drained by an administrator (n1)" in str([f.who for r in why.reasons for f in r.facts])
        assert str(why.reasons[0].message).endswith("Starts once node n1 is back.")
        because = "node n1 is drained by an administrator: it can start when that node is back in service"
        assert str(why.expected_because) == because, "no end of the job that runs there helps"

        async def told() -> QueueEntry | None:
            # the queue has the last forecast's words, and none where something changed since
            await rig.platform.forecasts.expected([job.uid for job in rig.platform.board.jobs.values()])
            [entry] = [e for e in await rig.platform.cluster_queue.entries(None) if e.name == "later"]
            return entry if entry.expected_because else None

        waiting = await until(told, what="the queue to say since when it cannot start")
        assert str(waiting.expected_because) == because
        assert "a new kernel" not in str((why, waiting)), "the reason is for owners of what is stopped"
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "runs")).phase == "running"
        back = await rig.platform.drains.give_back("n1", "admin")
        assert back.drain is None
        await rig.until("later", "running")
        audit = [(e.action, e.object) for e in (await rig.platform.audit.entries())[0]]
        assert audit[:2] == [("node.return", "n1"), ("node.drain", "n1")]


async def test_jobs_on_a_drained_node_move_elsewhere_on_request_and_show_the_reason(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("gang", workers=3, sim=LONG)
        await rig.until("gang", "running")
        rig.executor.set_node(node("n2"))
        assert (await drained(rig, evict=True)).others == 1
        await goes_to(rig, "gang", "n2")
        job = await rig.until("gang", "running")
        assert job.restarts == 1
        said = [str(e.message) for e in await rig.platform.jobs.events(SYSTEM, "ann", "gang")]
        assert "node n1 is taken out of service: a new kernel" in said


async def test_a_job_that_cannot_move_waits_with_its_age_and_is_first_when_the_node_returns(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("first", workers=4, sim=LONG)
        await rig.until("first", "running")
        await rig.submit("second", workers=4, sim=LONG)
        await drained(rig, evict=True)
        await waits(rig, "first")
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "first")).position == 1
        await rig.platform.drains.give_back("n1", "admin")
        await rig.until("first", "running")


@pytest.mark.parametrize("crash", [True, False])
async def test_it_is_drained_still_after_a_restart_and_emptied_on(tmp_path: Path, crash: bool) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("runs", sim=LONG)
        await rig.until("runs", "running")
        with rig.db.begin() as tx:  # stored, and then everything was killed before it was acted on
            tx.drains.put(_stored())
        if crash:
            rig.crash()
            await rig.start()
        else:
            await rig.restart()
        await waits(rig, "runs")
        assert [n.conditions[0].kind for n in await rig.platform.nodes.list()] == ["Drained"]


def _stored() -> NodeDrain:
    return NodeDrain("n1", "a new kernel", "admin", 1.0, evict=True)


async def test_a_job_that_was_just_admitted_there_goes_too(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        start, late = rig.executor.start, []

        async def slow(spec: LaunchSpec, epoch: int = 0) -> None:
            if not late and spec.placement[0] == "n1":
                late.append(spec.attempt)
                await drained(rig, evict=True)
            await start(spec, epoch)

        rig.executor.start = slow  # type: ignore[method-assign]
        await rig.submit("a", workers=3, sim=LONG)
        await until(lambda: _is_in(late), what="the job to be told to start")
        rig.executor.set_node(node("n2"))
        await goes_to(rig, "a", "n2")
        await rig.until("a", "running")


async def test_servers_on_a_drained_node_are_listed_and_ended_on_request_and_none_starts_there(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        ended: list[tuple[str, str]] = []

        async def end(user: str, server: str) -> None:
            ended.append((user, server))

        rig.platform.drains.end_server = end
        asked = ResourceRequestTry("ann/", "sp", "request", "default", user="ann", cpu=1, ram=10)
        await rig.platform.ledger.try_(asked)
        await rig.platform.ledger.confirm(ResourceRequestKey("ann/", "sp"))
        assert stops(await drained(rig)) == [("server", "ann", "", 1, 1)]
        assert not ended
        await drained(rig, evict=True)
        await drained(rig, evict=True)
        assert ended == [("ann", "")]
        with pytest.raises(Refused) as refused:
            await rig.platform.ledger.try_(replace_id(asked, "bob/"))
        assert refused.value.reason is Reason.WAITING_FOR_RESOURCES


def replace_id(asked: ResourceRequestTry, name: str) -> ResourceRequestTry:
    return ResourceRequestTry(
        name, asked.applier, asked.request_type, asked.tenant, user="bob", cpu=1, ram=10
    )


async def test_unknown_nodes_and_those_of_a_cluster_are_refused(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        for act in (
            drained(rig, "n9"),
            rig.platform.drains.preview("n9"),
            rig.platform.drains.give_back("n9", "admin"),
        ):
            with pytest.raises(Refused, match="node n9 does not exist"):
                await act
        rig.executor.drains = False
        with pytest.raises(Refused, match="kubectl drain n1"):
            await drained(rig)
        assert await rig.db.read(lambda tx: tx.drains.all()) == []


async def test_a_drained_node_that_went_away_for_good_can_be_returned(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        rig.executor.set_node(node("n2"))
        await drained(rig, "n2")
        rig.executor.remove_node("n2")
        assert (await rig.platform.drains.give_back("n2", "admin")).drain is None
        with pytest.raises(Refused):
            await rig.platform.drains.preview("n2")


async def _is_in(found: list[str]) -> bool:
    return bool(found)
