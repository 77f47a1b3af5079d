"""Booked windows and lowered guarantees as rows, on both databases."""

from __future__ import annotations

from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenants.tenant import Lowering, Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.store import Database
from mlp_language.message import msg

AMOUNT = Quota(cpu=1500, kinds={"a100": 2000})
DEMO = BookedWindow("red", "demo", 100.0, 200.0, AMOUNT, "root", 5.0)
LATER = BookedWindow("blue", "demo", 150.0, 300.0, AMOUNT)
LOWERED = Lowering(7.0, 0.5, Quota(cpu=3), None, msg("red is idle"))


def test_windows_are_found_until_they_are_over_and_then_forgotten(db: Database) -> None:
    with db.begin() as tx:
        for name in ("red", "blue"):
            tx.tenants.insert(Tenant(name), 0)
        assert tx.bookings.insert(LATER)
        assert tx.bookings.insert(DEMO)
        assert not tx.bookings.insert(DEMO)
    with db.reading() as tx:
        assert tx.bookings.current(0) == [DEMO, LATER]
        assert tx.bookings.of_tenant("red", 199.9) == [DEMO]
        assert tx.bookings.of_tenant("red", 200) == []
        assert [tx.tenants.any_kept_free(t) for t in (99, 100, 250, 300)] == [False, True, True, False]
    with db.begin() as tx:
        assert tx.bookings.delete_expired(200) == 1
        assert tx.bookings.remove("red", "demo") is None
        assert tx.bookings.remove("blue", "demo") == LATER
        assert tx.bookings.insert(DEMO)
        assert tx.tenants.remove("red")
        assert tx.bookings.current(0) == []


def test_whether_anybody_reserves_anything_is_known_without_reading_all_tenants(db: Database) -> None:
    with db.begin() as tx:
        assert not tx.tenants.any_kept_free(0)
        tx.tenants.insert(Tenant("red", reserved=AMOUNT), 0)
        assert tx.tenants.any_kept_free(0)


def test_a_lowered_guarantee_stays_when_its_tenant_is_configured_again(db: Database) -> None:
    tenant = Tenant("red", Quota(cpu=8), lending_limit=Quota(cpu=1), cohort="main")
    with db.begin() as tx:
        tx.tenants.insert(tenant, 0)
        tx.tenants.set_idle("red", 3.0, LOWERED)
        tx.tenants.update(Tenant("red", Quota(cpu=9), lending_limit=Quota(cpu=2), cohort="main"))
    with db.reading() as tx:
        found = tx.tenants.get("red")
    assert found is not None
    assert (found.idle_since, found.lowered, found.quota.cpu) == (3.0, LOWERED, 9)
    assert (found.lending_limit, found.in_force.lending_limit) == (Quota(cpu=2), Quota(cpu=3))
    assert found.in_force.reserved is None
    assert found.configured.in_force.lending_limit == Quota(cpu=2)
    with db.begin() as tx:
        tx.tenants.set_idle("red", None, None)
        found = tx.tenants.get("red")
    assert found is not None
    assert (found.idle_since, found.lowered) == (None, None)
