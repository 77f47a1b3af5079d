"""What tenants reserve, and what they booked for now, is kept free from everybody who takes something."""

from __future__ import annotations

import pytest

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.service.quota.accounting import Quotas


@pytest.fixture
def team(bench, make_node):
    bench.nodes = [make_node(cpu=8000, ram=10**6)]

    def make(name: str, cpu: int | None = None, reserved: int | None = None, **more: object) -> None:
        keeps = None if reserved is None else Quota(cpu=reserved)
        with bench.db.begin() as tx:
            made = Tenant(name, Quota(cpu=cpu), reserved=keeps, **more)
            if not tx.tenants.insert(made, 0):
                tx.tenants.update(made)

    return make


def test_capacity_reserved_by_another_tenant_is_not_taken_and_the_refusal_names_that_tenant(
    bench, team
) -> None:
    team("red", 8000)
    team("blue", 4000, 3000)
    bench.held("a", tenant="red", cpu=4, holder="job digits of ann")
    assert bench.refusal("b", tenant="red", cpu=2, applier="sp") == (
        "WaitingForQuota: red may use 5 cpu; 4 in use by job digits of ann; of the nodes' resources, 3 cpu for blue is kept free; this request asks for 2. Ask for at most 1 cpu, wait until used quota is given back, or have the quota of red raised"
    )
    assert bench.refusal("c", tenant="red", cpu=6) == (
        "ExceedsMaxQuota: red may use 5 cpu; the rest of the nodes is reserved for others. This request asks for 6 cpu and can never start. Ask for at most 5 cpu, or have less reserved"
    )
    assert bench.try_("d", tenant="red", cpu=1) is not None
    assert bench.try_("e", tenant="blue", cpu=3, applier="sp") is not None


def test_capacity_that_is_reserved_and_used_counts_once(bench, team) -> None:
    team("red", 8000)
    team("blue", 4000, 3000)
    bench.held("a", tenant="blue", cpu=3)
    bench.held("b", tenant="red", cpu=5)
    assert "red may use 5 cpu; 5 in use" in bench.refusal("c", tenant="red", cpu=1)


def test_a_node_that_is_down_makes_less_free_but_nothing_impossible(bench, team, make_node) -> None:
    team("red", 8000)
    team("blue", 4000, 3000)
    bench.nodes = [make_node(cpu=4000, ram=10**6), make_node("n2", cpu=4000, ram=10**6, up=False)]
    message = bench.refusal("a", tenant="red", cpu=2)
    assert message.startswith("WaitingForQuota: red may use 5 cpu; 0 in use; of the nodes' resources, 3 cpu")
    assert bench.try_("b", tenant="red", cpu=1) is not None


def test_a_window_keeps_its_amount_free_while_it_is_open_and_only_then(bench, team) -> None:
    team("red", 8000)
    team("blue", 4000)
    with bench.db.begin() as tx:
        assert tx.bookings.insert(BookedWindow("blue", "demo", 1100, 1200, Quota(cpu=4000)))
        assert not tx.bookings.insert(BookedWindow("blue", "demo", 1300, 1400, Quota(cpu=1000)))
    for now, fits in ((1099, 8000), (1100, 4000), (1199.9, 4000), (1200, 8000)):
        with bench.db.reading() as tx:
            quotas = Quotas(tx, now, bench.nodes)
            assert quotas.fits("red", Resources(cpu=fits)), now
            assert not quotas.fits("red", Resources(cpu=fits + 1)), now
            assert quotas.fits("blue", Resources(cpu=4000)), now
    bench.now = 1150
    assert bench.refusal("a", tenant="red", cpu=5) == (
        "WaitingForQuota: red may use 8 cpu; 0 in use; of the nodes' resources, 4 cpu for blue is kept free; this request asks for 5. Ask for at most 4 cpu, wait until used quota is given back, or have the quota of red raised"
    )


def test_storage_that_was_reserved_before_it_meant_anything_stops_nobody(bench, team) -> None:
    team("red", 8000)
    with bench.db.begin() as tx:
        tx.tenants.insert(Tenant("old", reserved=Quota(rom=2**40)), 0)
    assert bench.try_("a", tenant="red", cpu=1, rom=2**30) is not None


def test_a_tenant_that_is_not_there_is_not_there_while_something_is_reserved(bench, team) -> None:
    team("blue", 4000, 3000)
    with bench.db.reading() as tx:
        assert not Quotas(tx, bench.now, bench.nodes).knows("nobody")
    assert bench.refusal("a", tenant="nobody", cpu=1).startswith("NotFound")


def test_where_nothing_is_kept_free_one_query_more_is_asked_and_no_other_tenant_is_read(bench, team) -> None:
    for n in range(5):
        team(f"t{n}", 1000)
    asked: list[str] = []
    with bench.db.reading() as tx:
        connection = tx.connection
        run = connection.execute

        def execute(statement, *rest, **kw):
            asked.append(str(statement))
            return run(statement, *rest, **kw)

        connection.execute = execute  # type: ignore[method-assign]
        scalar = connection.scalar
        connection.scalar = lambda s, *r, **k: (asked.append(str(s)), scalar(s, *r, **k))[1]  # type: ignore[method-assign]
        quotas = Quotas(tx, bench.now, bench.nodes)
        assert quotas.fits("t1", Resources(cpu=1000))
        assert quotas.fits("t2", Resources(cpu=1000))
        assert [t.name for t in quotas.family("t1")] == ["t1"]
        del connection.execute, connection.scalar
    assert len([a for a in asked if "booking" in a]) == 1
    assert len(asked) == 1 + 1 + 2 * 2  # the revision of the tenants is read once, too
