"""The digest of run times: which runs are alike, what is kept, and what hostile input does."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import pytest

from mlp_hub.domain.jobs import run_times
from mlp_hub.domain.jobs.job import JobSpec, Replica, Trial
from mlp_hub.domain.jobs.run_times import KEPT, KEYS_OF_USER, PastRuns, RunTimes, keys_of
from mlp_hub.domain.resources import Resources

SPEC = JobSpec(
    "digits", "ann", "red", "mpi", Resources(cpu=1000, ram=512), code="print(1)", args=("--epochs", "3")
)


def test_a_run_of_the_same_program_is_alike_under_another_name_and_one_of_the_same_name_with_another_program() -> (
    None
):
    program, name = keys_of(SPEC)
    assert keys_of(replace(SPEC, name="other"))[0] == program
    assert keys_of(replace(SPEC, code="print(2)")) == (keys_of(replace(SPEC, code="print(2)"))[0], name)
    assert keys_of(replace(SPEC, code="print(2)"))[0] != program


@pytest.mark.parametrize(
    "change",
    [{"args": ("--epochs", "300")}, {"params": {"lr": 1}}, {"workdir": "w"}, {"entry": "a.py", "code": None}],
)
def test_another_use_of_a_program_is_alike_by_its_name_only(change: dict[str, object]) -> None:
    other = keys_of(replace(SPEC, **change))
    assert (other[0] != keys_of(SPEC)[0], other[1]) == (True, keys_of(SPEC)[1])


@pytest.mark.parametrize(
    "change",
    [
        {"workers_min": 2, "workers_max": 2},
        {"per_worker": Resources(cpu=2000, ram=512)},
        {"gpu_kind": "a100"},
        {"runtime": "torch"},
        {"ps": 1},
    ],
)
def test_another_shape_is_not_alike(change: dict[str, object]) -> None:
    assert not set(keys_of(replace(SPEC, **change))) & set(keys_of(SPEC))


def test_a_limit_or_a_priority_does_not_make_runs_different() -> None:
    assert keys_of(replace(SPEC, time_limit=60, priority="high", retries=3)) == keys_of(SPEC)


def test_trials_of_a_sweep_have_its_name_and_a_replica_of_an_app_has_no_run_time() -> None:
    first, second = (replace(SPEC, name=f"lr-{n}", trial=Trial("s1", "lr", n)) for n in (1, 2))
    assert keys_of(first)[1] == keys_of(second)[1]
    assert keys_of(replace(SPEC, replica=Replica("a1", "app"))) == ()


def test_two_runs_are_enough_and_one_is_not() -> None:
    times = RunTimes()
    times.add("ann", keys_of(SPEC), 10.0)
    assert times.of("ann", keys_of(SPEC)) is None
    times.add("ann", keys_of(SPEC), 4.0)
    assert times.of("ann", keys_of(SPEC)) == PastRuns((4.0, 10.0))
    assert times.of("bob", keys_of(SPEC)) is None


def test_the_same_program_counts_before_the_same_name() -> None:
    times = RunTimes()
    other = replace(SPEC, code="print(2)")
    for seconds in (1.0, 2.0):
        times.add("ann", keys_of(SPEC), seconds)
    for seconds in (100.0, 200.0):
        times.add("ann", keys_of(other), seconds)
    assert times.of("ann", keys_of(SPEC)) == PastRuns((1.0, 2.0))
    assert times.of("ann", keys_of(replace(SPEC, code="print(3)"))) == PastRuns((1.0, 2.0, 100.0, 200.0))


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1.0, 1e12])
def test_a_time_that_no_clock_can_have_measured_is_left_out(seconds: float) -> None:
    times = RunTimes()
    for _ in range(3):
        times.add("ann", (b"k",), seconds)
    assert (len(times), times.of("ann", (b"k",))) == (0, None)


def test_runs_of_no_length_count() -> None:
    times = RunTimes()
    for _ in range(3):
        times.add("ann", (b"k",), 0.0)
    past = times.of("ann", (b"k",))
    assert past is not None
    assert (past.quantile(0.9), past.length(0.9, 0.0), past.outlasted(0.0), past.outlasted(0.1)) == (
        0,
        0,
        False,
        True,
    )


def test_a_user_with_very_many_runs_pushes_nobody_out() -> None:
    times = RunTimes()
    for seconds in (5.0, 6.0):
        times.add("bob", (b"k",), seconds)
    for n in range(100_000):
        times.add("ann", (n.to_bytes(8),), 1.0)
    assert len(times) == KEYS_OF_USER + 1
    assert times.of("bob", (b"k",)) == PastRuns((5.0, 6.0))
    for n in range(1000):
        times.add("ann", (b"same",), float(n))
    same = times.of("ann", (b"same",))
    assert same == PastRuns(tuple(float(n) for n in range(1000 - KEPT, 1000)))


def test_very_many_users_push_out_those_whose_last_run_is_longest_ago() -> None:
    times = RunTimes(keys=10)
    for n in range(30):
        for seconds in (1.0, 2.0):
            times.add(f"u{n}", (b"a", b"b"), seconds)
    assert len(times) == 10
    assert times.of("u24", (b"a",)) is None
    assert times.of("u25", (b"a",)) == PastRuns((1.0, 2.0))


def test_kept_runs_take_no_more_memory_than_the_bound() -> None:
    tracemalloc.start()
    try:
        times = RunTimes()
        for key in range(run_times.KEYS + 500):
            for n in range(KEPT):
                times.add(f"user{key // KEYS_OF_USER}", (key.to_bytes(8),), n + 0.5)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(times) == run_times.KEYS
    assert taken < 9e6


def test_a_user_who_left_is_forgotten() -> None:
    times = RunTimes()
    for seconds in (1.0, 2.0):
        times.add("ann", (b"a", b"b"), seconds)
    times.forget("ann")
    times.forget("nobody")
    assert (len(times), times.of("ann", (b"a",))) == (0, None)


def test_quantiles_are_linear_and_a_longer_run_is_compared_with_the_longer_ones() -> None:
    past = PastRuns((10.0, 20.0, 30.0, 40.0))
    assert (past.quantile(0.0), past.quantile(0.5), past.quantile(1.0)) == (10.0, 25.0, 40.0)
    assert [past.length(q, 0.0) for q in (0.1, 0.3, 0.6, 0.9)] == [10.0, 20.0, 30.0, 40.0]
    assert [past.length(q, 25.0) for q in (0.1, 0.9)] == [30.0, 40.0]


def test_a_run_longer_than_all_earlier_ones_may_take_as_long_again() -> None:
    past = PastRuns((10.0, 20.0))
    assert past.outlasted(50.0)
    assert past.length(0.5, 50.0) == 100.0
    assert past.length(1.0, 50.0) == pytest.approx(500.0)
    assert past.length(0.9, 1e12) <= 1e12 + run_times.LONGEST_S
