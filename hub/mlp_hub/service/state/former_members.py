"""Rules for jobs of users who have left their tenant: they do not start there, and name nobody there.

A removal, a lost node, a preemption for another job, or a request just before can bring such a job
into the queue. The transaction that queues it puts it aside, suspended. Running jobs continue to
their end.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target, wait_ends
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg


def has_left(tx: Tx, spec: JobSpec) -> bool:
    """Return whether the user of a job has left its tenant. Nobody leaves `default`: it is everybody's."""
    return spec.tenant != DEFAULT_TENANT and tx.members.get(spec.tenant, spec.user) is None


def gone_from(tx: Tx, places: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of these (user, tenant) of which `has_left` is true."""
    return tx.members.missing([place for place in places if place[1] != DEFAULT_TENANT])


def suspended_message(spec: JobSpec) -> Message:
    """Say why such a job does not start, and what to do."""
    return msg(
        "suspended: {user} is no longer a member of team {tenant}, so the job cannot start there. Submit it again to another team, or resume it when an admin of {tenant} has accepted {user} again",
        user=spec.user,
        tenant=spec.tenant,
    )


def resumable_message(spec: JobSpec) -> Message:
    """Say what to do with such a job whose user is a member again."""
    return msg(
        "suspended while {user} was not a member of team {tenant}; resume it to continue",
        user=spec.user,
        tenant=spec.tenant,
    )


def taken_away_message(spec: JobSpec) -> Message:
    """Say why a job of somebody without an account does not start."""
    return msg(
        "suspended: the account of {user} was removed; resume the job when {user} has it again",
        user=spec.user,
    )


def left_message(user: str, tenant: str) -> Message:
    """Return the message why an app of a former member has stopped."""
    return msg(
        "{user} is no longer a member of team {tenant}, so this app cannot run there any more; deploy it in another team, or delete it",
        user=user,
        tenant=tenant,
    )


def put_aside(job: Job, now: float, message: Message | None = None) -> Job:
    """Return a job that is, or is about to be, in the queue as it is once it is put aside: its user has left, or `message`."""
    return changed(
        job,
        phase=Phase.SUSPENDED,
        target=Target.SUSPEND,
        reason=Reason.SUSPENDED.value,
        message=message or suspended_message(job.spec),
        **wait_ends(job, now),
    )


def refusal(spec: JobSpec) -> Refused:
    """Return the refusal for a user who submits to a tenant that they have just left."""
    return Refused(
        Reason.FORBIDDEN,
        msg(
            "{user} is no longer a member of team {tenant}; submit the job to another team",
            user=spec.user,
            tenant=spec.tenant,
        ),
    )
