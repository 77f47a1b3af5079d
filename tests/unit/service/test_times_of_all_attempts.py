"""How long a job waited and ran, over all that happened to it: each second counts once, as what it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Cause, Failure, Job, JobSpec, Phase, Target, wait_ends, with_progress
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.admission.snapshot import waiting_of
from mlp_hub.service.jobs.wire import job_to, queue_to
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.state.former_members import put_aside
from mlp_hub.service.state.moves import Move, Step
from mlp_language.message import NOTHING

P, T, A = Phase, Target, AttemptPhase
SPEC = JobSpec("digits", "ann", "red", "mpi", Resources(1000, 0, 100), 1, 4, code="x", retries=3)


def new(at: float = 0.0) -> Job:
    return Job("u1", SPEC, P.QUEUED, T.RUN, at, queued_at=at, waiting_since=at)


def admitted(job: Job, at: float, workers: int = 2) -> Job:
    changes: dict[str, Any] = {**wait_ends(job, at)}
    return replace(job, phase=P.ADMITTED, placement=("n1",) * workers, admitted_at=at, **changes)


def last_of(job: Job, phase: AttemptPhase, at: float, **seen: Any) -> Job:
    """The job after all that follows of what the executor sees."""
    moves = [
        a for a in d.decide(job, Observation(job.attempt, phase, **seen), at, 30.0) if isinstance(a, Move)
    ]
    return moves[-1].new


def running(job: Job, at: float) -> Job:
    return last_of(replace(job, phase=P.STARTING), A.RUNNING, at, started_at=at)


def stopped(job: Job, phase: Phase, target: Target, at: float, **more: Any) -> Job:
    return last_of(replace(job, phase=phase, target=target, **more), A.STOPPED, at, finished_at=at)


def requeued(at: float) -> Job:
    """A job that waited for 2 s, ran for 10 s, and is back in the queue at 13."""
    return replace(
        stopped(running(admitted(new(), 2.0), 3.0), P.PREEMPTING, T.PREEMPT, 13.0), version=int(at)
    )


def test_a_preempted_job_waits_since_its_preemption_and_keeps_its_age_in_the_queue() -> None:
    job = requeued(13.0)
    assert (job.waiting_since, job.waited, job.ran) == (13.0, 2.0, 10.0)
    assert job.queued_at == 0.0
    seen = waiting_of(job)
    assert (seen.queued_at, seen.waits_since) == (0.0, 13.0)
    again = admitted(job, 20.0)
    assert (again.waiting_since, again.waited, again.ran) == (None, 9.0, 10.0)


def test_a_job_that_never_ran_waits_since_its_submission() -> None:
    seen = waiting_of(new(5.0))
    assert (seen.queued_at, seen.waits_since, seen.requeued_at) == (5.0, 5.0, None)


def test_a_resize_does_not_count_as_a_wait_and_runtime_before_it_counts() -> None:
    job = running(admitted(new(), 2.0, workers=4), 3.0)
    resized = stopped(job, P.RESIZING, T.RESIZE, 53.0, resize_to=("n1",))
    assert (resized.phase, resized.waiting_since, resized.waited, resized.ran) == (
        P.ADMITTED,
        None,
        2.0,
        50.0,
    )
    done = last_of(running(resized, 54.0), A.SUCCEEDED, 60.0, finished_at=60.0)
    assert (done.ran, done.ran_in_all) == (50.0, 56.0)
    finished = d.finish_of(Move(done, done, Step("ended", NOTHING)))
    assert finished is not None
    assert str(finished.step.message) == "finished after 56.0 s, 6.0 s of it in its last attempt"


def test_the_time_suspended_is_neither_waited_nor_run() -> None:
    job = stopped(running(admitted(new(), 2.0), 3.0), P.SUSPENDING, T.SUSPEND, 13.0)
    assert (job.phase, job.waiting_since, job.waited, job.ran) == (P.SUSPENDED, None, 2.0, 10.0)
    resumed = last_of(replace(job, target=T.RUN), A.ABSENT, 500.0)
    assert (resumed.phase, resumed.waiting_since, resumed.waited, resumed.ran) == (P.QUEUED, 500.0, 2.0, 10.0)


def test_suspended_in_the_queue_it_has_waited_until_then() -> None:
    job = last_of(replace(requeued(13.0), target=T.SUSPEND), A.ABSENT, 20.0)
    assert (job.phase, job.waiting_since, job.waited) == (P.SUSPENDED, None, 9.0)
    aside = put_aside(requeued(13.0), 21.0)
    assert (aside.phase, aside.waiting_since, aside.waited) == (P.SUSPENDED, None, 10.0)


@pytest.mark.parametrize("cause", [Cause.NODE_LOST, Cause.PROGRAM_ERROR])
def test_an_attempt_that_failed_ran_until_it_did(cause: Cause) -> None:
    job = running(admitted(new(), 2.0), 3.0)
    failed = last_of(job, A.FAILED, 14.0, finished_at=13.0, failure=Failure(cause, message="bad"))
    again = last_of(failed, A.ABSENT, 15.0)
    assert (again.phase, again.waiting_since, again.ran) == (P.QUEUED, 15.0, 10.0)


def test_an_attempt_of_which_nothing_ran_adds_nothing() -> None:
    job = replace(admitted(new(), 2.0), phase=P.STARTING)
    again = stopped(job, P.PREEMPTING, T.PREEMPT, 13.0)
    assert (again.waiting_since, again.waited, again.ran, again.restarts) == (13.0, 2.0, 0.0, 1)


def test_an_attempt_that_nobody_saw_run_before_it_was_stopped_ran_all_the_same() -> None:
    job = replace(admitted(new(), 2.0), phase=P.PREEMPTING, target=T.PREEMPT)
    again = last_of(job, A.STOPPED, 14.0, started_at=3.0, finished_at=13.0)
    assert again.ran == 10.0


def test_a_job_that_gives_way_before_its_start_waits_again() -> None:
    job = last_of(replace(admitted(new(), 2.0), target=T.PREEMPT), A.ABSENT, 3.0)
    assert (job.phase, job.waiting_since, job.waited, job.ran) == (P.QUEUED, 3.0, 2.0, 0.0)


def told(job: Job, at: float = 20.0) -> str:
    (move,) = d.decide(replace(job, target=T.CANCEL), Observation(job.attempt, A.ABSENT), at, 30.0)
    assert isinstance(move, Move)
    assert move.new.waiting_since is None
    return str(move.step.message)


def test_a_cancelled_job_is_told_as_one_that_ran_if_it_did() -> None:
    once = requeued(13.0)
    twice = stopped(running(admitted(once, 20.0), 20.0), P.PREEMPTING, T.PREEMPT, 25.0)
    assert told(new()) == "cancelled before it started"
    assert told(admitted(new(), 2.0)) == "cancelled before it started"
    assert told(once) == "cancelled while it waited to continue; it had run for 10.0 s"
    assert told(twice, 30.0) == "cancelled while it waited to continue; it had run for 15.0 s in all"
    assert told(admitted(once, 15.0)) == "cancelled before it continued; it had run for 10.0 s"
    suspended = last_of(replace(once, target=T.SUSPEND), A.ABSENT, 20.0)
    assert told(suspended) == "cancelled while suspended; it had run for 10.0 s"


def test_a_job_of_one_attempt_is_told_as_before() -> None:
    done = last_of(running(admitted(new(), 2.0), 3.0), A.SUCCEEDED, 13.0, finished_at=13.0)
    finished = d.finish_of(Move(done, done, Step("ended", NOTHING)))
    assert finished is not None
    assert str(finished.step.message) == "finished after 10.0 s"


def test_the_wire_has_all_attempts_and_since_when_it_waits() -> None:
    job = requeued(13.0)
    wire = job_to(job)
    assert wire.waiting_since is not None
    assert (wire.waiting_since.timestamp(), wire.waited_s, wire.ran_s) == (13.0, 2.0, 10.0)
    line = queue_to(job, None, None)
    assert (line.waiting_since, line.waited_s, line.ran_s) == (wire.waiting_since, 2.0, 10.0)
    done = last_of(running(admitted(job, 20.0), 21.0), A.SUCCEEDED, 26.0, finished_at=26.0)
    wire = job_to(done)
    assert (wire.waiting_since, wire.waited_s, wire.ran_s) == (None, 9.0, 15.0)


def test_progress_of_a_first_attempt_counts_from_its_start_and_from_zero() -> None:
    job = with_progress(running(admitted(new(), 2.0), 3.0), 40, 9.0)
    assert (job.progress, job.progress_from, job.progress_since) == (40, None, None)
    wire = job_to(job)
    assert wire.progress_since is not None
    assert (wire.progress_from, wire.progress_since.timestamp()) == (0, 3.0)


def test_the_first_progress_report_of_a_later_attempt_is_its_starting_point() -> None:
    job = running(admitted(requeued(13.0), 20.0), 21.0)
    wire = job_to(job)
    assert (wire.progress, wire.progress_from, wire.progress_since) == (0, 0, None)
    job = with_progress(job, 60, 30.0)
    assert (job.progress, job.progress_from, job.progress_since) == (60, 60, 30.0)
    job = with_progress(job, 70, 40.0)
    assert (job.progress, job.progress_from, job.progress_since) == (70, 60, 30.0)
    assert with_progress(job, 70, 50.0) is job
    again = stopped(job, P.PREEMPTING, T.PREEMPT, 60.0)
    assert (again.progress, again.progress_from, again.progress_since) == (0, None, None), (
        "the next attempt begins anew"
    )
