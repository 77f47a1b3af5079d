"""Curves over time show what happened: of the caches of the leader, once each, with gaps where nobody looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.platform.over_time import OverTime
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.over_time.grains import GRAINS
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.simulated.executor import SimulatedExecutor
from mlp_hub.service.monitoring import service as monitoring
from mlp_hub.service.over_time import sampling
from mlp_hub.service.over_time.happened import JobEvents, answers_since
from mlp_hub.service.over_time.service import OverTimeService
from mlp_hub.store.errors import StoreUnavailable
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

STEP = GRAINS[0].seconds


@pytest.fixture(autouse=True)
def _each_sample_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 0.0)


class Sampled:
    """Curves of a platform at times that the test sets."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.now = rig, rig.clock() // 3600 * 3600 + 1800.0
        self.over_time: OverTimeService = rig.platform.over_time
        self._set()

    def _set(self) -> None:
        self.over_time._clock = self.over_time.sampler._clock = lambda: self.now

    async def sample(self, after: float = STEP) -> bool:
        self.now += after
        return await self.over_time.sampler.sample()

    async def restart(self) -> None:
        await self.rig.restart()
        self.over_time = self.rig.platform.over_time
        self._set()

    async def of(self, tenant: str | None, span: str = "hour", step: int | None = STEP) -> OverTime:
        if tenant is None:
            return await self.over_time.of_cluster(span, step)
        return await self.over_time.of_tenant(tenant, span, step)


def held(found: OverTime, dimension: str = "cpu") -> list[float | None]:
    return next(one for one in found.amounts if one.dimension == dimension).held


def limit(found: OverTime) -> list[float | None]:
    return found.amounts[0].limit


async def test_a_teams_jobs_are_in_its_curves_and_in_those_of_the_cluster(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=3))
        await rig.platform.tenants.set_member("red", "ann")
        sampled = Sampled(rig)
        assert await sampled.sample()
        await rig.submit("long", tenant="red", cpu=2, ram=1024, sim={"DURATION": 600})
        await rig.until("long", "running")
        await rig.submit("second", tenant="red", cpu=2, sim={"DURATION": 600})

        async def waits() -> bool:
            return bool(rig.platform.admission.last_said)

        await until(waits)
        await rig.submit("bad", sim={"DURATION": 0.05, "EXIT": 1})
        await rig.until("bad", "failed")
        assert await sampled.sample()
        assert not await sampled.sample(after=1), "this moment has its sample"
        red, blue, all_ = await sampled.of("red"), await sampled.of("default"), await sampled.of(None)
        assert red.samples[-2:] == [1, 1]
        assert set(red.samples[:-2]) == {0}
        assert held(red)[-3:] == [None, 0.0, 2.0]
        assert held(red, "ram")[-1] == 1024
        assert limit(red)[-3:] == [None, 3.0, 3.0], "also of the moment in which there was nothing to tell"
        assert (red.waiting[-1], red.running[-1], red.admitted[-1]) == (1, 1, 2)
        assert [(one.reason, one.waiting[-2:]) for one in red.reasons] == [("WaitingForQuota", [0.0, 1.0])]
        assert red.wait_p50_s[-2] is None
        assert red.wait_p50_s[-1] is not None
        assert (red.failed[-1], blue.failed[-1], all_.failed[-1]) == (1, 0, 1)
        assert (all_.admitted[-1], all_.total.admitted, all_.total.failed) == (2, 2, 1)
        assert limit(all_)[-1] == 4.0, "what the nodes have"
        assert held(all_)[-1] == 2.0
        assert [one.reason for one in all_.reasons] == ["WaitingForQuota"]
        assert (await sampled.of("red", "day", None)).total == red.total
        assert (await sampled.of("red", "month", None)).total.admitted == 2


