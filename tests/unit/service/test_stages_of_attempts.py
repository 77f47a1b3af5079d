"""When a job's attempts came to which stage: from its timeline, which the moves of the reconciler write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.stages import NO_TIMES, StageTimes, StartStage
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.jobs.stages import MOST_ATTEMPTS, StagedAttempt, attempts_of
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.lifecycle.actions import Action, CheckAgain, Update
from mlp_hub.service.state.moves import Move
from mlp_hub.store.records import JobEvent
from mlp_hub.store.repos.jobs import job_rows
from mlp_language.message import NOTHING

SPEC = JobSpec("a", "ann", "red", "plain", Resources(cpu=1000, ram=100), code="pass")
SEEN = StageTimes(101.0, 102.0, 103.0)


def job(phase: Phase, **more: Any) -> Job:
    made = Job("u", SPEC, phase, Target.RUN, 90.0, queued_at=90.0, admitted_at=100.0, placement=("n",))
    return replace(made, **more)


def seen(phase: AttemptPhase, **more: Any) -> Observation:
    return Observation("u.0", phase, **more)


def decide(of: Job, what: Observation, now: float) -> list[Action]:
    return d.decide(of, what, now, 30.0)


def told(*events: tuple[str, float], restarts: int = 0) -> list[StagedAttempt]:
    return attempts_of([JobEvent(i, at, kind, NOTHING) for i, (kind, at) in enumerate(events, 1)], restarts)


def test_a_quick_start_stores_all_its_stages_as_it_runs() -> None:
    assert decide(job(Phase.STARTING), seen(AttemptPhase.STARTING, stages=SEEN), 101.5) == [CheckAgain(102.0)]
    (move,) = decide(job(Phase.STARTING), seen(AttemptPhase.RUNNING, started_at=104.0, stages=SEEN), 104.5)
    assert isinstance(move, Move)
    assert [(step.kind, step.at) for step in move.steps] == [
        ("created", 101.0), ("bound", 102.0), ("pulled", 103.0), ("running", 104.0),
    ]  # fmt: skip
    assert move.new.stages == SEEN


def test_a_slow_start_stores_each_stage_and_none_twice() -> None:
    made = StageTimes(created=101.0)
    (update,) = decide(job(Phase.STARTING), seen(AttemptPhase.STARTING, stages=made), 110.0)
    assert isinstance(update, Update)
    assert ([step.kind for step in update.steps], update.job.stages) == (["created"], made)
    assert decide(update.job, seen(AttemptPhase.STARTING, stages=made), 111.0) == []
    # an executor that has forgotten what it saw takes nothing back
    assert decide(update.job, seen(AttemptPhase.STARTING), 112.0) == []
    (move,) = decide(update.job, seen(AttemptPhase.RUNNING, started_at=113.0), 113.0)
    assert isinstance(move, Move)
    assert ([step.kind for step in move.steps], move.new.stages) == (["running"], made)


def test_the_first_line_is_stored_once_it_is_seen() -> None:
    runs = job(Phase.RUNNING, started_at=104.0, stages=SEEN)
    (update,) = decide(
        runs, seen(AttemptPhase.RUNNING, started_at=104.0, stages=StageTimes(first_line=105.0)), 109.0
    )
    assert isinstance(update, Update)
    assert [(step.kind, step.at) for step in update.steps] == [("first-line", 105.0)]
    assert update.job.stages == replace(SEEN, first_line=105.0)


def test_an_attempt_nobody_saw_running_reports_its_stages_as_it_ends() -> None:
    over = seen(
        AttemptPhase.SUCCEEDED, started_at=100.5, finished_at=101.0, stages=StageTimes(first_line=100.7)
    )
    (move,) = decide(job(Phase.STARTING), over, 101.2)
    assert isinstance(move, Move)
    assert [(step.kind, step.at) for step in move.steps] == [
        ("started", 100.5), ("first-line", 100.7), ("ended", 101.0),
    ]  # fmt: skip
    assert move.new.stages == NO_TIMES


def test_stages_are_stored_with_a_job_that_runs() -> None:
    for stages in (NO_TIMES, SEEN):
        stored = job(Phase.RUNNING, started_at=104.0, waited=10.0, stages=stages)
        row = {**job_rows.ROWS.row(stored), "name": "a"}
        assert job_rows.job_of(type("Row", (), row)) == stored
    assert job_rows.ROWS.row(job(Phase.RUNNING, waited=10.0))["past"] is None
    older = {**job_rows.ROWS.row(job(Phase.RUNNING)), "past": "[null,3.5,0.0,null,null]"}
    assert job_rows.job_of(type("Row", (), older)).waited == 3.5


def test_an_attempt_has_its_stages_in_order_whatever_clocks_say() -> None:
    (attempt,) = told(
        ("submitted", 10), ("waiting", 11), ("admitted", 12), ("starting", 12.1), ("created", 12.5), ("bound", 12.4),
        ("running", 15), ("first-line", 14.9), ("ended", 20), ("finished", 21),
    )  # fmt: skip
    assert (attempt.number, attempt.ended, attempt.ended_at) == (1, "ended", 20)
    assert [(stage.value, at, None if s is None else round(s, 3)) for stage, at, s in attempt.in_order()] == [
        ("queued", 10, None), ("admitted", 12, 2), ("created", 12.5, 0.5), ("bound", 12.5, 0),
        ("started", 15, 2.5), ("first-line", 15, 0),
    ]  # fmt: skip


def test_each_attempt_is_listed_with_its_number_and_its_end() -> None:
    ran = (("admitted", 1.0), ("starting", 1.0), ("running", 2.0))
    found = told(
        ("submitted", 0), *ran, ("preempted", 3), ("preempting", 3), ("requeued", 4),
        *ran, ("resizing", 5), ("resized", 6), ("starting", 6), ("running", 7), ("suspended", 8), ("resumed", 9),
        restarts=3,
    )  # fmt: skip
    assert [(a.number, a.ended, next(iter(a.stages))) for a in found] == [
        (1, "requeued", StartStage.QUEUED), (2, "resized", StartStage.QUEUED), (3, "suspended", StartStage.ADMITTED),
        (4, None, StartStage.QUEUED),
    ]  # fmt: skip
    retried = told(("submitted", 0), *ran, ("attempt-failed", 3), ("requeued", 4), restarts=1)
    assert [(a.number, a.ended) for a in retried] == [(1, "attempt-failed"), (2, None)]


def test_a_job_that_left_the_queue_before_its_start_begins_to_wait_again() -> None:
    (attempt,) = told(
        ("submitted", 0), ("suspended", 5), ("resumed", 20), ("admitted", 21), ("preempted", 22)
    )
    assert attempt.stages == {StartStage.QUEUED: 22}
    assert told(("submitted", 0), ("suspended", 5)) == []


def test_of_a_long_timeline_the_newest_attempts_are_told() -> None:
    again = [
        ("admitted", 1.0),
        ("starting", 1.0),
        ("running", 2.0),
        ("attempt-failed", 3.0),
        ("requeued", 4.0),
    ]
    found = told(*again * 50, restarts=500)
    assert len(found) == MOST_ATTEMPTS
    assert (found[-1].number, found[-2].ended) == (501, "attempt-failed")
