"""A ledger on a small SQLite file, with a clock that the test turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.executors.nodes import Condition, ConditionKind, NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database


@dataclass
class Bench:
    """What the tests work on; each call is a transaction of its own."""

    db: Database
    now: float = 1000.0
    nodes: list[NodeInfo] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.db, lambda: self.now, lambda: self.nodes, ttl_s=60)

    def tenant(self, name: str, **quota: int) -> None:
        with self.db.begin() as tx:
            if not tx.tenants.insert(Tenant(name, Quota(**quota)), 0):
                tx.tenants.update(Tenant(name, Quota(**quota)))

    def try_(
        self,
        request_id: str,
        *,
        applier: str = "jm",
        tenant: str = "red",
        release: bool = False,
        **kw: object,
    ) -> ResourceRequest | None:
        kind = "release" if release else "request"
        asked = api.ResourceRequestTry(id=request_id, applier=applier, request_type=kind, tenant=tenant, **kw)
        with self.db.begin() as tx:
            return self.ledger.try_in(tx, asked)

    def refusal(self, request_id: str, **kw: object) -> str:
        """Return in what words a try is refused."""
        with pytest.raises(Refused) as caught:
            self.try_(request_id, **kw)
        return str(caught.value)

    def confirm(self, request_id: str, applier: str = "jm") -> None:
        with self.db.begin() as tx:
            self.ledger.confirm_in(tx, applier, request_id)

    def cancel(self, request_id: str, applier: str = "jm") -> None:
        with self.db.begin() as tx:
            self.ledger.cancel_in(tx, applier, request_id)

    def held(self, request_id: str, **kw: object) -> None:
        self.try_(request_id, **kw)
        self.confirm(request_id, str(kw.get("applier", "jm")))

    def in_use(self, tenant: str = "red") -> Resources:
        with self.db.reading() as tx:
            return tx.ledger.in_use(tenant, self.now)

    def phase(self, request_id: str, applier: str = "jm") -> str | None:
        with self.db.reading() as tx:
            row = tx.ledger.get(applier, request_id)
        return None if row is None else row.phase.value


def node(
    name: str = "n1", cpu: int = 4000, ram: int = 8192, gpu: int = 0, *, up: bool = True, **kw: object
) -> NodeInfo:
    size = Resources(cpu=cpu, ram=ram, gpu=gpu)
    conditions = () if up else (Condition(ConditionKind.NOT_READY),)
    return NodeInfo(name, size, size, conditions=conditions, **kw)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    made = Bench(db, nodes=[node()])
    made.tenant("red", cpu=2000, ram=4096)
    yield made
    db.close()


@pytest.fixture
def make_node():
    return node
