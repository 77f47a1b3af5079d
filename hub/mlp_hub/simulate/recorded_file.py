"""A recording as a scenario file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mlp_hub.domain.dimensions import DIMENSIONS, MILLI, WHOLE
from mlp_hub.domain.resources import ZERO, Quota, Resources
from mlp_hub.scheduler.model.types import Node, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.policy import DEFAULT_ORDER
from mlp_hub.simulate.forms import RUNTIMES
from mlp_hub.simulate.recorded import RecordedJob, Recording, line_of
from mlp_language.message import Message, Span, msg


def document_of(recording: Recording) -> dict[str, Any]:
    """Return the recording in the form of a scenario file, for people to edit and run.

    The format has no running jobs: these come first, with their remaining work, and the waiting ones
    follow a moment later in the order of their age. Holdings of notebooks are taken off nodes and
    quotas.
    """
    return {
        "version": 1,
        "policy": _policy(recording.policy),
        "nodes": [_node(n) for n in recording.nodes],
        "tenants": [_tenant(t) for t in recording.tenants],
        "jobs": [_job(j) for j in _in_order(recording)],
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


def notes_of(recording: Recording, begin: float) -> list[str]:
    """Return the explanation of each job's line in the document; `begin` is the time where its seconds begin."""
    return [_note(job, begin) for job in _in_order(recording)]


def shown_as(recording: Recording) -> list[Message]:
    """Say how the document shows what runs and what waits."""
    if not recording.now:
        return [msg("Jobs that have not ended are not included; `--export now` includes them.")]
    said = [
        msg(
            "The format has no running jobs: they come first, at second 0, with their remaining run time, and can be placed again."
        ),
        msg("Waiting jobs follow a moment later, in the order of their age."),
    ]
    if any(t.used != ZERO for t in recording.tenants):
        said.append(
            msg("The nodes and quotas below are reduced for good by the present use of notebook servers.")
        )
    return said


def from_its_first_job(recording: Recording) -> tuple[Recording, float]:
    """Return a window of the past whose seconds count from its first submission, and how much later that is."""
    if recording.now or not recording.jobs:
        return recording, 0.0
    first = min(job.submitted for job in recording.jobs)
    jobs = tuple(replace(job, submitted=job.submitted - first) for job in recording.jobs)
    return replace(recording, jobs=jobs), first


def _in_order(recording: Recording) -> list[RecordedJob]:
    tenants = {t.name for t in recording.tenants}
    return sorted(
        (j for j in recording.jobs if j.tenant in tenants),
        key=lambda j: (j.started is None, j.submitted if j.started is None else j.started),
    )


_TOLD_BY = {
    "record": "",
    "limit": ", by its time limit",
    "like": ", by jobs of like names",
    "default": ", by a guess",
    "server": ", by a guess",
}


def _note(job: RecordedJob, begin: float) -> str:
    if job.started is not None:
        left = max(job.length + job.started, 1.0)
        since = _moment(begin + job.started)
        return f"runs since {since}; the {_span(left)} that are left of it{_TOLD_BY[job.told_by]}"
    if job.waited is None:
        waits_since = job.submitted if job.since is None else job.since
        return f"waits since {_moment(begin + waits_since)}; runs {_span(job.length)}{_TOLD_BY[job.told_by]}"
    told = f"submitted {_moment(begin + job.submitted)}, waited {_span(job.waited)}"
    ran = job.length if job.ran is None else job.ran
    if job.attempts > 1:
        told = f"{told}, ran {_span(ran)} in {job.attempts} attempts"
    elif job.length < ran:
        told = f"{told}, ran {_span(ran)}"
    return f"{told}: the work of {_span(job.length)} with all its workers" if job.length < ran else told


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    return str(msg("{span}", span=Span(seconds)))


def _seconds(value: float) -> float | int:
    """Round to useful digits: whole seconds from a minute on."""
    return round(value) if value >= ROUND_FROM_S else round(value, 1) if value >= 1 else round(value, 3)


def _units(thousandths: int) -> float | int:
    """Return cores or devices, whole ones as people write them."""
    whole, rest = divmod(thousandths, MILLI)
    return thousandths / MILLI if rest else whole


ROUND_FROM_S = 60.0
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
    found: dict[str, Any] = {"name": node.name, "cpu": _units(max(free.cpu, 0)), "ram": max(free.ram, 0)}
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
    if tenant.queue_order != DEFAULT_ORDER:
        found["queue_order"] = tenant.queue_order
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
    for d in ("cpu", "ram", "gpu", *DIMENSIONS[3:]):
        limit = quota.part(d)
        if limit is not None:
            left = max(limit - used.part(d), 0)
            found[d] = left if d in WHOLE else _units(left)
    kinds = dict(used.kinds)
    found |= {f"gpu:{k}": _units(max(v - kinds.get(k, 0), 0)) for k, v in sorted(quota.kinds.items())}
    return found


def _job(job: RecordedJob) -> dict[str, Any]:
    line = line_of(job)
    ran = max(-job.started, 0.0) if job.started is not None else 0.0
    left = max(job.length - ran, 1.0)
    low, high = line.workers_min, line.workers_max
    submit = max(job.submitted, 0.0)
    if job.started is None and job.waited is None and job.submitted <= 0.0:
        submit = _JUST_AFTER
    found: dict[str, Any] = {
        "name": line.name,
        "tenant": line.tenant,
        "user": line.user,
        "submit": _seconds(submit if job.started is None else 0.0),
        "duration": _seconds(left),
        "workers": low if low == high else f"{low}:{high}",
        "cpu": _units(line.per_worker.cpu),
        "ram": line.per_worker.ram,
        "gpu": _units(line.per_worker.gpu),
        "priority": line.priority,
        "runtime": line.runtime if line.runtime in RUNTIMES else "plain",
    }
    optional = {
        "amounts": dict(line.per_worker.amounts) or None,
        "gpu_kind": line.gpu_kind,
        "time_limit": None if line.time_limit is None else _seconds(max(line.time_limit - ran, 1.0)),
        "topology": _topology(line.topology),
        "preemptible": None if line.preemptible else False,
        "checkpoint_every": line.checkpoint_every,
    }
    return found | {key: value for key, value in optional.items() if value is not None}


def _topology(topology: str | None) -> str | dict[str, str] | None:
    how, colon, label = (topology or "").partition(":")
    if topology in (None, "", "bin-pack"):
        return None
    return {how: label} if colon else topology
