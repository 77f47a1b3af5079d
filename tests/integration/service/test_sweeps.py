"""Sweeps on a platform: few jobs at a time, stopped early, within the budget, kept through deaths, gone when deleted."""

from __future__ import annotations

import asyncio
import itertools
import math
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate, Provenance
from mlp_api.jobs.sweeps import SweepCreate, SweepExtend
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, node, running_rig
from support.rigs.sweep_rig import LONG, finish, job, once, over, report, sweep
from support.waiting import until


async def test_an_array_is_one_entry_whose_members_know_their_index(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await sweep(rig, array="5-9%2", priority="normal")
        await once(rig, lambda s: s.counts.running == 2, "two to run")
        member = await rig.platform.jobs.get(SYSTEM, "ann", "s.5")
        assert (member.params, member.sweep, member.trial) == ({"index": 5}, "s", 0)
        assert (await rig.platform.jobs.list(SYSTEM, "ann"))[0] == []
        uid = await rig.platform.sweeps.uid_of(SYSTEM, "ann", "s")
        assert {j.name for j in (await rig.platform.jobs.list(SYSTEM, "ann", sweep=uid))[0]} == {"s.5", "s.6"}
        for n in range(5, 10):
            await finish(rig, f"s.{n}")
        ended = await over(rig)
        assert (ended.state, ended.counts.finished) == ("finished", 5)
        assert rig.held() == ZERO


async def test_each_trial_keeps_where_its_sweep_was_submitted_from_also_over_a_crash(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        said = Provenance(commit="a" * 40, dirty=True, environment="numpy==2.0\n")
        await sweep(rig, grid={"lr": [1, 2]}, parallel=1, provenance=said)
        await once(rig, lambda s: s.counts.running == 1, "one to run")
        rig.crash()
        await rig.start()
        await finish(rig, "s.0")
        await job(rig, "s.1", "running")
        for trial in ("s.0", "s.1"):
            found = await rig.platform.runs.get(SYSTEM, "ann", trial)
            assert (found.run.commit, found.run.dirty) == ("a" * 40, True)
            assert found.environment == said.environment


async def test_only_what_fits_and_two_more_are_jobs_at_a_time(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 3)) as rig:
        await sweep(rig, grid={"lr": list(range(30))})
        await once(
            rig, lambda s: s.counts.running == 3 and s.counts.waiting == 2, "three to run and two to wait"
        )
        assert len(rig.platform.board.jobs) <= 5
        await finish(rig, "s.0")
        await once(
            rig, lambda s: (s.counts.finished, s.counts.running, s.counts.waiting) == (1, 3, 2), "the next"
        )
        assert len(rig.platform.board.jobs) <= 5
        cancelled = await rig.platform.sweeps.cancel(SYSTEM, "ann", "s")
        assert cancelled.state == "ending"
        ended = await over(rig)
        assert (ended.state, str(ended.message), len(ended.trials)) == (
            "cancelled",
            "asked to cancel",
            6,
        )
        assert rig.held() == ZERO


async def test_a_trial_that_waits_says_what_for(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 1)) as rig:
        await sweep(rig, grid={"lr": [1, 2]})
        await job(rig, "s.0", "running")
        found = await once(
            rig,
            lambda s: any(str(t.message) for t in s.trials if t.phase == "queued"),
            "to say why its second trial waits",
        )
        assert found.trials[1].phase == "queued"
        why = await rig.platform.jobs.why(SYSTEM, "ann", "s.1")
        assert str(found.trials[1].message) == str(why.reasons[0].message)


async def test_trials_that_others_beat_are_stopped_and_give_their_room_back(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 2)) as rig:
        await sweep(
            rig,
            search={"lr": "loguniform(1e-5, 1)"},
            trials=4,
            metric="acc",
            goal="max",
            stop="asha",
            sampler="random",
        )
        await report(rig, "s.0", 1, 0.9, 0.91)
        await report(rig, "s.1", 1, 0.1)
        stopped = await job(rig, "s.1", "cancelled")
        assert stopped.reason == "StoppedEarly"
        assert (
            str(stopped.message)
            == "stopped early: at step 1 its acc was 0.1, and enough others were as good or better"
        )
        listed = await rig.platform.runs.search(SYSTEM, user="ann", search="state=cancelled")
        (one,) = [run for run in listed.runs if run.name == "s.1"]
        assert (one.phase, one.reason) == ("cancelled", "StoppedEarly"), "the table of runs says it too"
        going = await rig.platform.runs.search(SYSTEM, user="ann", search="state!=cancelled")
        assert {run.reason for run in going.runs} == {None}, "none that goes on has ended for a reason"
        await report(rig, "s.2", 1, 0.2)
        await report(rig, "s.3", 1, 0.95, 0.96)
        await job(rig, "s.2", "cancelled")
        await finish(rig, "s.0")
        await finish(rig, "s.3")
        ended = await over(rig)
        assert [t.state for t in ended.trials] == ["finished", "stopped", "stopped", "finished"]
        assert ended.best is not None
        assert (ended.best.number, ended.best.value, ended.best.steps) == (3, 0.96, 2)
        assert ended.core_hours > 0
        curves = await rig.platform.sweeps.curves(SYSTEM, "ann", "s", 100)
        assert {c.trial: c.points for c in curves}[3] == [[1, 0.95], [2, 0.96]]
        assert len({t.params["lr"] for t in ended.trials}) == 4


