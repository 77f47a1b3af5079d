"""Nodes join, are cordoned, tainted, lost and come back while gangs wait: who fits starts at once, and nobody where it may not."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import Job
from mlp_api.types import ResourceRequestTry, TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.nodes import Condition, ConditionKind, Effect, Taint
from support.rigs.platform_rig import FAST, Rig, node, running_rig
from support.waiting import until

BY_EVENTS = replace(FAST, cycle_every_s=600.0)
"""So long apart cycles come by themselves: what starts sooner was told."""
LONG = {"DURATION": 60}
GPUS = Taint("gpu", "only")


def on(job: Job) -> list[str]:
    return sorted({rank.node for rank in job.ranks})


async def waits(rig: Rig, *names: str) -> None:
    """Return once a cycle has seen these jobs and let them wait."""

    async def told() -> bool:
        jobs = [await rig.platform.jobs.get(SYSTEM, "ann", name) for name in names]
        return all(job.position is not None for job in jobs)

    await until(told, what=f"{names} to wait")


async def shown(rig: Rig, name: str) -> tuple[bool, bool, list[tuple[str, str]], list[str]]:
    [found] = [one for one in await rig.platform.nodes.list() if one.name == name]
    conditions = [(c.kind, c.message) for c in found.conditions]
    return found.up, found.schedulable, conditions, [f"{t.key}={t.value}:{t.effect}" for t in found.taints]


async def test_a_gang_that_fits_nowhere_starts_when_a_node_joins(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        rig.executor.set_node(node("n2", cpu=2))
        await rig.submit("gang", workers=6, sim=LONG)
        await rig.submit("wide", workers=6, sim=LONG)
        await rig.until("gang", "running")
        await waits(rig, "wide")
        rig.executor.set_node(node("n3", cpu=9))
        assert on(await rig.until("wide", "running")) == ["n3"]


async def test_a_cordoned_node_keeps_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("runs", sim=LONG)
        await rig.until("runs", "running")
        rig.executor.cordon("n1", "drained for a new kernel")
        await rig.submit("later", sim=LONG)
        await waits(rig, "later")
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "runs")).phase == "running"
        assert await shown(rig, "n1") == (True, False, [("Cordoned", "drained for a new kernel")], [])
        rig.executor.restore_node("n1")
        await rig.until("later", "running")
        assert await shown(rig, "n1") == (True, True, [], [])


@pytest.mark.parametrize(
    "kind", [k for k in ConditionKind if k not in (ConditionKind.NOT_READY, ConditionKind.ABSENT)]
)
async def test_a_node_with_anything_wrong_takes_nothing_new(tmp_path: Path, kind: ConditionKind) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        wrong = (Condition(kind, "told by the node"),)
        rig.executor.set_node(replace(node("n1", cpu=8), conditions=wrong))
        rig.executor.set_node(node("n2", cpu=1))
        await rig.submit("a", sim=LONG)
        assert on(await rig.until("a", "running")) == ["n2"]
        await rig.submit("b", sim=LONG)
        await waits(rig, "b")
        assert await shown(rig, "n1") == (True, False, [(kind.value, "told by the node")], [])


@pytest.mark.parametrize(
    ("effect", "starts"),
    [(Effect.NO_SCHEDULE, False), (Effect.NO_EXECUTE, False), (Effect.PREFER_NO_SCHEDULE, True)],
)
async def test_a_taint_keeps_gangs_off_until_it_is_taken_away(
    tmp_path: Path, effect: Effect, starts: bool
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("first", workers=4, sim=LONG)
        await rig.until("first", "running")
        await rig.submit("gang", workers=2, sim=LONG)
        await waits(rig, "gang")
        rig.executor.taint("n1", replace(GPUS, effect=effect))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "first")
        await rig.until("first", "cancelled")
        if not starts:
            await rig.submit("behind", sim=LONG)
            await waits(rig, "gang", "behind")
            assert await shown(rig, "n1") == (True, True, [], [f"gpu=only:{effect.value}"])
            rig.executor.taint("n1")
        await rig.until("gang", "running")


async def test_a_node_that_is_left_to_a_tenant_takes_its_gangs_and_servers_alone(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        for tenant in ("red", "blue"):
            await rig.platform.tenants.create(TenantCreate(name=tenant, cpu=100))
            await rig.platform.tenants.set_member(tenant, "ann")
        rig.executor.taint("n1", Taint("tenant", "red"))
        await rig.submit("blues", tenant="blue", workers=2, sim=LONG)
        await rig.submit("reds", tenant="red", workers=2, sim=LONG)
        await rig.until("reds", "running")
        await waits(rig, "blues")

        async def serve(tenant: str) -> None:
            asked = ResourceRequestTry(f"nb-{tenant}", "sp", "request", tenant, user="ann", cpu=1, ram=10)
            await rig.platform.ledger.try_(asked)

        await serve("red")
        with pytest.raises(Refused) as refused:
            await serve("blue")
        assert refused.value.reason is Reason.WAITING_FOR_RESOURCES
        rig.executor.taint("n1", Taint("tenant", "blue"))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "reds")
        await rig.until("blues", "running")


async def test_a_job_from_a_lost_node_restarts_elsewhere_before_jobs_waiting_behind_it(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        rig.executor.set_node(node("n2"))
        for name in ("a", "b"):
            await rig.submit(name, workers=4, sim=LONG)
            await rig.until(name, "running")
        await rig.submit("c", workers=4, sim=LONG)
        await waits(rig, "c")
        [lost] = on(await rig.platform.jobs.get(SYSTEM, "ann", "a"))
        rig.executor.lose_node(lost)
        await waits(rig, "a", "c")
        assert (await shown(rig, lost))[:2] == (False, False)
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "a")).position == 1
        rig.executor.restore_node(lost)
        again = await rig.until("a", "running")
        assert (on(again), again.restarts) == ([lost], 1)
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "c")).phase == "queued"


async def test_a_node_that_is_taken_away_for_good_takes_what_runs_there_along_and_another_takes_its_place(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        await rig.submit("a", workers=2, sim=LONG)
        await rig.until("a", "running")
        await rig.submit("b", workers=4, sim=LONG)
        await waits(rig, "b")
        rig.executor.remove_node("n1")
        await waits(rig, "a", "b")
        assert await rig.platform.nodes.list() == []
        rig.executor.set_node(node("spot-7", cpu=6))
        assert [on(await rig.until(name, "running")) for name in ("a", "b")] == [["spot-7"]] * 2


async def test_a_node_that_goes_between_admission_and_start_costs_no_retry(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        start = rig.executor.start

        async def late(spec: LaunchSpec, epoch: int = 0) -> None:
            if spec.placement == ("n1", "n1"):
                rig.executor.remove_node("n1")
            await start(spec, epoch)

        rig.executor.start = late  # type: ignore[method-assign]
        await rig.submit("a", workers=2, sim=LONG)
        await until(lambda: _gone(rig, "n1"), what="the node to go")
        rig.executor.set_node(node("n2"))
        job = await rig.until("a", "running")
        assert (on(job), job.restarts, job.failure) == (["n2"], 1, None)


async def _gone(rig: Rig, name: str) -> bool:
    return name not in [n.name for n in rig.executor.nodes()]


@pytest.mark.parametrize("how", ["cordoned", "tainted", "down"])
async def test_a_job_that_only_temporary_states_prevent_is_accepted_and_waits(
    tmp_path: Path, how: str
) -> None:
    async with running_rig(tmp_path, policy=BY_EVENTS) as rig:
        match how:
            case "cordoned":
                rig.executor.cordon("n1")
            case "tainted":
                rig.executor.taint("n1", GPUS)
            case _:
                rig.executor.lose_node("n1")
        await rig.submit("a", workers=4, sim=LONG)
        await waits(rig, "a")
        why = await rig.platform.jobs.why(SYSTEM, "ann", "a")
        assert [v.reason for v in why.reasons] == [Reason.WAITING_FOR_RESOURCES.value]
        rig.executor.set_node(node("n1"))
        await rig.until("a", "running")


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_nodes_do_meanwhile_every_gang_runs_in_the_end(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    async with running_rig(tmp_path, node("n1"), node("n2")) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=100))
        await rig.platform.tenants.set_member("red", "ann")
        names: list[str] = []
        for step in range(60):
            happen(rig, rng)
            if rng.random() < 0.5:
                names.append(f"j{step}")
                sim = {"DURATION": rng.uniform(0.01, 0.1)}
                with contextlib.suppress(Refused):  # it may fit no node that is there now
                    tenant = rng.choice(["red", "default"])
                    await rig.submit(names[-1], workers=rng.randint(1, 4), tenant=tenant, sim=sim)
            await asyncio.sleep(rng.uniform(0, 0.01))
        for name in ("n1", "n2", "n3"):
            rig.executor.set_node(node(name))
        jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann", limit=1000)
        assert jobs
        for job in jobs:
            await rig.until(job.name, "finished")
        assert all(rig.held(tenant) == ZERO for tenant in ("red", "default"))


def happen(rig: Rig, rng: random.Random) -> None:
    """Let something happen to a node."""
    here: Sequence[str] = [one.name for one in rig.executor.nodes()]
    name = rng.choice(["n1", "n2", "n3"])
    if name not in here:
        rig.executor.set_node(node(name, cpu=rng.choice([2, 4])))
        return
    match rng.randrange(6):
        case 0:
            rig.executor.cordon(name)
        case 1:
            rig.executor.taint(name, *rng.choice([(), (GPUS,), (Taint("tenant", "red"),)]))
        case 2:
            rig.executor.lose_node(name)
        case 3:
            rig.executor.remove_node(name)
        case _:
            rig.executor.restore_node(name)
