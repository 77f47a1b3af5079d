"""Who may take back what others borrowed."""

from __future__ import annotations

import pytest

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree
from support.scheduler.quota_builders import TWO_GROUPS, tenant, tree_of


@pytest.mark.parametrize(
    ("held", "asked", "pairs"),
    [
        # b borrows from its sibling only: nobody outside is concerned
        ({"a": 1, "b": 9}, 4, {"a": "b"}),
        # what b has of the other group as well, that one takes back, and so does its sibling
        ({"b": 14}, 4, {"a": "b", "c": "b", "d": "b"}),
        # a taker that would go beyond nominal is no better than who borrowed
        ({"b": 14, "c": 3}, 4, {"a": "b", "d": "b"}),
        # right is at its nominal 10: c's sibling borrowed, and that is what c may have back
        ({"b": 10, "d": 10}, 2, {"a": "b", "c": "d"}),
        # both within nominal in left, and left gave 5 to d
        ({"a": 2, "b": 3, "d": 15}, 1, {"a": "d", "b": "d", "c": "d"}),
        ({"a": 6, "b": 4, "c": 6, "d": 4}, 1, {}),
    ],
)
def test_only_what_is_borrowed_above_and_missing_below_nominal_is_taken_back(held, asked, pairs):
    tree = tree_of(*TWO_GROUPS, **held)
    found = {
        (taker, victim)
        for taker in tree
        for victim in tree
        if tree.may_reclaim(taker, victim, ["cpu"], {"cpu": asked})
    }
    assert found == set(pairs.items())


@pytest.mark.parametrize(
    ("held", "asked", "may"),
    [
        ({"b": 5, "d": 12}, 4, True),
        # with what a asks for beyond the 4 it keeps, its group would be above its 2 + 4
        ({"b": 5, "d": 12}, 6, False),
        ({"b": 6, "d": 12}, 4, True),
        ({"b": 7, "d": 12}, 4, False),
        ({"b": 5, "d": 10}, 4, False),
    ],
)
def test_a_group_can_reclaim_only_within_nominal_beyond_the_guarantee_of_its_member(held, asked, may):
    tenants = (
        *(tenant(group, cohort="all") for group in ("left", "right", "third")),
        tenant("a", 6, lend=2, parent="left"),
        tenant("b", 4, parent="left"),
        tenant("c", 6, parent="right"),
        tenant("d", 4, parent="right"),
        tenant("e", 10, parent="third"),
    )
    assert tree_of(*tenants, **held).may_reclaim("a", "d", ["cpu"], {"cpu": asked}) is may


def test_a_child_without_a_limit_gives_back_to_those_who_were_promised_and_takes_back_from_nobody():
    tenants = (tenant("org", 8), *(tenant(n, parent="org") for n in ("u", "v")), tenant("a", 4, parent="org"))
    tree = tree_of(*tenants, u=5, v=3)
    pairs = {(t, f) for t in tree for f in tree if tree.may_reclaim(t, f, ["cpu"], {"cpu": 1})}
    assert pairs == {("org", "u"), ("org", "v"), ("a", "u"), ("a", "v")}


def test_a_tenant_within_both_dimensions_reclaims_both_from_one_that_borrows_in_one():
    def both(name, cpu, gpu):
        return TenantQueue(name, Quota(cpu=cpu, gpu=gpu), cohort="all")

    tree = QuotaTree((both("a", 4, 4), both("b", 4, 4), both("c", 4, 4)))
    tree.charge("a", {"cpu": 6, "gpu": 3})
    tree.charge("c", {"cpu": 6, "gpu": 8})
    assert tree.may_reclaim("b", "a", ["cpu", "gpu"], {"cpu": 1, "gpu": 1})
    assert not tree.may_reclaim("b", "a", ["gpu"], {"gpu": 1})
    assert not tree.may_reclaim("a", "c", ["cpu", "gpu"], {"cpu": 1, "gpu": 1})
    assert tree.may_reclaim("a", "c", ["gpu"], {"gpu": 1})
