"""What becomes of the waiting jobs of somebody who leaves a tenant."""

from __future__ import annotations

from mlp_hub.domain.job import Phase
from mlp_hub.service.board import Changes, Moving, aside_step
from mlp_hub.service.left import has_left, put_aside
from mlp_hub.store.tx import Tx

MOST_TOGETHER = 1000


def suspend_waiting(tx: Tx, changes: Changes, user: str, tenant: str, now: float) -> int:
    """Put aside the jobs of a user that wait in a tenant they are not in any more; return how many there were."""
    suspended, cursor = 0, None
    while True:
        jobs, cursor = tx.jobs.page(
            user=user, tenants=[tenant], phases=[Phase.QUEUED], limit=MOST_TOGETHER, cursor=cursor
        )
        gone = [job for job in jobs if has_left(tx, job.spec)]
        changes.move_many(tx, [Moving(job, put_aside(job, now), aside_step(job)) for job in gone], now)
        suspended += len(gone)
        if cursor is None:
            return suspended


def suspend_all_left(tx: Tx, changes: Changes, now: float) -> int:
    """Do so for all who left, whenever that was: with an older hub, say."""
    return sum(
        suspend_waiting(tx, changes, user, tenant, now) for user, tenant in tx.jobs.waiting_without_place()
    )
