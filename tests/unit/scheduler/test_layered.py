"""Forks that share what did not change: a large dict, the log of the nodes, and groups of inadmissible classes that keep their places."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.cache.inadmissible import RequestGroups
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes import persistent_dict, views
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.persistent_dict import Layered
from mlp_hub.scheduler.workloads.pending import JobClass

MOVES = st.lists(
    st.tuples(st.sampled_from(("set", "set", "delete", "fork")), st.integers(0, 3), st.integers(0, 12)),
    max_size=60,
)


@given(MOVES)
def test_a_layered_dict_and_its_forks_are_independent_dicts(moves) -> None:
    persistent_dict.MOST_ABOVE, before = 4, persistent_dict.MOST_ABOVE
    try:
        pairs: list[tuple[Layered[int, int], dict[int, int]]] = [(Layered(), {})]
        for serial, (what, which, key) in enumerate(moves):
            mine, plain = pairs[which % len(pairs)]
            if what == "fork":
                pairs.append((mine.fork(), dict(plain)))
            elif what == "set":
                mine[key] = plain[key] = serial
            elif key in plain:
                del mine[key], plain[key]
            for one, other in pairs:
                assert list(one) == list(other)
                assert list(one.values()) == list(other.values())
                assert [one.get(k) for k in range(13)] == [other.get(k) for k in range(13)]
                assert all(k in one and one[k] == v for k, v in other.items())
    finally:
        persistent_dict.MOST_ABOVE = before


def test_views_of_forks_of_forks_follow_their_own_changes_alone() -> None:
    rng = random.Random(5)
    demands = [Demand(cpu=1000, whole=1), Demand(cpu=3000), Demand(cpu=700, part=250)]
    nodes = [Node(f"n{i}", Resources(16_000, 4000, 10**6), labels={"rack": f"r{i % 7}"}) for i in range(60)]
    indexes = [(NodeIndex(nodes), [])]
    for step in range(900):
        index, held = indexes[rng.randrange(len(indexes))]
        demand = rng.choice(demands)
        if held and rng.random() < 0.4:
            gone, placement, devices = held.pop(rng.randrange(len(held)))
            index.release_ranks(gone, placement, devices)
        else:
            placement = index.place(demand, rng.choice([1, 2, 5]))
            if placement is not None:
                held.append((demand, placement, index.reserve_ranks(demand, placement)))
        if step % 23 == 0:
            indexes.append((index.fork(), held[:]))
            del indexes[: len(indexes) - 12]
        index, held = indexes[rng.randrange(len(indexes))]
        fresh = NodeIndex(nodes)
        for gone, placement, devices in held:
            fresh.reserve_ranks(gone, placement, devices)
        asked = rng.choice(demands)
        total = fresh.total_slots(asked)
        assert index.totals(index.catalog.ask(asked)).total == total
        assert index.total_slots(asked, "same-rack") == fresh.total_slots(asked, "same-rack")
        assert [index.has_slots(asked, n) for n in (1, total, total + 1)] == [total > 0, True, False]
    assert views.SHORT_LOG < 900


def test_changes_since_a_log_position_are_the_current_states_of_the_nodes() -> None:
    index = NodeIndex([Node(f"n{i}", Resources(4000 + i, 0, 100)) for i in range(8)])
    logged = index.logged
    assert index.states_since(logged) == set()
    demand = Demand(cpu=1000)
    index.reserve_ranks(demand, ("n2", "n3"))
    index.release_ranks(demand, ("n2",), ((),))
    found = index.states_since(logged)
    assert found is not None
    assert sorted(state.cpu for state in found) == [3003, 4002]
    for _ in range(8):
        index.reserve_ranks(demand, ("n7",), force=True)
    assert index.states_since(logged) is None
    assert index.states_since(-1) is None


def test_ranks_that_fit_in_two_indexes_are_counted_node_by_node() -> None:
    index = NodeIndex([Node(f"n{i}", Resources(2000, 0, 100)) for i in range(3)])
    later, demand = index.fork(), Demand(cpu=1000)
    index.reserve_ranks(demand, ("n0", "n0", "n1"))
    later.reserve_ranks(demand, ("n1", "n2", "n2"))
    assert index.total_slots(demand) == later.total_slots(demand) == 3
    assert [index.has_common_slots(later, demand, n) for n in (1, 2)] == [True, False]


def test_groups_come_back_to_their_places_and_a_fork_has_its_own() -> None:
    classes = [JobClass("t", Demand(cpu=n), 1, 1, 0, None, 100, "", n) for n in range(5)]
    groups = RequestGroups()
    for cls in classes:
        groups.add(cls)
    groups.remove(classes[1])
    groups.remove(classes[3])
    assert [ask[0].cpu for ask, _ in groups.items()] == [0, 2, 4]
    other = groups.fork({n: cls.fork() for n, cls in enumerate(classes)})
    groups.add(classes[3])
    groups.remove(classes[0])
    assert [list(group) for group in groups.values()] == [[2], [3], [4]]
    assert [list(group) for group in other.values()] == [[0], [2], [4]]
    groups.remove(classes[0])
    assert len(groups) == 3
