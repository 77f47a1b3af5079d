"""Short words for snapshots."""

from __future__ import annotations

from typing import Any

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.model import Node, RunningJob, SchedulingPolicy, Snapshot, TenantQueue, WaitingJob


def node(name: str = "n", cpu: float = 4, ram: int = 8192, gpu: float = 0, **more: Any) -> Node:
    return Node(name, Resources(round(cpu * 1000), round(gpu * 1000), ram), **more)


def tenant(name: str = "red", cpu: float | None = None, ram: int | None = None, **more: Any) -> TenantQueue:
    return TenantQueue(name, Quota(cpu=None if cpu is None else round(cpu * 1000), ram=ram), **more)


def job(
    uid: str, workers: int = 1, cpu: float = 1, ram: int = 100, at: float = 0.0, **more: Any
) -> WaitingJob:
    more.setdefault("workers_max", workers)
    gpu = round(more.pop("gpu", 0) * 1000)
    return WaitingJob(
        uid=uid,
        name=uid,
        user=more.pop("user", "ann"),
        tenant=more.pop("tenant", "red"),
        per_worker=Resources(round(cpu * 1000), gpu, ram),
        workers_min=workers,
        queued_at=at,
        **more,
    )


def runs(job: WaitingJob, *placement: str, since: float = 0.0, until: float | None = None) -> RunningJob:
    return RunningJob(job, placement, since, until)


def snapshot(
    *waiting: WaitingJob,
    nodes: tuple[Node, ...] = (node(),),
    tenants: tuple[TenantQueue, ...] = (tenant(),),
    running: tuple[RunningJob, ...] = (),
    **policy: Any,
) -> Snapshot:
    return Snapshot(nodes, tenants, waiting, running, SchedulingPolicy(**policy))
