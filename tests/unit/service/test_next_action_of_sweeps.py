"""Decisions about sweeps: what is made, what ends, and how a sweep ends, for each state of its trials."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mlp_hub.domain.errors import IllegalTransition, Reason
from mlp_hub.domain.jobs.job import Cause, Failure, Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.space import check_grid
from mlp_hub.domain.jobs.sweep import (
    SWEEP_MACHINE,
    Budget,
    Sweep,
    SweepPhase,
    SweepSpec,
    SweepTrial,
    TrialState,
    best_of,
    label_of,
    trial_name,
)
from mlp_hub.domain.resources import Resources
from mlp_hub.service.sweeps.next_action import AHEAD, TrialJob, decide
from mlp_language.message import msg

S, T, P = SweepPhase, TrialState, Phase
JOB = JobSpec("search", "ann", "red", "plain", Resources(2000, 0, 512), code="x")
SPEC = SweepSpec(JOB, grid=check_grid({"lr": list(range(10))}), metric="acc", maximize=True)
SWEEP = Sweep("s1", SPEC, 1, S.RUNNING, Budget(10), 0.0)


RAISED = Failure(Cause.PROGRAM_ERROR, 0, 1, None, "rank 0: TypeError: no (exit status 1)")


def job(phase: Phase = P.RUNNING, reason: str | None = None, **more: object) -> Job:
    times = {"started_at": 100.0, "placement": ("n1",)}
    return Job("j", JOB, phase, Target.RUN, 0.0, reason=reason, message=msg("it broke"), **{**times, **more})  # type: ignore[arg-type]


def trials(*states: TrialState, value: float | None = 0.5) -> list[SweepTrial]:
    return [SweepTrial(n, {"lr": n}, state, "j", value=value) for n, state in enumerate(states)]


def running(count: int, phase: Phase = P.RUNNING) -> tuple[list[SweepTrial], dict[int, TrialJob]]:
    return trials(*[T.RUNNING] * count), {n: TrialJob(job(phase)) for n in range(count)}


def test_few_trials_wait_at_a_time_and_all_that_fit_run() -> None:
    assert decide(SWEEP, [], {}, 0.0).make == AHEAD
    assert decide(SWEEP, *running(5), 0.0).make == AHEAD
    assert decide(SWEEP, *running(2, P.QUEUED), 0.0).make == 0
    assert decide(SWEEP, *running(9), 0.0).make == 1
    assert decide(replace(SWEEP, spec=replace(SPEC, parallel=3)), *running(2), 0.0).make == 1
    assert decide(replace(SWEEP, spec=replace(SPEC, parallel=3)), *running(3), 0.0).make == 0


def test_a_refused_sweep_waits_before_the_next_try_and_shows_the_reason_meanwhile() -> None:
    held = replace(SWEEP, not_before=50.0, message=msg("full"))
    plan = decide(held, [], {}, 40.0)
    assert (plan.make, plan.again_s, plan.sweep) == (0, 10.0, held)
    plan = decide(held, [], {}, 50.0)
    assert (plan.make, str(plan.sweep.message)) == (AHEAD, "")


@pytest.mark.parametrize(
    ("end", "value", "state", "said"),
    [
        (job(P.FINISHED), 0.9, T.FINISHED, ""),
        (job(P.FINISHED), None, T.FAILED, "it never reported acc; it reported: loss"),
        (job(P.FINISHED), math.nan, T.FAILED, "the last acc that it reported is not a finite number"),
        (job(P.FAILED), 0.9, T.FAILED, "it broke"),
        (job(P.FAILED, failure=RAISED), 0.9, T.FAILED, "rank 0: TypeError: no (exit status 1)"),
        (job(P.CANCELLED, Reason.STOPPED_EARLY.value), 0.9, T.STOPPED, "it broke"),
        (job(P.CANCELLED), 0.9, T.CANCELLED, "it broke"),
        (None, 0.9, T.CANCELLED, "its job was deleted"),
    ],
)
def test_a_trial_ends_as_its_job_does(
    end: Job | None, value: float | None, state: TrialState, said: str
) -> None:
    plan = decide(SWEEP, trials(T.RUNNING, value=value), {0: TrialJob(end, ("loss",))}, 160.0)
    (trial,) = plan.trials
    assert (trial.state, str(trial.message)) == (state, said)
    assert trial.value == (0.9 if value == 0.9 else None)


def test_the_cost_of_a_trial_counts_cores_and_all_its_attempts() -> None:
    end = job(P.FINISHED, finished_at=130.0, ran=10.0)
    (trial,) = decide(SWEEP, trials(T.RUNNING), {0: TrialJob(end)}, 160.0).trials
    assert trial.core_s == (30 + 10) * 2


def test_it_ends_with_its_last_trial() -> None:
    states = [T.FINISHED] * 9 + [T.STOPPED]
    found = [replace(t, value=n / 10) for n, t in enumerate(trials(*states))]
    plan = decide(SWEEP, found, {}, 9.0)
    assert (plan.sweep.phase, plan.sweep.ended_at) == (S.FINISHED, 9.0)
    assert best_of(SPEC, found) == found[9]
    assert best_of(SPEC, trials(T.FAILED, T.RUNNING)) == trials(T.FAILED, T.RUNNING)[1]


def test_five_failures_before_anything_else_end_it_with_the_cause() -> None:
    failed = [replace(t, message=msg("no module named jax")) for t in trials(*[T.FAILED] * 5)]
    live, jobs = running(7)
    plan = decide(SWEEP, failed + live[5:], {n: jobs[n] for n in (5, 6)}, 0.0)
    assert (plan.sweep.phase, plan.end, plan.make) == (S.ENDING, (5, 6), 0)
    assert "first 5 trials failed, so the sweep gives up; the last one: no module named jax" in str(
        plan.sweep.message
    )
    ended = decide(plan.sweep, failed + trials(*[T.CANCELLED] * 7)[5:], {}, 0.0).sweep
    assert (ended.phase, ended.message) == (S.FAILED, plan.sweep.message)
    assert decide(SWEEP, failed[:4] + trials(*[T.FINISHED] * 5)[4:], {}, 0.0).sweep.phase is S.RUNNING


def test_a_small_sweep_all_of_whose_trials_fail_has_failed() -> None:
    plan = decide(replace(SWEEP, budget=Budget(2)), trials(T.FAILED, T.FAILED), {}, 0.0)
    assert plan.sweep.phase is S.FAILED


def test_a_budget_that_is_used_up_ends_what_runs() -> None:
    live, jobs = running(2)  # two cores each
    budget = Budget(10, core_hours=1.0)
    plan = decide(replace(SWEEP, budget=budget), live, jobs, 100.0 + 800)
    assert (plan.sweep.phase, plan.again_s) == (S.RUNNING, 100.0)
    plan = decide(replace(SWEEP, budget=budget), live, jobs, 100.0 + 900)
    assert (plan.sweep.phase, plan.end) == (S.ENDING, (0, 1))
    plan = decide(replace(SWEEP, budget=Budget(10, deadline=50.0)), live, jobs, 50.0)
    assert str(plan.sweep.message) == "its deadline has passed"


def test_a_trial_that_was_never_submitted_is_not_once_the_sweep_ends() -> None:
    ending = replace(SWEEP, phase=S.ENDING, outcome="cancelled", message=msg("cancelled by its user"))
    plan = decide(ending, trials(T.PLANNED), {}, 5.0)
    assert (plan.trials[0].state, plan.sweep.phase) == (T.CANCELLED, S.CANCELLED)


def test_the_job_of_a_planned_trial_is_found_again() -> None:
    plan = decide(SWEEP, [SweepTrial(0, {"lr": 0})], {0: TrialJob(job(P.QUEUED))}, 5.0)
    assert (plan.trials[0].state, plan.trials[0].job) == (T.RUNNING, "j")


def test_members_of_an_array_are_called_by_their_index() -> None:
    array = SweepSpec(JOB, grid=(("index", (5, 9)),), array=True)
    assert [trial_name(array, n) for n in (0, 1)] == ["search.5", "search.9"]
    assert label_of(SPEC, 7) == 7


def test_a_failed_sweep_cannot_continue() -> None:
    with pytest.raises(IllegalTransition):
        SWEEP_MACHINE.check(S.FAILED, S.RUNNING, name="search")
