"""Starts and ends told from earlier runs, and how often the real start fell inside."""

from __future__ import annotations

from pathlib import Path

from mlp_api.apps.apps import AppCreate
from mlp_api.jobs.earlier_runs import RunForecast
from mlp_api.jobs.jobs import Job
from mlp_api.jobs.sweeps import SweepCreate
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.forecast.calibration import KEY
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until


async def finished(rig: Rig, name: str, times: int) -> None:
    for _ in range(times):
        await rig.submit(name, workers=4, sim={"DURATION": 0.05})
        await rig.until(name, "finished")


async def runs(rig: Rig) -> Job:
    """Run a job like the earlier ones, but without end."""
    await rig.submit("train", workers=4, sim={"DURATION": 60})
    await rig.until("train", "running")
    return await rig.platform.jobs.get(SYSTEM, "ann", "train")


async def test_one_earlier_run_tells_nothing_and_two_tell_a_range(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 1)
        assert (await runs(rig)).forecast is None
        await rig.submit("next", workers=4, sim={"DURATION": 1})
        why = await rig.platform.jobs.why(SYSTEM, "ann", "next")
        assert (why.expected_start, why.forecast) == (None, None)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "next")
        await rig.platform.jobs.cancel(SYSTEM, "ann", "train")
        await rig.until("train", "cancelled")
        await finished(rig, "train", 1)
        await runs(rig)
        await rig.submit("next", workers=4, sim={"DURATION": 1})
        why = await rig.platform.jobs.why(SYSTEM, "ann", "next")
        assert why.expected_start is None, "it keeps its meaning: by limits"
        assert why.forecast is not None
        assert why.forecast.start is not None
        assert why.forecast.start.p10 <= why.forecast.start.p50 <= why.forecast.start.p90
        assert str(why.forecast.because) == "estimated from earlier runs of 1 other job"

        async def told() -> bool:
            # as of the last look ahead, of which one follows a submission
            entries = await rig.platform.cluster_queue.entries()
            return {e.name: e.forecast is not None for e in entries} == {"train": True, "next": True}

        await until(told)


async def test_the_preview_of_a_sweep_has_the_range_of_its_start_and_no_end_of_one_trial(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 2)
        await finished(rig, "search", 2)
        asked = SweepCreate(name="search", code="x", cpu=1, ram=100, workers=4, grid={"x": [1, 2]})
        free = await rig.platform.sweeps.preview(SYSTEM, "ann", asked)
        assert free.expected_start is not None
        await runs(rig)
        told = await rig.platform.sweeps.preview(SYSTEM, "ann", asked)
        assert told.expected_start is None, "by limits nothing is known"
        assert told.forecast is not None
        assert told.forecast.start is not None
        assert told.forecast.start.p10 <= told.forecast.start.p90
        assert told.forecast.end is None


async def test_a_replica_that_waits_has_the_range_of_its_start(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 2)
        await runs(rig)
        asked = AppCreate(name="notes", model_name="", command="python3 -m http.server", cpu=4, ram=100)
        await rig.platform.apps.deploy(SYSTEM, "ann", asked)

        async def waits() -> RunForecast | None:
            app = await rig.platform.apps.get(SYSTEM, "ann", "notes")
            return next((one.forecast for one in app.running if one.forecast is not None), None)

        told = await until(waits, what="the range of a replica")
        assert told.start is not None
        assert str(told.because) == "estimated from earlier runs of 1 other job"


async def test_a_job_that_runs_longer_than_its_earlier_runs_says_so(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 3)
        await runs(rig)

        async def says_so() -> bool:
            told = (await rig.platform.jobs.get(SYSTEM, "ann", "train")).forecast
            return told is not None and str(told.because) == "it has run longer than its 3 earlier runs"

        await until(says_so)
        told = (await rig.platform.jobs.get(SYSTEM, "ann", "train")).forecast
        assert told is not None
        assert (told.start, told.end, told.runs) == (None, None, 3)


async def test_earlier_runs_are_known_after_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 2)
        rig.crash()
        await rig.start()
        await rig.platform.forecasts.past.loaded()
        told = (await runs(rig)).forecast
        assert told is not None
        assert told.runs == 2


async def test_failed_and_cancelled_runs_are_not_run_times(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for _ in range(2):
            await rig.submit("train", workers=4, sim={"DURATION": 0.05, "EXIT": 3})
            await rig.until("train", "failed")
        assert (await runs(rig)).forecast is None


async def test_a_start_is_compared_with_its_forecast_and_the_count_outlives_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 2)
        await runs(rig)
        await rig.submit("next", workers=4, sim={"DURATION": 0.05})
        assert (await rig.platform.jobs.why(SYSTEM, "ann", "next")).forecast is not None
        await rig.platform.jobs.cancel(SYSTEM, "ann", "train")
        await rig.until("next", "finished")
        counted = (await rig.platform.overview.now()).forecasts
        assert counted.before + counted.inside + counted.after == 1
        assert counted.since is not None

        async def stored() -> bool:
            return await rig.platform.db.read(lambda tx: tx.settings.get(KEY)) is not None

        await until(stored)
        rig.crash()
        await rig.start()
        assert (await rig.platform.overview.now()).forecasts == counted


async def test_a_torn_count_begins_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for torn in ("x", {"inside": -1}, {"inside": "many"}, [1], None):
            await rig.platform.db.write(lambda tx, torn=torn: tx.settings.put(KEY, torn))
            rig.crash()
            await rig.start()
            found = (await rig.platform.overview.now()).forecasts
            assert (found.since, found.before, found.inside, found.after) == (None, 0, 0, 0)


async def test_a_user_who_leaves_leaves_no_run_times(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await finished(rig, "train", 2)
        assert await rig.platform.forecasts.past.remove("ann")
        assert (await runs(rig)).forecast is None