async def test_one_that_comes_to_its_end_behind_others_has_finished(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 2)) as rig:
        await sweep(rig, grid={"lr": [1, 2]}, metric="acc", goal="max", stop="asha")
        await report(rig, "s.0", 1, 0.9)
        await report(rig, "s.1", 1, 0.1, progress=100)
        await once(rig, lambda s: s.trials[1].value == 0.1, "to have read the last value")
        await finish(rig, "s.1")
        await finish(rig, "s.0")
        ended = await over(rig)
        assert [(t.state, t.value) for t in ended.trials] == [("finished", 0.9), ("finished", 0.1)]


async def test_a_sweep_gives_way_and_its_trial_continues_afterwards(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 2)) as rig:
        await sweep(rig, grid={"lr": [1, 2]}, metric="acc", goal="max")
        await report(rig, "s.0", 1, 0.5)
        await job(rig, "s.1", "running")
        urgent = await rig.submit("urgent", workers=1, sim={"DURATION": 600})
        urgent = await rig.until("urgent", "running")
        away = await once(rig, lambda s: s.counts.waiting == 1 and s.counts.running == 1, "one to give way")
        assert away.state == "running"
        rig.end(urgent)
        await once(rig, lambda s: s.counts.running == 2, "both to run")
        await report(rig, "s.0", 2, 0.7)
        await report(rig, "s.1", 1, 0.6)
        await finish(rig, "s.0")
        await finish(rig, "s.1")
        ended = await over(rig)
        assert [(t.state, t.value) for t in ended.trials] == [("finished", 0.7), ("finished", 0.6)]


async def test_all_trials_failing_end_it_after_five_with_the_cause(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, grid={"lr": list(range(40))}, env={"SIM_DURATION": "0", "SIM_EXIT": "3"})
        ended = await over(rig)
        assert ended.state == "failed"
        assert "trials failed, so the sweep gives up; the last one: " in str(ended.message)
        assert ended.counts.failed in range(5, 9)
        with pytest.raises(Refused, match="run it again"):
            await rig.platform.sweeps.extend(SYSTEM, "ann", "s", SweepExtend(trials=5))


async def test_a_metric_that_no_trial_reports_fails_the_sweep_with_the_reported_metrics(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, grid={"lr": [1]}, metric="accuracy", goal="max")
        await report(rig, "s.0", 1, 0.5, metric="acc")
        await finish(rig, "s.0")
        ended = await over(rig)
        assert ended.state == "failed"
        assert str(ended.message) == (
            "all of its trials failed; the last one: it never reported accuracy; it reported: acc and epoch"
        )


@pytest.mark.parametrize("stop", ["none", "asha"])
async def test_a_trial_without_a_number_is_never_the_best_and_the_others_continue(
    tmp_path: Path, stop: str
) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, grid={"lr": [1, 2]}, metric="loss", goal="min", stop=stop, parallel=1)
        await report(rig, "s.0", 1, math.nan, metric="loss")
        if stop == "none":  # without a rule that ends it early it runs to its end, and that counts
            await finish(rig, "s.0")
        await report(rig, "s.1", 1, 0.5, metric="loss")
        await finish(rig, "s.1")
        ended = await over(rig)
        assert ended.state == "finished"
        assert ended.best is not None
        assert (ended.best.number, ended.best.value) == (1, 0.5)
        first = ended.trials[0]
        assert first.state == ("failed" if stop == "none" else "stopped")
        assert first.value is None


