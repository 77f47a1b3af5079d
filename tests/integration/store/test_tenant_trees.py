"""Which tenants share with each other, found without reading all of them."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import update

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import Database, tables

FOREST = (
    Tenant("solo"),
    Tenant("org", Quota(cpu=9), cohort="main"),
    Tenant("lab", parent="org"),
    Tenant("bench", parent="lab"),
    Tenant("red", cohort="main"),
    Tenant("other", cohort="else"),
    Tenant("firm"),
    Tenant("desk", parent="firm"),
)


@pytest.fixture
def planted(db: Database) -> Database:
    with db.begin() as tx:
        for tenant in FOREST:
            assert tx.tenants.insert(tenant, 0)
    return db


def test_a_tree_is_found_from_any_of_its_tenants(planted: Database) -> None:
    main, firm = {"org", "lab", "bench", "red"}, {"firm", "desk"}
    expected = {
        **dict.fromkeys(main, main),
        **dict.fromkeys(firm, firm),
        "solo": {"solo"},
        "other": {"other"},
    }
    with planted.reading() as tx:
        found = {t.name: [m.name for m in tx.tenants.tree(t)] for t in FOREST}
        assert {name: set(names) for name, names in found.items()} == expected
        assert all(len(names) == len(set(names)) for names in found.values())


def test_whether_a_tenant_is_a_parent_comes_with_it(planted: Database) -> None:
    with planted.reading() as tx:
        assert {t.name for t in FOREST if (tx.tenants.with_parenthood(t.name) or (t, False))[1]} == {
            "org",
            "lab",
            "firm",
        }
        assert tx.tenants.with_parenthood("nobody") is None
        assert [tx.tenants.is_cohort(n) for n in ("main", "else", "org")] == [True, True, False]


def test_parents_in_a_circle_written_by_hand_are_told_and_do_not_hang(planted: Database) -> None:
    t = tables.tenant
    with planted.begin() as tx:
        tx.connection.execute(update(t).where(t.c.name == "org").values(parent="bench", cohort=None))
    with planted.reading() as tx, pytest.raises(ValueError, match="do not end"):
        tx.tenants.tree(FOREST[3])


def test_holdings_of_selected_tenants_are_added_up_with_their_gpu_kinds(planted: Database) -> None:
    now = time.time()
    amounts = {
        "red": Resources(cpu=1),
        "lab": Resources(gpu=3, kinds=(("a100", 2), ("h100", 1))),
        "solo": Resources(ram=5),
    }
    with planted.begin() as tx:
        for name, amount in amounts.items():
            for copy in "ab":
                tx.ledger.put(
                    ResourceRequest(f"{name}{copy}", "jm", name, amount, RequestPhase.CONFIRMED, now)
                )
    with planted.reading() as tx:
        every = {name: amount + amount for name, amount in amounts.items()}
        assert tx.ledger.in_use_by_tenant(now) == every
        some = tx.ledger.in_use_by_tenant(now, ["red", "lab", "org"])
        assert some == {n: every[n] for n in ("red", "lab")}
        assert tx.ledger.in_use_by_tenant(now, []) == {}
