"""What holds in every tree of quotas after every sequence of events, against plain sums over tenants."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.tree import QuotaTree

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
            tree.tenants(tree.root(name)),
            tree.is_limited(name),
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
        self.tree.set_tenants([new])
        self.bounds.tenants[new.name] = new
        self.kept_to_the_rules = not self.charges and self.kept_to_the_rules

    @rule(data=st.data())
    def move_or_add_one(self, data):
        names = sorted(self.tree)
        name = data.draw(st.sampled_from([*names, "n0", "n1"]))
        free = [n for n in names if name not in self.way_up(n)]
        above = data.draw(st.sampled_from([None, *free]))
        new = data.draw(shapes(name, above, data.draw(st.sampled_from(["c0", "c1", None]))))
        self.tree.set_tenants([new])
        self.bounds.tenants[name] = new
        self.kept_to_the_rules = not self.charges and self.kept_to_the_rules

    def way_up(self, name):
        way = []
        while name is not None:
            way.append(name)
            name = self.bounds.tenants[name].parent
        return way

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
        fork.set_tenants([data.draw(shapes(changed.name, changed.parent, changed.cohort))])
        fork.set_tenants([TenantQueue("new", Quota(cpu=1), parent=name)])
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
                    assert self.tree.fits(name, {d: room})
                    assert not self.tree.fits(name, {d: room + 1})
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