async def test_an_ended_sweep_can_be_extended_and_continues(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        asked = {"search": {"x": "uniform(0, 1)"}, "metric": "acc", "goal": "min", "trials": 1}
        await sweep(rig, **asked)
        await report(rig, "s.0", 1, 0.5)
        await finish(rig, "s.0")
        first = await over(rig)
        assert first.counts.left == 0
        again = await rig.platform.sweeps.extend(SYSTEM, "ann", "s", SweepExtend(trials=1))
        assert (again.state, again.budget_trials) == ("running", 2)
        await report(rig, "s.1", 1, 0.4)
        await finish(rig, "s.1")
        ended = await over(rig)
        assert ended.best is not None
        assert (ended.best.number, ended.run) == (1, 1)
        second = await sweep(rig, **asked)
        assert (second.run, second.trials) == (2, [])
        with pytest.raises(Refused, match="has not ended"):
            await sweep(rig, **asked)
        trial = await job(rig, "s.0", "running")
        assert (trial.run, trial.sweep) == (2, "s@2")
        await rig.platform.sweeps.cancel(SYSTEM, "ann", "s@2")
        await once(rig, lambda s: s.state == "cancelled", "to be cancelled", "s@2")


async def test_its_budget_ends_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, grid={"lr": [1, 2]}, core_hours=1.0, deadline=7200)
        await once(rig, lambda s: s.counts.running == 2, "both to run")
        rig.ahead += 1900
        rig.platform.sweeps.look_at(await rig.platform.sweeps.uid_of(SYSTEM, "ann", "s"))
        ended = await over(rig)
        assert (ended.state, str(ended.message)) == ("finished", "its 1 core-hours are used up")
        assert ended.core_hours >= 1
        assert rig.held() == ZERO


async def test_a_deleted_one_takes_the_jobs_of_its_trials_along(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, array="0-1", env={"SIM_DURATION": "0"})
        await over(rig)
        await rig.platform.sweeps.delete(SYSTEM, "ann", "s")

        async def gone() -> bool:
            try:
                await rig.platform.sweeps.get(SYSTEM, "ann", "s")
            except Refused:
                return True
            return False

        await until(gone, what="the sweep to be gone")
        with pytest.raises(Refused, match=r"job s\.0 does not exist"):
            await rig.platform.jobs.get(SYSTEM, "ann", "s.0")


async def test_a_name_that_its_user_has_a_job_of_is_in_nobodys_way(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("s.0", sim={"DURATION": 600})
        await sweep(rig, array="0-1", env={"SIM_DURATION": "0"})
        ended = await over(rig)
        assert ended.counts.finished == 2
        assert ended.trials[0].job is not None
        assert ended.trials[0].job.startswith("s.0-")


async def test_sweeps_of_a_leaving_user_are_removed(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, grid={"lr": [1, 2, 3]})
        await once(rig, lambda s: s.counts.running > 0, "some to run")

        async def gone() -> bool:
            return await rig.platform.sweeps.remove("ann")

        await until(gone, what="all sweeps to be gone")
        assert rig.platform.board.jobs == {}


class CutError(Exception):
    """The process ended here."""


def cut_at(rig: Rig, number: int, *, made: bool) -> None:
    """Have the service die at its so many-th write from now on, which is made and not answered, or not made."""
    real, count = rig.db.write, itertools.count(1)

    async def write(fn: Any, **more: Any) -> Any:
        at = next(count)
        if at > number or (at == number and not made):
            raise CutError
        found = await real(fn, **more)
        if at == number:
            raise CutError
        return found

    rig.db.write = write  # type: ignore[method-assign]


@pytest.mark.parametrize("made", [True, False], ids=["not-answered", "not-made"])
async def test_whatever_write_it_dies_at_no_trial_is_lost_or_there_twice(
    tmp_path: Path, *, made: bool
) -> None:
    rig = Rig(tmp_path, node("n1", 2), durable=False)
    await rig.start()
    for cut in range(1, 13):
        name, real = f"s{cut}", rig.db.write
        asked = {"search": {"x": "uniform(0, 1)"}, "trials": 3, "sampler": "random"}
        await sweep(rig, name, **asked, env={"SIM_DURATION": "0.01"})
        cut_at(rig, cut, made=made)
        await asyncio.sleep(0.15)  # whether it is dead by then or not, it dies now
        rig.crash()
        rig.db.write = real  # type: ignore[method-assign]
        await asyncio.sleep(0)
        await rig.start()
        ended = await over(rig, name)
        assert (ended.state, ended.counts.finished) == ("finished", 3), ended.trials
        uid = await rig.platform.sweeps.uid_of(SYSTEM, "ann", name)
        jobs = (await rig.platform.jobs.list(SYSTEM, "ann", sweep=uid))[0]
        assert sorted(j.name for j in jobs) == [f"{name}.{n}" for n in range(3)]
        assert {j.name: j.params for j in jobs} == {t.job: t.params for t in ended.trials}
    assert rig.held() == ZERO
    assert len(rig.executor.starts) == len(set(rig.executor.starts))
    await rig.close()


async def test_results_from_before_a_death_count_after_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 2)) as rig:
        asked = {
            "search": {"x": "uniform(0, 1)"},
            "trials": 4,
            "metric": "acc",
            "goal": "max",
            "stop": "asha",
        }
        await sweep(rig, **asked)
        await report(rig, "s.0", 1, 0.9)
        await once(rig, lambda s: s.best is not None, "a value")
        rig.crash()
        await asyncio.sleep(0)
        await rig.start()
        await report(rig, "s.1", 1, 0.1)
        assert (await job(rig, "s.1", "cancelled")).reason == "StoppedEarly"
        again = await rig.platform.sweeps.get(SYSTEM, "ann", "s")
        assert again.trials[0].value == 0.9
        await rig.platform.sweeps.cancel(SYSTEM, "ann", "s")
        await over(rig)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "nothing to try: give --grid (such as lr=0.1,0.01) or --search"),
    ({"grid": {"lr": []}}, "parameter lr: no value is given"),
    (
        {"search": {"x": "uniform(0, 1)"}, "sampler": "random"},
        "the space has no end: limit the trials with --trials, --core-hours or --deadline",
    ),
    (
        {"search": {"x": "uniform(0, 1)"}, "trials": 3},
        "a search needs --metric and --goal, or --sampler random",
    ),
    ({"search": {"x": "uniform(0, inf)"}, "trials": 3, "sampler": "random"}, "two finite numbers"),
    (
        {"grid": {"x": [1]}, "params": {"x": 2}},
        "parameter x is given twice: each parameter can be in only one of --grid, --search and --param",
    ),
    ({"grid": {"x": [1]}, "metric": "acc"}, "is more acc better, or less? Give --goal max or --goal min"),
    ({"grid": {"x": [1]}, "goal": "max"}, "--goal without --metric compares nothing"),
    ({"grid": {"x": [1]}, "stop": "asha"}, "--stop without --metric compares nothing"),
    ({"grid": {"x": [1, 2]}, "trials": 3}, "3 trials are more than all 2 points"),
    ({"grid": {"x": list(range(100)), "y": list(range(11))}}, "the grid has 1100 points"),
    ({"array": "0-3", "grid": {"x": [1]}}, "--array cannot be used with --grid or --search"),
    ({"array": "3-0"}, "--array 3-0 is empty"),
    ({"grid": {"x": [1]}, "core_hours": 0.0001}, "0.0001 core-hours are too few for one trial"),
    (
        {"grid": {"x": [1]}, "core_hours": 0.5, "time_limit": 3600},
        "are too few for one trial, which can take 1 (1 cores for 3",
    ),
    (
        {"grid": {"x": [1]}, "deadline": 60, "time_limit": 3600},
        "--deadline in 60 s is too early for one trial with --time-limit 3600 s",
    ),
    ({"grid": {"x": [1]}, "cpu": 64.0}, "64"),
]


