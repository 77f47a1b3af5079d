"""Refusals where tenants share: the numbers, who has it, and the way out; nobody else's people are named."""

from __future__ import annotations

import pytest

from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenants.tenant import Tenant


@pytest.fixture
def make(bench, make_node):
    bench.nodes = [make_node(cpu=100_000, ram=10**6)]

    def tenant(name: str, cpu: int | None, **more: object) -> None:
        limits = {
            f: Quota(cpu=v) if isinstance(v, int) else v for f, v in more.items() if f.endswith("_limit")
        }
        made = Tenant(name, Quota(cpu=cpu), **{**more, **limits})
        with bench.db.begin() as tx:
            if not tx.tenants.insert(made, 0):
                tx.tenants.update(made)

    return tenant


def test_borrowed_and_reclaimed_quota_is_shown_without_names_of_others_users(bench, make) -> None:
    make("red", 4000, cohort="main", borrowing_limit=6000)
    make("blue", 8000, cohort="main")
    bench.held("a", tenant="red", cpu=8, holder="job digits of ann")
    bench.held("b", tenant="blue", cpu=4, holder="job secret of eve", user="eve")
    message = bench.refusal("x", tenant="red", cpu=1)
    assert message == (
        "WaitingForQuota: red may use its own 4 cpu and borrow 6 from cohort main; 8 in use by job digits of ann; blue took back 2; this request asks for 1. Wait until used quota is given back, or have the quota of red raised"
    )
    assert "secret" not in message
    assert "eve" not in message


def test_a_tenant_whose_quota_is_lent_out_sees_the_borrowers(bench, make) -> None:
    for name in ("red", "blue", "green"):
        make(name, 4000, cohort="main")
    bench.held("a", tenant="blue", cpu=11, holder="job big of eve")
    assert bench.refusal("x", tenant="red", cpu=3) == (
        "WaitingForQuota: red may use its own 4 cpu and borrow 8 from cohort main; 0 in use; blue borrowed 3 of it; this request asks for 3. Ask for at most 1 cpu, wait until used quota is given back, or have the quota of red raised"
    )


def test_the_upper_limit_includes_quota_that_can_be_borrowed(bench, make) -> None:
    make("red", 4000, cohort="main", borrowing_limit=2000)
    make("blue", 8000, cohort="main")
    assert bench.refusal("x", tenant="red", cpu=9) == (
        "ExceedsMaxQuota: red may use 6 cpu in total (4 own quota, 2 borrowed from cohort main). This request asks for 9 cpu and can never start. Ask for at most 6 cpu, or have the quota or the borrowing limit of red raised"
    )
    assert bench.try_("y", tenant="red", cpu=6) is not None


def test_a_child_without_a_quota_shows_the_quota_of_its_parent(bench, make) -> None:
    make("org", 6000)
    make("lab", None, parent="org")
    make("team", 2000, parent="org", lending_limit=0)
    bench.held("a", tenant="lab", cpu=3, holder="job x of ann")
    bench.held("b", tenant="org", cpu=1, holder="job y of eve")
    assert bench.refusal("z", tenant="lab", cpu=1) == (
        "WaitingForQuota: lab may use 4 cpu from its parent org; 3 in use by job x of ann; 1 in use by org; this request asks for 1. Wait until used quota is given back, or have the quota of lab raised"
    )
    assert "lab may use 4 cpu from its parent org. This request asks for 5 cpu" in bench.refusal(
        "z", tenant="lab", cpu=5
    )


def test_a_parent_is_told_what_its_children_leave_it(bench, make) -> None:
    make("org", 6000)
    make("team", 4000, parent="org")
    bench.held("b", tenant="team", cpu=5, holder="job y of eve")
    assert bench.refusal("z", tenant="org", cpu=2) == (
        "WaitingForQuota: org may use its own 2 cpu and borrow 4 from the quota that its children leave; 0 in use; team borrowed 1 of it; this request asks for 2. Ask for at most 1 cpu, wait until used quota is given back, or have the quota of org raised"
    )


def test_a_member_of_a_cohort_without_a_limit_has_what_the_nodes_have(bench, make) -> None:
    make("red", None, cohort="main")
    make("blue", 4000, cohort="main")
    bench.held("a", tenant="red", cpu=99)
    assert "red may use 100 cpu; 99 in use" in bench.refusal("x", tenant="red", cpu=2)


def test_a_refusal_mentions_no_others_when_a_tenant_only_uses_up_its_quota(bench, make) -> None:
    make("red", 4000, cohort="main", borrowing_limit=0)
    make("blue", 4000, cohort="main")
    bench.held("a", tenant="red", cpu=4, holder="job x of ann")
    assert bench.refusal("y", tenant="red", cpu=1) == (
        "WaitingForQuota: red may use 4 cpu; 4 in use by job x of ann; this request asks for 1. Wait until used quota is given back, or have the quota of red raised"
    )
