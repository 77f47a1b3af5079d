"""Whatever happens, in whatever order: no tenant, cohort, parent or borrowing limit is overcommitted.

Takes go through the ledger and through admissions; between them tenants change. Each answer is compared with a
tree made anew from the rows, and the sums with bounds that are computed without any tree.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import delete

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import vector_of
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.service.admission.recheck import LedgerCheck
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database
from mlp_hub.store.tables import resource_request
from support.stores.admissions import admit

TTL = 10
SIZE = Resources(cpu=10**9, ram=10**9)
NODES = [NodeInfo("n", SIZE, SIZE)]
_folder = tempfile.TemporaryDirectory(prefix="mlp-shared-quota-")
_db = Database(str(Path(_folder.name) / "mlp.sqlite"))
_db.create_schema()

# red and blue share a cohort with org, whose children are lab and team; solo is alone
PLACES = {"org": None, "red": None, "blue": None, "solo": None, "lab": "org", "team": "org"}
names = st.sampled_from(sorted(PLACES))
ids = st.sampled_from("abcdef")
cores = st.integers(1, 5)
limit = st.none() | st.integers(0, 4)


def quota(cpu: int | None) -> Quota | None:
    """Return a quota of so many cores."""
    return None if cpu is None else Quota(cpu=cpu * 1000)


def queue(tenant: Tenant) -> TenantQueue:
    """Return a tenant for a tree, written here once more so that nothing is left out unseen."""
    return TenantQueue(
        tenant.name,
        tenant.quota,
        parent=tenant.parent,
        cohort=tenant.cohort,
        borrowing_limit=tenant.borrowing_limit,
        lending_limit=tenant.lending_limit,
    )


class SharedQuotas(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.debts: dict[str, int] = {}  # what was in use when a quota was lowered; it may only shrink
        self.ledger = Ledger(_db, lambda: self.now, lambda: NODES, ttl_s=TTL)
        with _db.begin() as tx:
            tx.connection.execute(delete(resource_request))

    @initialize(quotas=st.lists(st.integers(0, 8), min_size=6, max_size=6))
    def tenants(self, quotas: list[int]) -> None:
        with _db.begin() as tx:
            for (name, parent), cpu in zip(PLACES.items(), quotas, strict=True):
                cohort = "main" if name in ("org", "red", "blue") else None
                tenant = Tenant(name, Quota(cpu=cpu * 1000), parent=parent, cohort=cohort)
                if not tx.tenants.insert(tenant, 0):
                    tx.tenants.update(tenant)

    @rule(name=names, cpu=st.none() | st.integers(0, 8), borrow=limit, lend=limit)
    def change(self, name: str, cpu: int | None, borrow: int | None, lend: int | None) -> None:
        with _db.begin() as tx:
            was = tx.tenants.get(name)
            tx.tenants.update(
                Tenant(
                    name,
                    quota(cpu) or Quota(),
                    parent=was.parent,
                    cohort=was.cohort,
                    borrowing_limit=quota(borrow),
                    lending_limit=quota(lend),
                )
            )
        self.debts = {what: used for what, (used, most) in self.bounds().items() if used > most}

    # ------------------------------------------------------------ what takes

    def rebuilt(self, tx) -> QuotaTree:
        tree = QuotaTree(queue(t) for t in tx.tenants.all())
        for row in tx.ledger.held(self.now):
            tree.charge(row.tenant, vector_of(row.amount))
        return tree

    @rule(name=names, request_id=ids, n=cores)
    def try_(self, name: str, request_id: str, n: int) -> None:
        asked = api.ResourceRequestTry(
            id=request_id, applier="am", request_type="request", tenant=name, cpu=n
        )
        with _db.reading() as tx:
            row = tx.ledger.get("am", request_id)
            fits = not self.rebuilt(tx).excess(name, {"cpu": n * 1000})
        known = row is not None and row.held and not row.expired(self.now)
        done = self.does(lambda tx: self.ledger.try_in(tx, asked))
        if not known:
            assert done is fits

    @rule(asks=st.lists(st.tuples(names, cores), min_size=1, max_size=6))
    def admit(self, asks: list[tuple[str, int]]) -> None:
        """Take several in one transaction, as a cycle does."""
        with _db.begin() as tx:
            room, tree = LedgerCheck(tx, NODES, self.now), self.rebuilt(tx)
            for i, (name, n) in enumerate(asks):
                amount = Resources(cpu=n * 1000)
                fits = not tree.excess(name, vector_of(amount))
                assert admit(room, tx, f"{self.now}-{i}", name, amount, self.now) is fits
                if fits:
                    tree.charge(name, vector_of(amount))
        self.now += 0.5

    # -------------------------------------------------------- what gives back

    @rule(request_id=ids)
    def confirm(self, request_id: str) -> None:
        self.does(lambda tx: self.ledger.confirm_in(tx, "am", request_id))

    @rule(request_id=ids)
    def cancel(self, request_id: str) -> None:
        self.does(lambda tx: self.ledger.cancel_in(tx, "am", request_id))

    @rule(which=st.integers(0, 5))
    def release(self, which: int) -> None:
        def one(tx) -> None:
            rows = tx.ledger.held(self.now)
            if rows:
                row = rows[which % len(rows)]
                if row.phase is RequestPhase.TRIED:
                    self.ledger.cancel_in(tx, row.applier, row.id)
                else:
                    tx.ledger.release_many(row.applier, [row.id])

        self.does(one)

    @rule(by=st.sampled_from([1, TTL]), sweep=st.booleans())
    def wait(self, by: int, sweep: bool) -> None:
        self.now += by
        if sweep:
            self.does(lambda tx: self.ledger.expire(tx, self.now))

    def does(self, fn) -> bool:
        try:
            with _db.begin() as tx:
                fn(tx)
        except Refused:
            return False
        return True

    # -------------------------------------------------------- what must hold

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Return (in use, the most) of each tenant, parent and cohort that has a limit."""
        with _db.reading() as tx:
            tenants = {t.name: t for t in tx.tenants.all() if t.name in PLACES}
            rows = tx.ledger.held(self.now)
        used = dict.fromkeys(tenants, 0)
        for row in rows:
            used[row.tenant] += row.amount.cpu
        own = {name: t.quota.cpu for name, t in tenants.items()}
        borrow = {n: t.borrowing_limit.cpu if t.borrowing_limit else None for n, t in tenants.items()}
        found: dict[str, tuple[int, int]] = {}
        if own["solo"] is not None:
            found["solo"] = (used["solo"], own["solo"])
        for name in ("red", "blue", "lab", "team"):
            if own[name] is not None and borrow[name] is not None:
                found[f"{name}'s borrowing"] = (used[name], own[name] + borrow[name])
        org = used["org"] + used["lab"] + used["team"]
        if own["org"] is not None and borrow["org"] is not None:
            found["org's borrowing"] = (org, own["org"] + borrow["org"])
        # the cohort: members without a limit take no part; below org all do when it has one, else those that do
        if own["org"] is not None:
            members, has = org, own["org"]
        else:
            limited = [n for n in ("lab", "team") if own[n] is not None]
            members, has = sum(used[n] for n in limited), sum(own[n] for n in limited)
        for name in ("red", "blue"):
            if own[name] is not None:
                members, has = members + used[name], has + own[name]
        found["cohort main"] = (members, has)
        return found

    @invariant()
    def nothing_is_overcommitted(self) -> None:
        for what, (used, most) in self.bounds().items():
            allowed = max(most, self.debts.get(what, 0))
            assert used <= allowed, f"{what}: {used} in use of {most}"
            if what in self.debts:
                self.debts[what] = used


def teardown_module() -> None:
    _db.close()
    _folder.cleanup()


TestSharedQuotas = SharedQuotas.TestCase
TestSharedQuotas.settings = settings(
    max_examples=8, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
