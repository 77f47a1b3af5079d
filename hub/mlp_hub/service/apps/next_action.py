"""Decisions about an app: from its stored state, its replicas and the ones that answer, to a plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.apps.app import App, AppPhase, check_app_move
from mlp_hub.domain.jobs.job import FINAL, Job, Phase, Target
from mlp_hub.service.support.limits import DEFAULTS
from mlp_language.message import NOTHING, Message, msg, msgs

FIRST_WAIT_S = 1.0
"""Tuning: seconds before a replica that ended is followed by another; doubles with each that ends too: sooner back, for how much a
crash loop costs."""
STEADY_S = 600.0
"""Tuning: seconds after which a replica that ends counts as the first that did: for how long a loop is told from bad luck."""
LOOP = 2
"""Safety: replicas that ended in a row with which an app that does not answer is an error."""


@dataclass(frozen=True, slots=True)
class AppPlan:
    """Plan for an app: the app to store, jobs to end and to forget, slots in which replicas start."""

    app: App
    stop: tuple[Job, ...] = ()
    forget: tuple[Job, ...] = ()
    start: tuple[int, ...] = ()
    again_s: float | None = None  # when to look again, though nothing happens
    gone: bool = False  # nothing is left of an app that is being deleted


def is_live(job: Job) -> bool:
    """Whether a replica is to run, or to wait until it can."""
    return job.phase not in FINAL | {Phase.DELETING} and job.target in {
        Target.RUN,
        Target.PREEMPT,
        Target.RESIZE,
    }


def slot_of(job: Job) -> int:
    """Return the number of a replica."""
    return 0 if job.spec.slot is None else job.spec.slot


def decide(
    app: App,
    jobs: Sequence[Job],
    ready: Collection[str],
    now: float,
    *,
    retry_max_s: float = DEFAULTS.app_retry_max_s,
) -> AppPlan:
    """Decide; `ready` are the uids of the jobs that answer. At most `retry_max_s` seconds are between two tries of an app that never starts."""
    if app.phase is AppPhase.DELETING:
        return _delete(app, jobs)
    forget = tuple(job for job in jobs if job.phase in FINAL and job.target is not Target.DELETE)
    for job in forget:
        if job.target is not Target.CANCEL:
            app = _failed(app, job, retry_max_s)
    live = [job for job in jobs if is_live(job)]
    aside = [job for job in jobs if job.target is Target.SUSPEND and job.phase not in FINAL]
    current = [job for job in live if _generation(job) == app.generation]
    old = [job for job in live if _generation(job) != app.generation]
    answering = [job for job in current if job.uid in ready]
    stop = [
        *aside,
        *_surplus(current, app.wanted, ready),
        *_outdated(old, app.wanted - len(answering), ready),
    ]
    missing = app.wanted - len(current)
    if old:  # one by one: each new one needs room beside those that still answer
        missing = min(missing, 1 - (len(current) - len(answering)))
    waits = max(app.not_before - now, 0.0)
    start = _free_slots(jobs, missing) if missing > 0 and not waits else ()
    kept = [job for job in live if job not in stop]
    app = _with_phase(app, kept, [job for job in kept if job.uid in ready])
    return AppPlan(app, tuple(stop), forget, start, waits or None if missing > 0 else None)


def _delete(app: App, jobs: Sequence[Job]) -> AppPlan:
    forget = tuple(job for job in jobs if job.phase in FINAL and job.target is not Target.DELETE)
    stop = tuple(
        job
        for job in jobs
        if job.phase not in FINAL | {Phase.DELETING} and job.target not in {Target.CANCEL, Target.DELETE}
    )
    return AppPlan(app, stop, forget, gone=not jobs)


def _failed(app: App, job: Job, retry_max_s: float) -> App:
    """Count a replica that ended though nobody asked it to."""
    steady = job.started_at is not None and (job.finished_at or 0.0) - job.started_at > STEADY_S
    failures = 1 if steady else app.failures + 1
    wait = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 20), retry_max_s)
    ended = job.finished_at or job.submitted_at
    why = job.failure_message
    if job.phase is Phase.FINISHED:
        why = msg("it ended by itself; a deployed program must run until it is asked to stop")
    return replace(
        app,
        failures=failures,
        not_before=max(app.not_before, ended + wait),
        message=msg("a replica ended: {why}", why=why or msg("nothing is known of it")),
        tail="" if job.failure is None else job.failure.tail,
    )


def _generation(job: Job) -> int:
    return 0 if job.spec.replica is None else job.spec.replica.generation


def _surplus(jobs: Sequence[Job], wanted: int, ready: Collection[str]) -> list[Job]:
    """Return the surplus replicas: those that do not answer first, then the latest ones."""
    by_worth = sorted(jobs, key=lambda job: (job.uid not in ready, slot_of(job)))
    return by_worth[max(wanted, 0) :]


def _outdated(jobs: Sequence[Job], keep: int, ready: Collection[str]) -> list[Job]:
    """Return the replicas of older generations to end; `keep` that answer stay until newer ones answer.

    Replicas that do not answer are of no use to users.
    """
    answering = [job for job in jobs if job.uid in ready]
    return [job for job in jobs if job.uid not in ready] + answering[max(keep, 0) :]


def _free_slots(jobs: Sequence[Job], count: int) -> tuple[int, ...]:
    taken = {slot_of(job) for job in jobs if job.phase not in FINAL}
    free = (slot for slot in range(len(taken) + count) if slot not in taken)
    return tuple(slot for slot, _ in zip(free, range(count), strict=False))


def _with_phase(app: App, live: Sequence[Job], ready: Sequence[Job]) -> App:
    phase, message = _phase_of(app, live, ready)
    check_app_move(app, phase)
    return replace(app, phase=phase, message=message)


def _partly(app: App, live: Sequence[Job], ready: int) -> Message:
    """Say why fewer replicas of the current version answer than are wanted; `ready` of them do."""
    if app.failures and app.message:
        return app.message
    if not ready:
        return _replacing(app, live)
    return msgs("{ready} of {n} replica answers", "{ready} of {n} replicas answer", ready=ready, n=app.wanted)


def _replacing(app: App, live: Sequence[Job]) -> Message:
    """Say that only replicas of before the change answer, and what the new ones wait for."""
    current = [job for job in live if _generation(job) == app.generation]
    if current and all(job.phase is Phase.QUEUED for job in current):
        if app.wanted > 1:
            return msg(
                "the version before the change answers; the new one waits for room for one replica more: end other "
                "work, or scale the app down by one"
            )
        return msg(
            "the version before the change answers; the new one waits for room for one replica more: end other work, "
            "or delete the app and deploy it again"
        )
    return msg("the version before the change answers until the new one does")


def _phase_of(app: App, live: Sequence[Job], ready: Sequence[Job]) -> tuple[AppPhase, Message]:
    newest = [job for job in ready if _generation(job) == app.generation]
    if ready and len(newest) >= app.wanted:
        return AppPhase.RUNNING, NOTHING
    if ready:
        return AppPhase.RUNNING, _partly(app, live, len(newest))
    if not app.wanted:
        return AppPhase.WAITING, msg("it sleeps, because no requests came; the next request starts it")
    if app.failures >= LOOP and app.message:
        return AppPhase.ERROR, app.message
    if live and all(job.phase is Phase.QUEUED for job in live):
        return AppPhase.WAITING, live[0].message or msg("its replicas wait in the queue")
    return AppPhase.STARTING, app.message if app.failures else NOTHING
