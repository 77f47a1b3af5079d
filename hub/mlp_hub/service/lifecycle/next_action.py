"""Next action for one job: a pure function of the stored state and the executor's view.

The reconciler calls `decide` repeatedly; each answer is a short list of actions to do in order. A
`Move` is one transaction. State that must be durable before an action on it is its own `Move`.
Actions that must be done before their result is stored are before the `Move`, and can be done
twice. These are the removal of an attempt's remains, and the storage of its last metrics. Only these
remains tell some things, such as lost output: they are in the timeline before the removal.

Nothing is remembered here between calls except the job itself: after a crash the same function is
the recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import (
    Cause,
    Failure,
    Hint,
    Job,
    Phase,
    RankStatus,
    Target,
)
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.lifecycle import actions
from mlp_hub.service.lifecycle.actions import Action
from mlp_hub.service.lifecycle.messages import (
    OUTPUT_CUT,
    REMARKS,
    ended,
    ranks_on,
    remedy,
    took,
)
from mlp_hub.service.lifecycle.turn import KILL_MARGIN_S, Turn, move_job
from mlp_hub.service.state.moves import Move, Step
from mlp_language.message import Message, msg, msgs, to_data

STARTS_SOON_S = 2.0
"""Tuning: seconds after its admission in which the stages of a start are not stored one by one: a quick one stores all of them
as it runs, in the transaction that there is anyway."""


A = AttemptPhase
P = Phase
T = Target
_GOES_ON = frozenset({"pending", "running"})
_GONE = frozenset({A.ABSENT, A.STOPPED, A.LOST})
_NOT_AGAIN = frozenset({Cause.TIME_LIMIT, Cause.START_FAILED, Cause.DISK, Cause.OUT_OF_MEMORY})
_CUT = Step("output-lost", OUTPUT_CUT, once=True)
_STOPPING: Mapping[Target, tuple[Phase, Message]] = {
    T.CANCEL: (P.CANCELLING, msg("cancelling: its ranks are asked to end")),
    T.DELETE: (P.CANCELLING, msg("cancelling: its ranks are asked to end")),
    T.SUSPEND: (P.SUSPENDING, msg("suspending: its ranks can save a checkpoint and end")),
    T.PREEMPT: (
        P.PREEMPTING,
        msg("its ranks are asked to end, and can save a checkpoint first; then it waits in the queue again"),
    ),
    T.RESIZE: (
        P.RESIZING,
        msg("its ranks can save a checkpoint and end; it continues with another number of ranks"),
    ),
}


def decide(  # noqa: PLR0917 - all that is known of a job
    job: Job,
    seen: Observation,
    now: float,
    grace_s: float,
    stop_sent_at: float | None = None,
    watched_s: float | None = None,
) -> list[Action]:
    """Return what to do next for the job.

    `seen` is its present attempt as the executor sees it, `stop_sent_at` when this process asked the attempt to
    end (None: not yet, as far as it knows), `watched_s` for how long it has seen the attempt run, by a clock that nobody sets
    (None: since its start). An empty list means: nothing, until something happens.
    """
    return _TABLE[job.phase](Turn(job, seen, now, grace_s, stop_sent_at, watched_s))


def grace_note(job: Job) -> Message | None:
    """Return what a job tells in its phase while nothing is wrong; None where only the move to it knew."""
    match job.phase:
        case P.STARTING:
            return start_message(job)
        case P.RUNNING:
            return msg("running {where}", where=ranks_on(job.placement))
        case P.FINISHING:
            return msg("all ranks ended well") if job.failure is None else ended(job.failure)
        case _ if job.target in _STOPPING and _STOPPING[job.target][0] is job.phase:
            return _STOPPING[job.target][1]
        case _:
            return None


def give_up_starting(job: Job, error: Message | str, tries: int, now: float) -> Move:
    """Return the move for an attempt that could not start in `tries` tries, or that never can (one try)."""
    message = msgs(
        "cannot be started: {error}", "could not be started in {n} tries: {error}", n=tries, error=error
    )
    failure = Failure(Cause.START_FAILED, message=str(message), said=to_data(message))
    return move_job(
        job, P.FINISHING, "start-failed", message, Cause.START_FAILED, failure=failure, finished_at=now
    )


def start_of(job: Job) -> Move:
    """Return the move of an admitted job to start; the executor is asked once it is stored."""
    return move_job(job, P.STARTING, "starting", start_message(job), target=T.RUN, resize_to=())


def start_message(job: Job) -> Message:
    """Say where the ranks of a job are about to start."""
    return msgs(
        "starting {n} rank {where}",
        "starting {n} ranks {where}",
        n=len(job.placement),
        where=ranks_on(job.placement),
    )


def finish_of(ended: Move) -> Move | None:
    """Return the move combined with the next one, if an attempt has ended well and nothing is left to store.

    Both can be stored together: all its ranks are gone. Its traces are removed after that, at the
    latest by the next process. That process removes the traces of all attempts that are not in
    progress.
    """
    job = ended.new
    if job.phase is not P.FINISHING or job.failure is not None:
        return None
    return ended.then(_finished(job))


def _finished(job: Job) -> Move:
    if job.started_at is None:
        message = msg("finished")
    elif job.ran:
        message = msg(
            "finished after {span}, {last} of it in its last attempt",
            span=took(job.ran_in_all),
            last=took(job.ran_in_all - job.ran),
        )
    else:
        message = msg("finished after {span}", span=took(job.ran_in_all))
    return move_job(job, P.FINISHED, "finished", message, progress=100)


def _queued(t: Turn) -> list[Action]:
    match t.job.target:
        case T.CANCEL | T.DELETE:
            return [
                _given_up(t, msg("cancelled while it waited to continue"), msg("cancelled before it started"))
            ]
        case T.SUSPEND:
            message = msg("suspended; it keeps its age in the queue")
            return [t.moved(P.SUSPENDED, "suspended", message, "Suspended")]
        case T.RUN | T.PREEMPT | T.RESIZE:
            return []


def _admitted(t: Turn) -> list[Action]:
    # the executor has not heard of this attempt: it is told only once `starting` is stored
    match t.job.target:
        case T.CANCEL | T.DELETE:
            after, before = msg("cancelled before it continued"), msg("cancelled before it started")
            return [_given_up(t, after, before, placement=())]
        case T.SUSPEND:
            message = msg("suspended before it started; it keeps its age in the queue")
            return [t.moved(P.SUSPENDED, "suspended", message, "Suspended", placement=(), admitted_at=None)]
        case T.PREEMPT:
            message = msg("gave way before it started; it keeps its age in the queue")
            return [t.moved(P.QUEUED, "preempted", message, placement=(), admitted_at=None, target=T.RUN)]
        case T.RUN | T.RESIZE:
            # who was not started yet is resized at once, by the transaction that decides so
            return [start_of(t.job), actions.Start()]


def _starting(t: Turn) -> list[Action]:
    if t.seen.phase is A.ABSENT:
        if t.job.target is T.RUN:
            return [actions.Start()]
        return [_ask_to_end(t)]
    if t.seen.phase is A.STARTING:
        return _unless_unwanted(t, _still_starting(t))
    if t.seen.phase is A.RUNNING:
        return [_runs(t)]
    return _ended(t)


def _still_starting(t: Turn) -> list[Action]:
    job, waits, passed = t.job, t.seen.waits, t.passed
    soon = (job.admitted_at or t.now) + STARTS_SOON_S
    due: list[Action] = []
    if passed and t.now < soon:
        due, passed = [actions.CheckAgain(soon)], ()
    if waits is not None and waits != job.message:
        job = replace(job, message=waits)
    if passed:
        job = replace(job, stages=t.stages)
    return due if job is t.job else [actions.Update(job, passed), *due]


def _running(t: Turn) -> list[Action]:
    if t.seen.phase not in (A.STARTING, A.RUNNING):
        return _ended(t)
    due: list[Action] = []
    passed = t.passed
    message, remarks = _remarked(t)
    if passed or remarks or message != t.job.message or (t.seen.ranks and t.seen.ranks != t.job.ranks):
        new = replace(t.job, ranks=t.seen.ranks or t.job.ranks, stages=t.stages, message=message)
        due.append(actions.Update(new, (*passed, *remarks)))
    left = t.job.time_left
    if t.job.steered.limited:
        due.append(actions.Relimit(left))
    if left is not None and t.job.started_at is not None:
        ran = t.watched_s if t.watched_s is not None else t.now - t.job.started_at
        end = t.now - ran + left + t.grace_s + KILL_MARGIN_S
        if t.now >= end:
            # the executor enforces limits; this is for one that was not there to do so
            failure = Failure(
                Cause.TIME_LIMIT, message=f"ran longer than its time limit of {t.job.spec.time_limit} s"
            )
            if t.now < end + KILL_MARGIN_S:
                return [actions.Kill(failure), actions.CheckAgain(end + KILL_MARGIN_S)]
            finishing = _finishing(t, failure)
            return [changed(finishing, before=(*finishing.before, _CUT))]
        due.append(actions.CheckAgain(end))
    return _unless_unwanted(t, due)


def _remarked(t: Turn) -> tuple[Message, tuple[Step, ...]]:
    """Return the message of the job while it runs, and the step of a new remark."""
    job, remark = t.job, t.seen.remark
    if remark is not None and remark != job.message:
        return remark, (Step("remark", remark, at=t.seen.remark_at),)
    if remark is None and job.message.template in REMARKS:
        return msg("running {where}", where=ranks_on(job.placement)), ()
    return job.message, ()


def _suspending(t: Turn) -> list[Action]:
    if t.job.target in (T.CANCEL, T.DELETE):
        return [_ask_to_end(t), actions.Stop(t.grace_s)]
    if t.seen.phase in _GONE:
        message, reason = msg("suspended; it keeps its age in the queue"), Reason.SUSPENDED.value
        if t.job.reason == Reason.IDLE_GPUS:
            message, reason = t.job.message, t.job.reason
        return _leave(t, t.moved(P.SUSPENDED, "suspended", message, reason, **t.next_attempt()))
    return _ended(t) if t.seen.phase in (A.SUCCEEDED, A.FAILED) else _see_to_its_end(t)


def _preempting(t: Turn) -> list[Action]:
    if t.job.target in (T.CANCEL, T.DELETE, T.SUSPEND):
        return [_ask_to_end(t), actions.Stop(t.grace_s)]
    if t.seen.phase in _GONE:
        message = msg("back in the queue with its age kept: the other job gets its resources")
        return _leave(t, t.moved(P.QUEUED, "requeued", message, None, **t.next_attempt()))
    return _ended(t) if t.seen.phase in (A.SUCCEEDED, A.FAILED) else _see_to_its_end(t)


def _resizing(t: Turn) -> list[Action]:
    if t.job.target in (T.CANCEL, T.DELETE, T.SUSPEND, T.PREEMPT):
        return [_ask_to_end(t), actions.Stop(t.grace_s)]
    if t.seen.phase in (A.ABSENT, A.STOPPED) or (t.seen.phase is A.LOST and t.was_killed):
        workers = len(t.job.resize_to) - t.job.spec.ps
        message = msgs(
            "continues with {n} worker {where}",
            "continues with {n} workers {where}",
            n=workers,
            where=ranks_on(t.job.resize_to),
        )
        changes = {
            **t.next_attempt(),
            "placement": t.job.resize_to,
            "admitted_at": t.now,
            "ran_before": t.job.ran_before + t.ran,
        }
        return _leave(t, t.moved(P.ADMITTED, "resized", message, None, **changes))
    if t.seen.phase in (A.SUCCEEDED, A.FAILED, A.LOST):
        return _ended(t)
    return _see_to_its_end(t)


def _cancelling(t: Turn) -> list[Action]:
    if t.seen.phase is A.SUCCEEDED:
        return _ended(t)  # it was quicker than its user
    if t.seen.phase in _GONE or t.seen.phase is A.FAILED:
        ranks = tuple(map(_over, t.seen.ranks or t.job.ranks))
        if t.seen.ranks and [r.state for r in ranks] != [r.state for r in t.job.ranks]:
            # how they ended is forgotten with the attempt, and the move that follows may have to be tried again
            return [actions.Update(replace(t.job, ranks=ranks)), actions.CheckAgain(t.now)]
        return _leave(t, t.moved(P.CANCELLED, "cancelled", msg("cancelled"), finished_at=t.now, ranks=ranks))
    return _see_to_its_end(t)


def _over(rank: RankStatus) -> RankStatus:
    """Return a rank of an attempt of which nothing is alive."""
    return rank if rank.state not in _GOES_ON else replace(rank, state="stopped", cpu=None, ram=None)


def _suspended(t: Turn) -> list[Action]:
    match t.job.target:
        case T.CANCEL | T.DELETE:
            message = msg("cancelled while suspended")
            return [_given_up(t, message, message)]
        case T.RUN | T.PREEMPT | T.RESIZE:
            message = msg("resumed: back in the queue with its age kept")
            return [t.moved(P.QUEUED, "resumed", message, target=T.RUN)]
        case T.SUSPEND:
            return []


def _finish(t: Turn) -> list[Action]:
    job, failure = t.job, t.job.failure
    if failure is None:
        return _leave(t, _finished(job))
    what = ended(failure)  # not what the job tells: that may be why it could not go on meanwhile
    if job.target in (T.CANCEL, T.DELETE):
        return _leave(t, t.moved(P.CANCELLED, "cancelled", msg("cancelled"), failure=None))
    if failure.cause is Cause.NODE_LOST:
        message = msg("back in the queue with its age kept, no retry used up: {what}", what=what)
        return _leave(t, t.moved(P.QUEUED, "requeued", message, None, **t.next_attempt()))
    may_retry = failure.cause not in _NOT_AGAIN
    if may_retry and job.failures < job.spec.retries:
        message = msg(
            "back in the queue for retry {n} of {retries}: {what}",
            n=job.failures + 1,
            retries=job.spec.retries,
            what=what,
        )
        changes = {**t.next_attempt(), "failures": job.failures + 1}
        return _leave(t, t.moved(P.QUEUED, "requeued", message, None, **changes))
    if failure.cause is Cause.OUT_OF_MEMORY:
        hint = Hint.SAME_MEMORY if job.failures < job.spec.retries else Hint.MORE_MEMORY
        failure = replace(failure, hint=hint, hint_limit=2 * job.spec.per_worker.ram)
        what = msg("{what}; {why}", what=what, why=remedy(hint, job.spec.tenant, failure.hint_limit))
    if job.failures:
        what = msgs("{what} (after {n} retry)", "{what} (after {n} retries)", n=job.failures, what=what)
    return _leave(t, t.moved(P.FAILED, "failed", what, failure.cause.value, failure=failure))


def _final(t: Turn) -> list[Action]:
    if t.job.target is T.DELETE:
        return [t.moved(P.DELETING, "deleting", msg("its files are removed"))]
    return []


def _deleting(_: Turn) -> list[Action]:
    return [actions.Forget(), actions.Erase()]


_TABLE: Mapping[Phase, Callable[[Turn], list[Action]]] = {
    P.QUEUED: _queued,
    P.ADMITTED: _admitted,
    P.STARTING: _starting,
    P.RUNNING: _running,
    P.SUSPENDING: _suspending,
    P.SUSPENDED: _suspended,
    P.PREEMPTING: _preempting,
    P.RESIZING: _resizing,
    P.FINISHING: _finish,
    P.FINISHED: _final,
    P.FAILED: _final,
    P.CANCELLING: _cancelling,
    P.CANCELLED: _final,
    P.DELETING: _deleting,
}


def _ask_to_end(t: Turn) -> Move:
    phase, message = _STOPPING[t.job.target]
    return t.moved(phase, phase.value, message)


def _unless_unwanted(t: Turn, due: list[Action]) -> list[Action]:
    return due if t.job.target is T.RUN else [_ask_to_end(t), actions.Stop(t.grace_s)]


def _see_to_its_end(t: Turn) -> list[Action]:
    if t.stop_sent_at is None:
        return [actions.Stop(t.grace_s), actions.CheckAgain(t.now + t.grace_s + KILL_MARGIN_S)]
    deadline = t.stop_sent_at + t.grace_s + KILL_MARGIN_S
    if t.now < deadline:
        return [actions.CheckAgain(deadline)]
    if t.now < deadline + KILL_MARGIN_S:
        return [actions.Kill(), actions.CheckAgain(deadline + KILL_MARGIN_S)]
    return [actions.Collect(), actions.AddSteps((_CUT,)), actions.Forget()]


def _leave(t: Turn, move: Move) -> list[Action]:
    """Nothing of the attempt is alive, and what it left is taken in, before what it held is given back.

    The move comes last, and may have to be made again, when the attempt is forgotten: its own steps are
    stored before.
    """
    steps = tuple(replace(step, once=True) for step in move.before)
    if t.seen.phase is A.LOST and not t.seen.lost_lines:
        steps = (*steps, _CUT)
    report = [actions.AddSteps(steps)] if steps else []
    return [actions.Collect(), *report, actions.Forget(), actions.SweepPoints(), changed(move, before=())]


def _runs(t: Turn) -> Move:
    started = t.seen.started_at if t.seen.started_at is not None else t.now
    where = ranks_on(t.job.placement)
    move = t.moved(
        P.RUNNING,
        "running",
        msg("running {where}", where=where),
        started_at=started,
        ranks=t.seen.ranks or t.job.ranks,
    )
    return _at(move, started)


def _ended(t: Turn) -> list[Action]:
    match t.seen.phase:
        case A.SUCCEEDED:
            return [_finishing(t, None)]
        case A.FAILED:
            failure = t.seen.failure or Failure(Cause.PROGRAM_ERROR, message="it failed")
            if failure.cause is Cause.TIME_LIMIT and t.job.ran_before:
                # the executor knows of what was left of it only
                limit, before = t.job.spec.time_limit, t.job.ran_before
                message = (
                    f"ran longer than its time limit of {limit} s, {before:.0f} s of it before it was resized"
                )
                failure = replace(failure, message=message)
            return [_finishing(t, failure)]
        case A.STOPPED if t.job.target is not T.RUN:
            return [_ask_to_end(t)]
        case A.STOPPED:
            failure = Failure(Cause.NODE_LOST, message="it was stopped by nobody the hub knows of")
        case _:
            lost = "its node, or the sandbox with all its ranks, vanished"
            failure = t.seen.failure or Failure(Cause.NODE_LOST, message=lost)
            if failure.cause is not Cause.NODE_LOST:
                failure = replace(failure, cause=Cause.NODE_LOST)
    return [_finishing(t, failure)]


def _finishing(t: Turn, failure: Failure | None) -> Move:
    # what is told at the end is by the clock as it was then, if somebody set it meanwhile
    started = t.seen.started_at if t.seen.started_at is not None else t.job.started_at
    finished = t.seen.finished_at if t.seen.finished_at is not None else t.now
    message = msg("all ranks ended well") if failure is None else ended(failure)
    reason = None if failure is None else failure.cause.value
    kind = "ended" if failure is None else "attempt-failed"
    ranks: tuple[RankStatus, ...] = t.seen.ranks or t.job.ranks
    move = t.moved(
        P.FINISHING,
        kind,
        message,
        reason,
        failure=failure,
        started_at=started,
        finished_at=finished,
        ranks=ranks,
    )
    return _at(move, finished)


def _at(move: Move, at: float) -> Move:
    """Return the move with when that was."""
    return changed(move, step=changed(move.step, at=at))


def _given_up(t: Turn, after: Message, before: Message, **changes: object) -> Move:
    """Return the cancellation of a job of which nothing runs: `after` in words if it ran, else `before`."""
    job = t.job
    message = before
    if job.ran and job.restarts > 1:
        message = msg("{what}; it had run for {span} in all", what=after, span=took(job.ran))
    elif job.ran:
        message = msg("{what}; it had run for {span}", what=after, span=took(job.ran))
    return t.moved(P.CANCELLED, "cancelled", message, None, finished_at=t.now, **changes)
