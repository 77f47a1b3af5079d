"""Decisions about apps: what starts, what ends, and how an app stands, for each state of its replicas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.apps.app import APP_MACHINE, App, AppPhase, AppSpec, replica_name
from mlp_hub.domain.errors import IllegalTransition
from mlp_hub.domain.jobs.job import Cause, Failure, Job, JobSpec, Phase, Replica, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.service.apps.next_action import STEADY_S, decide
from mlp_hub.service.support.limits import DEFAULTS
from mlp_language.message import msg

A, P, T = AppPhase, Phase, Target
SIZE = Resources(1000, 0, 512)
APP = App("u1", "ann", "net", "red", AppSpec(SIZE, "net", 1), 31_000, A.STARTING, 0.0, generation=2, wanted=1)


def job(
    slot: int = 0,
    phase: Phase = P.RUNNING,
    *,
    target: Target = T.RUN,
    generation: int = 2,
    ran: float | None = None,
) -> Job:
    spec = JobSpec(
        replica_name("net", slot),
        "ann",
        "red",
        "plain",
        SIZE,
        code="x",
        replica=Replica("u1", "net", generation),
    )
    times = {} if ran is None else {"started_at": 1000.0 - ran, "finished_at": 1000.0}
    failure = Failure(Cause.PROGRAM_ERROR, message="it broke", tail="boom") if phase is P.FAILED else None
    return Job(f"j{slot}.{generation}", spec, phase, target, 0.0, failure=failure, **times)


def test_missing_replicas_start_in_the_lowest_free_slots() -> None:
    plan = decide(replace(APP, wanted=3), [job(1)], set(), 0.0)
    assert plan.start == (0, 2)
    assert plan.app.phase is A.STARTING
    assert decide(APP, [job(0, P.CANCELLING, target=T.CANCEL)], set(), 0.0).start == (1,)


def test_it_runs_once_one_answers_and_says_how_many_do_not() -> None:
    assert decide(APP, [job()], {"j0.2"}, 0.0).app.phase is A.RUNNING
    partly = decide(replace(APP, wanted=2), [job(0), job(1)], {"j1.2"}, 0.0).app
    assert (partly.phase, str(partly.message)) == (A.RUNNING, "1 of 2 replicas answer")


def test_it_waits_while_all_its_replicas_are_in_the_queue() -> None:
    queued = replace(job(phase=P.QUEUED), message=msg("no room"))
    waits = decide(APP, [queued], set(), 0.0).app
    assert (waits.phase, str(waits.message)) == (A.WAITING, "no room")


def test_a_failure_without_a_message_leaves_the_message_of_the_job() -> None:
    silent = replace(
        job(phase=P.FAILED), failure=Failure(Cause.SIGNAL, signal=9), message=msg("killed by signal 9")
    )
    assert str(decide(APP, [silent], set(), 0.0).app.message) == "a replica ended: killed by signal 9"


def test_an_ended_replica_is_counted_and_retried_with_growing_delays() -> None:
    failed = [job(phase=P.FAILED, ran=5.0)]
    once = decide(APP, failed, set(), 1000.0)
    assert (once.app.failures, once.app.not_before, once.app.tail) == (1, 1001.0, "boom")
    assert (once.start, once.again_s, once.forget) == ((), 1.0, tuple(failed))
    assert once.app.phase is A.STARTING
    twice = decide(once.app, failed, set(), 1000.0).app
    assert (twice.phase, str(twice.message), twice.not_before) == (
        A.ERROR,
        "a replica ended: it broke",
        1002.0,
    )
    many = decide(replace(APP, failures=50), failed, set(), 1000.0).app
    assert many.not_before == 1000.0 + DEFAULTS.app_retry_max_s
    assert decide(replace(APP, failures=50), [], set(), 1000.0).start == (0,)
    steady = decide(replace(APP, failures=50), [job(phase=P.FAILED, ran=STEADY_S + 1)], set(), 1000.0).app
    assert steady.failures == 1


def test_a_requested_end_does_not_count_as_a_failure_and_a_successful_exit_does() -> None:
    ended = job(phase=P.CANCELLED, target=T.CANCEL)
    assert decide(APP, [ended], set(), 1000.0).app.failures == 0
    told = decide(APP, [job(phase=P.FINISHED, ran=1.0)], set(), 1000.0).app
    assert "must run until it is asked to stop" in str(told.message)


def test_an_old_generation_goes_once_the_new_one_answers() -> None:
    old = job(0, generation=1)
    first = decide(APP, [old], {"j0.1"}, 0.0)
    assert (first.start, first.stop, first.app.phase) == ((1,), (), A.RUNNING)
    new = job(1)
    assert decide(APP, [old, new], {"j0.1"}, 0.0).stop == ()
    assert decide(APP, [old, new], {"j0.1", "j1.2"}, 0.0).stop == (old,)
    assert decide(APP, [old, new], set(), 0.0).stop == (old,)  # it answers nobody
    wide = replace(APP, wanted=3)
    three = [job(slot, generation=1) for slot in range(3)]
    ready = {each.uid for each in three}
    assert decide(wide, three, ready, 0.0).start == (3,)
    step = decide(wide, [*three, job(3)], {*ready, "j3.2"}, 0.0)
    assert (len(step.stop), step.start) == (1, (4,))


def test_a_change_that_waits_for_room_says_that_the_old_one_answers_and_the_way_out() -> None:
    old, queued = job(0, generation=1), job(1, P.QUEUED)
    waits = decide(APP, [old, queued], {"j0.1"}, 0.0)
    assert (waits.stop, waits.app.phase) == ((), A.RUNNING)
    assert str(waits.app.message).startswith(
        "the version before the change answers; the new one waits for room"
    )
    assert str(waits.app.message).endswith("end other work, or delete the app and deploy it again")
    wide = decide(
        replace(APP, wanted=2), [old, job(1, generation=1), job(2, P.QUEUED)], {"j0.1", "j1.1"}, 0.0
    )
    assert str(wide.app.message).endswith("end other work, or scale the app down by one")
    starts = decide(APP, [old, job(1, P.STARTING)], {"j0.1"}, 0.0)
    assert str(starts.app.message) == "the version before the change answers until the new one does"


def test_too_many_end_what_does_not_answer_first() -> None:
    plan = decide(replace(APP, wanted=1), [job(0), job(1), job(2)], {"j2.2"}, 0.0)
    assert {each.uid for each in plan.stop} == {"j0.2", "j1.2"}
    assert plan.app.phase is A.RUNNING


def test_one_that_sleeps_ends_all_and_says_how_it_wakes() -> None:
    plan = decide(replace(APP, wanted=0), [job(0), job(1, generation=1)], {"j0.2"}, 0.0)
    assert len(plan.stop) == 2
    assert plan.app.phase is A.WAITING
    assert "next request" in str(plan.app.message)


def test_a_suspended_replica_is_ended() -> None:
    aside = job(0, P.SUSPENDED, target=T.SUSPEND)
    assert decide(APP, [aside], set(), 0.0).stop == (aside,)


def test_one_that_is_deleted_ends_all_and_is_gone_when_nothing_is_left() -> None:
    deleting = replace(APP, phase=A.DELETING, wanted=0)
    ended, runs = job(0, P.FAILED), job(1)
    plan = decide(deleting, [ended, runs, job(2, P.DELETING, target=T.DELETE)], set(), 0.0)
    assert (plan.stop, plan.forget, plan.gone) == ((runs,), (ended,), False)
    assert decide(deleting, [], set(), 0.0).gone


def test_nothing_comes_back_from_being_deleted() -> None:
    for phase in A:
        with pytest.raises(IllegalTransition):
            APP_MACHINE.check(A.DELETING, phase, name="net")
        if phase is not A.DELETING:
            APP_MACHINE.check(phase, A.DELETING, name="net")
