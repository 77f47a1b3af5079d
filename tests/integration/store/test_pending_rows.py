"""Pending requests as rows, on both databases."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import Database

PENDING = ResourceRequest(
    "bob/",
    "sp",
    "red",
    Resources(cpu=1000),
    RequestPhase.PENDING,
    5.0,
    60.0,
    holder="bob's notebook",
    user="bob",
)
OLDER = replace(PENDING, id="ann/", created_at=4.0)


def test_pending_requests_are_found_until_they_expire_and_count_as_nothing(db: Database) -> None:
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red"), 0)
        tx.ledger.put_many([PENDING, OLDER, replace(PENDING, id="late", expires_at=10.0)])
    with db.reading() as tx:
        assert tx.ledger.pending(10) == [OLDER, PENDING]
        assert tx.ledger.pending(60) == []
        assert tx.ledger.in_use("red", 10) == ZERO
        assert tx.ledger.in_use_by_tenant(10) == {}
        assert tx.ledger.node_use(10) == {}
        assert tx.ledger.held(10) == tx.ledger.on_nodes(10) == []
        assert [r.id for r in tx.ledger.expired(10)] == ["late"]


def test_a_pending_request_keeps_its_place_however_long_ago_it_was_made(db: Database) -> None:
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red"), 0)
        tx.ledger.put_many([PENDING, replace(PENDING, id="gone", phase=RequestPhase.EXPIRED)])
        assert tx.ledger.purge(50) == 1
        assert tx.ledger.pending(50) == [PENDING]
