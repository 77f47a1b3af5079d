"""Removal of a member: their waiting jobs are put aside, their running ones end where the tenant says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mlp_hub.domain.jobs.job import HOLDING, Job, JobSpec, Phase, Target
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.state.board import Changes
from mlp_hub.service.state.former_members import has_left, left_message, suspended_message, taken_away_message
from mlp_hub.service.state.moves import Step, aside
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

MOST_TOGETHER = 1000
"""Tuning: jobs that are looked up at a time: size of a lot, for how long others wait behind it."""
STOP = "stop"


def suspend_waiting(tx: Tx, changes: Changes, user: str, tenant: str, now: float) -> int:
    """Put aside the jobs of a user that wait in a tenant they are not in any more; return how many there were."""
    waiting = _all(tx, user, [tenant], [Phase.QUEUED])
    return _suspend(tx, changes, (job for job in waiting if has_left(tx, job.spec)), now)


def suspend_all_left(tx: Tx, changes: Changes, now: float) -> int:
    """Do so for all who left, whenever that was: with an older hub, say."""
    return sum(
        suspend_waiting(tx, changes, user, tenant, now) for user, tenant in tx.jobs.waiting_without_place()
    )


def suspend_of_nobody(tx: Tx, changes: Changes, user: str, now: float) -> int:
    """Put aside all waiting jobs of somebody whose account was taken away, wherever they wait."""
    return _suspend(tx, changes, _all(tx, user, None, [Phase.QUEUED]), now, taken_away_message)


def stop_running(tx: Tx, changes: Changes, user: str, tenants: Iterable[str], now: float) -> int:
    """Cancel a user's running jobs in the tenants that do not let leavers finish; return their number.

    Replicas of apps end everywhere: they have no end to wait for.
    """
    left = list(tenants)
    strict = {name for name in left if (found := tx.tenants.get(name)) is not None and found.leavers == STOP}
    stopped = 0
    for job in _all(tx, user, left, HOLDING - {Phase.FINISHING}) if left else ():
        if job.target is Target.CANCEL:
            continue
        is_app = job.spec.replica is not None and has_left(tx, job.spec)
        if job.spec.tenant not in strict and not is_app:
            continue
        aimed = changes.update(tx, replace(job, target=Target.CANCEL))
        text = (
            msg(
                "asked to cancel: {user} has left, and {tenant} stops the jobs of members who leave",
                user=user,
                tenant=job.spec.tenant,
            )
            if not is_app
            else left_message(user, job.spec.tenant)
        )
        changes.add_event(tx, aimed.uid, now, Step("asked", text))
        stopped += 1
    return stopped


def _suspend(
    tx: Tx,
    changes: Changes,
    jobs: Iterable[Job],
    now: float,
    why: Callable[[JobSpec], Message] = suspended_message,
) -> int:
    gone = list(jobs)
    for begin in range(0, len(gone), MOST_TOGETHER):
        lot = gone[begin : begin + MOST_TOGETHER]
        changes.move_many(tx, [aside(job, now, why(job.spec)) for job in lot], now)
    return len(gone)


def _all(tx: Tx, user: str, tenants: list[str] | None, phases: Iterable[Phase]) -> Iterator[Job]:
    cursor = None
    while True:
        jobs, cursor = tx.jobs.page(
            SYSTEM, user=user, tenants=tenants, phases=phases, limit=MOST_TOGETHER, cursor=cursor
        )
        yield from jobs
        if cursor is None:
            return
