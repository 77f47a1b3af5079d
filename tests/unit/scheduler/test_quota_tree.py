"""Quota in trees: Kueue's known cases as tables, and rules that hold in every tree after every sequence of events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.model import TenantQueue
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.vectors import vector_of

NO = None


def tenant(name, cpu=None, borrow=None, lend=None, **more):
    return TenantQueue(
        name,
        Quota(cpu=cpu),
        borrowing_limit=None if borrow is None else Quota(cpu=borrow),
        lending_limit=None if lend is None else Quota(cpu=lend),
        **more,
    )


def tree_of(*tenants, **held):
    tree = QuotaTree(tenants)
    for name, cpu in held.items():
        tree.charge(name, {"cpu": cpu})
    return tree


def table(tree):
    """Tell of each tenant: used, available, limit, guaranteed, whether it borrows."""
    return {
        name: (
            tree.used(name).get("cpu", 0),
            tree.available(name, "cpu"),
            tree.limit(name, "cpu"),
            tree.guaranteed(name, "cpu"),
            tree.borrows(name, ["cpu"]),
        )
        for name in tree
    }


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
def test_in_a_cohort_each_borrows_up_to_its_limit_from_what_is_unused(held, expected):
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
def test_a_child_without_a_limit_takes_what_its_parent_may_have_with_what_that_borrows(held, x, y, z):
    # org keeps 6 of 10 back and borrows up to 3; its cohort shares 4 + 5
    org = tenant("org", 10, borrow=3, lend=4, cohort="all")
    tenants = (org, tenant("x", 4, parent="org"), tenant("y", parent="org"), tenant("z", 5, cohort="all"))
    seen = table(tree_of(*tenants, **held))
    assert (seen["x"], seen["y"], seen["z"]) == (x, y, z)
    assert seen["org"] == (0, x[1], 13, 0, False)


def test_without_a_limit_a_member_takes_no_part_in_its_cohort():
    tree = tree_of(tenant("a", 6, cohort="all"), tenant("free", cohort="all"), free=1000)
    assert table(tree) == {"a": (0, 6, 6, 0, False), "free": (1000, NO, NO, 0, False)}


def test_gpu_kinds_are_dimensions_of_their_own_beside_all_gpus():
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


def test_an_amount_becomes_a_vector_without_zeroes():
    amount = Resources(2000, 3000, 0, 7, (("a100", 3000),))
    assert vector_of(amount) == {"cpu": 2000, "gpu": 3000, "rom": 7, "gpu:a100": 3000}


# --- who may take back


RECLAIM = (
    tenant("left", cohort="all"),
    tenant("right", cohort="all"),
    tenant("a", 6, parent="left"),
    tenant("b", 4, parent="left"),
    tenant("c", 6, parent="right"),
    tenant("d", 4, parent="right"),
    tenant("e", parent="right"),
    tenant("alone", 4),
)


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
    tree = tree_of(*RECLAIM, **held)
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
def test_the_group_of_who_takes_back_must_stay_within_nominal_with_what_its_guarantee_does_not_cover(
    held, asked, may
):
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


def test_what_is_short_in_two_dimensions_is_taken_from_who_borrows_in_one_by_who_is_within_both():
    def both(name, cpu, gpu):
        return TenantQueue(name, Quota(cpu=cpu, gpu=gpu), cohort="all")

    tree = QuotaTree((both("a", 4, 4), both("b", 4, 4), both("c", 4, 4)))
    tree.charge("a", {"cpu": 6, "gpu": 3})
    tree.charge("c", {"cpu": 6, "gpu": 8})
    assert tree.may_reclaim("b", "a", ["cpu", "gpu"], {"cpu": 1, "gpu": 1})
    assert not tree.may_reclaim("b", "a", ["gpu"], {"gpu": 1})
    assert not tree.may_reclaim("a", "c", ["cpu", "gpu"], {"cpu": 1, "gpu": 1})
    assert tree.may_reclaim("a", "c", ["gpu"], {"gpu": 1})


# --- the tree itself


def test_every_tenant_knows_its_root_and_a_root_its_tenants():
    tree = tree_of(*RECLAIM)
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
        tree.set_tenant(tenant("a", 4, parent="b"))
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
    tree.set_tenant(replace(tenant("a", 4), weight=2.0, decayed_usage=7.0))
    assert tree._layout is layout
    tree.set_tenant(tenant("a", 2))
    assert table(tree) == {"a": (3, 0, 2, 0, True)}


# --- any tree, any sequence


DIMENSIONS = ("cpu", "gpu:a100")


def quotas(*amounts):
    """Draw a quota of cpu and of one gpu kind."""

    def build(cpu, kind):
        return Quota(cpu=cpu, kinds={} if kind is None else {"a100": kind})

    amount = st.sampled_from(amounts)
    return st.builds(build, amount, amount)


@st.composite
def forests(draw):
    """Draw up to six tenants in trees of up to three levels, most of them in cohorts."""
    tenants, depth = [], {}
    for i in range(draw(st.integers(2, 6))):
        name = f"t{i}"
        above = draw(st.sampled_from([None, *(t.name for t in tenants if depth[t.name] < 3)]))
        depth[name] = depth.get(above, 0) + 1
        cohort = draw(st.sampled_from(["c0", "c1", None]))
        tenants.append(draw(shapes(name, above, cohort)))
    return draw(st.permutations(tenants))


def shapes(name, parent, cohort):
    return st.builds(
        lambda quota, borrow, lend: TenantQueue(
            name, quota, parent=parent, cohort=cohort, borrowing_limit=borrow, lending_limit=lend
        ),
        quotas(None, 0, 2, 4, 5, 8, 12),
        st.none() | quotas(None, 0, 1, 3),
        st.none() | quotas(None, 0, 1, 2, 4),
    )


vectors = st.dictionaries(
    st.sampled_from((*DIMENSIONS, "gpu:h100")), st.integers(0, 9), min_size=1, max_size=2
)


def amount_of(quota, dimension):
    if quota is None:
        return None
    return quota.kinds.get("a100") if dimension == "gpu:a100" else getattr(quota, dimension)


@dataclass
class Bounds:
    """What must never be exceeded, said once more and without any tree: sums over tenants."""

    tenants: dict[str, TenantQueue]
    held: dict[tuple[str, str], int]

    def own(self, name, d):
        return amount_of(self.tenants[name].quota, d)

    def below(self, name):
        return [t.name for t in self.tenants.values() if t.parent == name]

    def total(self, name, d):
        return self.held.get((name, d), 0) + sum(self.total(n, d) for n in self.below(name))

    def counted(self, name, d):
        """What counts in a cohort: the use of those that have a limit."""
        if self.own(name, d) is not None:
            return self.total(name, d)
        return sum(self.counted(n, d) for n in self.below(name))

    def whole(self, name, d):
        own = self.own(name, d)
        return own if own is not None else sum(self.whole(n, d) for n in self.below(name))

    def way(self, name, d):
        """The tenants that must allow what `name` takes: itself and those above that see it."""
        names = [name]
        while (above := self.tenants[names[-1]].parent) is not None:
            names.append(above)
        limited = [i for i, n in enumerate(names) if self.own(n, d) is not None]
        return names[limited[0] :] if limited else []

    def broken(self, name, d):
        """Whether the tenant, or the cohort it is in, holds more than it may."""
        tenant, own = self.tenants[name], self.own(name, d)
        in_cohort = tenant.parent is None and tenant.cohort is not None
        if tenant.parent is None and not in_cohort:
            return self.counted(name, d) > self.whole(name, d)
        if own is not None:
            borrow = amount_of(tenant.borrowing_limit, d)
            if borrow is not None and self.total(name, d) > own + borrow:
                return True
        if in_cohort:
            members = [
                t.name for t in self.tenants.values() if t.parent is None and t.cohort == tenant.cohort
            ]
            return sum(self.counted(n, d) for n in members) > sum(self.whole(n, d) for n in members)
        return False

    def carved_too_often(self, d):
        return any(
            self.own(n, d) is not None and sum(self.whole(c, d) for c in self.below(n)) > self.own(n, d)
            for n in self.tenants
        )


def views(tree):
    """All that a tree says, to compare two."""
    return {
        name: (
            tree.used(name),
            tree.root(name),
            [
                (
                    tree.available(name, d),
                    tree.limit(name, d),
                    tree.guaranteed(name, d),
                    tree.nominal(name, d),
                )
                for d in DIMENSIONS
            ],
            [tree.borrows(name, [d]) for d in DIMENSIONS],
            [tree.may_reclaim(name, other, [d]) for other in sorted(tree) for d in DIMENSIONS],
        )
        for name in sorted(tree)
    }


class QuotaMachine(RuleBasedStateMachine):
    """Takes what fits and gives it back, while quotas change and forks go their own way."""

    @initialize(tenants=forests())
    def plant(self, tenants):
        self.tree = QuotaTree(tenants)
        self.bounds = Bounds({t.name: t for t in tenants}, {})
        self.charges: list[tuple[str, dict[str, int]]] = []
        self.kept_to_the_rules = True  # until something is forced, or a quota is lowered

    def take(self, name, vector):
        self.tree.charge(name, vector)
        self.charges.append((name, vector))
        for d, v in vector.items():
            self.bounds.held[name, d] = self.bounds.held.get((name, d), 0) + v

    @rule(data=st.data(), vector=vectors)
    def take_what_fits(self, data, vector):
        name = data.draw(st.sampled_from(sorted(self.tree)))
        if self.tree.excess(name, vector):
            return
        self.take(name, vector)
        for d in DIMENSIONS:
            if vector.get(d):
                for each in self.bounds.way(name, d):
                    assert not self.bounds.broken(each, d), (each, d)

    @rule(data=st.data())
    def take_all_there_is(self, data):
        name = data.draw(st.sampled_from(sorted(self.tree)))
        d = data.draw(st.sampled_from(DIMENSIONS))
        self.take(name, {d: self.tree.available(name, d) or 0})

    @precondition(lambda self: self.charges)
    @rule(data=st.data())
    def give_back(self, data):
        name, vector = self.charges.pop(data.draw(st.integers(0, len(self.charges) - 1)))
        rest = (
            {d: data.draw(st.integers(0, v)) for d, v in vector.items()} if data.draw(st.booleans()) else {}
        )
        if rest:  # a job that shrinks
            self.charges.append((name, rest))
            vector = {d: v - rest[d] for d, v in vector.items()}
        self.tree.release(name, vector)
        for d, v in vector.items():
            self.bounds.held[name, d] -= v

    @rule(data=st.data(), vector=vectors)
    def run_already(self, data, vector):
        name = data.draw(st.sampled_from(sorted(self.tree)))
        self.kept_to_the_rules = self.kept_to_the_rules and not self.tree.excess(name, vector)
        self.take(name, vector)

    @rule(data=st.data())
    def change_a_quota(self, data):
        old = self.bounds.tenants[data.draw(st.sampled_from(sorted(self.tree)))]
        new = data.draw(shapes(old.name, old.parent, old.cohort))
        self.tree.set_tenant(new)
        self.bounds.tenants[new.name] = new
        self.kept_to_the_rules = not self.charges and self.kept_to_the_rules

    @rule(data=st.data())
    def remove_one_that_holds_nothing(self, data):
        bare = [n for n in sorted(self.tree) if not self.tree.used(n) and not self.bounds.below(n)]
        assume(bare and len(self.bounds.tenants) > 1)
        name = data.draw(st.sampled_from(bare))
        self.tree.remove_tenant(name)
        del self.bounds.tenants[name]
        self.charges = [(n, v) for n, v in self.charges if n != name]  # of nothing but zeroes
        self.kept_to_the_rules = not self.charges and self.kept_to_the_rules

    @rule(data=st.data(), vector=vectors)
    def try_on_a_fork(self, data, vector):
        before = views(self.tree)
        fork = self.tree.fork()
        assert views(fork) == before
        name = data.draw(st.sampled_from(sorted(fork)))
        fork.charge(name, vector)
        changed = self.bounds.tenants[data.draw(st.sampled_from(sorted(fork)))]
        fork.set_tenant(data.draw(shapes(changed.name, changed.parent, changed.cohort)))
        fork.set_tenant(TenantQueue("new", Quota(cpu=1), parent=name))
        assert views(self.tree) == before
        after = views(fork)
        one = dict.fromkeys(vector, 1)
        self.take(name, {} if self.tree.excess(name, one) else one)
        assert views(fork) == after

    @invariant()
    def what_is_said_equals_a_tree_made_anew(self):
        anew = QuotaTree(self.bounds.tenants.values())
        for name, vector in self.charges:
            anew.charge(name, vector)
        assert views(anew) == views(self.tree)

    @invariant()
    def available_is_the_most_that_fits(self):
        for name in self.tree:
            for d in DIMENSIONS:
                room = self.tree.available(name, d)
                if room is None:
                    assert self.tree.excess(name, {d: 1 << 50}) == []
                else:
                    assert self.tree.excess(name, {d: room}) == []
                    assert self.tree.excess(name, {d: room + 1}) == [(d, room + 1, room)]
                    assert room <= self.tree.limit(name, d)

    @invariant()
    def nobody_is_above_what_it_may_have(self):
        if self.kept_to_the_rules:
            for name in self.tree:
                for d in DIMENSIONS:
                    assert not self.bounds.broken(name, d), (name, d)

    @invariant()
    def what_is_kept_back_can_always_be_taken(self):
        for name in self.tree:
            for d in DIMENSIONS:
                kept = self.tree.guaranteed(name, d)
                tenant, own = self.bounds.tenants[name], self.bounds.own(name, d)
                shared = tenant.parent is not None or tenant.cohort is not None
                lend = amount_of(tenant.lending_limit, d)
                leaf = not self.bounds.below(name)
                if shared and leaf and own is not None and not self.bounds.carved_too_often(d):
                    assert kept == (0 if lend is None else max(0, own - lend))
                if self.kept_to_the_rules:
                    left = max(0, kept - self.tree.used(name).get(d, 0))
                    assert self.tree.excess(name, {d: left}) == []

    @invariant()
    def two_never_take_back_from_each_other(self):
        for a in self.tree:
            for b in self.tree:
                for d in DIMENSIONS:
                    assert not (
                        self.tree.may_reclaim(a, b, [d], {d: 1}) and self.tree.may_reclaim(b, a, [d], {d: 1})
                    )


QuotaMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=15, deadline=None)
test_any_sequence_of_events_keeps_every_quota = QuotaMachine.TestCase


@given(forests(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_tenant_that_was_promised_something_can_have_it_back_from_somebody(tenants, data):
    """Fill a tree, then see that who is short within nominal finds someone above nominal to take it from."""
    tree = QuotaTree(tenants)
    for _ in range(data.draw(st.integers(1, 6))):
        name, d = data.draw(st.sampled_from(sorted(tree))), data.draw(st.sampled_from(DIMENSIONS))
        tree.charge(name, {d: tree.available(name, d) or 0})
    bounds = Bounds({t.name: t for t in tenants}, {})
    for name in tree:
        for d in DIMENSIONS:
            one = {d: 1}
            promised = tree.nominal(name, d) is not None and not bounds.carved_too_often(d)
            alone = tenants_above(bounds, name) == [name] and bounds.tenants[name].cohort is None
            if promised and not alone and tree.excess(name, one) and tree.within_nominal(name, one):
                within_all_the_way = any(tree.may_reclaim(name, other, [d], one) for other in tree)
                short_above = any(
                    bounds.own(n, d) is not None
                    and amount_of(bounds.tenants[n].borrowing_limit, d) is not None
                    for n in tenants_above(bounds, name)[1:]
                )
                assert within_all_the_way or short_above


def tenants_above(bounds, name):
    names = [name]
    while (above := bounds.tenants[names[-1]].parent) is not None:
        names.append(above)
    return names
