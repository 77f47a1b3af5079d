"""Jobs of people who are not in their tenant any more: they start there no more, and are told of nobody there.

Whatever brings such a job into the queue (a removal, a node that is lost, somebody else's preemption, a request that came
just before), the transaction that does so puts it aside, suspended. What runs goes on to its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.job import Job, JobSpec, Phase, Target, wait_ends
from mlp_hub.domain.tenant import DEFAULT_TENANT
from mlp_hub.store.tx import Tx


def has_left(tx: Tx, spec: JobSpec) -> bool:
    """Whether the user of a job is no member of its tenant any more. Nobody leaves `default`: it is everybody's."""
    return spec.tenant != DEFAULT_TENANT and tx.members.get(spec.tenant, spec.user) is None


def gone_from(tx: Tx, places: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of these (user, tenant) of which `has_left` is true."""
    return tx.members.missing([place for place in places if place[1] != DEFAULT_TENANT])


def words(spec: JobSpec) -> str:
    """Say why such a job does not start, and what to do."""
    return (
        f"suspended: {spec.user} is not a member of tenant {spec.tenant} any more, and the job starts there no more; "
        f"submit it anew to another tenant, or resume it when an admin of {spec.tenant} has taken {spec.user} in again"
    )


def back(spec: JobSpec) -> str:
    """Say what to do with such a job whose user is a member again."""
    return f"suspended while {spec.user} was not a member of tenant {spec.tenant}; resume it to go on"


ROOM = "what it holds goes to others"
"""What is told of a stop or a resize to who is not to hear for whom it is."""


def put_aside(job: Job, now: float) -> Job:
    """Return a job that is, or is about to be, in the queue as it is once it is put aside."""
    return changed(
        job,
        phase=Phase.SUSPENDED,
        target=Target.SUSPEND,
        reason=Reason.SUSPENDED.value,
        message=words(job.spec),
        **wait_ends(job, now),
    )


def refusal(spec: JobSpec) -> Refused:
    """Return what is told to who submits to a tenant that they have just left."""
    return Refused(
        Reason.FORBIDDEN,
        f"{spec.user} is not a member of tenant {spec.tenant} any more; submit the job to another one",
    )
