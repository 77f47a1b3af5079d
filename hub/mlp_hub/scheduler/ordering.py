"""Who is next: between tenants by the hub's policy, within a tenant by the order of its queue.

A queue goes by priority and age, by age alone (`fifo`), or its tenant's members take turns in it (`fair`, `maxmin`); where
the policy puts the jobs of all tenants into one line, that line's order holds for all of them.

Aging adds one point of priority for each `aging_s` of waiting. Since every job ages at the same rate, the
order of two jobs never changes while both wait (so queues stay sorted), and no job waits for ever behind later
ones.

`finish` orders by the time at which a job should have finished to have been treated fairly (finish-time fairness:
Mahajan et al., Themis, NSDI 2020): its arrival plus `patience` times its length, so that short work does not wait
long. Work so long that it would run on alone after all else is done goes first, the longest of it before the
rest, as in list scheduling by longest processing time: otherwise it would stretch the whole.
"""

from __future__ import annotations

import math

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import SchedulingPolicy, WaitingJob

JobKey = tuple[float, float, str]
ONE_QUEUE = frozenset({"fifo", "priority", "finish"})
"""Policies that order all jobs together, whoever owns them."""
WITHOUT_PRIORITY = frozenset({"fifo"})
"""Policies, and orders of one tenant's queue, under which priority gives no right to stop others."""
POLICY_WORDS = {
    "fair": "share of the machines, now and lately",
    "maxmin": "share of the machines, now alone",
    "fifo": "first come, first served",
    "priority": "priority, then age",
    "finish": "who would be late first",
}
"""The policies and what each goes by; pages, settings and documentation use these names and words."""
POLICIES = tuple(POLICY_WORDS)
ORDERS = ("priority", "fifo", "fair", "maxmin")
"""What the queue of one tenant may go by, where tenants take turns; the first is the default."""
BY_MEMBERS = frozenset({"fair", "maxmin"})
"""Orders of a queue in which the members of its tenant take turns, each with jobs by priority, then age; see `members`."""


def span_of(job: WaitingJob) -> float | None:
    """Return how long the job is expected to run in seconds, None when nothing tells."""
    if job.estimate is None:
        return job.time_limit
    return job.estimate if job.time_limit is None else min(job.estimate, job.time_limit)


def end_of(job: WaitingJob, start: float) -> float:
    """Return when a job that starts then is expected to end, infinite when nothing tells."""
    span = span_of(job)
    return math.inf if span is None else start + span


def order_in(policy: SchedulingPolicy, order: str) -> str:
    """Return what jobs of a queue with this order go by: the policy's own order where all are in one line."""
    return policy.name if is_one_queue(policy) else order


def goes_by_members(policy: SchedulingPolicy, order: str) -> bool:
    """Whether members take turns in a queue with this order."""
    return order_in(policy, order) in BY_MEMBERS


def job_key(job: WaitingJob, policy: SchedulingPolicy, order: str) -> JobKey:
    """Sort key within a queue of this order; smallest first, and equal ones by age and uid.

    Where members take turns it holds among the jobs of one. Priority with age; under `fifo` age alone; under `finish` the
    fair finish, work of unknown length by age.
    """
    order = order_in(policy, order)
    if order == "fifo":
        return (0.0, job.queued_at, job.uid)
    if order == "finish":
        return (0.0, job.queued_at + policy.patience * (span_of(job) or 0.0), job.uid)
    aged = job.priority - (job.queued_at / policy.aging_s if policy.aging_s > 0 else 0.0)
    return (-aged, job.queued_at, job.uid)


def long_key(job: WaitingJob) -> JobKey:
    """Sort key of work that would outlast all the rest: before everything, the longest first."""
    return (-1.0, -(span_of(job) or 0.0), job.uid)


def dominant_share(used: Resources, total: Resources) -> float:
    """Return the largest fraction of any dimension that is in use (DRF, Ghodsi et al., NSDI 2011)."""
    return max(
        0.0,
        used.cpu / total.cpu if total.cpu > 0 else 0.0,
        used.gpu / total.gpu if total.gpu > 0 else 0.0,
        used.ram / total.ram if total.ram > 0 else 0.0,
        used.rom / total.rom if total.rom > 0 else 0.0,
    )


def is_one_queue(policy: SchedulingPolicy) -> bool:
    """Whether the policy orders all jobs together, whoever owns them."""
    return policy.name in ONE_QUEUE