async def test_an_invalid_sweep_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        for (asked, said), call in itertools.product(
            WRONG, (rig.platform.sweeps.create, rig.platform.sweeps.preview)
        ):
            with pytest.raises(Refused) as refused:
                await call(
                    SYSTEM, "ann", SweepCreate(name="s", **{"code": "x", "ram": 100, "env": LONG, **asked})
                )
            assert said in str(refused.value), str(refused.value)
        assert await rig.platform.sweeps.list(SYSTEM, "ann") == ([], None)


async def test_before_it_starts_it_says_what_it_would_take(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        ask = lambda **more: SweepCreate(name="s", code="x", ram=100, **more)  # noqa: E731
        blind = await rig.platform.sweeps.preview(SYSTEM, "ann", ask(grid={"x": list(range(10))}))
        assert (blind.trials, blind.at_a_time, blind.core_hours, blind.expected_end) == (10, 4, None, None)
        told = await rig.platform.sweeps.preview(
            SYSTEM, "ann", ask(grid={"x": list(range(10))}, time_limit=3600)
        )
        assert (told.core_hours, told.core_hours_most, told.trial_s) == (10.0, 10.0, 3600.0)
        assert told.expected_start is not None
        assert told.expected_end is not None
        assert round((told.expected_end - told.expected_start).total_seconds()) == 3 * 3600
        few = await rig.platform.sweeps.preview(SYSTEM, "ann", ask(grid={"x": list(range(10))}, parallel=2))
        assert few.at_a_time == 2
        assert (await rig.platform.jobs.list(SYSTEM, "ann"))[0] == []


async def test_a_job_resubmitted_by_hand_is_not_a_trial(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await sweep(rig, array="0-0", env={"SIM_DURATION": "0"})
        await over(rig)
        again = await rig.platform.jobs.resubmit(SYSTEM, "ann", "s.0")
        assert (again.sweep, again.params, again.run) == (None, {"index": 0}, 2)
        with pytest.raises(Refused) as refused:
            await rig.platform.jobs.submit("ann", JobCreate(name="x", code="x", params={"a": "\0"}))
        assert refused.value.reason is Reason.INVALID
