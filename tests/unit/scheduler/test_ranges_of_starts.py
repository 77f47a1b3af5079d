"""Ranges of starts and ends from earlier runs, by running the core forward."""

from __future__ import annotations

import pytest

from mlp_hub.domain.jobs.run_times import PastRuns
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import Forecast
from mlp_hub.scheduler.forecast.ranges import ending, outlooks, running
from mlp_hub.scheduler.forecast.why import explain, offered
from mlp_hub.scheduler.model.outlook import Outlook, TimeRange
from mlp_hub.scheduler.model.types import Admit, PendingWorkload
from support.scheduler.scheduler_builders import job, snapshot

MANY = 1e9
STEADY = PastRuns((100.0,) * 5)
SPREAD = PastRuns((40.0, 80.0, 120.0, 160.0))


def planned(*jobs: PendingWorkload) -> Core:
    core = Core.from_snapshot(snapshot(*jobs), 0.0)
    core.plan(0.0)
    return core


def line(*limits: float | None) -> Core:
    """Return a core in which each job takes the whole node, one after the other."""
    return planned(
        *(job(f"j{i}", workers=4, at=float(i) / 10, time_limit=limit) for i, limit in enumerate(limits))
    )


def past(**known: PastRuns):
    return lambda uid: None if uid not in known else (known[uid], 0.0)


def test_a_job_behind_one_without_a_limit_gets_a_range_from_its_earlier_runs() -> None:
    core = line(None, None)
    told = outlooks(core, ["j1"], 0.0, past(j0=SPREAD), MANY)["j1"]
    assert told.start is not None
    assert told.start == TimeRange(40.0, 100.0, 160.0)
    assert (told.end, told.runs, told.learned) == (None, 0, 1)


def test_its_end_follows_from_its_own_earlier_runs() -> None:
    told = outlooks(line(None, None), ["j1"], 0.0, past(j0=STEADY, j1=STEADY), MANY)["j1"]
    assert told == Outlook(TimeRange(100.0, 100.0, 100.0), TimeRange(200.0, 200.0, 200.0), 5, 1)


def test_a_limit_far_above_the_use_is_not_what_is_told_and_is_still_the_latest_end() -> None:
    core = line(10_000.0, None)
    told = outlooks(core, ["j1"], 0.0, past(j0=STEADY), MANY)["j1"]
    assert told.start == TimeRange(100.0, 100.0, 100.0)
    short = outlooks(line(60.0, None), ["j1"], 0.0, past(j0=STEADY), MANY)["j1"]
    assert short.start == TimeRange(60.0, 60.0, 60.0)


def test_without_earlier_runs_of_jobs_ahead_nothing_else_is_told_than_before() -> None:
    assert outlooks(line(100.0, None), ["j1"], 0.0, past(), MANY) == {}
    assert outlooks(line(100.0, None), ["j1"], 0.0, past(j1=STEADY), MANY) == {}


def test_a_job_behind_one_of_unknown_length_gets_no_range() -> None:
    core = line(None, None, None)
    assert set(outlooks(core, ["j1", "j2"], 0.0, past(j0=STEADY), MANY)) == {"j1"}


def test_the_expected_start_and_the_decisions_stay_as_they_are() -> None:
    core = line(500.0, 50.0, None)
    before = Forecast(core, 0.0, ["j1", "j2"]).starts
    outlooks(core, ["j1", "j2"], 0.0, past(j0=STEADY, j1=STEADY), MANY)
    assert Forecast(core, 0.0, ["j1", "j2"]).starts == before == {"j1": 500.0, "j2": 550.0}
    assert set(core.running) == {"j0"}


def test_plans_in_a_forecast_know_limits_only_as_the_scheduler_does() -> None:
    # the reservation of `wide` is computed from the limit of `runs`: `small` may not pass it, however short its runs were
    core = planned(
        job("runs", workers=2, time_limit=50.0),
        job("wide", workers=4, at=1.0, time_limit=10.0),
        job("small", workers=2, at=2.0, time_limit=1000.0),
    )
    assert set(core.running) == {"runs"}
    known = past(runs=PastRuns((20.0, 20.0)), small=PastRuns((1.0, 1.0)))
    told = outlooks(core, ["wide", "small"], 0.0, known, MANY)
    assert told["wide"].start == TimeRange(20.0, 20.0, 20.0)
    assert told["small"].start == TimeRange(30.0, 30.0, 30.0)


