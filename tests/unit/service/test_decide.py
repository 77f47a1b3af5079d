"""What the reconciler does next, as a table: stored job and what the executor sees, to actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import (
    ALIVE,
    JOB_MACHINE,
    Cause,
    Failure,
    Hint,
    Job,
    JobSpec,
    Phase,
    RankStatus,
    Target,
)
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AskedToEnd, AttemptPhase, Observation
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.lifecycle.actions import Action, AddSteps, CheckAgain, Forget, Kill, Update
from mlp_hub.service.lifecycle.turn import KILL_MARGIN_S
from mlp_hub.service.state.moves import Move, Step
from mlp_language.message import msg

P, T, A = Phase, Target, AttemptPhase
NOW, GRACE = 1000.0, 30.0
SPEC = JobSpec("digits", "ann", "red", "mpi", Resources(1000, 0, 100), 2, 2, code="x", retries=1)
BAD = Failure(Cause.PROGRAM_ERROR, rank=1, exit_code=3)


def job(phase: Phase, target: Target = T.RUN, **more: Any) -> Job:
    spec = replace(SPEC, **more.pop("spec", {}))
    placed = ("n1", "n1") if phase not in {P.QUEUED, P.SUSPENDED} else ()
    return Job("u1", spec, phase, target, 1.0, placement=placed, queued_at=1.0, **more)


def seen(phase: AttemptPhase, failure: Failure | None = None, **more: Any) -> Observation:
    return Observation("u1.0", phase, failure=failure, **more)


def outline(actions: list[Action]) -> list[str]:
    """Actions as words: a move by the phase it leads to."""
    return [a.new.phase.value if isinstance(a, Move) else type(a).__name__ for a in actions]


def said_before(actions: list[Action]) -> list[Step]:
    """Steps that are in the timeline before that of the move, if any, and before the attempt is forgotten, if it is."""
    words = outline(actions)
    assert "AddSteps" not in words or "Forget" not in words or words.index("AddSteps") < words.index("Forget")
    steps = [step for action in actions if isinstance(action, AddSteps) for step in action.steps]
    return steps + [step for action in actions if isinstance(action, Move) for step in action.before]


LEAVE = ["Collect", "Forget", "SweepPoints"]
TABLE: list[tuple[Phase, Target, AttemptPhase, list[str]]] = [
    (P.QUEUED, T.RUN, A.ABSENT, []),
    (P.QUEUED, T.SUSPEND, A.ABSENT, ["suspended"]),
    (P.QUEUED, T.CANCEL, A.ABSENT, ["cancelled"]),
    (P.ADMITTED, T.RUN, A.ABSENT, ["starting", "Start"]),
    (P.ADMITTED, T.SUSPEND, A.ABSENT, ["suspended"]),
    (P.ADMITTED, T.PREEMPT, A.ABSENT, ["queued"]),
    (P.ADMITTED, T.CANCEL, A.ABSENT, ["cancelled"]),
    (P.STARTING, T.RUN, A.ABSENT, ["Start"]),
    (P.STARTING, T.RUN, A.STARTING, []),
    (P.STARTING, T.RUN, A.RUNNING, ["running"]),
    (P.STARTING, T.RUN, A.SUCCEEDED, ["finishing"]),
    (P.STARTING, T.RUN, A.FAILED, ["finishing"]),
    (P.STARTING, T.RUN, A.LOST, ["finishing"]),
    (P.STARTING, T.CANCEL, A.ABSENT, ["cancelling"]),
    (P.STARTING, T.SUSPEND, A.STARTING, ["suspending", "Stop"]),
    (P.RUNNING, T.RUN, A.RUNNING, []),
    (P.RUNNING, T.RUN, A.SUCCEEDED, ["finishing"]),
    (P.RUNNING, T.RUN, A.FAILED, ["finishing"]),
    (P.RUNNING, T.RUN, A.LOST, ["finishing"]),
    (P.RUNNING, T.RUN, A.ABSENT, ["finishing"]),
    (P.RUNNING, T.RUN, A.STOPPED, ["finishing"]),
    (P.RUNNING, T.CANCEL, A.RUNNING, ["cancelling", "Stop"]),
    (P.RUNNING, T.SUSPEND, A.RUNNING, ["suspending", "Stop"]),
    (P.RUNNING, T.PREEMPT, A.RUNNING, ["preempting", "Stop"]),
    (P.RUNNING, T.CANCEL, A.SUCCEEDED, ["finishing"]),
    (P.RUNNING, T.CANCEL, A.STOPPED, ["cancelling"]),
    (P.SUSPENDING, T.SUSPEND, A.RUNNING, ["Stop", "CheckAgain"]),
    (P.SUSPENDING, T.SUSPEND, A.STOPPED, [*LEAVE, "suspended"]),
    (P.SUSPENDING, T.SUSPEND, A.ABSENT, [*LEAVE, "suspended"]),
    (P.SUSPENDING, T.SUSPEND, A.LOST, ["Collect", "AddSteps", "Forget", "SweepPoints", "suspended"]),
    (P.SUSPENDING, T.RUN, A.STOPPED, [*LEAVE, "suspended"]),
    (P.SUSPENDING, T.SUSPEND, A.SUCCEEDED, ["finishing"]),
    (P.SUSPENDING, T.SUSPEND, A.FAILED, ["finishing"]),
    (P.SUSPENDING, T.CANCEL, A.RUNNING, ["cancelling", "Stop"]),
    (P.SUSPENDED, T.SUSPEND, A.ABSENT, []),
    (P.SUSPENDED, T.RUN, A.ABSENT, ["queued"]),
    (P.SUSPENDED, T.CANCEL, A.ABSENT, ["cancelled"]),
    (P.PREEMPTING, T.PREEMPT, A.RUNNING, ["Stop", "CheckAgain"]),
    (P.PREEMPTING, T.PREEMPT, A.STOPPED, [*LEAVE, "queued"]),
    (P.PREEMPTING, T.PREEMPT, A.SUCCEEDED, ["finishing"]),
    (P.PREEMPTING, T.SUSPEND, A.RUNNING, ["suspending", "Stop"]),
    (P.PREEMPTING, T.CANCEL, A.RUNNING, ["cancelling", "Stop"]),
    (P.ADMITTED, T.RESIZE, A.ABSENT, ["starting", "Start"]),
    (P.STARTING, T.RESIZE, A.ABSENT, ["resizing"]),
    (P.STARTING, T.RESIZE, A.STARTING, ["resizing", "Stop"]),
    (P.RUNNING, T.RESIZE, A.RUNNING, ["resizing", "Stop"]),
    (P.RUNNING, T.RESIZE, A.STOPPED, ["resizing"]),
    (P.RUNNING, T.RESIZE, A.SUCCEEDED, ["finishing"]),
    (P.RESIZING, T.RESIZE, A.RUNNING, ["Stop", "CheckAgain"]),
    (P.RESIZING, T.RESIZE, A.STOPPED, [*LEAVE, "admitted"]),
    (P.RESIZING, T.RESIZE, A.ABSENT, [*LEAVE, "admitted"]),
    (P.RESIZING, T.RESIZE, A.SUCCEEDED, ["finishing"]),
    (P.RESIZING, T.RESIZE, A.FAILED, ["finishing"]),
    (P.RESIZING, T.RESIZE, A.LOST, ["finishing"]),
    (P.RESIZING, T.PREEMPT, A.RUNNING, ["preempting", "Stop"]),
    (P.RESIZING, T.SUSPEND, A.RUNNING, ["suspending", "Stop"]),
    (P.RESIZING, T.CANCEL, A.STOPPED, ["cancelling", "Stop"]),
    (P.SUSPENDED, T.RESIZE, A.ABSENT, ["queued"]),
    (P.CANCELLING, T.CANCEL, A.RUNNING, ["Stop", "CheckAgain"]),
    (P.CANCELLING, T.CANCEL, A.STOPPED, [*LEAVE, "cancelled"]),
    (P.CANCELLING, T.CANCEL, A.ABSENT, [*LEAVE, "cancelled"]),
    (P.CANCELLING, T.CANCEL, A.FAILED, [*LEAVE, "cancelled"]),
    (P.CANCELLING, T.CANCEL, A.SUCCEEDED, ["finishing"]),
    (P.FINISHING, T.RUN, A.ABSENT, [*LEAVE, "finished"]),
    (P.FINISHED, T.RUN, A.ABSENT, []),
    (P.FINISHED, T.DELETE, A.ABSENT, ["deleting"]),
    (P.FAILED, T.DELETE, A.ABSENT, ["deleting"]),
    (P.CANCELLED, T.DELETE, A.ABSENT, ["deleting"]),
    (P.DELETING, T.DELETE, A.ABSENT, ["Forget", "Erase"]),
]


@pytest.mark.parametrize(("phase", "target", "sight", "want"), TABLE)
def test_the_table_of_decisions(phase: Phase, target: Target, sight: AttemptPhase, want: list[str]) -> None:
    failure = BAD if sight is A.FAILED else None
    assert outline(d.decide(job(phase, target), seen(sight, failure), NOW, GRACE)) == want


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("sight", list(AttemptPhase))
def test_every_combination_is_answered_by_legal_moves(
    phase: Phase, target: Target, sight: AttemptPhase
) -> None:
    moves = [a for a in d.decide(job(phase, target), seen(sight), NOW, GRACE) if isinstance(a, Move)]
    assert len(moves) <= 1
    assert all(m.new.phase in JOB_MACHINE.transitions[phase] for m in moves)


@pytest.mark.parametrize("target", list(Target))
def test_a_running_attempt_is_never_given_up(target: Target) -> None:
    for phase in (P.STARTING, P.RUNNING, P.SUSPENDING, P.PREEMPTING, P.RESIZING, P.CANCELLING):
        for sight in (A.STARTING, A.RUNNING):
            words = outline(d.decide(job(phase, target), seen(sight), NOW, GRACE))
            assert not {"queued", "suspended", "cancelled", "finishing", "Forget", "Start"} & set(words)


@pytest.mark.parametrize(
    ("failure", "failures", "target", "want"),
    [
        (BAD, 0, T.RUN, ("queued", 1, 1)),
        (BAD, 1, T.RUN, ("failed", 0, 1)),
        (Failure(Cause.OUT_OF_MEMORY, rank=0), 0, T.RUN, ("failed", 0, 0)),
        (Failure(Cause.NODE_LOST), 0, T.RUN, ("queued", 1, 0)),
        (Failure(Cause.NODE_LOST), 1, T.RUN, ("queued", 1, 1)),
        (Failure(Cause.TIME_LIMIT), 0, T.RUN, ("failed", 0, 0)),
        (Failure(Cause.START_FAILED), 0, T.RUN, ("failed", 0, 0)),
        (BAD, 0, T.CANCEL, ("cancelled", 0, 0)),
    ],
)
def test_the_cause_of_a_failed_attempt_decides_its_next_phase(
    failure: Failure, failures: int, target: Target, want: tuple[str, int, int]
) -> None:
    stored = job(
        P.FINISHING, target, failure=failure, failures=failures, message=msg("it failed"), finished_at=9.0
    )
    move = d.decide(stored, seen(A.ABSENT), NOW, GRACE)[-1]
    assert isinstance(move, Move)
    assert (move.new.phase.value, move.new.restarts, move.new.failures) == want
    assert move.new.queued_at == 1.0


def test_a_job_that_ran_out_of_memory_is_not_run_with_the_same_again() -> None:
    text = "rank 0 was killed: more memory than its 100 MiB"
    ran_out = Failure(Cause.OUT_OF_MEMORY, rank=0, message=text)
    stored = job(
        P.FINISHING,
        failure=ran_out,
        message=msg(text),
        finished_at=9.0,
    )
    move = d.decide(stored, seen(A.ABSENT), NOW, GRACE)[-1]
    assert isinstance(move, Move)
    why = "; another attempt would ask for the same memory, so there was none; ask for more: --ram 200"
    assert str(move.step.message) == text + why
    assert move.new.failure == replace(ran_out, hint=Hint.SAME_MEMORY, hint_limit=200)
    move = d.decide(replace(stored, failures=1), seen(A.ABSENT), NOW, GRACE)[-1]
    assert isinstance(move, Move)
    # no retry was left
    assert str(move.step.message) == f"{text}; ask for more memory: --ram 200 (after 1 retry)"
    assert move.new.failure == replace(ran_out, hint=Hint.MORE_MEMORY, hint_limit=200)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((1,), "a process of rank 1 was killed for memory; the program continued"),
        ((0, 2), "processes of ranks 0, 2 were killed for memory; the program continued"),
    ],
)
def test_a_process_that_was_killed_for_memory_is_told_before_the_end(
    ranks: tuple[int, ...], text: str
) -> None:
    actions = d.decide(job(P.RUNNING), seen(A.SUCCEEDED, memory_kills=ranks), NOW, GRACE)
    before = [(step.kind, str(step.message)) for a in actions if isinstance(a, Move) for step in a.before]
    assert before == [("memory-killed", text)]


def test_a_requeued_job_forgets_its_attempt_and_no_longer_wants_to_be_preempted() -> None:
    stored = job(P.PREEMPTING, T.PREEMPT, started_at=5.0, admitted_at=4.0)
    move = d.decide(stored, seen(A.STOPPED), NOW, GRACE)[-1]
    assert isinstance(move, Move)
    fresh = replace(job(P.QUEUED), restarts=1, placement=(), message=move.step.message, target=T.RUN)
    assert move.new == replace(fresh, waiting_since=NOW, ran=NOW - 5.0)


def test_the_stop_is_sent_once_and_then_waited_for_and_then_made_sure_of() -> None:
    stored = job(P.CANCELLING, T.CANCEL)
    assert d.decide(stored, seen(A.RUNNING), NOW, GRACE, stop_sent_at=NOW - 1) == [CheckAgain(NOW - 1 + 40)]
    assert d.decide(stored, seen(A.RUNNING), NOW, GRACE, stop_sent_at=NOW - 41) == [
        Kill(),
        CheckAgain(NOW - 41 + 50),
    ]
    gone = d.decide(stored, seen(A.RUNNING), NOW, GRACE, stop_sent_at=NOW - 51)
    assert outline(gone) == ["Collect", "AddSteps", "Forget"]


def test_how_ranks_of_a_cancelled_job_ended_is_stored_before_it_is_forgotten() -> None:
    ran = tuple(RankStatus(n, "worker", "n1", "running", cpu=1.0, ram=100) for n in range(2))
    ended = tuple(replace(one, state="stopped", cpu=None, ram=None, ram_peak=120) for one in ran)
    stored = job(P.CANCELLING, T.CANCEL, ranks=ran)
    update, again = d.decide(stored, seen(A.STOPPED, ranks=ended), NOW, GRACE)
    assert isinstance(update, Update)
    assert (update.job.ranks, again) == (ended, CheckAgain(NOW))
    told = update.job
    assert outline(d.decide(told, seen(A.STOPPED, ranks=ended), NOW, GRACE)) == [*LEAVE, "cancelled"]
    # whoever was killed after it was forgotten, or whose move came too late
    (*_, move) = d.decide(told, seen(A.ABSENT), NOW, GRACE)
    assert isinstance(move, Move)
    assert move.new.ranks == ended


def test_no_rank_of_a_cancelled_job_stays_running_forever() -> None:
    ran = (
        RankStatus(0, "worker", "n1", "finished", exit_code=0, ram_peak=120),
        RankStatus(1, "worker", "n1", "running", cpu=1.0, ram=100),
    )
    (*_, move) = d.decide(job(P.CANCELLING, T.CANCEL, ranks=ran), seen(A.ABSENT), NOW, GRACE)
    assert isinstance(move, Move)
    assert move.new.ranks == (ran[0], replace(ran[1], state="stopped", cpu=None, ram=None))


def test_a_wall_clock_that_was_put_forward_ends_no_job() -> None:
    stored = job(P.RUNNING, started_at=NOW - 25, spec={"time_limit": 300})
    runs = seen(A.RUNNING)
    end = 300 + GRACE + KILL_MARGIN_S
    assert d.decide(stored, runs, NOW + 3600, GRACE, watched_s=25.0) == [CheckAgain(NOW + 3600 - 25 + end)]
    assert isinstance(d.decide(stored, runs, NOW, GRACE, watched_s=end)[0], Kill)


def test_the_final_message_of_a_job_is_its_failure_and_not_the_reason_for_the_delay() -> None:
    failure = Failure(Cause.PROGRAM_ERROR, exit_code=3)
    stored = job(
        P.FINISHING,
        failure=failure,
        spec={"retries": 0},
        message=msg("trying again: {error}", error="the disk is full"),
    )
    move = d.decide(stored, seen(A.ABSENT), NOW, GRACE)[-1]
    assert isinstance(move, Move)
    assert move.new.phase is P.FAILED
    assert str(move.new.message) == str(move.step.message) == "the job failed with exit code 3"


@pytest.mark.parametrize(
    ("phase", "target", "told"),
    [
        (P.RUNNING, T.RUN, "running"),
        (P.STARTING, T.RUN, "starting"),
        (P.SUSPENDING, T.SUSPEND, "suspending"),
        (P.CANCELLING, T.CANCEL, "cancelling"),
        (P.FINISHING, T.RUN, "all ranks ended well"),
    ],
)
def test_once_a_trouble_is_over_a_job_tells_again_what_it_does(
    phase: Phase, target: Target, told: str
) -> None:
    assert str(d.grace_note(job(phase, target=target))).startswith(told)


def test_a_time_limit_that_nobody_enforced_is_enforced_after_all() -> None:
    stored = job(P.RUNNING, started_at=NOW - 100, spec={"time_limit": 50})
    assert outline(d.decide(stored, seen(A.RUNNING), NOW, GRACE)) == ["finishing"]
    earlier = d.decide(stored, seen(A.RUNNING), NOW - 20, GRACE)
    assert earlier == [CheckAgain(NOW - 100 + 50 + GRACE + KILL_MARGIN_S)]


def test_a_clock_that_was_set_back_while_it_ran_leaves_it_as_long_as_it_was() -> None:
    sight = seen(A.SUCCEEDED, started_at=NOW - 40, finished_at=NOW)
    move = d.decide(job(P.RUNNING, started_at=NOW + 3560), sight, NOW, GRACE)[0]
    assert isinstance(move, Move)
    assert move.new.ran_in_all == 40


def test_times_and_ranks_are_those_that_the_executor_saw() -> None:
    ranks = (RankStatus(0, "worker", "n1", "failed", exit_code=3),)
    sight = seen(A.FAILED, BAD, started_at=5.0, finished_at=7.5, ranks=ranks)
    move = d.decide(job(P.STARTING), sight, NOW, GRACE)[0]
    assert isinstance(move, Move)
    assert (move.new.started_at, move.new.finished_at, move.new.ranks) == (5.0, 7.5, ranks)
    assert (move.new.failure, str(move.step.message), move.step.reason) == (
        BAD,
        "rank 1 failed with exit code 3",
        "program-error",
    )


@pytest.mark.parametrize(
    ("phase", "target", "sight", "told"),
    [
        (P.RUNNING, T.RUN, A.SUCCEEDED, 1),
        (P.RUNNING, T.RUN, A.FAILED, 1),
        (P.CANCELLING, T.CANCEL, A.STOPPED, 1),
        (P.SUSPENDING, T.SUSPEND, A.STOPPED, 1),
        (P.RUNNING, T.SUSPEND, A.STOPPED, 0),  # it is told with the next move
        (P.RUNNING, T.RUN, A.RUNNING, 0),
    ],
)
def test_lost_lines_are_told_once_before_the_end(
    phase: Phase, target: Target, sight: AttemptPhase, told: int
) -> None:
    actions = d.decide(job(phase, target), seen(sight, lost_lines=320), 100.0, 30.0)
    before = [(step.kind, str(step.message)) for step in said_before(actions)]
    text = "320 lines of its output could not be kept; if there was room again before its end, its log shows where and why"
    assert before == [("output-lost", text)] * told


@pytest.mark.parametrize("phase", sorted(ALIVE))
@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("sight", [A.SUCCEEDED, A.FAILED, A.STOPPED, A.LOST])
def test_nothing_is_forgotten_of_an_end_before_it_is_in_the_timeline(
    phase: Phase, target: Target, sight: AttemptPhase
) -> None:
    there = seen(sight, lost_lines=46, ending=AskedToEnd(NOW - 2), memory_kills=(0,), finished_at=NOW)
    actions = d.decide(job(phase, target, resize_to=("n1",)), there, NOW, GRACE)
    moves = [action for action in actions if isinstance(action, Move)]
    goes_on = not any(isinstance(action, Forget) for action in actions) and all(
        move.new.phase in ALIVE for move in moves
    )
    steps = [step for step in said_before(actions) if step.kind != "started"]
    told = [] if goes_on else ["output-lost", "asked-to-end", "memory-killed"]
    assert [step.kind for step in steps] == told
    assert all(step.once for step in steps)


@pytest.mark.parametrize(
    ("phase", "target", "after"),
    [
        (P.SUSPENDING, T.SUSPEND, "suspended"),
        (P.PREEMPTING, T.PREEMPT, "queued"),
        (P.RESIZING, T.RESIZE, "admitted"),
        (P.CANCELLING, T.CANCEL, "cancelled"),
    ],
)
def test_an_attempt_that_had_to_be_killed_is_observed_before_it_is_forgotten(
    phase: Phase, target: Target, after: str
) -> None:
    stored = job(phase, target, resize_to=("n1",) if phase is P.RESIZING else ())
    due = NOW + GRACE + KILL_MARGIN_S
    late = due + KILL_MARGIN_S
    assert d.decide(stored, seen(A.RUNNING), due, GRACE, NOW) == [Kill(), CheckAgain(late)]
    # it is gone, and its executor knows how many lines it had lost, or nothing
    for lost, text in (
        (3, "3 lines of its output could not be kept"),
        (0, "the last lines of its output may be"),
    ):
        actions = d.decide(stored, seen(A.LOST, lost_lines=lost), due, GRACE, NOW)
        assert outline(actions) == ["Collect", "AddSteps", "Forget", "SweepPoints", after]
        (step,) = said_before(actions)
        assert (step.kind, step.once) == ("output-lost", True)
        assert str(step.message).startswith(text)
    # nobody can tell: its node is away
    actions = d.decide(stored, seen(A.RUNNING), late, GRACE, NOW)
    assert outline(actions) == ["Collect", "AddSteps", "Forget"]
    assert [step.kind for step in said_before(actions)] == ["output-lost"]
    assert outline(d.decide(stored, seen(A.ABSENT), late, GRACE, NOW)) == [*LEAVE, after]


def test_an_attempt_beyond_its_time_limit_is_killed_before_it_is_given_up() -> None:
    stored = job(P.RUNNING, started_at=NOW - 90, spec={"time_limit": 50})  # and a grace, and a margin
    kill, again = d.decide(stored, seen(A.RUNNING), NOW, GRACE)
    assert isinstance(kill, Kill)
    assert kill.failure is not None
    assert kill.failure.cause is Cause.TIME_LIMIT
    assert again == CheckAgain(NOW + KILL_MARGIN_S)
    actions = d.decide(stored, seen(A.RUNNING), NOW + KILL_MARGIN_S, GRACE)
    assert outline(actions) == ["finishing"]
    assert [step.kind for step in said_before(actions)] == ["output-lost"]


def test_steps_before_a_move_precede_it_in_the_timeline() -> None:
    first, last = Step("output-lost", msg("1 line")), Step("ended", msg("all ranks ended well"))
    move = Move(job(P.RUNNING), job(P.FINISHING), last, before=(first,))
    assert move.steps == (first, last)


def test_a_change_of_ranks_is_stored_without_an_event() -> None:
    ranks = (RankStatus(0, "worker", "n1", "running", cpu=0.5),)
    assert d.decide(job(P.RUNNING), seen(A.RUNNING, ranks=ranks), NOW, GRACE) == [
        Update(job(P.RUNNING, ranks=ranks))
    ]


def test_giving_up_to_start_fails_the_job_with_its_error() -> None:
    move = d.give_up_starting(job(P.STARTING), "no sandbox", 5, NOW)
    text = "could not be started in 5 tries: no sandbox"
    assert move.new.failure is not None
    assert (move.new.phase, move.new.failure.cause, move.new.failure.message) == (
        P.FINISHING,
        Cause.START_FAILED,
        text,
    )
    assert move.new.failure.localized_message == move.step.message  # told to each reader in their language


def test_a_resized_job_continues_with_its_new_placement_and_uses_up_no_retry() -> None:
    stored = job(P.RESIZING, T.RESIZE, started_at=5.0, admitted_at=4.0, failures=1)
    stored = replace(stored, resize_to=("n1",) * 3)
    *_, move = d.decide(stored, seen(A.STOPPED), NOW, GRACE)
    assert isinstance(move, Move)
    new = move.new
    assert (new.phase, new.target, new.placement, new.resize_to) == (P.ADMITTED, T.RUN, ("n1",) * 3, ())
    assert (new.restarts, new.failures) == (stored.restarts + 1, 1)
    assert (new.admitted_at, new.started_at, new.queued_at) == (NOW, None, stored.queued_at)
    assert str(move.step.message) == "continues with 3 workers on node n1"


def test_a_resized_job_whose_node_is_lost_waits_again_and_uses_up_no_retry() -> None:
    stored = replace(job(P.RESIZING, T.RESIZE), resize_to=("n1",))
    (move,) = d.decide(stored, seen(A.LOST), NOW, GRACE)
    assert isinstance(move, Move)
    *_, back = d.decide(move.new, seen(A.LOST), NOW, GRACE)
    assert isinstance(back, Move)
    assert (back.new.phase, back.new.target, back.new.failures) == (P.QUEUED, T.RUN, 0)


def test_the_reason_a_start_waits_is_reported_once() -> None:
    waits = msg("the cluster makes no pods of it yet: {why}", why="exceeded quota")
    (told,) = d.decide(job(P.STARTING), seen(A.STARTING, waits=waits), NOW, GRACE)
    assert isinstance(told, Update)
    assert told.job.message == waits
    assert d.decide(told.job, seen(A.STARTING, waits=waits), NOW, GRACE) == []


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (
            AskedToEnd(NOW - 2, checkpoint_at=NOW - 1),
            "its processes ended by themselves 2.0 s after they were asked to; a checkpoint was written 1.0 s before that",
        ),
        (
            AskedToEnd(NOW - 2, checkpoint_at=NOW - 3),
            "its processes ended by themselves 2.0 s after they were asked to; no checkpoint is newer than the request",
        ),
        (
            AskedToEnd(NOW - 30, killed=True),
            "its processes were killed 30.0 s after they were asked to end; no checkpoint is newer than the request",
        ),
        (
            AskedToEnd(NOW - 30, killed=True, checkpoint_at=NOW - 20),
            "its processes were killed 30.0 s after they were asked to end; a checkpoint was last written 20.0 s before that",
        ),
    ],
)
@pytest.mark.parametrize(
    ("phase", "target", "end"),
    [
        (P.SUSPENDING, T.SUSPEND, A.STOPPED),
        (P.PREEMPTING, T.PREEMPT, A.STOPPED),
        (P.RESIZING, T.RESIZE, A.STOPPED),
        (P.CANCELLING, T.CANCEL, A.STOPPED),
        (P.RUNNING, T.RUN, A.FAILED),
    ],
)
def test_the_timeline_tells_what_came_of_the_request_to_end(
    phase: Phase, target: Target, end: AttemptPhase, ending: AskedToEnd, told: str
) -> None:
    late = Failure(Cause.TIME_LIMIT) if end is A.FAILED else None
    there = seen(end, late, finished_at=NOW, ending=ending)
    old = job(phase, target, resize_to=("n1",) if phase is P.RESIZING else ())
    steps = said_before(d.decide(old, there, NOW, GRACE))
    assert [(step.kind, str(step.message), step.at) for step in steps] == [("asked-to-end", told, NOW)]


def test_a_remark_is_told_once_and_is_gone_when_it_holds_no_more() -> None:
    remark = msg("{who} ended; the others ({left}) still run", who=msg("rank {n}", n=1), left=2)
    old = job(P.RUNNING, message=msg("running {where}", where="on node n1"))
    there = seen(A.RUNNING, remark=remark, remark_at=NOW - 30)
    [update] = [a for a in d.decide(old, there, NOW, GRACE) if isinstance(a, Update)]
    assert update.job.message == remark
    assert update.steps == (Step("remark", remark, at=NOW - 30),)
    assert d.decide(update.job, there, NOW, GRACE) == []
    [back] = [a for a in d.decide(update.job, seen(A.RUNNING), NOW, GRACE) if isinstance(a, Update)]
    assert (str(back.job.message), back.steps) == ("running on node n1", ())
