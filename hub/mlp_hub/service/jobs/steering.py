"""Allowed changes of a submitted job: its priority, its time limit, its place in its team's queue.

Its owner can give way to others: a lower priority, and another time limit while it waits. An admin
of its tenant, or of the platform, decides on both for any job there, also for a running one. They
can also put jobs first in that tenant's queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from msgspec import UNSET

from mlp_api.jobs import jobs as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import HOLDING, PHASES, PRIORITIES, WAITING, Job, Phase, Target
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.scheduler.policy import is_one_queue
from mlp_language.message import Message, msg

_OPEN = (WAITING | HOLDING) - {Phase.FINISHING, Phase.CANCELLING}


@dataclass(frozen=True, slots=True)
class Changer:
    """User who changes a job, with their role for it."""

    name: str
    leads: bool  # its tenant, or the platform


@dataclass(frozen=True, slots=True)
class Steering:
    """Changed job, with its entries for the timeline and the audit log."""

    job: Job
    said: tuple[Message, ...]
    before: dict[str, object]
    after: dict[str, object]


def steered(
    job: Job, asked: api.JobUpdate, asker: Changer, now: float, *, place: int | None, limits: bool
) -> Steering:
    """Return the job as it is asked for; `place` is one in its queue, None to have none. Raises what the asker may not do.

    `limits` says whether the executor can give what runs another time limit.
    """
    _check_open(job)
    spec, made = job.spec, job.steered
    said: list[Message] = []
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    who = asker.name
    if asked.priority is not UNSET and asked.priority != spec.priority:
        _check_priority(job, asked.priority, asker)
        made = replace(made, priority=asked.priority)
        before["priority"], after["priority"] = spec.priority, asked.priority
        said.append(
            msg(
                "{who} changed its priority: {old}, now {new}", who=who, old=spec.priority, new=asked.priority
            )
        )
    if asked.time_limit is not UNSET and asked.time_limit != spec.time_limit:
        _check_limit(job, asked.time_limit, asker, now, limits=limits)
        made = replace(made, limited=True, time_limit=asked.time_limit)
        before["time_limit"], after["time_limit"] = spec.time_limit, asked.time_limit
        old, new = _limit(spec.time_limit), _limit(asked.time_limit)
        said.append(msg("{who} changed its time limit: {old}, now {new}", who=who, old=old, new=new))
    if asked.place is not UNSET and place != made.place:
        _check_place(job, asker)
        made = replace(made, place=place)
        after["place"] = asked.place
        said.append(_placed(who, first=place is not None))
    return Steering(replace(job, steered=made, spec=made.effective_spec(spec)), tuple(said), before, after)


def front(jobs: Iterable[Job], tenant: str) -> int:
    """Return the place before all others of a tenant's queue."""
    taken = [j.steered.place for j in jobs if j.spec.tenant == tenant and j.steered.place is not None]
    return min(taken, default=0) - 1


def check_lines(policy: SchedulingPolicy) -> None:
    """Refuse a place if tenants do not have their own queues."""
    if is_one_queue(policy):
        raise Refused(
            Reason.CONFLICT,
            msg(
                "the jobs of all teams wait in one queue here, by the policy {policy}: a team cannot order its jobs in it",
                policy=policy.name,
            ),
        )


def _check_open(job: Job) -> None:
    if job.spec.replica is not None:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "{name} is a replica of the app {app}; change the app instead",
                name=job.title,
                app=job.spec.replica.name,
            ),
        )
    if job.phase in _OPEN and job.target not in (Target.CANCEL, Target.DELETE):
        return
    ends = job.target is Target.CANCEL and job.phase in HOLDING
    raise Refused(
        Reason.WRONG_STATE,
        msg(
            "job {name} is {phase} and cannot be changed any more",
            name=job.title,
            phase=msg("being cancelled") if ends else PHASES[job.phase],
        ),
    )


def _check_priority(job: Job, priority: str, asker: Changer) -> None:
    if priority not in PRIORITIES:
        raise Refused(
            Reason.INVALID,
            msg(
                "priority {priority} does not exist; choose one of {priorities}",
                priority=priority,
                priorities=", ".join(PRIORITIES),
            ),
        )
    if not asker.leads and PRIORITIES[priority] > PRIORITIES[job.spec.priority]:
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "you may lower the priority of your job, {old}, not raise it to {new}; an admin of {tenant} may",
                old=job.spec.priority,
                new=priority,
                tenant=job.spec.tenant,
            ),
        )
    if not asker.leads and job.phase not in WAITING:
        raise _runs_already(job)


def _check_limit(job: Job, limit: int | None, asker: Changer, now: float, *, limits: bool) -> None:
    if job.spec.brought is not None:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "{title} keeps its own time limit: change it where it was made", title=job.spec.brought.title
            ),
        )
    if job.phase in WAITING:
        return
    if not asker.leads:
        raise _runs_already(job)
    if not limits:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "job {name} is {phase}, and in a cluster a running job keeps the time limit of its start; suspend it, change it, and resume it",
                name=job.title,
                phase=PHASES[job.phase],
            ),
        )
    ran = job.ran_before + (0.0 if job.started_at is None else max(now - job.started_at, 0.0))
    if limit is not None and limit <= ran:
        raise Refused(
            Reason.INVALID,
            msg(
                "job {name} has already run for {ran} s, which is more than {limit} s; give a longer limit, or cancel it",
                name=job.title,
                ran=int(ran),
                limit=limit,
            ),
        )


def _check_place(job: Job, asker: Changer) -> None:
    if not asker.leads:
        raise Refused(
            Reason.FORBIDDEN,
            msg("only the admins of {tenant} may change the order of its queue", tenant=job.spec.tenant),
        )
    if job.phase not in WAITING:
        raise Refused(
            Reason.WRONG_STATE,
            msg("job {name} is {phase} and has no place in a queue", name=job.title, phase=PHASES[job.phase]),
        )


def _runs_already(job: Job) -> Refused:
    return Refused(
        Reason.WRONG_STATE,
        msg(
            "job {name} is {phase}; you may change it while it waits, and an admin of {tenant} may also change it later",
            name=job.title,
            phase=PHASES[job.phase],
            tenant=job.spec.tenant,
        ),
    )


def _limit(seconds: int | None) -> Message:
    return msg("none") if seconds is None else msg("{n} s", n=seconds)


def _placed(who: str, *, first: bool) -> Message:
    if first:
        return msg("{who} put it first in its team's queue", who=who)
    return msg("{who} gave it its own place in its team's queue again", who=who)