def test_a_job_that_ran_longer_than_all_earlier_runs_is_not_taken_to_end_now() -> None:
    core = line(None, None)
    told = outlooks(core, ["j1"], 400.0, past(j0=STEADY), MANY)["j1"]
    assert told.start is not None
    assert told.start.p10 > 400.0
    assert told.start.p90 > 800.0


def test_a_clock_that_went_back_gives_no_start_before_now() -> None:
    core = Core.from_snapshot(snapshot(job("j0", workers=4), job("j1", workers=4, at=1.0)), 1000.0)
    core.plan(1000.0)
    told = outlooks(core, ["j1"], 10.0, past(j0=STEADY), MANY)["j1"]
    assert told.start is not None
    assert told.start.p10 >= 10.0


def test_runs_of_no_length_end_a_forecast() -> None:
    core = line(*[None] * 50)
    nothing = PastRuns((0.0, 0.0))
    uids = [f"j{n}" for n in range(1, 50)]
    told = outlooks(core, uids, 0.0, lambda _: (nothing, 0.0), MANY)
    assert {told[uid].start for uid in uids} == {TimeRange(0.0, 0.0, 0.0)}


def test_all_scenarios_together_take_no_more_effort_than_is_given() -> None:
    core = line(*[None] * 50)
    uids = [f"j{n}" for n in range(1, 50)]
    told = outlooks(core, uids, 0.0, lambda _: (STEADY, 0.0), 20.0)
    assert "j1" in told
    assert "j49" not in told


def test_earlier_attempts_of_a_running_job_count_as_run() -> None:
    core = line(None, None)
    told = outlooks(core, ["j1"], 0.0, lambda uid: (STEADY, 70.0) if uid == "j0" else None, MANY)["j1"]
    assert told.start == TimeRange(30.0, 30.0, 30.0)


def test_the_end_of_a_running_job_is_a_range_until_it_outlasts_its_earlier_runs() -> None:
    assert running(SPREAD, 1000.0, 0.0, 1010.0).end == TimeRange(1052.0, 1100.0, 1148.0)
    assert running(SPREAD, 1000.0, 0.0, 1100.0).end == TimeRange(1124.0, 1140.0, 1156.0)
    assert running(SPREAD, 1000.0, 0.0, 1155.0) == Outlook(runs=4, outlasted=True)
    assert running(SPREAD, 1000.0, 90.0, 1100.0) == Outlook(runs=4, outlasted=True, longest=True)
    assert running(STEADY, 0.0, 0.0, 100.0).end == TimeRange(100.0, 100.0, 100.0)
    assert running(STEADY, 500.0, 0.0, 100.0).end == TimeRange(200.0, 200.0, 200.0)


def test_why_and_an_offer_have_the_range() -> None:
    s = snapshot(job("j0", workers=4), job("j1", workers=4, at=1.0))
    why = explain(s, "j1", 2.0, past(j0=STEADY))
    assert why.expected_start is None
    assert why.outlook is not None
    assert why.outlook.start == TimeRange(102.0, 102.0, 102.0)
    assert explain(s, "j1", 2.0).outlook is None
    found, start = offered(Core.from_snapshot(snapshot(), 0.0), job("new"), 5.0, past(new=SPREAD))
    assert isinstance(start, Admit)
    assert found.outlook == ending(SPREAD, 5.0)


@pytest.mark.parametrize(("at", "where"), [(59.0, -1), (60.0, 0), (100.0, 0), (239.0, 0), (240.0, 1)])
def test_a_start_is_inside_a_range_by_whole_minutes_as_people_read_it(at: float, where: int) -> None:
    assert TimeRange(70.0, 100.0, 190.0).holds(at) == where
