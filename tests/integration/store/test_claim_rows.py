"""Claims as rows, on both databases."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenant import Tenant
from mlp_hub.store import Database

CORE = Resources(cpu=1000)
CLAIM = ResourceRequest(
    "bob/",
    "sp",
    "red",
    CORE,
    RequestPhase.CLAIMED,
    5.0,
    60.0,
    holder="bob's notebook",
    user="bob",
    last="claim",
)
ASIDE = replace(CLAIM, id="ann/", created_at=4.0, shares=(("n1", CORE),))


def test_claims_are_found_until_they_expire_and_count_as_nothing(db: Database) -> None:
    with db.begin() as tx:
        tx.tenants.insert(Tenant("red"), 0)
        tx.ledger.put_many([CLAIM, ASIDE, replace(CLAIM, id="late", expires_at=10.0)])
    with db.reading() as tx:
        assert tx.ledger.claims(10) == [ASIDE, CLAIM]
        assert tx.ledger.claims(60) == []
        assert tx.ledger.in_use("red", 10) == ZERO
        assert tx.ledger.in_use_by_tenant(10) == {}
        assert tx.ledger.node_use(10) == {}
        assert tx.ledger.held(10) == tx.ledger.on_nodes(10) == []
        assert [r.id for r in tx.ledger.expired(10)] == ["late"]
