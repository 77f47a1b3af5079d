"""Typed reasons with their numbers: why this job does not start now."""

from __future__ import annotations

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import DIMENSIONS, ZERO, Resources
from mlp_hub.scheduler.model import RunningJob, Snapshot, Verdict, WaitingJob
from mlp_hub.scheduler.placement import domain_label, slots
from mlp_hub.scheduler.room import Room, candidates
from mlp_hub.scheduler.words import amount, count, in_units, listing, number, unit


def waits_for_quota(job: WaitingJob, room: Room, snapshot: Snapshot) -> Verdict:
    """Say that the tenant's quota is used up: how much there is, who has it, what is asked for."""
    tenant = room.tenants[job.tenant]
    over = room.over_quota(job, job.workers_min)
    asked = job.per_worker * (job.workers_min + job.ps)
    numbers: dict[str, float] = {}
    sentences = []
    for dimension, would, limit in over:
        ask = _of(asked, dimension)
        used = would - ask
        free = max(limit - used, 0)
        numbers |= {
            f"{dimension}_limit": in_units(dimension, limit),
            f"{dimension}_inuse": in_units(dimension, used),
            f"{dimension}_free": in_units(dimension, free),
            f"{dimension}_asked": in_units(dimension, ask),
        }
        who = users_of(dimension, job.tenant, snapshot)
        by = f" by {who}" if who else ""
        sentences.append(
            f"{job.tenant} may use {number(dimension, limit)} {unit(dimension)}; {number(dimension, used)} in use{by}; "
            f"this job asks for {number(dimension, ask)}"
        )
    holders = tuple(r.job.uid for r in snapshot.running if r.job.tenant == tenant.name)
    return Verdict(Reason.WAITING_FOR_QUOTA, ". ".join(sentences), numbers, holders)


def waits_for_nodes(job: WaitingJob, room: Room, snapshot: Snapshot) -> Verdict:
    """Say that the quota would do, but nodes are full: how much is free where."""
    nodes = candidates(job, room.nodes)
    ranks = job.workers_min + job.ps
    label, required = domain_label(job.topology)
    fitting = sum(min(slots(room.free[n.name], job.per_worker), ranks) for n in nodes)
    if required and fitting >= ranks:
        where = "one node" if label == "" else f"one {label}"
        message = f"needs {count(ranks, 'rank')} of {amount(job.per_worker)} within {where}; free now: {_free(job, room)}"
        return Verdict(
            Reason.TOPOLOGY_PLACEMENT_FAILED,
            message,
            {"ranks": ranks, "fitting": fitting},
            _blockers(snapshot),
        )
    message = (
        f"needs {count(ranks, 'rank')} of {amount(job.per_worker)} at once; {fitting} would fit now; "
        f"free: {_free(job, room)}"
    )
    numbers: dict[str, float] = {"ranks": ranks, "fitting": fitting, "nodes": len(nodes)}
    for dimension in DIMENSIONS:
        if need := getattr(job.per_worker, dimension):
            free = sum(max(getattr(room.free[n.name], dimension), 0) for n in nodes)
            numbers[f"{dimension}_asked"] = in_units(dimension, need * ranks)
            numbers[f"{dimension}_free"] = in_units(dimension, free)
    return Verdict(Reason.WAITING_FOR_RESOURCES, message, numbers, _blockers(snapshot))


def waits_for_its_turn(job: WaitingJob, ahead: WaitingJob) -> Verdict:
    """Say that it would fit, but starting it would delay the job that is first in line."""
    message = (
        f"would fit, but starting it now would delay {ahead.name} of {ahead.user}, which is ahead of it"
        + ("" if job.time_limit else "; with a --time-limit short enough it could go first")
    )
    return Verdict(
        Reason.RESERVED, message, {"ahead_priority": ahead.priority, "priority": job.priority}, (ahead.uid,)
    )


def is_gated(job: WaitingJob) -> Verdict:
    """Say that it was told to wait."""
    assert job.gated is not None  # noqa: S101 - the caller asked for gated jobs only
    message = (
        "suspended: resume it to go on" if job.gated is Reason.SUSPENDED else "held back until it is released"
    )
    return Verdict(job.gated, message)


def no_tenant(job: WaitingJob) -> Verdict:
    """Its tenant was deleted while it waited."""
    return Verdict(
        Reason.GATED,
        f"its tenant {job.tenant} does not exist any more; cancel it or submit it to another one",
    )


def users_of(dimension: str, tenant: str, snapshot: Snapshot) -> str:
    """Name who uses a dimension of a tenant: "bob's notebook (0.2) and job digits of bob (2)"."""
    parts = []
    for queue in snapshot.tenants:
        if queue.name == tenant and _of(queue.used, dimension):
            inner = listing(queue.others) or "others"
            parts.append(f"{inner} ({number(dimension, _of(queue.used, dimension))})")
    parts += [
        f"job {r.job.name} of {r.job.user} ({number(dimension, _of(_held(r), dimension))})"
        for r in snapshot.running
        if r.job.tenant == tenant and _of(_held(r), dimension)
    ]
    return listing(parts)


def _held(running: RunningJob) -> Resources:
    return running.job.per_worker * len(running.placement) if running.placement else ZERO


def _of(resources: Resources, dimension: str) -> int:
    base, _, kind = dimension.partition(":")
    if kind:
        # before placement the kind is the one asked for: its amount is the whole gpu amount
        return dict(resources.kinds).get(kind, resources.gpu)
    return int(getattr(resources, base))


def _free(job: WaitingJob, room: Room) -> str:
    """Say what is free in the dimensions that the job asks for, equal nodes together: "2 nodes with 3 gpu each"."""
    groups: dict[str, list[str]] = {}
    for node in candidates(job, room.nodes):
        free = room.free[node.name]
        asked = Resources(
            **{d: max(getattr(free, d), 0) for d, need in job.per_worker.items() if need},
        )
        groups.setdefault(amount(asked), []).append(node.name)
    parts = [
        f"{names[0]} has {what}" if len(names) == 1 else f"{len(names)} nodes have {what} each"
        for what, names in sorted(groups.items(), key=lambda g: -len(g[1]))
    ]
    return listing(parts) or "no node of that kind is up"


def _blockers(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(r.job.uid for r in snapshot.running)
