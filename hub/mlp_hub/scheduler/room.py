"""Room while a cycle is planned: what is free on nodes and within quotas, with holds that can be tried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.model import Node, RunningJob, Snapshot, TenantQueue, WaitingJob
from mlp_hub.scheduler.placement import matches, most_workers, place


@dataclass(slots=True)
class Room:
    """Free capacity of each node and use of each tenant; the only mutable thing in the core."""

    nodes: Sequence[Node]
    free: dict[str, Resources]
    used: dict[str, Resources]
    tenants: dict[str, TenantQueue]
    by_name: dict[str, Node]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Room:
        """Start from the snapshot: capacity less other holders, less running jobs."""
        room = cls(
            snapshot.nodes,
            {n.name: n.capacity - n.used for n in snapshot.nodes},
            {t.name: t.used for t in snapshot.tenants},
            {t.name: t for t in snapshot.tenants},
            {n.name: n for n in snapshot.nodes},
        )
        for running in snapshot.running:
            room.hold(running.job, running.placement)
        return room

    def copy(self) -> Room:
        """Return a copy to try holds on."""
        return Room(self.nodes, dict(self.free), dict(self.used), self.tenants, self.by_name)

    def hold(self, job: WaitingJob, placement: Sequence[str]) -> None:
        """Take what the placed job needs."""
        self._move(job, placement, 1)

    def give_back(self, running: RunningJob) -> None:
        """Free what a running job holds."""
        self._move(running.job, running.placement, -1)

    def _move(self, job: WaitingJob, placement: Sequence[str], sign: int) -> None:
        for node in placement:
            # a node that is gone has nothing to give, but the quota counts all the same
            if node in self.free:
                self.free[node] = self.free[node] - job.per_worker * sign
        taken = self.charge(job, placement)
        used = self.used.get(job.tenant, ZERO)
        self.used[job.tenant] = used + taken if sign > 0 else used - taken

    def charge(self, job: WaitingJob, placement: Sequence[str]) -> Resources:
        """Return what the placed job takes of its tenant's quota: its gpu under the kind of the node it sits on."""
        amount = job.per_worker * len(placement)
        if not job.per_worker.gpu:
            return amount
        kinds: dict[str, int] = {}
        for name in placement:
            kind = self.by_name[name].gpu_kind if name in self.by_name else None
            if kind:
                kinds[kind] = kinds.get(kind, 0) + job.per_worker.gpu
        return Resources(amount.cpu, amount.gpu, amount.ram, amount.rom, tuple(sorted(kinds.items())))

    def over_quota(self, job: WaitingJob, workers: int) -> list[tuple[str, int, int]]:
        """List (dimension, would be in use, limit) where the job with so many workers is over its quota.

        Before placement a gpu counts under the kind that was asked for, or under none.
        """
        amount = job.per_worker * (workers + job.ps)
        if job.gpu_kind and amount.gpu:
            amount = Resources(amount.cpu, amount.gpu, amount.ram, amount.rom, ((job.gpu_kind, amount.gpu),))
        return self._exceeded(job.tenant, amount)

    def _exceeded(self, tenant: str, amount: Resources) -> list[tuple[str, int, int]]:
        # only what this amount asks for can be refused: a quota lowered below its use blocks nothing else
        over = self.tenants[tenant].quota.exceeded_by(self.used.get(tenant, ZERO) + amount)
        asked = {d for d, v in amount.items() if v} | {f"gpu:{k}" for k, v in amount.kinds if v}
        return [entry for entry in over if entry[0] in asked]

    def fit(self, job: WaitingJob) -> tuple[str, ...] | None:
        """Place the job with as many workers as quota and nodes allow, None when not even the least fits."""
        if job.tenant not in self.tenants or self.over_quota(job, job.workers_min):
            return None
        nodes = list(self.nodes)
        while True:
            workers = most_workers(job, nodes, self.free)
            while workers > job.workers_min and self.over_quota(job, workers):
                workers -= 1
            placement = place(job, nodes, self.free, workers) if workers else None
            if placement is None:
                return None
            over = self._exceeded(job.tenant, self.charge(job, placement))
            if not over:
                return placement
            # the quota of a gpu kind is used up: look again without its nodes
            kinds = {d.partition(":")[2] for d, _, _ in over}
            nodes = [n for n in nodes if n.gpu_kind not in kinds]

    def holds(self, job: WaitingJob, placement: Sequence[str]) -> bool:
        """Whether this very placement fits, in quota and on its nodes."""
        if self._exceeded(job.tenant, self.charge(job, placement)):
            return False
        need: dict[str, int] = {}
        for node in placement:
            need[node] = need.get(node, 0) + 1
        return all(
            node in self.free and (job.per_worker * n).fits(self.free[node]) for node, n in need.items()
        )

    def total(self) -> Resources:
        """Add up the capacity of all nodes that are up."""
        total = ZERO
        for node in self.nodes:
            if node.up:
                total = total + node.capacity
        return total


def candidates(job: WaitingJob, nodes: Sequence[Node]) -> list[Node]:
    """List the nodes that may host the job at all."""
    return [n for n in nodes if matches(n, job)]
