"""Quota in trees: Kueue's known cases as tables, and the tree itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree
from support.scheduler.quota_builders import TWO_GROUPS, table, tenant, tree_of

NO = None


# --- Kueue's cases, whole


def test_without_a_cohort_nominal_is_the_hard_limit_whatever_else_is_set():
    tree = tree_of(tenant("a", 6, borrow=4, lend=1), tenant("b"), a=5, b=100)
    assert table(tree) == {"a": (5, 1, 6, 0, False), "b": (100, NO, NO, 0, False)}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, {"a": (0, 10, 10, 0, False), "b": (0, 9, 9, 0, False), "c": (0, 15, 15, 0, False)}),
        ({"a": 10}, {"a": (10, 0, 10, 0, True), "b": (0, 5, 9, 0, False), "c": (0, 5, 15, 0, False)}),
        ({"c": 12}, {"a": (0, 3, 10, 0, False), "b": (0, 3, 9, 0, False), "c": (12, 3, 15, 0, True)}),
        ({"a": 6, "b": 9}, {"a": (6, 0, 10, 0, False), "b": (9, 0, 9, 0, False), "c": (0, 0, 15, 0, False)}),
        # more than there is, since a quota was lowered: nobody gets anything, nobody is told a debt
        ({"a": 10, "b": 9}, {"a": (10, 0, 10, 0, True), "b": (9, 0, 9, 0, False), "c": (0, 0, 15, 0, False)}),
    ],
)
def test_each_tenant_of_a_cohort_borrows_unused_quota_up_to_its_limit(held, expected):
    tenants = (tenant("a", 6, 4, cohort="all"), tenant("b", 9, 0, cohort="all"), tenant("c", 0, cohort="all"))
    assert table(tree_of(*tenants, **held)) == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, {"a": (0, 15, 15, 6, False), "b": (0, 12, 12, 5, False)}),
        # inside its guarantee nobody sees what a takes
        ({"a": 6}, {"a": (6, 9, 15, 6, False), "b": (0, 12, 12, 5, False)}),
        ({"a": 9}, {"a": (9, 6, 15, 6, False), "b": (0, 11, 12, 5, False)}),
        ({"b": 12}, {"a": (0, 8, 15, 6, False), "b": (12, 0, 12, 5, True)}),
        ({"a": 15}, {"a": (15, 0, 15, 6, True), "b": (0, 5, 12, 5, False)}),
        ({"a": 15, "b": 5}, {"a": (15, 0, 15, 6, True), "b": (5, 0, 12, 5, False)}),
        # overfull by 2: the guarantee pays for it first, or more would be in use than there is
        ({"a": 17}, {"a": (17, 0, 15, 6, True), "b": (0, 3, 12, 5, False)}),
    ],
)
def test_a_lending_limit_keeps_the_rest_back(held, expected):
    # a lends 4 of 10; b lends 5 of 10 and borrows 2: 9 are shared
    tenants = (tenant("a", 10, lend=4, cohort="all"), tenant("b", 10, borrow=2, lend=5, cohort="all"))
    assert table(tree_of(*tenants, **held)) == expected


@pytest.mark.parametrize(
    ("held", "a", "b", "c"),
    [
        ({}, (0, 12, 12, 0, False), (0, 12, 12, 0, False), (0, 16, 16, 4, False)),
        ({"b": 11}, (0, 1, 12, 0, False), (11, 1, 12, 0, True), (0, 5, 16, 4, False)),
        ({"c": 16}, (0, 0, 12, 0, False), (0, 0, 12, 0, False), (16, 0, 16, 4, True)),
        ({"c": 4, "a": 12}, (12, 0, 12, 0, True), (0, 0, 12, 0, False), (4, 0, 16, 4, False)),
    ],
)
def test_parents_without_a_limit_are_cohorts_within_a_cohort(held, a, b, c):
    groups = (tenant("left", cohort="all"), tenant("right", cohort="all"))
    leaves = (
        tenant("a", 10, parent="left"),
        tenant("b", 0, parent="left"),
        tenant("c", 6, lend=2, parent="right"),
    )
    nothing = (0, NO, NO, 0, False)
    assert table(tree_of(*groups, *leaves, **held)) == {
        "left": nothing,
        "right": nothing,
        "a": a,
        "b": b,
        "c": c,
    }


@pytest.mark.parametrize(
    ("held", "org", "x", "y"),
    [
        ({}, (0, 14, 14, 0, False), (0, 20, 20, 6, False), (0, 9, 9, 0, False)),
        ({"org": 10}, (10, 4, 14, 0, True), (0, 10, 20, 6, False), (0, 4, 9, 0, False)),
        ({"x": 20}, (0, 0, 14, 0, False), (20, 0, 20, 6, True), (0, 0, 9, 0, False)),
        ({"x": 6, "y": 9}, (0, 5, 14, 0, False), (6, 5, 20, 6, False), (9, 0, 9, 0, True)),
    ],
)
def test_children_are_carved_out_of_their_parent_whose_own_jobs_have_the_rest(held, org, x, y):
    # org's own part is 20 - 8 - 6 = 6; x keeps 6 back
    tenants = (
        tenant("x", 8, lend=2, parent="org"),
        tenant("org", 20),
        tenant("y", 6, borrow=3, parent="org"),
    )
    tree = tree_of(*tenants, **held)
    assert table(tree) == {"x": x, "org": org, "y": y}
    assert (tree.nominal("org", "cpu"), tree.nominal("x", "cpu")) == (6, 8)


def test_a_parent_caps_children_that_are_promised_more_than_it_has_and_their_guarantees_shrink_alike():
    tenants = (
        tenant("org", 10),
        tenant("x", 12, lend=0, parent="org"),
        tenant("team", 8, lend=4, parent="org"),
        tenant("y", 6, lend=2, parent="team"),
    )
    # promised: 12 to x, 4 to y, none to the rest of team (4 are visible there, all of it lent): 16 of 10
    assert table(tree_of(*tenants)) == {
        "org": (0, 1, 1, 0, False),
        "x": (0, 8, 8, 7, False),
        "team": (0, 1, 1, 0, False),
        "y": (0, 3, 3, 2, False),
    }


def test_guarantees_of_grandchildren_count_too_where_too_much_is_promised():
    tenants = (
        tenant("org", 10),
        tenant("x", 8, lend=0, parent="org"),
        tenant("team", 8, lend=0, parent="org"),
        tenant("y", 6, lend=2, parent="team"),
    )
    # promised: 8 to x, 8 to team, 4 of these to y: 16 of 10, so 5 to each, and y's 4 are inside team's 5
    assert table(tree_of(*tenants)) == {
        "org": (0, 0, 0, 0, False),
        "x": (0, 5, 5, 5, False),
        "team": (0, 1, 1, 0, False),
        "y": (0, 5, 5, 4, False),
    }


def test_a_parent_with_guarantees_below_it_holds_no_more_than_quota_and_borrowing_in_all():
    tenants = (
        tenant("org", 10, borrow=3, cohort="all"),
        tenant("team", 6, parent="org"),
        tenant("y", 4, lend=0, parent="team"),
        tenant("z", 20, cohort="all"),
    )
    # y keeps 4 of the 10 + 3; the other 9 are org's, of which 10 - 6 are nominal
    tree = tree_of(*tenants)
    assert table(tree) == {
        "org": (0, 9, 9, 0, False),
        "team": (0, 9, 9, 0, False),
        "y": (0, 13, 13, 4, False),
        "z": (0, 26, 26, 0, False),
    }
    assert {name: tree.nominal(name, "cpu") for name in tree} == {"org": 4, "team": 2, "y": 4, "z": 20}


@pytest.mark.parametrize(
    ("held", "x", "y", "z"),
    [
        ({}, (0, 13, 13, 0, False), (0, 13, 13, 0, False), (0, 9, 9, 0, False)),
        ({"y": 11}, (0, 2, 13, 0, False), (11, 2, 13, 0, False), (0, 4, 9, 0, False)),
        ({"z": 9, "x": 5}, (5, 1, 13, 0, True), (0, 1, 13, 0, False), (9, 0, 9, 0, True)),
    ],
)
def test_a_child_without_a_limit_can_use_everything_its_parent_has_or_borrows(held, x, y, z):
    # org keeps 6 of 10 back and borrows up to 3; its cohort shares 4 + 5
    org = tenant("org", 10, borrow=3, lend=4, cohort="all")
    tenants = (org, tenant("x", 4, parent="org"), tenant("y", parent="org"), tenant("z", 5, cohort="all"))
    seen = table(tree_of(*tenants, **held))
    assert (seen["x"], seen["y"], seen["z"]) == (x, y, z)
    assert seen["org"] == (0, x[1], 13, 0, False)


def test_without_a_limit_a_member_takes_no_part_in_its_cohort():
    tree = tree_of(tenant("a", 6, cohort="all"), tenant("free", cohort="all"), free=1000)
    assert table(tree) == {"a": (0, 6, 6, 0, False), "free": (1000, NO, NO, 0, False)}


def test_gpu_kinds_are_separate_dimensions_beside_all_gpus():
    a = TenantQueue("a", Quota(gpu=4000, kinds={"a100": 1000}), cohort="all")
    b = TenantQueue("b", Quota(gpu=2000, kinds={"a100": 2000}), cohort="all")
    tree = QuotaTree((a, b))
    tree.charge("a", {"gpu": 5000, "gpu:a100": 2000, "gpu:h100": 3000})
    assert tree.used("a") == {"gpu": 5000, "gpu:a100": 2000, "gpu:h100": 3000}
    assert tree.excess("b", {"gpu": 2000, "gpu:a100": 2000, "gpu:h100": 9000, "ram": 1 << 40}) == [
        ("gpu", 2000, 1000),
        ("gpu:a100", 2000, 1000),
    ]
    tree.release("a", {"gpu": 5000, "gpu:a100": 2000, "gpu:h100": 3000})
    assert tree.used("a") == {}


# --- the tree itself


def test_every_tenant_knows_its_root_and_a_root_its_tenants():
    tree = tree_of(*TWO_GROUPS)
    assert {name: tree.root(name) for name in tree} == {
        **dict.fromkeys(("left", "right", "a", "b", "c", "d", "e"), "all"),
        "alone": "alone",
    }
    assert tree.tenants("all") == ("left", "right", "a", "b", "c", "d", "e")
    assert (tree.tenants("alone"), tree.tenants("nobody")) == (("alone",), ())


def test_an_unknown_parent_and_a_circle_of_parents_are_named_and_change_nothing():
    with pytest.raises(ValueError, match=r"^a has an unknown parent: ghost$"):
        QuotaTree([tenant("a", parent="ghost")])
    with pytest.raises(ValueError, match=r"^parents in a circle: a > b > a$"):
        QuotaTree([tenant("a", parent="b"), tenant("b", parent="a")])
    tree = tree_of(tenant("a", 4), tenant("b", 2, parent="a"), b=1)
    before = table(tree)
    with pytest.raises(ValueError, match="circle"):
        tree.set_tenants([tenant("a", 4, parent="b")])
    with pytest.raises(ValueError, match=r"^b has an unknown parent: a$"):
        tree.remove_tenant("a")
    with pytest.raises(ValueError, match=r"^b cannot be removed: it holds {'cpu': 1}$"):
        tree.remove_tenant("b")
    assert table(tree) == before


def test_giving_back_more_than_is_held_and_taking_less_than_nothing_change_nothing():
    tree = tree_of(tenant("a", 4), a=3)
    with pytest.raises(ValueError, match=r"^a cannot give back 4 of cpu: it holds 3$"):
        tree.release("a", {"gpu": 0, "cpu": 4})
    with pytest.raises(ValueError, match=r"^a cannot give back 1 of gpu:h100: it holds 0$"):
        tree.release("a", {"cpu": 1, "gpu:h100": 1})
    with pytest.raises(ValueError, match="less than nothing"):
        tree.charge("a", {"gpu": 1, "cpu": -1})
    assert tree.used("a") == {"cpu": 3}


def test_a_tenant_that_only_weighs_more_leaves_the_arrangement_as_it_is():
    tree = tree_of(tenant("a", 4), a=3)
    layout = tree._layout
    tree.set_tenants([replace(tenant("a", 4), weight=2.0, decayed_usage=7.0)])
    assert tree._layout is layout
    tree.set_tenants([tenant("a", 2)])
    assert table(tree) == {"a": (3, 0, 2, 0, True)}


# --- stamps: what was asked under one holds as long as it stands


def test_every_change_gives_a_tree_another_stamp_and_only_an_unchanged_fork_shares_it():
    tree = tree_of(tenant("a", 6), tenant("b", 4))
    fork = tree.fork()
    assert fork.stamp == tree.stamp
    seen = [tree.stamp]
    tree.charge("a", {"cpu": 1})
    seen.append(tree.stamp)
    fork.charge("a", {"cpu": 1})
    seen.append(fork.stamp)
    tree.release("a", {"cpu": 1})
    seen.append(tree.stamp)
    tree.set_tenants([tenant("a", 7)])
    seen.append(tree.stamp)
    tree.set_capacity({"cpu": 10})
    seen.append(tree.stamp)
    tree.remove_tenant("b")
    seen.append(tree.stamp)
    assert len(set(seen)) == len(seen)
    assert not fork.fits("a", {"cpu": 6})
    assert tree.fits("a", {"cpu": 7})


def test_a_change_in_one_tree_leaves_the_stamps_of_the_others_unless_capacity_is_kept_free():
    tree = tree_of(tenant("a", 6), TenantQueue("b", Quota(cpu=4), cohort="other"))
    mine, theirs = tree.stamp_of("a"), tree.stamp_of("b")
    fork = tree.fork()
    tree.charge("a", {"cpu": 1})
    assert tree.stamp_of("a") != mine
    assert tree.stamp_of("b") == theirs
    assert (fork.stamp_of("a"), fork.stamp_of("b")) == (mine, theirs)
    tree.set_capacity({"cpu": 10})
    assert tree.stamp_of("b") != theirs
    tree.set_booked({"a": {"cpu": 1}})
    theirs = tree.stamp_of("b")
    tree.charge("a", {"cpu": 1})
    assert tree.stamp_of("b") != theirs


def test_a_change_arranges_the_trees_it_is_about_and_leaves_the_others_as_they_are():
    tree = QuotaTree([TenantQueue(f"t{n}", Quota(cpu=n)) for n in range(5)])
    paths = {name: tree._layout.paths[name] for name in tree}
    tree.charge("t4", {"cpu": 3})
    tree.set_tenants([TenantQueue("t2", Quota(cpu=7)), TenantQueue("new", Quota(cpu=1), cohort="c")])
    tree.remove_tenant("t0")
    same = [name for name in tree if tree._layout.paths[name] is paths.get(name)]
    assert same == ["t1", "t3", "t4"]
    assert tree.used("t4") == {"cpu": 3}
    assert tree.available("t2", "cpu") == 7


def test_cells_that_no_tree_uses_any_more_are_swept_up():
    tree = QuotaTree([TenantQueue(f"t{n}", Quota(cpu=n + 1), cohort="c") for n in range(10)])
    size = len(tree._used)
    tree.charge("t3", {"cpu": 2})
    for n in range(100):
        tree.set_tenants([TenantQueue("t5", Quota(cpu=n + 1), cohort="c")])
        assert len(tree._used) <= 2 * size
    assert tree.used("t3") == {"cpu": 2}
    assert tree.available("t5", "cpu") == 100 + sum(n + 1 for n in range(10) if n != 5) - 2


@pytest.mark.parametrize("parent", ["t0", "nobody"])
def test_a_change_that_makes_a_circle_or_names_nobody_changes_nothing(parent):
    tree = QuotaTree([TenantQueue(f"t{n}", Quota(cpu=9), parent="t0" if n else None) for n in range(3)])
    tree.charge("t1", {"cpu": 2})
    stamp = tree.stamp
    with pytest.raises(ValueError, match=r"circle|unknown parent"):
        tree.set_tenants([TenantQueue("t0", Quota(cpu=9), parent="t1" if parent == "t0" else parent)])
    assert tree.stamp == stamp
    assert (tree.root("t1"), tree.used("t1")) == ("t0", {"cpu": 2})
