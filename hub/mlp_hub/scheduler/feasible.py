"""Whether a job can ever run here: those that cannot are refused at submission, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.model import Node, Snapshot, TenantQueue, Verdict, WaitingJob
from mlp_hub.scheduler.node_states import are_kept_for_tenants
from mlp_hub.scheduler.nodes import NodeIndex
from mlp_hub.scheduler.placement import NODE, domain_label
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.quota_words import holding_words
from mlp_hub.scheduler.vectors import vector_of, vector_of_ranks
from mlp_hub.scheduler.words import amount, count, in_units, listing, number, unit


@dataclass(slots=True)
class Possible:
    """Nodes and quotas with nothing in use; made once for many questions.

    Down nodes count, since they may come back; what others than jobs hold does not.
    """

    tenants: dict[str, TenantQueue]
    index: NodeIndex
    quotas: QuotaTree
    keeps_nodes: bool

    @classmethod
    def of(cls, nodes: tuple[Node, ...], tenants: tuple[TenantQueue, ...]) -> Possible:
        """Make it of nodes and tenants."""
        index = NodeIndex([replace(n, used=ZERO, up=True) for n in nodes])
        quotas = QuotaTree(replace(t, used=ZERO) for t in tenants)
        quotas.set_capacity(vector_of(index.total))
        return cls({t.name: t for t in tenants}, index, quotas, are_kept_for_tenants(nodes))

    def check(self, job: WaitingJob) -> Verdict | None:
        """Return why the job can never run, None when it can."""
        if job.tenant not in self.tenants:
            return Verdict(Reason.NOT_FOUND, f"there is no tenant {job.tenant}")
        demand = Demand.of(job.per_worker, job.gpu_kind, job.tenant if self.keeps_nodes else None)
        return self._over_quota(job, demand) or self._no_flavor(job) or self._too_big(job, demand)

    def _over_quota(self, job: WaitingJob, demand: Demand) -> Verdict | None:
        ranks = job.workers_min + job.ps
        over = []
        for dimension, asked in vector_of_ranks(demand, ranks).items():
            limit = self.quotas.limit(job.tenant, dimension)
            if limit is not None and asked > limit:
                over.append((dimension, asked, limit))
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
        way += self._beside_others(job, demand, fitting)
        return Verdict(
            Reason.EXCEEDS_MAX_QUOTA,
            f"{what}. {way}, or ask an administrator of the hub for more quota for {job.tenant}.",
            numbers,
        )

    def _beside_others(self, job: WaitingJob, demand: Demand, fitting: int) -> str:
        """Say how many of so many workers could start beside what others than jobs hold, which no job's end gives back."""
        quotas = QuotaTree(self.tenants.values())
        for tenant in self.tenants.values():
            quotas.charge(tenant.name, vector_of(tenant.used))
        rooms = ((quotas.available(job.tenant, d), one) for d, one in vector_of_ranks(demand, 1).items())
        ranks = min((room // one for room, one in rooms if room is not None), default=fitting + job.ps)
        beside = max(0, ranks - job.ps)
        if beside >= fitting:
            return ""
        mine = self.tenants[job.tenant]
        who = holding_words(mine.others) if mine.used != ZERO else "notebooks of other tenants hold"
        return f" ({beside or 'none'} while {who} part of it)"

    def _no_flavor(self, job: WaitingJob) -> Verdict | None:
        if not (job.per_worker.gpu and job.gpu_kind):
            return None
        kinds = self.index.kinds()
        if any(kind in kinds for kind in job.gpu_kind.split("|")):
            return None
        have = f"there are {listing(kinds)}" if kinds else "no node here has a gpu"
        return Verdict(
            Reason.NO_MATCHING_FLAVOR,
            f"no node has a gpu of kind {job.gpu_kind}; {have}",
            {"kinds": len(kinds)},
        )

    def _too_big(self, job: WaitingJob, demand: Demand) -> Verdict | None:
        ranks = job.workers_min + job.ps
        index = self.index
        if index.total_slots(demand, job.topology) >= ranks:
            return None
        groups = index.groups(demand)
        total = ZERO
        largest = ZERO
        for free, n, _ in groups:
            total = total + free * n
            largest = Resources(
                max(largest.cpu, free.cpu),
                max(largest.gpu, free.gpu),
                max(largest.ram, free.ram),
                max(largest.rom, free.rom),
            )
        nodes = sum(n for _, n, _ in groups)
        numbers: dict[str, float] = {"ranks": ranks, "nodes": nodes}
        for d, need in job.per_worker.items():
            if need > getattr(largest, d):
                have = getattr(largest, d)
                numbers |= {f"{d}_asked": in_units(d, need), f"{d}_limit": in_units(d, have)}
                way = f"Ask for at most {number(d, have)} per rank." if have else "Ask for none."
                message = f"each rank asks for {number(d, need)} {unit(d)}, and the largest node has {number(d, have)}. {way}"
                return Verdict(Reason.EXCEEDS_MAX_QUOTA, message, numbers)
        label, required = domain_label(job.topology)
        fitting = max(0, index.total_slots(demand, job.topology) - job.ps)
        way = (
            f"With --workers {fitting} it would fit."
            if fitting
            else "Ask for less per rank or for fewer ranks."
        )
        asked = f"{count(ranks, 'rank')} of {amount(job.per_worker)}"
        if required and index.total_slots(demand) >= ranks:
            where = "node" if label == NODE else str(label)
            message = f"no {where} can hold {asked} together. {way}"
            return Verdict(Reason.TOPOLOGY_PLACEMENT_FAILED, message, numbers)
        have = f"{count(nodes, 'node')} with {amount(total)} in all"
        there = "is" if nodes == 1 else "are"
        return Verdict(
            Reason.EXCEEDS_MAX_QUOTA, f"{asked} can never run here: there {there} {have}. {way}", numbers
        )


def check_possible(snapshot: Snapshot, job: WaitingJob) -> Verdict | None:
    """Return why the job can never run with the quotas and nodes of the snapshot, None when it can."""
    return Possible.of(snapshot.nodes, snapshot.tenants).check(job)