async def test_idle_teams_cost_no_row_and_a_changed_quota_is_told(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for name in ("red", "blue"):
            await rig.platform.tenants.create(TenantCreate(name=name, cpu=3))
        sampled = Sampled(rig)
        await sampled.sample()

        await rig.platform.tenants.update("red", TenantUpdate(cpu=7))
        await sampled.sample()
        await sampled.sample()
        rows = rig.db.read_now(lambda tx: tx.over_time.between(STEP, 0, 2**31 - 1))
        assert sorted(one.tenant for one in rows) == ["", "", "", "red"]
        assert limit(await sampled.of("red"))[-3:] == [7.0, 7.0, 7.0]
        await rig.platform.tenants.delete("red", actor="root")
        rows = rig.db.read_now(lambda tx: tx.over_time.between(STEP, 0, 2**31 - 1))
        assert {one.tenant for one in rows} == {""}


async def test_a_restart_leaves_a_gap_and_tells_nothing_twice(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        sampled = Sampled(rig)
        await sampled.sample()
        await rig.submit("bad", sim={"DURATION": 0.05, "EXIT": 1})
        await rig.until("bad", "failed")
        await rig.submit("runs", cpu=1, sim={"DURATION": 600})
        await rig.until("runs", "running")
        await sampled.sample()
        await sampled.restart()
        assert not await sampled.sample(after=0), "another replica has sampled this moment"
        await sampled.sample(after=10 * STEP)
        found = await sampled.of("default")
        assert held(found)[-11:] == [1.0, *[None] * 9, 1.0]
        assert (found.total.failed, found.total.admitted) == (1, 2)


async def test_events_that_could_not_be_stored_are_a_part_of_the_next_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        sampled = Sampled(rig)
        await sampled.sample()
        await rig.submit("bad", sim={"DURATION": 0.05, "EXIT": 1})
        await rig.until("bad", "failed")

        def full(*_: object) -> bool:
            raise StoreUnavailable("full")

        with monkeypatch.context() as context:
            context.setattr(sampling, "store_sample", full)
            with pytest.raises(StoreUnavailable):
                await sampled.sample()
        assert await sampled.sample()
        found = await sampled.of("default")
        assert found.failed[-3:] == [0, None, 1]


async def test_the_future_of_a_wrong_clock_is_not_shown(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("runs", cpu=1, sim={"DURATION": 600})
        await rig.until("runs", "running")
        sampled = Sampled(rig)
        await sampled.sample()
        await sampled.sample(after=600)
        await sampled.sample(after=-600 + STEP)
        for span in ("hour", "day", "week", "month"):
            found = await sampled.of("default", span, None)
            assert sum(found.samples) == 2, span
        assert held(await sampled.of("default"))[-2:] == [1.0, 1.0]


async def test_samples_are_taken_by_the_leader_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "FINEST_S", 0.05)
    monkeypatch.setattr(sampling, "MARGIN_S", 0.0)
    async with running_rig(tmp_path) as rig:

        def samples() -> int:
            return len(rig.db.read_now(lambda tx: tx.over_time.between(STEP, 0, 2**40)))

        async def sampled() -> bool:
            return samples() > 2

        await until(sampled)
        await rig.platform.over_time.stop()
        there = samples()
        assert not rig.platform.over_time.sampler._task.is_running
        assert samples() == there


def test_answers_of_apps_count_from_one_look_to_the_next() -> None:
    before = AppUse(0.0, 10, 1, bounds_ms=(5, 50), latency=(8, 1, 1))
    now = replace(before, requests=16, errors=2, latency=(11, 2, 3))
    found = answers_since(before, now)
    assert (found.requests, found.errors, found.latency) == (6, 1, {5: 3, 50: 1, -1: 2})
    assert answers_since(None, before).requests == 10
    assert answers_since(now, before).requests == 0, "another gateway, or a new team of this name"
    other = replace(now, bounds_ms=(7, 70))
    assert (answers_since(before, other).requests, answers_since(before, other).latency) == (6, {})
    assert JobEvents().ends_of("red") == (0, 0, 0)


async def test_apps_of_a_team_are_in_its_curves(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        sampled = Sampled(rig)
        use = AppUse(0.0, 100, 0, last=1.0, bounds_ms=(5, 50), latency=(90, 10, 0))
        await rig.platform.app_usage.store_report([("tenant", "default", "run", use)], [])
        await sampled.sample()
        more = replace(use, requests=200, errors=10, last=2.0, latency=(100, 99, 1))
        await rig.platform.app_usage.store_report([("tenant", "default", "run", more)], [])
        await sampled.sample()
        found = await sampled.of("default")
        assert (found.requests[-1], found.errors[-1]) == (100, 10)
        assert (found.latency_p50_ms[-1], found.latency_p99_ms[-1]) == (50, 50)
        assert found.total.requests == 100
        assert (await sampled.of(None)).requests[-1] == 100


async def test_samples_request_nothing_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[bool] = []

    async def node_use(_: SimulatedExecutor, *, known: bool = False) -> Sequence[NodeUse]:
        requested.append(not known)
        return ()

    monkeypatch.setattr(SimulatedExecutor, "node_use", node_use)
    async with running_rig(tmp_path) as rig:
        requested.clear()
        assert await Sampled(rig).sample()
        assert requested == [False]
        await rig.platform.monitoring.samples(frozenset())
        assert requested == [False, True]  # alerts judge the present use
