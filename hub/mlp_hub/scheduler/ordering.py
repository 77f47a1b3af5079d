"""Who is next: between tenants by the hub's policy, within a tenant by priority and age.

Aging adds one point of priority for each `aging_s` of waiting. Since every job ages at the same rate, the
order of two jobs never changes while both wait, and no job waits for ever behind later ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import SchedulingPolicy, TenantQueue, WaitingJob

JobKey = tuple[float, float, str]
ONE_QUEUE = frozenset({"fifo", "priority"})
"""Policies that order all jobs together, whoever owns them."""


def job_key(job: WaitingJob, policy: SchedulingPolicy) -> JobKey:
    """Sort key within a queue: priority with age, then age, then uid; smallest first."""
    if policy.name == "fifo":
        return (0.0, job.queued_at, job.uid)
    aged = job.priority - (job.queued_at / policy.aging_s if policy.aging_s > 0 else 0.0)
    return (-aged, job.queued_at, job.uid)


def dominant_share(used: Resources, total: Resources) -> float:
    """Return the largest fraction of any dimension that is in use (DRF, Ghodsi et al., NSDI 2011)."""
    share = 0.0
    for (_, have), (_, all_) in zip(used.items(), total.items(), strict=True):
        if all_ > 0:
            share = max(share, have / all_)
    return share


def tenant_key(
    tenant: TenantQueue, used: Resources, total: Resources, policy: SchedulingPolicy
) -> tuple[float, str]:
    """Sort key between tenants: the weighted share of what is in use and was used lately; smallest first.

    `decayed_usage` in share-seconds divided by the mean life of its decay is the average share over that time.
    """
    share = dominant_share(used, total)
    if policy.name == "fair":
        share += tenant.decayed_usage * math.log(2) / max(policy.half_life_s, 1.0)
    return (share / max(tenant.weight, 1e-9), tenant.name)


def is_one_queue(policy: SchedulingPolicy) -> bool:
    """Whether the policy orders all jobs together, whoever owns them."""
    return policy.name in ONE_QUEUE


def sorted_queues(
    jobs: Mapping[str, list[WaitingJob]], policy: SchedulingPolicy
) -> dict[str, list[WaitingJob]]:
    """Sort each tenant's queue, first job first."""
    return {tenant: sorted(queue, key=lambda j: job_key(j, policy)) for tenant, queue in jobs.items()}
