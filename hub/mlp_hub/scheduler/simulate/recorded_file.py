"""A recording as a scenario file."""

from __future__ import annotations

from typing import Any

from mlp_hub.domain.resources import MILLI, ZERO, Quota, Resources
from mlp_hub.scheduler.model import Node, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.simulate.keys import RUNTIMES
from mlp_hub.scheduler.simulate.recorded import RecordedJob, Recording, line_of


def document_of(recording: Recording) -> dict[str, Any]:
    """Return the recording as a scenario file has it, for people to edit and run.

    The format knows no running jobs: these come first, with what is left of them, and the waiting ones follow a moment
    later in the order of their age. What notebooks hold is taken off nodes and quotas.
    """
    tenants = {t.name for t in recording.tenants}
    jobs = sorted(
        (j for j in recording.jobs if j.tenant in tenants),
        key=lambda j: (j.started is None, j.submitted if j.started is None else j.started),
    )
    return {
        "version": 1,
        "policy": _policy(recording.policy),
        "nodes": [_node(n) for n in recording.nodes],
        "tenants": [_tenant(t) for t in recording.tenants],
        "jobs": [_job(j) for j in jobs],
        "events": [{"at": 0, "node_down": n.name} for n in recording.nodes if not n.up],
        "bookings": [
            {
                "tenant": b.tenant,
                "from": max(b.start, 0.0),
                "until": b.end,
                "amount": _quota(b.amount, ZERO),
            }
            for b in recording.bookings
            if b.end > 0
        ],
    }


_JUST_AFTER = 0.001  # seconds: waiting jobs come after those that run


def _policy(policy: SchedulingPolicy) -> dict[str, Any]:
    names = (
        "name",
        "half_life_s",
        "backfill",
        "preemption",
        "placement",
        "min_run_s",
        "restart_cost_s",
        "aging_s",
    )
    return {name: getattr(policy, name) for name in names}


def _node(node: Node) -> dict[str, Any]:
    free = node.capacity - node.used
    found: dict[str, Any] = {"name": node.name, "cpu": max(free.cpu, 0) / MILLI, "ram": max(free.ram, 0)}
    if node.capacity.gpu:
        found |= {"gpu": max(free.gpu, 0) // MILLI, "gpu_kind": node.gpu_kind}
    if node.labels:
        found["labels"] = dict(node.labels)
    if node.taints:
        found["taints"] = list(node.taints)
    return found


def _tenant(tenant: TenantQueue) -> dict[str, Any]:
    found: dict[str, Any] = {"name": tenant.name, "weight": tenant.weight}
    if tenant.parent:
        found["parent"] = tenant.parent
    if tenant.cohort:
        found["cohort"] = tenant.cohort
    limits = (
        ("quota", tenant.quota, tenant.used),
        ("borrowing_limit", tenant.borrowing_limit, ZERO),
        ("lending_limit", tenant.lending_limit, ZERO),
        ("reserved", tenant.reserved, ZERO),
    )
    for key, quota, used in limits:
        if quota is not None and (given := _quota(quota, used)):
            found[key] = given
    return found


def _quota(quota: Quota, used: Resources) -> dict[str, float]:
    found: dict[str, float] = {}
    for d in ("cpu", "ram", "gpu", "rom"):
        limit = getattr(quota, d)
        if limit is not None:
            left = max(limit - getattr(used, d), 0)
            found[d] = left / MILLI if d in ("cpu", "gpu") else left
    kinds = dict(used.kinds)
    found |= {f"gpu:{k}": max(v - kinds.get(k, 0), 0) / MILLI for k, v in sorted(quota.kinds.items())}
    return found


def _job(job: RecordedJob) -> dict[str, Any]:
    line = line_of(job)
    ran = max(-job.started, 0.0) if job.started is not None else 0.0
    left = max(job.length - ran, 1.0)
    low, high = line.workers_min, line.workers_max
    submit = max(job.submitted, 0.0)
    if job.started is None and job.submitted <= 0.0:
        submit = _JUST_AFTER
    found: dict[str, Any] = {
        "name": line.name,
        "tenant": line.tenant,
        "user": line.user,
        "submit": round(submit if job.started is None else 0.0, 3),
        "duration": round(left, 3),
        "workers": low if low == high else f"{low}:{high}",
        "cpu": line.per_worker.cpu / MILLI,
        "ram": line.per_worker.ram,
        "gpu": line.per_worker.gpu / MILLI,
        "priority": line.priority,
        "runtime": line.runtime if line.runtime in RUNTIMES else "plain",
    }
    optional = {
        "gpu_kind": line.gpu_kind,
        "time_limit": None if line.time_limit is None else round(max(line.time_limit - ran, 1.0), 3),
        "topology": _topology(line.topology),
        "checkpoint_every": line.checkpoint_every,
    }
    return found | {key: value for key, value in optional.items() if value is not None}


def _topology(topology: str | None) -> str | dict[str, str] | None:
    how, colon, label = (topology or "").partition(":")
    if topology in (None, "", "bin-pack"):
        return None
    return {how: label} if colon else topology
