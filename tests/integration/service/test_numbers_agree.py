"""Every place that shows a figure of jobs agrees with the ledger: pages of all and of a team, the queue, runs, and use."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.accounting.sums import UsageAsked
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until

TEAMS = ("red", "blue")
LONG = {"DURATION": 600}


async def some_work(rig: Rig, chance: random.Random) -> None:
    """Let some jobs of two teams end, run and wait, a server run and another one wait, each for some time."""
    for name in TEAMS:
        await rig.platform.tenants.create(api.TenantCreate(name=name, cpu=4.0, ram=4000))
        await rig.platform.tenants.set_member(name, f"{name}-user")
    for n in range(chance.randint(4, 8)):
        team, cores = chance.choice(TEAMS), float(chance.randint(1, 2))
        user, name = f"{team}-user", f"ended-{n}"
        await rig.submit(name, user, tenant=team, cpu=cores, sim={"DURATION": chance.random() / 4})
        await rig.until(name, "finished", user=user)
    for team in TEAMS:
        user = f"{team}-user"
        asked = api.ResourceRequestTry(
            id=f"{user}/", applier="sp", request_type="request", tenant=team, cpu=1.0, ram=100, user=user
        )
        assert await rig.platform.ledger.try_(asked) is not None
        await rig.platform.ledger.confirm(api.ResourceRequestKey(id=asked.id, applier=asked.applier))
        for n in range(chance.randint(2, 6)):
            await rig.submit(f"now-{n}", user, tenant=team, cpu=1.0, sim=LONG)
        for n in range(2):
            await rig.until(f"now-{n}", "running", user=user)


@pytest.mark.parametrize("seed", range(3))
async def test_pages_of_all_and_of_teams_the_queue_and_runs_say_the_same(tmp_path: Path, seed: int) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await some_work(rig, random.Random(seed))
        # from here on no time passes, or jobs that run would hold more with each question
        rig.stands_at = rig.clock()
        p = rig.platform
        overview, entries = await p.overview.now(), await p.cluster_queue.entries()
        teams = {one.name: one for one in await p.tenants.list()}
        # counts: of jobs, and servers by themselves
        holding = dict.fromkeys(teams, 0)
        waiting = dict(holding)
        for entry in entries:
            assert entry.kind == "job"
            of = waiting if entry.phase == "queued" else holding
            of[entry.tenant] += 1
        assert {name: (one.running, one.waiting) for name, one in teams.items()} == {
            name: (holding[name], waiting[name]) for name in teams
        }
        assert (overview.running, overview.waiting) == (sum(holding.values()), sum(waiting.values()))
        assert (overview.servers, overview.servers_waiting, overview.replicas, overview.apps) == (2, 0, 0, 0)
        # amounts: what is held is the ledger's sum
        held = rig.db.read_now(lambda tx: tx.ledger.in_use_by_tenant(rig.clock()))
        for name in TEAMS:
            assert teams[name].cpu_inuse == held[name].cpu / 1000
            usage = await p.tenants.usage(name)
            assert usage.tenant.cpu_inuse == teams[name].cpu_inuse
            assert sum(one.cpu for one in usage.holdings) == pytest.approx(teams[name].cpu_inuse)
            # core-hours: the team's page, the page of use, and the runs
            today = int(rig.clock() // DAY_S)
            asked = UsageAsked(today - 7, today + 1, ("work",), {"tenant": name})
            lines = {line.work: line for line in (await p.accounting.lines(asked, limit=100)).lines}
            assert usage.jobs.cpu_hours == pytest.approx(lines["job"].core_s / 3600, abs=1e-6)
            assert usage.jobs.cpu_hours == pytest.approx(held_hours(rig, name), abs=1e-6)
            # a run counts from its start: what it held before is not in its own sum
            found = await p.runs.search(SYSTEM, user=f"{name}-user")
            ran = sum(run.core_hours or 0 for run in found.runs)
            assert 0 < ran <= usage.jobs.cpu_hours + 1e-5


def held_hours(rig: Rig, tenant: str) -> float:
    """Return the core-hours that jobs of a tenant held until now, by the ledger's own rows."""
    ended = "SELECT cpu, begins, ends FROM ledger_span WHERE tenant = ? AND applier = 'jm'"
    lasting = "SELECT cpu, since, ? FROM resource_request WHERE tenant = ? AND applier = 'jm' AND phase = 'confirmed'"

    def rows(tx: Tx) -> list[tuple[int, float, float]]:
        run = tx.connection.exec_driver_sql
        return [*run(ended, (tenant,)).all(), *run(lasting, (rig.clock(), tenant)).all()]

    found: list[tuple[int, float, float]] = rig.db.read_now(rows)
    return sum(cpu / 1000 * (until - since) for cpu, since, until in found) / 3600.0


async def test_one_peak_of_memory_is_in_the_list_of_runs_its_page_the_job_and_the_advice(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("digits", sim={"DURATION": 0.05, "RAM": 165})
        ended = await rig.until("digits", "finished")
        of_job = max(rank.ram_peak or 0 for rank in ended.ranks)
        assert of_job == 165

        async def summed_up() -> bool:
            final: bool = rig.db.read_now(lambda tx: tx.runs.summary(ended.uid)).final
            return final

        await until(summed_up, what="the run to be summed up")
        (row,) = (await rig.platform.runs.search(SYSTEM, user="ann")).runs
        page = (await rig.platform.runs.get(SYSTEM, "ann", "digits")).run
        assert (row.ram_peak, page.ram_peak) == (of_job, of_job)
        (again,) = (await rig.platform.jobs.get(SYSTEM, "ann", "digits")).ranks
        assert again.ram_peak == of_job
