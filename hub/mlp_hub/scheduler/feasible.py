"""Whether a job can ever run here: those that cannot are refused at submission, with the reason."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.model import Node, Snapshot, Verdict, WaitingJob
from mlp_hub.scheduler.placement import domain_label, most_workers, place
from mlp_hub.scheduler.room import candidates
from mlp_hub.scheduler.words import amount, count, in_units, listing, number, unit


def check_possible(snapshot: Snapshot, job: WaitingJob) -> Verdict | None:
    """Return why the job can never run with the quotas and nodes of the snapshot, None when it can.

    Everything else in use is left out of account, but a node that is down counts: it may come back.
    """
    return _over_quota(snapshot, job) or _no_flavor(snapshot, job) or _too_big(snapshot, job)


def _over_quota(snapshot: Snapshot, job: WaitingJob) -> Verdict | None:
    tenant = next((t for t in snapshot.tenants if t.name == job.tenant), None)
    if tenant is None:
        return Verdict(Reason.NOT_FOUND, f"there is no tenant {job.tenant}")
    ranks = job.workers_min + job.ps
    asked = job.per_worker * ranks
    if job.gpu_kind and asked.gpu:
        asked = Resources(asked.cpu, asked.gpu, asked.ram, asked.rom, ((job.gpu_kind, asked.gpu),))
    over = tenant.quota.exceeded_by(asked)
    if not over:
        return None
    numbers = {f"{d}_limit": in_units(d, limit) for d, _, limit in over}
    numbers |= {f"{d}_asked": in_units(d, a) for d, a, _ in over}
    what = listing(
        f"{job.tenant} may use {number(d, limit)} {unit(d)} in all and this job asks for {number(d, a)}"
        for d, a, limit in over
    )
    fitting = max(0, min(limit * ranks // a for _, a, limit in over) - job.ps)
    way = f"With --workers {fitting} it would fit" if fitting else "Ask for less per rank"
    return Verdict(
        Reason.EXCEEDS_MAX_QUOTA, f"{what}. {way}, or ask an admin of {job.tenant} for more quota.", numbers
    )


def _no_flavor(snapshot: Snapshot, job: WaitingJob) -> Verdict | None:
    if not (job.per_worker.gpu and job.gpu_kind):
        return None
    kinds = sorted({n.gpu_kind for n in snapshot.nodes if n.gpu_kind})
    if job.gpu_kind in kinds:
        return None
    have = f"there are {listing(kinds)}" if kinds else "no node here has a gpu"
    return Verdict(
        Reason.NO_MATCHING_FLAVOR, f"no node has a gpu of kind {job.gpu_kind}; {have}", {"kinds": len(kinds)}
    )


def _too_big(snapshot: Snapshot, job: WaitingJob) -> Verdict | None:
    empty = [Node(n.name, n.capacity, ZERO, n.gpu_kind, n.labels, n.taints, up=True) for n in snapshot.nodes]
    free = {n.name: n.capacity for n in empty}
    if place(job, empty, free, job.workers_min) is not None:
        return None
    nodes = candidates(job, empty)
    ranks = job.workers_min + job.ps
    largest = ZERO
    total = ZERO
    for n in nodes:
        total = total + n.capacity
        largest = Resources(
            max(largest.cpu, n.capacity.cpu),
            max(largest.gpu, n.capacity.gpu),
            max(largest.ram, n.capacity.ram),
            max(largest.rom, n.capacity.rom),
        )
    numbers: dict[str, float] = {"ranks": ranks, "nodes": len(nodes)}
    for d, need in job.per_worker.items():
        if need > getattr(largest, d):
            have = getattr(largest, d)
            numbers |= {f"{d}_asked": in_units(d, need), f"{d}_limit": in_units(d, have)}
            message = (
                f"each rank asks for {number(d, need)} {unit(d)}, and the largest node has {number(d, have)}. "
                f"Ask for at most {number(d, have)} per rank."
            )
            return Verdict(Reason.EXCEEDS_MAX_QUOTA, message, numbers)
    label, required = domain_label(job.topology)
    fitting = _fitting_workers(job, empty, free)
    way = (
        f"With --workers {fitting} it would fit." if fitting else "Ask for less per rank or for fewer ranks."
    )
    asked = f"{count(ranks, 'rank')} of {amount(job.per_worker)}"
    if required and place(replace(job, topology=None), empty, free, job.workers_min) is not None:
        where = "node" if label == "" else str(label)
        message = f"no {where} can hold {asked} together. {way}"
        return Verdict(Reason.TOPOLOGY_PLACEMENT_FAILED, message, numbers)
    have = f"{count(len(nodes), 'node')} with {amount(total)} in all"
    there = "is" if len(nodes) == 1 else "are"
    return Verdict(
        Reason.EXCEEDS_MAX_QUOTA, f"{asked} can never run here: there {there} {have}. {way}", numbers
    )


def _fitting_workers(job: WaitingJob, nodes: list[Node], free: dict[str, Resources]) -> int:
    if job.workers_min == 1:
        return 0
    return most_workers(replace(job, workers_min=1, workers_max=job.workers_min), nodes, free)
