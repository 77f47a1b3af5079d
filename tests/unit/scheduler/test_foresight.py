"""What those that begin to wait are told of their start in a simulation, and what that may cost."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.scheduler.forecast.forecast import Forecast
from mlp_hub.scheduler.model.types import Decision
from mlp_hub.simulate import foresight
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value
from support.scheduler.simulated import ONE, job, run, story


class Measured(Simulation):
    """Notes what planning and looking ahead took, in steps and in what was looked at."""

    plans = 0.0

    def _timed_plan(self) -> list[Decision]:
        before = self._core.state.effort
        decisions = super()._timed_plan()
        self.plans += self._core.state.effort - before
        return decisions


def test_forecasts_take_only_a_part_of_the_effort_of_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Forecast] = []

    class Noted(Forecast):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            looks.append(self)

    monkeypatch.setattr(foresight, "Forecast", Noted)
    monkeypatch.setattr(foresight, "CREDIT_PER_INSTANT", 0.0)
    jobs = [
        job(f"j{i}", cpu=1 + i % 3, submit=i, time_limit=120 + i % 7, priority="high" if i % 5 else "low")
        for i in range(100)
    ]
    text = {"version": 1, "jobs": jobs, "nodes": [ONE], "tenants": [{"name": "red"}]}
    list(Simulation(read_value(text)).lines())
    freely = sum(look.steps + look.effort for look in looks)
    looks.clear()
    monkeypatch.setattr(foresight, "FORECAST_CREDIT", 100.0)
    bounded = Measured(read_value(text))
    lines = list(bounded.lines())
    took = sum(look.steps + look.effort for look in looks)
    dearest = max(look.effort / look.steps for look in looks)
    may = 100 + foresight.FORECAST_PART * bounded.plans
    assert took <= may + 3 * dearest  # the last step of a look may go beyond
    assert freely > 3 * may
    waits = [line["expected_start"] for line in lines[:-1] if line["event"] == "waiting"]
    assert None in waits
    assert any(at is not None for at in waits)
    assert list(Simulation(read_value(text)).lines()) == lines


def test_a_job_that_does_not_fit_waits_once_with_a_reason_and_the_expected_start() -> None:
    lines = run(
        job("a", workers=4, time_limit=150), job("b", workers=4, submit=1), job("c", workers=4, submit=2)
    )
    waits = [x for x in lines[:-1] if x["event"] == "waiting"]
    assert [(x["t"], x["job"], x["reason"], x["expected_start"]) for x in waits] == [
        (1.0, "b", "WaitingForResources", 150.0),
        (2.0, "c", "WaitingForResources", None),
    ]
    assert waits[0]["message"].startswith("Needs 4 ranks at once, 0 fit now.")
    assert story(lines, "b") == [
        (1.0, "submitted"),
        (1.0, "waiting"),
        (100.0, "admitted"),
        (100.0, "started"),
        (200.0, "finished"),
    ]


def test_an_estimate_is_believed_before_the_time_limit_until_it_is_past() -> None:
    lines = run(
        job("a", workers=4, estimate=20, time_limit=150),
        job("b", workers=1, submit=1),
        job("c", workers=1, submit=50),
    )
    waits = {x["job"]: x["expected_start"] for x in lines[:-1] if x["event"] == "waiting"}
    assert waits == {"b": 20.0, "c": 150.0}
