"""A scenario, read and checked: every fault is told with its place, and nothing is guessed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mlp_hub.domain.resources import Quota, Resources, quota_of
from mlp_hub.scheduler.model.resources import limits_of
from mlp_hub.scheduler.model.types import CapacityWindow, Node, SchedulingPolicy, TenantQueue


@dataclass(frozen=True, slots=True)
class JobLine:
    """One line of `jobs`: `count` jobs, submitted `every` seconds apart. Times and spans in seconds."""

    name: str
    tenant: str
    user: str = "user"
    submit: float = 0.0
    duration: float = 200.0  # with all workers
    workers_min: int = 1
    workers_max: int = 1
    per_worker: Resources = field(default_factory=lambda: Resources(cpu=1000, ram=100))
    gpu_kind: str | None = None
    priority: str = "normal"
    time_limit: float | None = None
    estimate: float | None = None
    runtime: str = "mpi"
    topology: str | None = None
    preemptible: bool = True
    checkpoint_every: float | None = None
    count: int = 1
    every: float = 0.0

    def job_name(self, number: int) -> str:
        """Return the name of one of its jobs."""
        return f"{self.name}-{number}" if self.count > 1 else self.name


@dataclass(frozen=True, slots=True)
class NodeDown:
    """A node is lost."""

    at: float
    node: str


@dataclass(frozen=True, slots=True)
class NodeUp:
    """A node is back."""

    at: float
    node: str


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A tenant's quota changes in the dimensions named; None takes the limit away."""

    at: float
    tenant: str
    quota: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Cancel:
    """A job is cancelled, or as soon as it is submitted."""

    at: float
    job: str


Event = NodeDown | NodeUp | QuotaChange | Cancel


@dataclass(frozen=True, slots=True)
class Submission:
    """One job of a line."""

    at: float
    name: str
    line: JobLine


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a run needs."""

    policy: SchedulingPolicy
    nodes: tuple[Node, ...]
    tenants: tuple[TenantQueue, ...]
    priorities: Mapping[str, int]
    jobs: tuple[JobLine, ...]
    events: tuple[Event, ...] = ()  # in order of time, then of the file
    until: float | None = None
    bookings: tuple[CapacityWindow, ...] = ()

    def with_policy(self, name: str) -> Scenario:
        """Return the same scenario under another policy."""
        return replace(self, policy=replace(self.policy, name=name))

    @property
    def number_of_jobs(self) -> int:
        """Return how many jobs its lines make."""
        return sum(line.count for line in self.jobs)

    def submissions(self) -> Iterator[Submission]:
        """Yield every job in order of time, then of the file; no list of them is made."""
        # equal times: the line first in the file, whole
        heap = [(line.submit, n, 0) for n, line in enumerate(self.jobs)]
        heapq.heapify(heap)
        while heap:
            at, n, i = heap[0]
            line = self.jobs[n]
            yield Submission(at, line.job_name(i), line)
            if i + 1 < line.count:
                heapq.heapreplace(heap, (line.submit + (i + 1) * line.every, n, i + 1))
            else:
                heapq.heappop(heap)


def changed(quota: Quota, changes: Mapping[str, int | None]) -> Quota:
    """Return a quota with some limits changed: by dimension, and `gpu:KIND` for the limit of one kind."""
    return quota_of({**limits_of(quota), **changes})
