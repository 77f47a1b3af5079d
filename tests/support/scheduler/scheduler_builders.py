"""Short words for snapshots."""

from __future__ import annotations

from typing import Any

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
)


def node(name: str = "n", cpu: float = 4, ram: int = 8192, gpu: float = 0, **more: Any) -> Node:
    return Node(name, Resources(round(cpu * 1000), round(gpu * 1000), ram), **more)


def tenant(name: str = "red", cpu: float | None = None, ram: int | None = None, **more: Any) -> TenantQueue:
    return TenantQueue(name, Quota(cpu=None if cpu is None else round(cpu * 1000), ram=ram), **more)


def job(
    uid: str, workers: int = 1, cpu: float = 1, ram: int = 100, at: float = 0.0, **more: Any
) -> PendingWorkload:
    more.setdefault("workers_max", workers)
    gpu = round(more.pop("gpu", 0) * 1000)
    return PendingWorkload(
        uid=uid,
        name=uid,
        user=more.pop("user", "ann"),
        tenant=more.pop("tenant", "red"),
        per_worker=Resources(round(cpu * 1000), gpu, ram),
        workers_min=workers,
        queued_at=at,
        **more,
    )


def runs(
    job: PendingWorkload, *placement: str, since: float = 0.0, until: float | None = None
) -> AdmittedWorkload:
    return AdmittedWorkload(job, placement, since, until)


def snapshot(
    *waiting: PendingWorkload,
    nodes: tuple[Node, ...] = (node(),),
    tenants: tuple[TenantQueue, ...] = (tenant(),),
    running: tuple[AdmittedWorkload, ...] = (),
    **policy: Any,
) -> Snapshot:
    return Snapshot(nodes, tenants, waiting, running, SchedulingPolicy(**policy))
