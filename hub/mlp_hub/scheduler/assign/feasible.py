"""Whether a job can ever run here: those that cannot are refused at submission, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlp_hub.domain.dimensions import BY_NAME, COUNTED, DIMENSIONS, MILLI
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.quantities import number, quantities, quantity
from mlp_hub.domain.resources import ZERO, amount_of
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector, part, vector_of, vector_of_ranks
from mlp_hub.scheduler.model.types import Node, PendingWorkload, Snapshot, TenantQueue, Verdict
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.placement import NODE, domain_label
from mlp_hub.scheduler.nodes.states import are_kept_for_tenants
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_language.message import Message, TenantRef, msg, msgs, some, verbatim

LESS = {"cpu": (100, 100, MILLI), "ram": (100, 1, 1)} | {d: (BY_NAME[d].least, 1, 1) for d in COUNTED}
"""Given: for each resource that a rank can ask less of, the minimum, the step, and the option's unit.

The unit is the number of the resource's own units that its option counts as one.
"""


@dataclass(slots=True)
class Possible:
    """Nodes and quotas with nothing in use; made once for many questions.

    Nodes that are down count, since they can come back. Amounts that non-jobs hold do not count.
    """

    tenants: dict[str, TenantQueue]
    index: NodeIndex
    quotas: QuotaTree
    keeps_nodes: bool

    @classmethod
    def from_nodes(cls, nodes: tuple[Node, ...], tenants: tuple[TenantQueue, ...]) -> Possible:
        """Make it of nodes and tenants."""
        index = NodeIndex([replace(n, used=ZERO, others=ZERO, up=True) for n in nodes])
        quotas = QuotaTree(replace(t, used=ZERO) for t in tenants)
        quotas.set_capacity(vector_of(index.total))
        return cls({t.name: t for t in tenants}, index, quotas, are_kept_for_tenants(nodes))

    def check(self, job: PendingWorkload) -> Verdict | None:
        """Return why the job can never run, None when it can."""
        if job.tenant not in self.tenants:
            return Verdict(Reason.NOT_FOUND, msg("Team {tenant} does not exist.", tenant=job.tenant))
        demand = Demand.from_resources(job.per_worker, job.gpu_kind, job.tenant if self.keeps_nodes else None)
        return self._over_quota(job, demand) or self._no_flavor(job) or self._too_big(job, demand)

    def _over_quota(self, job: PendingWorkload, demand: Demand) -> Verdict | None:
        asked = vector_of_ranks(demand, job.workers_min + job.ps)
        limits = ((d, self.quotas.limit(job.tenant, d)) for d in asked)
        over = {d: limit for d, limit in limits if limit is not None and asked[d] > limit}
        if not over:
            return None
        beside = self._beside_others(job, demand, most_workers(job, asked, over))
        return beyond_quota(job, over, asked, self.tenants[job.tenant], beside)

    def _beside_others(self, job: PendingWorkload, demand: Demand, fitting: int) -> tuple[Fact, ...]:
        """Return the fact of how many workers could start beside non-jobs, where that is below `fitting`.

        The end of a job does not give back the amounts that non-jobs hold.
        """
        quotas = QuotaTree(self.tenants.values())
        for tenant in self.tenants.values():
            quotas.charge(tenant.name, vector_of(tenant.used))
        rooms = ((quotas.available(job.tenant, d), one) for d, one in vector_of_ranks(demand, 1).items())
        ranks = min((room // one for room, one in rooms if room is not None), default=fitting + job.ps)
        beside = max(0, ranks - job.ps)
        if beside >= fitting:
            return ()
        mine = self.tenants[job.tenant]
        who = some(mine.others) if mine.used != ZERO else (msg("notebooks of other teams"),)
        return (Fact("beside", beside, who=who),)

    def _no_flavor(self, job: PendingWorkload) -> Verdict | None:
        if not (job.per_worker.gpu and job.gpu_kind):
            return None
        kinds = self.index.kinds()
        if any(kind in kinds for kind in job.gpu_kind.split("|")):
            return None
        have = msg("Available: {kinds}.", kinds=some(kinds)) if kinds else msg("No node has any GPU.")
        headline = msg("No node has a {kind} GPU. {have}", kind=job.gpu_kind, have=have)
        return Verdict(Reason.NO_MATCHING_FLAVOR, headline, (Fact("kinds", len(kinds)),))

    def _too_big(self, job: PendingWorkload, demand: Demand) -> Verdict | None:
        ranks = job.workers_min + job.ps
        index = self.index
        if index.total_slots(demand, job.topology) >= ranks:
            return None
        groups = index.groups(demand)
        total = ZERO
        largest = ZERO
        for free, n, _ in groups:
            total = total + free * n
            largest = amount_of({d: max(largest.part(d), free.part(d)) for d in DIMENSIONS})
        nodes = sum(n for _, n, _ in groups)
        facts: tuple[Fact, ...] = (Fact("ranks", ranks), Fact("nodes", nodes, who=(quantities(total),)))
        for d, need in job.per_worker.items():
            have = largest.part(BY_NAME[d].within or d)
            if need > have:
                facts += (Fact("asked", quantity(d, need), d), Fact("limit", quantity(d, have), d))
                headline = msg(
                    "Each rank needs {asked}, the largest node has {limit}. Ask for less.",
                    asked=quantity(d, need),
                    limit=number(d, have),
                )
                return Verdict(Reason.EXCEEDS_MAX_QUOTA, headline, facts)
        facts += (Fact("each", quantities(job.per_worker)),)
        label, required = domain_label(job.topology)
        fitting = max(0, index.total_slots(demand, job.topology) - job.ps)
        way = msg("Use --workers {n}.", n=fitting) if fitting else msg("Ask for less.")
        if required and index.total_slots(demand) >= ranks:
            headline = msgs(
                "No {where} can hold {n} rank. {way}",
                "No {where} can hold {n} ranks together. {way}",
                n=ranks,
                where=domain_word(label),
                way=way,
            )
            return Verdict(Reason.TOPOLOGY_PLACEMENT_FAILED, headline, facts)
        headline = msgs(
            "{n} rank can never run on these nodes. {way}",
            "{n} ranks can never run on these nodes. {way}",
            n=ranks,
            way=way,
        )
        return Verdict(Reason.EXCEEDS_MAX_QUOTA, headline, facts)


def check_possible(snapshot: Snapshot, job: PendingWorkload) -> Verdict | None:
    """Return why the job can never run with the quotas and nodes of the snapshot, None when it can."""
    return Possible.from_nodes(snapshot.nodes, snapshot.tenants).check(job)


def beyond_quota(
    job: PendingWorkload, over: Vector, asked: Vector, tenant: TenantQueue, more: tuple[Fact, ...] = ()
) -> Verdict:
    """Say that a job asks for more than its tenant may ever use, and with how many workers, or how much of each, it would not."""
    dimension = next(iter(over))
    if fitting := most_workers(job, asked, over):
        way = msg("Use --workers {n}.", n=fitting)
    elif less := less_per_rank(job, beside_servers(over, tenant)):
        way = msg("Use {less}.", less=less)
    else:
        several = job.workers_min + job.ps > 1
        way = msg("Use fewer and smaller workers.") if several else msg("Ask for less per rank.")
    headline = msg(
        "Needs {asked}, {tenant} may use {limit}. {way}",
        asked=quantity(dimension, asked[dimension]),
        tenant=TenantRef(job.tenant),
        limit=number(dimension, over[dimension]),
        way=way,
    )
    facts = [
        fact
        for d, limit in over.items()
        for fact in (Fact("asked", quantity(d, asked[d]), d), Fact("limit", quantity(d, limit), d))
    ]
    return Verdict(Reason.EXCEEDS_MAX_QUOTA, headline, (*facts, *more))


def most_workers(job: PendingWorkload, asked: Vector, left: Vector) -> int:
    """Return the number of workers with which a gang that asks for `asked` would fit into `left`; 0: none."""
    ranks = job.workers_min + job.ps
    return max(0, min(n * ranks // asked[d] for d, n in left.items()) - job.ps)


def beside_servers(over: Vector, tenant: TenantQueue) -> Vector:
    """Return what limits leave beside the servers of a tenant, which no job's end gives back."""
    return {d: max(0, limit - part(tenant.used, d)) for d, limit in over.items()}


def less_per_rank(job: PendingWorkload, left: Vector) -> str:
    """Return with how much of each rank a gang as large would fit into what is left, as options; empty: with none."""
    ranks = job.workers_min + job.ps
    ways = []
    for dimension, amount in left.items():
        least, step, scale = LESS.get(dimension, (1, 1, 1))
        least = max(least, job.per_worker.parts_of(dimension))
        each = amount // ranks // step * step
        if dimension not in LESS or each < least:
            return ""
        ways.append(f"--{dimension} {each / scale:g}" if scale > 1 else f"--{dimension} {each}")
    return " ".join(ways)


def domain_word(label: str | None) -> Message:
    """Name the part of the cluster in which all ranks of a gang have to be: a node, or what a label says."""
    return msg("node") if label == NODE else verbatim(str(label))
