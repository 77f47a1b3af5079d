"""Expected starts, by running the core forward."""

from __future__ import annotations

import pytest

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import Forecast, expected_end
from mlp_hub.scheduler.forecast.why import explain
from mlp_hub.scheduler.model.types import PendingWorkload
from support.said import named
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant


def planned(*jobs: PendingWorkload, **policy: object) -> Core:
    """Return a core with one node of 4 cpu that has planned once at 0."""
    core = Core.from_snapshot(snapshot(*jobs, **policy), 0.0)
    core.plan(0.0)
    return core


def queue(*limits: float | None) -> list[PendingWorkload]:
    return [job(f"j{i}", workers=4, at=float(i) / 10, time_limit=limit) for i, limit in enumerate(limits)]


def test_one_run_forward_tells_the_starts_of_all() -> None:
    core = planned(*queue(100.0, 50.0, None, 10.0))
    found = Forecast(core, 0.0, ["j1", "j2", "j3"])
    assert found.starts == {"j1": 100.0, "j2": 150.0, "j3": None}
    assert found.after == {"j1": "j0", "j2": "j1"}
    assert found.steps == 2


def test_the_core_is_left_as_it_was() -> None:
    core = planned(*queue(100.0, 50.0))
    assert Forecast(core, 0.0, ["j1"]).starts == {"j1": 100.0}
    assert set(core.running) == {"j0"}
    assert core.is_waiting("j1")
    assert Forecast(core, 0.0, ["j1"]).starts == {"j1": 100.0}


def test_beyond_its_bound_no_time_is_told() -> None:
    core = planned(*queue(*[10.0] * 6))
    found = Forecast(core, 0.0, ["j1", "j2", "j5"], most_steps=2)
    assert found.starts == {"j1": 10.0, "j2": 20.0, "j5": None}


def test_without_any_known_end_nothing_is_run_forward() -> None:
    found = Forecast(planned(*queue(None, 10.0)), 0.0, ["j1", "nobody"])
    assert (found.starts, found.steps) == ({"j1": None, "nobody": None}, 0)


def test_where_nothing_is_foreseen_the_core_is_not_even_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    core = planned(*queue(None, 10.0))
    monkeypatch.setattr(Core, "fork", lambda core: pytest.fail("copied for nothing"))
    assert Forecast(core, 0.0, ["j1"]).starts == {"j1": None}


def test_a_job_without_a_tenant_gets_no_forecast() -> None:
    core = planned(*queue(100.0), job("lost", tenant="gone"))
    assert core.is_waiting("lost")
    found = Forecast(core, 0.0, ["lost"])
    assert (found.starts, found.steps) == ({"lost": None}, 0)


def test_a_job_that_outlived_its_estimate_ends_at_its_limit_at_the_latest() -> None:
    known = runs(job("a", estimate=20.0, time_limit=90.0), "n", since=5.0, until=25.0)
    assert expected_end(known, 10.0) == 25.0
    assert expected_end(known, 25.0) == 95.0
    assert expected_end(known, 95.0) is None
    assert expected_end(runs(job("b"), "n"), 0.0) is None


def test_a_job_that_reclaims_lent_quota_starts_once_the_borrower_has_run_long_enough() -> None:
    teams = (tenant("red", cpu=2, cohort="main"), tenant("blue", cpu=2, cohort="main"))
    lent = runs(job("cheap", workers=4), "n", "n", "n", "n", since=0.0)
    own = job("own", workers=2, tenant="blue", at=5.0)
    s = snapshot(own, nodes=(node(),), tenants=teams, running=(lent,), min_run_s=30.0)
    core = Core.from_snapshot(s, 7.0)
    core.plan(7.0)
    found = Forecast(core, 7.0, ["own"])
    assert (found.starts, found.after) == ({"own": 30.0}, {"own": None})
    told = explain(s, "own", 7.0)
    assert (told.expected_start, named(told.expected_because)) == (30.0, ["cheap"])


def test_requests_only_checked_for_their_place_in_line_count_as_effort_like_tried_ones() -> None:
    """One user's many different inadmissible requests are walked past where an elastic job may grow, and cost time too."""
    many = tuple(job(f"w{i}", cpu=4, ram=101 + i, at=2.0, user="eve") for i in range(100))
    held = job("held", 1, workers_max=4, at=0.0, tenant="blue", user="bob")
    core = Core.from_snapshot(
        snapshot(
            *many,
            nodes=(node("n", 8), node("m", 8)),
            tenants=(tenant("red", cpu=1), tenant("blue")),
            running=(runs(held, "n"),),
            min_run_s=50,
        ),
        10.0,
    )
    core.plan(10.0)
    before = core.state.effort
    core.plan(11.0)
    assert core.state.effort - before < len(many)  # nobody may grow, nobody is walked past
    before = core.state.effort
    core.plan(60.0)
    assert core.state.effort - before >= len(many)
