"""Sums of a core's decisions, and whether nodes and quotas allow them."""

from __future__ import annotations

from collections.abc import Mapping

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.model.resources import limits_of
from mlp_hub.scheduler.model.types import CapacityWindow, Node, PendingWorkload, TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree


class Ledger:
    """What runs and waits, counted by somebody else than the core; the checks raise `AssertionError`."""

    def __init__(self, nodes: dict[str, Node], tenants: dict[str, TenantQueue]) -> None:
        self.nodes = nodes
        self.tenants = tenants
        self.running: dict[str, tuple[PendingWorkload, tuple[str, ...], tuple[tuple[int, ...], ...]]] = {}
        self.waiting: dict[str, PendingWorkload] = {}
        self.bookings: tuple[CapacityWindow, ...] = ()

    def on_node(self, name: str) -> tuple[int, int, dict[int, int]]:
        """Add up cpu, ram and the thousandths of each GPU that jobs hold on a node."""
        cpu = ram = 0
        gpus: dict[int, int] = {}
        for held, placement, devices in self.running.values():
            for rank, there in enumerate(placement):
                if there != name:
                    continue
                cpu += held.per_worker.cpu
                ram += held.per_worker.ram
                whole, part = divmod(held.per_worker.gpu, MILLI)
                numbers = devices[rank]
                assert len(numbers) == whole + (part > 0)
                assert len(set(numbers)) == len(numbers)
                for i, number in enumerate(numbers):
                    gpus[number] = gpus.get(number, 0) + (MILLI if i < whole else part)
        return cpu, ram, gpus

    def vector(self, uid: str) -> dict[str, int]:
        """Return what a running job takes of its tenant's quota."""
        held, placement, _ = self.running[uid]
        out: dict[str, int] = {}
        for name in placement:
            for d, v in held.per_worker.items():
                if v:
                    out[d] = out.get(d, 0) + v
            if held.per_worker.gpu:
                kind = f"gpu:{self.nodes[name].gpu_kind}"
                out[kind] = out.get(kind, 0) + held.per_worker.gpu
        return out

    def check_topology(self, uid: str) -> None:
        held, placement, _ = self.running[uid]
        for name in placement:
            assert set(self.nodes[name].taints) <= {f"tenant={held.tenant}"}
        if held.topology == "same-node":
            assert len(set(placement)) == 1
        if held.topology == "same-rack":
            assert len({self.nodes[name].labels["rack"] for name in placement}) == 1
        if held.gpu_kind and held.per_worker.gpu:
            assert {self.nodes[name].gpu_kind for name in placement} == {held.gpu_kind}

    def check_nodes(self, taken: dict[str, None]) -> None:
        for name, n in self.nodes.items():
            cpu, ram, gpus = self.on_node(name)
            assert cpu + n.others.cpu <= n.capacity.cpu
            assert ram <= n.capacity.ram
            assert all(v <= MILLI for v in gpus.values())
            assert all(number < n.capacity.gpu // MILLI for number in gpus)
        for uid in taken:
            if uid in self.running:
                assert all(self.nodes[name].up for name in self.running[uid][1])

    def tree(self) -> QuotaTree:
        tree = QuotaTree(self.tenants.values())
        for uid, (held, _, _) in self.running.items():
            tree.charge(held.tenant, self.vector(uid))
        return tree

    def totals(self) -> dict[tuple[str, str], int]:
        """Add up what each cohort without parents in it holds, by dimension."""
        out: dict[tuple[str, str], int] = {}
        for uid, (held, _, _) in self.running.items():
            for d, v in self.vector(uid).items():
                out["tenant " + held.tenant, d] = out.get(("tenant " + held.tenant, d), 0) + v
                cohort = self.tenants[held.tenant].cohort
                if cohort and getattr(self.tenants[held.tenant].quota, d, None) is not None:
                    out["cohort " + cohort, d] = out.get(("cohort " + cohort, d), 0) + v
        return out

    def check_quota(self, taken: dict[str, None], before: dict[tuple[str, str], int]) -> None:
        tree = self.tree()
        for uid in taken:
            if uid in self.running:
                tenant, vector = self.running[uid][0].tenant, self.vector(uid)
                tree.release(tenant, vector)
                assert not tree.excess(tenant, vector)
                tree.charge(tenant, vector)
        if any(t.parent for t in self.tenants.values()):
            return
        # in plain words, where there are no trees of parents
        for (who, d), now in self.totals().items():
            if now <= before.get((who, d), 0) or d.startswith("gpu:"):
                continue
            kind, name = who.split()
            if kind == "cohort":
                members = [t for t in self.tenants.values() if t.cohort == name]
                assert now <= sum(getattr(t.quota, d) or 0 for t in members)
                continue
            tenant = self.tenants[name]
            nominal = getattr(tenant.quota, d)
            if nominal is None:
                continue
            if tenant.cohort is None:
                assert now <= nominal
            elif tenant.borrowing_limit is not None and getattr(tenant.borrowing_limit, d) is not None:
                assert now <= nominal + getattr(tenant.borrowing_limit, d)

    def claims(self, at: float, ends: Mapping[str, float]) -> dict[str, int]:
        """Add up, at a time, what each tenant will hold or has kept for it, whichever is more; where somebody has."""
        kept = {name: limits_of(t.reserved) for name, t in self.tenants.items()}
        for b in self.bookings:
            if b.start <= at < b.end:
                for d, v in limits_of(b.amount).items():
                    kept[b.tenant][d] = kept[b.tenant].get(d, 0) + v
        used: dict[str, dict[str, int]] = {name: {} for name in self.tenants}
        for uid, (held, _, _) in self.running.items():
            if ends.get(uid, at) > at:
                for d, v in self.vector(uid).items():
                    used[held.tenant][d] = used[held.tenant].get(d, 0) + v
        dimensions = {d for vector in kept.values() for d, v in vector.items() if v}
        return {d: sum(max(used[t].get(d, 0), kept[t].get(d, 0)) for t in self.tenants) for d in dimensions}

    def capacity(self, dimension: str) -> int:
        return sum(getattr(n.capacity - n.others, dimension) for n in self.nodes.values() if n.up)
