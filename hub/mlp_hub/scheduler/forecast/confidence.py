"""Confidence in an expected start, as long as nothing more important is submitted.

A time limit is kept, so an end by it is certain to come by then; an estimate is somebody's word; and a job without either
is taken to hold what it has for ever, so that its end can only make things better, but may let others pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlp_hub.scheduler.model.types import PendingWorkload, Snapshot
from mlp_hub.scheduler.policy import DEFAULT_ORDER, goes_by_members, is_one_queue, job_key
from mlp_language.message import Message, msg, some

SURE, LIKELY, UNKNOWN = "sure", "likely", "unknown"


def how_sure(
    snapshot: Snapshot, job: PendingWorkload, at: float | None, because: Message
) -> tuple[str, Message]:
    """Return (sure, likely or unknown; why). `because` is why no time can be told, where `at` is None."""
    if at is None:
        return UNKNOWN, because
    endless = [j.ref for j in _ahead(snapshot, job) if j.time_limit is None]
    if not endless:
        return SURE, msg("every job ahead has a time limit")
    return LIKELY, msg("without a time limit, so others can pass: {jobs}", jobs=some(endless))


def _ahead(snapshot: Snapshot, job: PendingWorkload) -> Iterator[PendingWorkload]:
    """Yield what runs, and what may start before the job: those before it in its queue, and those of other queues."""
    for running in snapshot.running:
        yield running.job
    order = next((t.queue_order for t in snapshot.tenants if t.name == job.tenant), DEFAULT_ORDER)
    mine = job_key(job, snapshot.policy, order)
    together = is_one_queue(snapshot.policy)
    in_turns = goes_by_members(snapshot.policy, order)
    for other in snapshot.waiting:
        if other.uid == job.uid:
            continue
        takes_turns = other.tenant != job.tenant or (in_turns and other.user != job.user)
        if (takes_turns and not together) or job_key(other, snapshot.policy, order) < mine:
            yield other
