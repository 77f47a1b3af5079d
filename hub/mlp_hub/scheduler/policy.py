"""Order of scheduling: between tenants by the hub's policy, within a tenant by the order of its queue.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.types import PendingWorkload, SchedulingPolicy
from mlp_language.message import Message, msg

JobKey = tuple[float, float, str]
LONG_AGO_S = 1e12
"""Given: more than any priority or time in a key makes up for; keys that far ahead still tell milliseconds apart."""

PLACED = LONG_AGO_S / 4
"""Given: keys of jobs that were given a place are behind jobs that go first, and before all others."""


def span_of(job: PendingWorkload) -> float | None:
    """Return how long the job is expected to run in seconds, None when nothing tells."""
    if job.estimate is None:
        return job.time_limit
    return job.estimate if job.time_limit is None else min(job.estimate, job.time_limit)


def end_of(job: PendingWorkload, start: float) -> float:
    """Return when a job that starts then is expected to end, infinite when nothing tells."""
    span = span_of(job)
    return math.inf if span is None else start + span


def _by_priority(job: PendingWorkload, policy: SchedulingPolicy) -> JobKey:
    """Priority with age."""
    aged = job.priority - (job.queued_at / policy.aging_s if policy.aging_s > 0 else 0.0)
    return (-aged, job.queued_at, job.uid)


def _by_age(job: PendingWorkload, policy: SchedulingPolicy) -> JobKey:
    del policy
    return (0.0, job.queued_at, job.uid)


def _by_fair_finish(job: PendingWorkload, policy: SchedulingPolicy) -> JobKey:
    """Fair finish; work of unknown length by age."""
    return (0.0, job.queued_at + policy.patience * (span_of(job) or 0.0), job.uid)


@dataclass(frozen=True, slots=True)
class Order:
    """Order of the jobs of one line; `words` describe it to people: pages, settings and documentation."""

    words: str
    key: Callable[[PendingWorkload, SchedulingPolicy], JobKey] = _by_priority  # smallest first
    by_members: bool = False  # members take turns, each with jobs by `key`; see `fairness.members`
    remembers: bool = False  # turns go by what was held lately, too
    stops_by_priority: bool = True  # priority gives a right to stop others


@dataclass(frozen=True, slots=True)
class Policy:
    """Rule for whose job is next; `one_line`, where set, orders the jobs of all tenants together."""

    words: Message
    one_line: Order | None = None
    remembers: bool = False  # turns of tenants go by what was held lately, too


ORDERS: Mapping[str, Order] = {
    "priority": Order("priority, then age"),
    "fifo": Order("age alone", _by_age, stops_by_priority=False),
    "fair": Order("turns of its members, by current and recent use", by_members=True, remembers=True),
    "maxmin": Order("turns of its members, by current use", by_members=True),
}
"""Orders of one tenant's queue, where tenants take turns."""
DEFAULT_ORDER = "priority"
POLICIES: Mapping[str, Policy] = {
    "fair": Policy(msg("share of the machines, current and recent use"), remembers=True),
    "maxmin": Policy(msg("share of the machines, current use only")),
    "fifo": Policy(msg("first come, first served"), ORDERS["fifo"]),
    "priority": Policy(msg("priority, then age"), ORDERS["priority"]),
    "finish": Policy(msg("jobs that would be late first"), Order("fair finish", _by_fair_finish)),
}
"""Policies by name."""


def order_in(policy: SchedulingPolicy, order: str) -> Order:
    """Return what jobs of a queue with this order go by: the policy's own order where all are in one line."""
    return POLICIES[policy.name].one_line or ORDERS[order]


def goes_by_members(policy: SchedulingPolicy, order: str) -> bool:
    """Whether members take turns in a queue with this order."""
    return order_in(policy, order).by_members


def job_key(job: PendingWorkload, policy: SchedulingPolicy, order: str) -> JobKey:
    """Sort key within a queue of this order; smallest first, and equal ones by age and uid.

    Where members take turns it holds among the jobs of one member. A job that was given a place is
    before those that have none. A job that goes first is before the jobs of its tenant, and the oldest
    of this kind is before the others. In a line that all tenants share, such a key counts only among
    those of one tenant; see `shared_key`.
    """
    if not job.goes_first:
        if job.place is not None and not is_one_queue(policy):
            return (job.place - PLACED, job.queued_at, job.uid)
        return order_in(policy, order).key(job, policy)
    if not is_one_queue(policy):
        return (job.queued_at - LONG_AGO_S, 0.0, job.uid)
    first, age, uid = order_in(policy, order).key(job, policy)
    return (first - LONG_AGO_S, age, uid)


def own_key(job: PendingWorkload, policy: SchedulingPolicy, order: str) -> JobKey:
    """Return the key that a job has by itself: the places that its tenant gave count only inside that tenant."""
    return job_key(job if job.place is None else replace(job, place=None), policy, order)


def goes_first(key: JobKey) -> bool:
    """Return whether the key is that of a job that goes before the jobs of its tenant."""
    return key[0] < -LONG_AGO_S / 2


def shared_key(key: JobKey) -> JobKey:
    """Return the key, of a line that all tenants share, as it is where nothing goes first."""
    return (key[0] + LONG_AGO_S, key[1], key[2]) if goes_first(key) else key


def long_key(job: PendingWorkload) -> JobKey:
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
        *[used.part(d) / n for d, n in total.amounts if n > 0],
    )


def is_one_queue(policy: SchedulingPolicy) -> bool:
    """Whether the policy orders all jobs together, whoever owns them."""
    return POLICIES[policy.name].one_line is not None
