"""What is tried next and what is stopped early is the same whether or not the process was restarted before each step."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.domain.jobs.space import check_grid, parse_space
from mlp_hub.domain.jobs.sweep import Budget, Sweep, SweepPhase, SweepSpec, SweepTrial, TrialState
from mlp_hub.domain.resources import Resources
from mlp_hub.service.sweeps.adviser import Adviser
from mlp_hub.service.sweeps.reported import MOST_KEPT, Reported
from mlp_hub.store.records import StoredPoint

JOB = JobSpec("search", "ann", "red", "plain", Resources(1000, 0, 512), code="x")
SPEC = SweepSpec(
    JOB,
    grid=check_grid({"lr": [0.1, 0.01]}),
    search=parse_space({"drop": "uniform(0, 0.5)", "width": "logint(1, 64)", "act": "choice(relu, 2, true)"}),
    metric="acc",
    maximize=True,
    stop="asha",
)


def sweep(**more: Any) -> Sweep:
    return Sweep("s1", replace(SPEC, **more), 1, SweepPhase.RUNNING, Budget(20), 0.0)


def played(of: Sweep, count: int, *, restarted: bool) -> list[tuple[dict[str, Any], int, bool]]:
    """Play trials one after the other; return the parameters, steps and whether it was stopped, of each."""
    trials: list[SweepTrial] = []
    curve: list[tuple[int, float]] = []
    found = []
    adviser = Adviser(of, [], {})
    for number in range(count):
        if restarted:
            adviser = Adviser(of, trials, {})
        trials.append(SweepTrial(number, adviser.propose(number), TrialState.RUNNING))
        curve, stopped = [], False
        while not stopped and len(curve) < 9:
            at = (len(curve) + 1, float(trials[-1].params["drop"]) * (len(curve) + 1))
            if restarted:
                adviser = Adviser(of, trials, {number: curve})
            trials[-1], stopped = adviser.report(trials[-1], [at])
            curve.append(at)
        state = TrialState.STOPPED if stopped else TrialState.FINISHED
        trials[-1] = replace(trials[-1], state=state, value=curve[-1][1], curve=tuple(curve))
        adviser.tell(trials[-1])
        found.append((dict(trials[-1].params), len(curve), stopped))
    return found


@pytest.mark.parametrize(("stop", "sampler"), [("asha", "tpe"), ("median", "random")])
def test_restarts_change_nothing(stop: str, sampler: str) -> None:
    of = sweep(stop=stop, sampler=sampler)
    straight = played(of, 14, restarted=False)
    assert straight == played(of, 14, restarted=True)
    assert any(stopped for *_, stopped in straight)
    assert len({params["drop"] for params, *_ in straight}) == 14
    assert [params["lr"] for params, *_ in straight] == [0.1, 0.01] * 7
    assert all(
        0 <= p["drop"] <= 0.5 and 1 <= p["width"] <= 64 and p["act"] in {"relu", 2, True}
        for p, *_ in straight
    )


def test_a_trial_that_reports_what_is_not_finite_is_stopped_at_a_rung_and_harms_nobody() -> None:
    adviser = Adviser(sweep(), [], {})
    first = SweepTrial(0, adviser.propose(0), TrialState.RUNNING)
    assert adviser.report(first, [(1, math.nan)])[1]
    second = SweepTrial(1, adviser.propose(1), TrialState.RUNNING)
    assert not adviser.report(second, [(1, 0.5)])[1]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_the_first_of_equal_trials_continue(*, maximize: bool, restarted: bool) -> None:
    of = sweep(maximize=maximize)
    adviser, trials, stopped = Adviser(of, [], {}), list[SweepTrial](), list[bool]()
    for number in range(9):
        trials.append(SweepTrial(number, adviser.propose(number), TrialState.RUNNING))
        trials[-1], ends = adviser.report(trials[-1], [(1, 0.9756)])
        stopped.append(ends)
        if restarted:
            adviser = Adviser(of, trials, {each.number: [(1, 0.9756)] for each in trials})
    assert stopped == [False] + 8 * [True]
    trials.append(SweepTrial(9, adviser.propose(9), TrialState.RUNNING))
    assert not adviser.report(trials[-1], [(1, 0.9757 if maximize else 0.9755)])[1]


def test_without_a_rule_nothing_is_stopped() -> None:
    adviser = Adviser(sweep(stop="none"), [], {})
    trial = SweepTrial(0, adviser.propose(0), TrialState.RUNNING)
    assert adviser.report(trial, [(step, -step) for step in range(1, 100)]) == (trial, False)


def point(seq: int, rank: int = 0, **values: float) -> StoredPoint:
    return StoredPoint(seq, rank, float(seq), values)


def test_a_trial_is_as_far_as_its_epoch_or_step_says_else_as_it_has_values() -> None:
    told = Reported("acc")
    assert told.add_points([point(1, acc=0.1, epoch=3), point(2, loss=1.0), point(3, acc=0.2, epoch=4)]) == [
        (3, 0.1),
        (4, 0.2),
    ]
    assert (told.last, told.seq, list(told.names)) == (0.2, 3, ["acc", "epoch", "loss"])
    assert Reported("acc").add_points([point(1, acc=1), point(2, acc=2, step=7)]) == [(1, 1.0), (2, 2.0)]


def test_points_repeated_after_a_restart_from_a_checkpoint_count_once() -> None:
    told = Reported("acc")
    told.add_points([point(1, acc=0.1, epoch=1), point(2, acc=0.2, epoch=2)])
    assert told.add_points([point(3, acc=0.25, epoch=2), point(4, acc=0.3, epoch=3)]) == [(3, 0.3)]


def test_one_rank_counts() -> None:
    told = Reported("acc")
    assert told.add_points(
        [point(1, rank=1, acc=0.1), point(2, rank=0, acc=0.9), point(3, rank=1, acc=0.2)]
    ) == [
        (1, 0.1),
        (2, 0.2),
    ]


def test_a_trial_is_complete_once_its_last_progress_is_100_also_without_a_value() -> None:
    told = Reported("acc")
    told.add_points([point(1, acc=0.1, progress=100)])
    assert told.complete
    told.add_points([point(2, acc=0.2, progress=50)])  # a later attempt goes on from a checkpoint
    assert not told.complete
    told.add_points([point(3, acc=0.3), point(4, progress=100)])
    assert told.complete
    told.add_points([point(5, acc=0.4)])
    assert told.complete


def test_of_a_long_curve_every_nth_value_is_kept_and_the_last() -> None:
    told = Reported("acc")
    told.add_points([point(n, acc=n) for n in range(1, 5001)])
    kept = told.kept()
    assert len(kept) <= MOST_KEPT + 1
    assert (kept[0], kept[-1]) == ((1, 1.0), (5000, 5000.0))


def test_attacks_a_trial_that_reports_without_end_fills_no_memory_and_is_judged_at_round_steps() -> None:
    told, reported = Reported("acc"), 300_000
    fresh = []
    for begin in range(1, reported, 10_000):
        fresh += told.add_points([point(n, acc=n, step=n * 7) for n in range(begin, begin + 10_000)])
    assert told.count == reported
    assert len(told.curve) == len(fresh) < 3000
    assert [step for step, _ in fresh[:2000]] == [n * 7 for n in range(1, 2001)], "at first each"
    steps = [step for step, _ in fresh[2000:]]
    assert steps
    assert all(later <= 1.07 * step for step, later in itertools.pairwise(steps)), "none is far behind"
    assert told.kept()[-1] == (2_100_000, 300_000.0), "the last is known"


def test_attacks_a_long_series_of_values_keeps_being_counted() -> None:
    told = Reported("acc")
    told.add_points([point(n, acc=n) for n in range(1, 5001)])
    assert told.add_points([point(5001, acc=1)]) == []
    assert (told.count, told.at) == (5001, 5001)
