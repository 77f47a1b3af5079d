"""Why a job waits, where very much waits: the same answer, made elsewhere than in the event loop, within a bound."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_api.types import TenantCreate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.ranges import Past
from mlp_hub.scheduler.forecast.why import explain_planned
from mlp_hub.scheduler.model.types import Why
from mlp_hub.service.forecast import service
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.said import seen
from support.waiting import until

MANY = replace(FAST, large_cycle=5)


async def crowd(rig: Rig) -> None:
    """One core is free; each of many waiting jobs asks for two."""
    await rig.submit("busy", workers=3, sim={"DURATION": 60})
    await rig.until("busy", "running")
    for n in range(9):
        await rig.submit(f"w{n}", workers=2, sim={"DURATION": 1})

    async def all_seen() -> bool:
        return (await rig.platform.jobs.why(SYSTEM, "ann", "w0")).queue_length == 9

    await until(all_seen)


async def test_many_waiting_jobs_get_what_would_start_them_now_outside_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noting(core: Core, uid: str, now: float, past: Past) -> Why | None:
        asked.append(threading.current_thread().name)
        return explain_planned(core, uid, now, past)

    monkeypatch.setattr(service, "explain_planned", noting)

    async with running_rig(tmp_path, policy=MANY) as rig:
        await crowd(rig)
        why = await rig.platform.jobs.why(SYSTEM, "ann", "w0")
        assert (why.would_start_now, str(why.cut_short)) == (["--workers 1", "--cpu 0.5"], "")
        assert (why.position, why.queue_length) == (1, 9)
        assert asked
        assert threading.main_thread().name not in asked


async def test_where_the_bound_is_reached_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlp_hub.scheduler.forecast.why.MOST_TRYING", 0)

    async with running_rig(tmp_path, policy=MANY) as rig:
        await crowd(rig)
        why = await rig.platform.jobs.why(SYSTEM, "ann", "w0")
        assert why.would_start_now == []
        assert (
            str(why.cut_short)
            == "with 9 waiting jobs, no smaller request was tried: one that starts now is possible"
        )


async def test_a_list_shows_the_expected_start_of_each_job_or_why_it_is_unknown(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("limited", workers=2, time_limit=100, sim={"DURATION": 60})
        await rig.submit("endless", workers=2, sim={"DURATION": 60})
        await rig.until("limited", "running")
        await rig.until("endless", "running")
        await rig.submit("soon", workers=2, time_limit=50, sim={"DURATION": 1})
        await rig.submit("never", workers=4, sim={"DURATION": 1})

        async def all_told() -> dict[str, tuple[bool, str]] | None:
            queue = await rig.platform.cluster_queue.entries()
            told = {e.name: (e.expected_start is not None, str(e.expected_because)) for e in queue}
            return told if all(told[name][1] for name in ("soon", "never")) else None

        told = await until(all_told)
        assert told == {
            "limited": (False, ""),
            "endless": (False, ""),
            "soon": (True, "job limited of ann ends by then at the latest"),
            "never": (False, "no time can be estimated: job endless of ann has no time limit"),
        }


async def test_a_list_names_no_job_of_another_tenant(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"))
        await rig.platform.tenants.set_member("red", "bob", "member")
        await rig.submit("secret", "bob", tenant="red", workers=4, time_limit=100, sim={"DURATION": 60})
        await rig.until("secret", "running", user="bob")
        await rig.submit("mine", workers=2, sim={"DURATION": 1})

        async def told() -> str:
            found = [
                seen(e.expected_because, "default")
                for e in await rig.platform.cluster_queue.entries("default")
            ]
            return found[0] if found else ""

        assert await until(told) == "a job of another team ends by then at the latest"
