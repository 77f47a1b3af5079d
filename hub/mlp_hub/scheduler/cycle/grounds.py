"""Grounds of a decision, as the cycle has them in hand when it takes it: why then, why there, why these.

References and numbers, no words: a plan records them for each admission, preemption and resize, and few are ever told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.cache.news import News
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import vector_of_ranks
from mlp_hub.scheduler.model.types import PendingWorkload
from mlp_hub.scheduler.nodes.compared import Placed
from mlp_hub.scheduler.preemption.choice import VictimChoice


class Limit(StrEnum):
    """Limit that keeps an elastic job from more workers."""

    MOST = "most"  # that it asks for
    QUOTA = "quota"
    NODES = "nodes"
    KEPT = "kept"  # the rest is for others


@dataclass(frozen=True, slots=True)
class Workers:
    """With how many workers an elastic job runs from a decision on, and why with no more."""

    n: int
    most: int
    limit: Limit


@dataclass(frozen=True, slots=True)
class Passed:
    """Workloads that were looked at before another one and did not start: the first few with why, and how many in all.

    One stands for all that ask for the same.
    """

    first: tuple[tuple[PendingWorkload, Reason], ...] = ()
    count: int = 0


NOBODY = Passed()


@dataclass(frozen=True, slots=True)
class Grounds:
    """Grounds of a decision about one job."""

    job: PendingWorkload
    order: str | None  # what jobs of its queue go by; None: its tenant is gone, as for `share`
    share: float | None  # dominant share of its tenant, before
    news: News
    heir: PendingWorkload | None = None  # for whom it is stopped or gives up workers
    passed: Passed = NOBODY
    placed: Placed | None = None
    choice: VictimChoice | None = None  # of those who make room
    workers: Workers | None = None
    was: int = 0  # workers of a resized job, before all resizes of this cycle


def workers_of(state: ClusterState, job: PendingWorkload, demand: Demand, n: int) -> Workers | None:
    """Tell why a job that now holds what it got has no more workers; None of one of a fixed size."""
    if job.workers_min == job.workers_max:
        return None
    return Workers(n, job.workers_max, _limit(state, job, demand, n))


def _limit(state: ClusterState, job: PendingWorkload, demand: Demand, n: int) -> Limit:
    if n >= job.workers_max:
        return Limit.MOST
    for dimension, one in vector_of_ranks(demand, 1).items():
        room = state.quotas.available(job.tenant, dimension) if job.tenant in state.queues else None
        if room is not None and room < one:
            return Limit.QUOTA
    return Limit.KEPT if state.index.total_slots(demand, job.topology) else Limit.NODES
