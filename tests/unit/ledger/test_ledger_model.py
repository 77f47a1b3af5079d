"""The ledger against a model that is simple enough to be seen to be right."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import delete

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database
from mlp_hub.store.tables import resource_request

TTL = 10
NODE = 6
_folder = tempfile.TemporaryDirectory(prefix="mlp-ledger-model-")
_db = Database(str(Path(_folder.name) / "mlp.sqlite"))
_db.create_schema()

ids = st.sampled_from("abcd")
appliers = st.sampled_from(["jm", "sp"])
cores = st.integers(1, 4)


@dataclass
class Row:
    """What the model knows of a request. `node` rows take the node's capacity too."""

    amount: int
    phase: str  # tried, confirmed, releasing, ended; releases: tried-release, used-release, ended
    since: float
    born: float
    order: int
    how: str = ""

    @property
    def holds(self) -> bool:
        return self.phase in ("tried", "confirmed", "releasing")


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.quota = 5
        self.rows: dict[tuple[str, str], Row] = {}
        self.made = 0
        size = Resources(cpu=NODE * 1000)
        self.ledger = Ledger(_db, lambda: self.now, lambda: [NodeInfo("n", size, size)], ttl_s=TTL)
        with _db.begin() as tx:
            tx.connection.execute(delete(resource_request))
            tx.tenants.insert(Tenant("red"), 0)
        self.set_quota(5)

    # ------------------------------------------------------------- the model

    def used(self, applier: str | None = None) -> int:
        return sum(r.amount for (a, _), r in self.rows.items() if r.holds and applier in (None, a))

    def pass_time(self) -> None:
        for row in self.rows.values():
            if self.now >= row.since + TTL:
                if row.phase in ("tried", "tried-release"):
                    row.phase, row.how = "ended", "expired"
                elif row.phase == "releasing":
                    row.phase, row.how = "confirmed", "expired"

    def givers(self) -> list[Row]:
        rows = [
            r for (a, _), r in sorted(self.rows.items()) if a == "jm" and r.phase == "confirmed" and r.amount
        ]
        return sorted(rows, key=lambda r: r.born)

    def ask(self, applier: str, request_id: str, n: int, kind: str) -> bool:
        asked = api.ResourceRequestTry(id=request_id, applier=applier, request_type=kind, tenant="red", cpu=n)
        return self.does(lambda tx: self.ledger.try_in(tx, asked))

    def does(self, fn) -> bool:
        try:
            with _db.begin() as tx:
                fn(tx)
        except Refused:
            return False
        return True

    # ------------------------------------------------------------- the rules

    @rule(quota=st.integers(0, 8))
    def set_quota(self, quota: int) -> None:
        self.quota = quota
        with _db.begin() as tx:
            tx.tenants.update(Tenant("red", Quota(cpu=quota * 1000)))

    @rule(by=st.sampled_from([1, 4, TTL]))
    def wait(self, by: int) -> None:
        self.now += by
        self.pass_time()

    @rule()
    def sweep(self) -> None:
        with _db.begin() as tx:
            self.ledger.expire(tx, self.now)

    @rule(applier=appliers, request_id=ids, n=cores)
    def request(self, applier: str, request_id: str, n: int) -> None:
        row = self.rows.get((applier, request_id))
        if row is not None and row.holds:
            expected = row.amount == n
        elif row is not None and row.phase in ("tried-release", "used-release"):
            expected = False
        else:
            expected = self.used() + n <= self.quota
            if applier == "sp":
                expected = expected and self.used("sp") + n <= NODE
            if expected:
                self.made += 1
                self.rows[applier, request_id] = Row(n, "tried", self.now, self.now, self.made)
        assert self.ask(applier, request_id, n, "request") is expected

    @rule(applier=appliers, request_id=ids, n=st.integers(0, 4))
    def release(self, applier: str, request_id: str, n: int) -> None:
        row = self.rows.get((applier, request_id))
        if row is not None and row.holds:
            expected = (n in {0, row.amount}) and row.phase != "tried"
            if expected and row.phase == "confirmed":
                row.phase, row.since, row.how = "releasing", self.now, ""
        elif row is not None and row.phase in ("tried-release", "used-release"):
            expected = n == row.amount
        elif row is not None and row.phase == "ended" and row.order:
            expected = n in {0, row.amount}
        elif n == 0:
            expected = True
        else:
            earmarked = sum(
                r.amount for (a, _), r in self.rows.items() if a == applier and r.phase == "tried-release"
            )
            can = sum(r.amount for r in self.givers()) if applier == "jm" else 0
            expected = n <= can - earmarked
            if expected:
                self.rows[applier, request_id] = Row(n, "tried-release", self.now, self.now, 0)
        assert self.ask(applier, request_id, n, "release") is expected

    @rule(applier=appliers, request_id=ids)
    def confirm(self, applier: str, request_id: str) -> None:
        row = self.rows.get((applier, request_id))
        expected = True
        if row is None or row.phase == "used-release":
            pass
        elif row.phase == "tried":
            row.phase, row.how = "confirmed", "confirmed"
        elif row.phase == "releasing":
            row.phase, row.how = "ended", "confirmed"
        elif row.phase == "confirmed":
            expected = row.how != "expired"
        elif row.phase == "ended":
            expected = row.how == "confirmed"
        elif row.phase == "tried-release":
            left = row.amount
            row.phase = "used-release"
            for giver in self.givers():
                taken = min(left, giver.amount)
                left -= taken
                giver.amount -= taken
                if taken and not giver.amount:
                    giver.phase, giver.how = "ended", "given"
                    giver.amount = taken  # the ledger keeps what it was, for people to see
        assert self.does(lambda tx: self.ledger.confirm_in(tx, applier, request_id)) is expected

    @rule(applier=appliers, request_id=ids)
    def cancel(self, applier: str, request_id: str) -> None:
        row = self.rows.get((applier, request_id))
        expected = True
        if row is None:
            pass
        elif row.phase in ("tried", "tried-release"):
            row.phase, row.how = "ended", "cancelled"
        elif row.phase == "releasing":
            row.phase, row.how = "confirmed", "cancelled"
        elif row.phase == "used-release" or (row.phase == "confirmed" and row.how == "confirmed"):
            expected = False
        assert self.does(lambda tx: self.ledger.cancel_in(tx, applier, request_id)) is expected

    @precondition(lambda self: self.rows)
    @rule(applier=appliers, request_id=ids)
    def end(self, applier: str, request_id: str) -> None:
        row = self.rows.get((applier, request_id))
        if row is not None and row.phase in ("confirmed", "releasing"):
            row.phase, row.how = "ended", "given"
        assert self.does(lambda tx: tx.ledger.release_many(applier, [request_id]))

    # -------------------------------------------------------- what must hold

    @invariant()
    def the_sums_are_those_of_the_model(self) -> None:
        with _db.reading() as tx:
            used = tx.ledger.in_use("red", self.now)
            assert used == Resources(cpu=self.used() * 1000)
            assert used == tx.ledger.in_use_by_tenant(self.now).get("red", Resources())
            on_node = tx.ledger.node_use(self.now).get("n", Resources()).cpu
            assert on_node == self.used("sp") * 1000 <= NODE * 1000
            assert sum((r.amount.cpu for r in tx.ledger.held(self.now, tenant="red")), 0) == used.cpu


def teardown_module() -> None:
    _db.close()
    _folder.cleanup()


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(
    max_examples=8, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
