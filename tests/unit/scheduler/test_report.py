"""The summary of a run, figure by figure, and the tables that a person reads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.report import Tally, aligned, percentile, seconds, tables
from mlp_hub.simulate.scenario_reader import read_value

KEYS = [
    "makespan_s",
    "jobs",
    "finished",
    "avg_jct_s",
    "avg_wait_s",
    "p50_wait_s",
    "p99_wait_s",
    "utilization",
    "preemptions",
    "lost_work_s",
    "per_tenant",
    "per_priority",
    "allocation",
    "cycles",
    "cycle_p50_ms",
    "cycle_p99_ms",
]


def run(**scenario: Any) -> Tally:
    simulation = Simulation(read_value({"version": 1, **scenario}))
    for _ in simulation.lines():
        pass
    return simulation.tally


def one_after_the_other() -> Tally:
    return run(
        nodes=[{"name": "n", "count": 2, "cpu": 4, "gpu": 2}],
        tenants=[{"name": "red"}, {"name": "blue"}],
        jobs=[
            {"name": "a", "tenant": "red", "submit": 10, "duration": 100, "workers": 8},
            {"name": "b", "tenant": "red", "submit": 20, "duration": 50, "workers": 4, "gpu": 0.5},
            {"name": "c", "tenant": "blue", "submit": 20, "duration": 50, "workers": 4, "priority": "high"},
            {"name": "d", "tenant": "blue", "submit": 30, "workers": 99},
        ],
        policy={"preemption": False},
    )


def test_the_summary_has_the_keys_of_the_contract_and_no_other() -> None:
    summary = one_after_the_other().summary()
    assert list(summary) == KEYS
    assert list(run(nodes=[], tenants=[], jobs=[]).summary()) == KEYS


def test_every_figure_is_what_it_says() -> None:
    summary = one_after_the_other().summary()
    cycles = summary.pop("cycles")
    assert cycles >= 4
    group = {
        "jobs": 2,
        "finished": 2,
        "avg_jct_s": 120.0,
        "avg_wait_s": 45.0,
        "p50_wait_s": 45.0,
        "p99_wait_s": 89.1,
        "preemptions": 0,
        "cpu_s": 1000.0,
        "gpu_s": 100.0,
    }
    only_c = {
        **group,
        "jobs": 1,
        "finished": 1,
        "avg_jct_s": 140.0,
        "avg_wait_s": 90.0,
        "p50_wait_s": 90.0,
        "p99_wait_s": 90.0,
        "cpu_s": 200.0,
        "gpu_s": 0.0,
    }
    assert summary == {
        "makespan_s": 150.0,
        "jobs": 4,
        "finished": 3,
        "avg_jct_s": pytest.approx((100 + 140 + 140) / 3, abs=1e-6),
        "avg_wait_s": 60.0,
        "p50_wait_s": 90.0,
        "p99_wait_s": 90.0,
        "utilization": {"cpu": 1.0, "gpu": pytest.approx(100 / 600, abs=1e-6)},
        "preemptions": 0,
        "lost_work_s": 0.0,
        "per_tenant": {"red": group, "blue": {**only_c, "jobs": 2}},
        "per_priority": {
            "high": only_c,
            "normal": {**group, "jobs": 3},
        },
        "allocation": {"gpu": 0.5, "cpu": 1.0},
        "cycle_p50_ms": None,
        "cycle_p99_ms": None,
    }


def test_nodes_that_are_down_are_not_counted_as_unused() -> None:
    tally = run(
        nodes=[{"name": "n", "count": 2, "cpu": 4}],
        tenants=[{"name": "red"}],
        jobs=[{"name": "a", "workers": 4, "duration": 100, "topology": "same-node"}],
        events=[{"at": 0, "node_down": "n-1"}, {"at": 50, "node_up": "n-1"}, {"at": 900, "node_down": "n-1"}],
    )
    summary = tally.summary()
    assert summary["utilization"]["cpu"] == pytest.approx(400 / 600, abs=1e-6)
    assert summary["allocation"]["cpu"] == 1.0
    assert summary["makespan_s"] == 100.0


def test_a_wait_is_all_the_time_in_the_queue_after_a_preemption_too() -> None:
    tally = run(
        nodes=[{"name": "n", "cpu": 4}],
        tenants=[{"name": "red"}],
        jobs=[{"name": "a", "workers": 4, "duration": 100}],
        events=[{"at": 40, "node_down": "n"}, {"at": 70, "node_up": "n"}],
    )
    summary = tally.summary()
    assert (summary["avg_wait_s"], summary["avg_jct_s"], summary["lost_work_s"]) == (30.0, 170.0, 160.0)


def test_a_person_reads_tables() -> None:
    text = tables(one_after_the_other())
    assert text.startswith(
        "jobs                 4, of them 3 finished, 1 refused\nmakespan             150 s\n"
    )
    assert "cpu 100.0%, gpu 16.7%" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["c", "blue", "finished", "20", "s", "90", "s", "1", "160", "s"] in lines
    assert ["d", "blue", "refused", "30", "s", "0", "s", "0", "30", "s"] in lines
    assert all(line == line.rstrip() for line in text.splitlines())


def test_very_many_jobs_are_not_listed_one_by_one() -> None:
    tally = run(
        nodes=[{"name": "n"}], tenants=[{"name": "red"}], jobs=[{"name": "a", "count": 100, "duration": 1}]
    )
    assert "a-7" not in tables(tally)
    assert len(tally.few) <= 41


def test_columns_are_aligned_numbers_to_the_right() -> None:
    assert aligned(("name", "n", "what"), [("a", "5", "x"), ("long name", "10", "y")]) == (
        "name        n  what\na           5  x\nlong name  10  y"
    )


@pytest.mark.parametrize(
    ("span", "text"),
    [(0, "0 s"), (0.25, "0.25 s"), (90, "90 s"), (599.6, "10 min 00 s"), (1418.4, "23 min 38 s"), (7500, "2 h 05 min"), (172_799, "2 d 00 h"), (574_123, "6 d 15 h")],
)  # fmt: skip
def test_times_are_short(span: float, text: str) -> None:
    assert seconds(span) == text


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_lies_among_the_values_and_never_falls(values: list[float], share: float) -> None:
    ordered = sorted(values)
    assert ordered[0] <= percentile(ordered, share) <= ordered[-1]
    assert percentile(ordered, 0) == ordered[0]
    assert percentile(ordered, 1) == ordered[-1]


def test_the_median_of_two_is_between_them() -> None:
    assert percentile([0.0, 10.0], 0.5) == 5.0
    assert percentile([], 0.5) == 0.0
