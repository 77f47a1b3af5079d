"""How sure an expected start is, as long as nothing more important is submitted.

A time limit is kept, so an end by it is certain to come by then; an estimate is somebody's word; and a job without either
is taken to hold what it has for ever, so that its end can only make things better, but may let others pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlp_hub.scheduler.model import Snapshot, WaitingJob
from mlp_hub.scheduler.ordering import ORDERS, goes_by_members, is_one_queue, job_key
from mlp_hub.scheduler.words import listing

SURE, LIKELY, UNKNOWN = "sure", "likely", "unknown"


def how_sure(snapshot: Snapshot, job: WaitingJob, at: float | None, because: str) -> tuple[str, str]:
    """Return (sure, likely or unknown; why). `because` is why no time can be told, where `at` is None."""
    if at is None:
        return UNKNOWN, because
    endless = [f"job {j.name} of {j.user}" for j in _ahead(snapshot, job) if j.time_limit is None]
    if not endless:
        return SURE, "every job ahead has a time limit"
    have = "has" if len(endless) == 1 else "have"
    return LIKELY, f"{listing(endless)} {have} no time limit, so others may pass when one of them ends"


def _ahead(snapshot: Snapshot, job: WaitingJob) -> Iterator[WaitingJob]:
    """Yield what runs, and what may start before the job: those before it in its queue, and those of other queues."""
    for running in snapshot.running:
        yield running.job
    order = next((t.queue_order for t in snapshot.tenants if t.name == job.tenant), ORDERS[0])
    mine = job_key(job, snapshot.policy, order)
    together = is_one_queue(snapshot.policy)
    in_turns = goes_by_members(snapshot.policy, order)
    for other in snapshot.waiting:
        if other.uid == job.uid or other.gated is not None:
            continue
        takes_turns = other.tenant != job.tenant or (in_turns and other.user != job.user)
        if (takes_turns and not together) or job_key(other, snapshot.policy, order) < mine:
            yield other
