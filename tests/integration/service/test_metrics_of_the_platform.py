"""Metrics tell what the platform does, cost nothing per job, and nothing where nobody scrapes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.types import TenantCreate
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.monitoring import gauges
from mlp_hub.service.monitoring import service as monitoring
from mlp_hub.service.monitoring.look import DatabaseLook
from mlp_hub.service.monitoring.table import METRICS
from support.monitoring.scraped import OPEN_METRICS, Scraped
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

GIB = 2.0**30


@pytest.fixture(autouse=True)
def _each_scrape_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 0.0)
    monkeypatch.setattr(monitoring, "SHARED_S", 0.0)


async def scraped(rig: Rig, accept: str = "") -> Scraped:
    text, _ = await rig.platform.monitoring.scrape(accept)
    return Scraped(text.decode(), is_open=bool(accept))


async def test_a_job_leaves_its_traces(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=3))
        before = await scraped(rig)
        assert before.value("mlp_jobs_submitted_total", tenant="red") == 0
        assert before.value("mlp_jobs_ended_total", tenant="red", result="failed") == 0
        await rig.platform.tenants.set_member("red", "ann")
        job = await rig.submit("long", tenant="red", cpu=2, ram=1024, sim={"DURATION": 600})
        await rig.until("long", "running")
        await rig.submit("second", tenant="red", cpu=2, sim={"DURATION": 600})

        async def waits() -> bool:
            return bool(rig.platform.admission.last_said)

        await until(waits)
        during = await scraped(rig)
        assert during.value("mlp_jobs", phase="running") == 1
        assert during.by("mlp_queue_jobs", "reason") == {"New": 0, "WaitingForQuota": 1}
        age = during.value("mlp_queue_oldest_age_seconds", reason="WaitingForQuota")
        assert age is not None
        assert 0 <= age < 100
        assert during.value("mlp_tenant_quota", tenant="red", resource="cpu") == 3
        assert during.value("mlp_tenant_held", tenant="red", resource="cpu") == 2
        assert during.value("mlp_tenant_held", tenant="red", resource="memory") == GIB
        assert during.value("mlp_node_held", node="n1", resource="memory") == GIB
        assert during.value("mlp_node_capacity", node="n1", resource="memory") == 8 * GIB
        assert during.value("mlp_tenant_jobs", tenant="red", state="waiting") == 1
        assert during.value("mlp_tenant_jobs", tenant="red", state="running") == 1
        assert during.value("mlp_admissions_total", tenant="red") == 1
        assert during.value("mlp_tenant_admission_wait_seconds_count", tenant="red") == 1
        assert during.value("mlp_admission_wait_seconds_count", priority="normal") == 1
        assert during.value("mlp_job_start_seconds_count") == 1
        assert (during.value("mlp_tenant_weighted_share", tenant="red") or 0) > 0
        rig.end(await rig.until("long", "running"))
        await rig.until("long", "finished")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "second")
        await rig.until("second", "cancelled")
        after = await scraped(rig, OPEN_METRICS)
        assert after.value("mlp_jobs_ended_total", tenant="red", result="finished") == 1
        assert after.value("mlp_jobs_ended_total", tenant="red", result="cancelled") == 1
        count = {"phase": "running", "result": "finished"}
        assert after.value("mlp_job_phase_duration_seconds_count", **count) == 1
        assert after.value("mlp_jobs", phase="running") == 0
        assert after.by("mlp_queue_jobs", "reason") == {"New": 0}
        assert job.name == "long"


async def test_failures_and_retries_are_told_apart_by_cause(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("bad", retries=1, sim={"DURATION": 0.05, "EXIT": 1})
        await rig.until("bad", "failed")
        found = await scraped(rig)
        assert found.value("mlp_jobs_failed_total", cause="program-error") == 1
        assert found.value("mlp_jobs_failed_total", cause="node-lost") == 0
        assert found.value("mlp_evictions_total", cause="program-error") == 1
        assert found.value("mlp_jobs_ended_total", tenant="default", result="failed") == 1


async def test_preemption_is_a_decision_and_an_eviction(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("low", workers=4, priority="low", sim={"DURATION": 600, "STOP": 0.05})
        await rig.until("low", "running")
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 600})
        await rig.until("urgent", "running")
        await rig.until("low", "queued")
        found = await scraped(rig)
        assert sum(found.by("mlp_preemptions_total", "reason").values()) == 1
        assert found.value("mlp_evictions_total", cause="preempted") == 1
        assert found.value("mlp_evictions_total", cause="suspended") == 0
        await rig.platform.jobs.suspend(SYSTEM, "ann", "urgent")
        await rig.until("urgent", "suspended")
        assert (await scraped(rig)).value("mlp_evictions_total", cause="suspended") == 1


async def test_points_count_with_their_delay_whatever_time_they_say(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("a", sim={"DURATION": 600})
        await rig.until("a", "running")
        for n, t in enumerate((rig.clock() - 3, 0.0, 1e15), start=1):
            batch = MetricBatch(source="0.0.a", points=[MetricPoint(n=n, t=t, v={"loss": 1.0})])
            await rig.platform.metrics.append(SYSTEM, "ann", "a", batch)
        found = await scraped(rig)
        assert found.value("mlp_points_stored_total") == 3
        total = found.value("mlp_points_delay_seconds_sum")
        assert total is not None
        assert 86_403 <= total < 86_500


async def test_a_restart_begins_at_0_and_states_are_what_they_were(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("done", sim={"DURATION": 0.05})
        await rig.until("done", "finished")
        await rig.submit("runs", sim={"DURATION": 600})
        await rig.until("runs", "running")
        assert (await scraped(rig)).value("mlp_jobs_ended_total", tenant="default", result="finished") == 1
        await rig.restart()
        found = await scraped(rig)
        assert found.value("mlp_jobs_ended_total", tenant="default", result="finished") == 0
        assert found.value("mlp_jobs_submitted_total", tenant="default") == 0
        assert found.value("mlp_jobs", phase="running") == 1
        assert found.value("mlp_tenant_held", tenant="default", resource="cpu") == 1


async def test_a_platform_that_does_not_lead_shows_itself_alone(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("runs", sim={"DURATION": 600})
        await rig.until("runs", "running")
        assert set((await scraped(rig)).by("mlp_replica_info", "replica_role")) <= {"standalone", "leader"}
        standby = rig.make()
        text, _ = await standby.monitoring.scrape("")
        found = Scraped(text.decode())
        assert set(found.by("mlp_replica_info", "replica_role")) == {"follower"}
        assert found.value("mlp_lease_held") == 0
        of_the_leader = {row.name.removesuffix("_total") for row in METRICS if row.of == "the leader"}
        assert not of_the_leader & set(found.families)
        assert "process_resident_memory_bytes" in found.families


async def test_tenants_that_are_gone_are_gone(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=3))
        rig.platform.monitoring.events.request("jobs", "red", 500, 0.1)
        found = await scraped(rig)
        assert found.value("mlp_tenant_request_errors_total", tenant="red") == 1
        await rig.platform.tenants.delete("red", actor="admin")
        found = await scraped(rig)
        assert not [labels for _, labels in found.series if ("tenant", "red") in labels]


async def test_a_scrape_is_flat_in_the_number_of_jobs(tmp_path: Path) -> None:
    """As many series of states, and no pass over the jobs; without an await, so that nothing else looks meanwhile."""

    def cost(rig: Rig) -> tuple[int, int]:
        board, parts, looked = rig.platform.board, rig.platform.monitoring.parts, [0]
        kept = {name: getattr(board, name) for name in ("jobs", "waiting", "holding")}
        for name, jobs in kept.items():
            setattr(board, name, _Counted(jobs, looked))
        families = [
            *gauges.of_queue(parts, rig.clock()),
            *gauges.of_tenants(parts, DatabaseLook(0.0, (red,))),
        ]
        for name, jobs in kept.items():
            setattr(board, name, jobs)
        return sum(len(samples) for _, samples in families), looked[0]

    red = Tenant("default")
    async with running_rig(tmp_path) as rig:
        await rig.submit("first", workers=4, sim={"DURATION": 600})
        await rig.until("first", "running")
        await rig.submit("w", sim={"DURATION": 600})

        async def said(most: int) -> bool:
            return len(rig.platform.admission.last_said) == most

        await until(lambda: said(1))
        few = cost(rig)
        assert few[1] == 0
        for number in range(100):
            await rig.submit(f"w{number}", sim={"DURATION": 600})
        await until(lambda: said(101))
        assert cost(rig) == few
        assert (await scraped(rig)).value("mlp_tenant_jobs", tenant="default", state="waiting") == 101


class _Counted(dict[str, Any]):
    """A dict that counts passes over it."""

    def __init__(self, known: dict[str, Any], looked: list[int]) -> None:
        super().__init__(known)
        self._looked = looked

    def __iter__(self) -> Any:
        self._looked[0] += 1
        return super().__iter__()

    def values(self) -> Any:
        self._looked[0] += 1
        return super().values()

    def items(self) -> Any:
        self._looked[0] += 1
        return super().items()


async def test_the_database_is_looked_at_once_for_many_scrapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 3600.0)
    async with running_rig(tmp_path) as rig:
        await scraped(rig)
        read, looks = rig.db.read, []

        async def noted(fn: Any) -> Any:
            looks.append(fn)
            return await read(fn)

        monkeypatch.setattr(rig.db, "read", noted)
        for _ in range(20):
            await scraped(rig)
        assert [fn for fn in looks if "monitoring" in fn.__module__] == []


async def test_a_database_that_fails_is_a_metric_and_no_failed_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlp_hub.store.errors import StoreUnavailable
    from mlp_language.message import verbatim

    async with running_rig(tmp_path) as rig:
        await scraped(rig)

        async def fails(_: Any) -> Any:
            raise StoreUnavailable(verbatim("no database"))

        writer = rig.db._writer
        assert writer is not None
        monkeypatch.setattr(rig.db, "read", fails)
        monkeypatch.setattr(writer, "trouble", "disk full")
        found = await scraped(rig)
        assert found.value("mlp_problem", component="database", reason="DatabaseUnavailable") == 1
        assert found.value("mlp_tenant_held", tenant="default", resource="cpu") == 0


def test_nothing_of_the_library_is_loaded_before_the_first_scrape() -> None:
    code = "import mlp_hub.app, sys; print(*(m for m in sys.modules if m.startswith('prometheus')))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == ""


async def test_a_look_that_is_soon_too_late_is_renewed_beside_the_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 1000.0)

    async def tenants(rig: Rig, aged_s: float) -> set[str]:
        rig.platform.monitoring._looked -= aged_s
        return set((await scraped(rig)).by("mlp_tenant_jobs", "tenant"))

    async with running_rig(tmp_path) as rig:
        await tenants(rig, 0.0)
        await rig.platform.tenants.create(TenantCreate(name="red", cpu=3))
        assert "red" not in await tenants(rig, 900.0)
        assert "red" not in await tenants(rig, 300.0), "this scrape did not wait for the new look"

        async def renewed() -> bool:
            return "red" in await tenants(rig, 0.0)

        await until(renewed)
        await rig.platform.tenants.create(TenantCreate(name="blue", cpu=3))
        assert "blue" in await tenants(rig, 1500.0), "the last look was too late"
