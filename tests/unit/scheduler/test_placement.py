"""Where the ranks of a gang go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes.fragmentation import Fragmentation
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.states import RULES
from support.scheduler.scheduler_builders import node

CORE = Demand(cpu=1000)
GPU = Demand(cpu=1000, whole=1)


def racks(*sizes: tuple[str, int]) -> list[Node]:
    return [
        node(f"n-{i}", cpu=cpu, labels={"rack": rack, "zone": "z" + rack[1:2], "row": rack[:1]})
        for i, (rack, cpu) in enumerate(sizes)
    ]


def test_a_gang_stays_on_one_node_where_one_holds_it_and_the_tightest_is_best() -> None:
    index = NodeIndex([node("a", cpu=8), node("b", cpu=4), node("c", cpu=2), node("d", cpu=4)])
    assert index.place(CORE, 3) == ("b", "b", "b")
    assert index.place(CORE, 2) == ("c", "c")
    assert index.place(CORE, 7) == ("a",) * 7


def test_a_gang_too_large_for_a_node_fills_the_largest_and_puts_the_rest_tightly() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=8), node("c", cpu=2), node("d", cpu=4)])
    assert index.place(CORE, 10) == ("b",) * 8 + ("c",) * 2
    assert index.place(CORE, 11) == ("b",) * 8 + ("a",) * 3
    assert index.place(CORE, 18) == ("b",) * 8 + ("a",) * 4 + ("d",) * 4 + ("c",) * 2
    assert index.place(CORE, 19) is None


def test_a_gang_of_none_needs_no_node() -> None:
    assert NodeIndex([]).place(CORE, 0) == ()


def test_nodes_to_avoid_are_passed_over() -> None:
    index = NodeIndex([node("a", cpu=2), node("b", cpu=4), node("c", cpu=4)])
    assert index.place(CORE, 2, avoid=("a",)) == ("b", "b")
    assert index.place(CORE, 6, avoid={"b"}) == ("c",) * 4 + ("a",) * 2
    assert index.place(CORE, 7, avoid=["b"]) is None
    assert index.place(CORE, 2, avoid=["a", "b", "c"]) is None
    assert index.place(CORE, 2, avoid=["nowhere"]) == ("a", "a")
    assert index.place(CORE, 2, "spread", avoid=["a", "b"]) == ("c", "c")


def test_same_node_takes_one_node_or_none() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=4)])
    assert index.place(CORE, 4, "same-node") == ("a",) * 4
    assert index.place(CORE, 5, "same-node") is None
    assert (index.total_slots(CORE), index.total_slots(CORE, "same-node")) == (8, 4)


def test_a_required_rack_is_the_tightest_that_holds_all() -> None:
    index = NodeIndex(racks(("r1", 4), ("r1", 4), ("r2", 4), ("r2", 2), ("r3", 2)))
    assert index.place(CORE, 5, "same-rack") == ("n-2",) * 4 + ("n-3",)
    assert index.place(CORE, 7, "same-rack") == ("n-0",) * 4 + ("n-1",) * 3
    assert index.place(CORE, 2, "required:rack") == ("n-4", "n-4")
    assert index.place(CORE, 9, "same-rack") is None
    assert index.total_slots(CORE, "same-rack") == 8


def test_a_preferred_rack_is_taken_where_it_holds_all_and_left_where_not() -> None:
    index = NodeIndex(racks(("r1", 4), ("r1", 4), ("r2", 6)))
    assert index.place(CORE, 7, "preferred:rack") == ("n-0",) * 4 + ("n-1",) * 3
    assert index.place(CORE, 9, "preferred:rack") == ("n-2",) * 6 + ("n-0",) * 3
    assert index.total_slots(CORE, "preferred:rack") == 14


def test_a_zone_and_any_other_label_are_domains_too_and_nodes_without_it_are_in_none() -> None:
    index = NodeIndex([*racks(("r1", 2), ("s1", 2), ("r2", 3)), node("bare", cpu=64)])
    assert index.place(CORE, 4, "same-zone") == ("n-0", "n-0", "n-1", "n-1")
    assert index.place(CORE, 5, "required:row") == ("n-2",) * 3 + ("n-0",) * 2
    assert index.place(CORE, 6, "same-zone") is None


def test_spread_deals_ranks_out_in_turn() -> None:
    index = NodeIndex([node("a", cpu=1), node("b", cpu=4), node("c", cpu=2)])
    assert index.place(CORE, 2, "spread") == ("b", "c")
    assert index.place(CORE, 6, "spread") == ("b", "c", "a", "b", "c", "b")
    assert index.place(CORE, 8, "spread") is None


def test_an_unknown_topology_or_rule_is_refused_by_name() -> None:
    index = NodeIndex([node()])
    with pytest.raises(ValueError, match="no topology 'near'"):
        index.place(CORE, 1, "near")
    with pytest.raises(ValueError, match="no placement rule 'best'"):
        index.place(CORE, 1, rule="best")


def test_a_part_goes_where_a_gpu_is_broken_already() -> None:
    index = NodeIndex([node("a", cpu=8, gpu=2), node("b", cpu=8, gpu=2)])
    index.reserve_ranks(Demand(cpu=1000, part=500), ("b",))
    assert index.place(Demand(cpu=1000, part=500), 1) == ("b",)
    assert index.reserve_ranks(Demand(cpu=1000, part=500), ("b",)) == ((0,),)


def test_a_single_gpu_is_taken_from_a_node_that_cannot_serve_a_large_job_any_more() -> None:
    index = NodeIndex([node("a", cpu=64, gpu=8), node("b", cpu=64, gpu=8)])
    index.reserve_ranks(GPU, ("b",))
    assert index.place(GPU, 1) == ("b",)


def test_ranks_without_a_gpu_stay_off_cores_that_gpus_need() -> None:
    typical = [(Demand(cpu=4000, whole=1), 1.0)]
    tight = [node("gpu", cpu=32, gpu=8), node("spare", cpu=64, gpu=8), node("plain", cpu=128)]
    index = NodeIndex(tight, typical)
    assert index.place(Demand(cpu=16000), 1) == ("plain",)
    index.remove("plain")
    assert index.place(Demand(cpu=16000), 1) == ("spare",)
    # best fit looks at what is left over only, and strands four GPUs
    assert index.place(Demand(cpu=16000), 1, rule="bestfit") == ("gpu",)


def test_each_rule_has_its_own_choice() -> None:
    index = NodeIndex([node("a", cpu=16, gpu=4), node("b", cpu=16, gpu=2), node("c", cpu=8, gpu=4)])
    index.reserve_ranks(GPU, ("a",))
    chosen = {rule: index.place(GPU, 1, rule=rule) for rule in RULES if rule != "random"}
    assert chosen == {
        "fgd": ("a",),
        "fgd-plain": ("a",),
        "bestfit": ("b",),
        "packing": ("a",),
        "spread": ("c",),
    }


def test_random_draws_the_same_again_until_something_changes_and_another_seed_draws_otherwise() -> None:
    nodes = [node(f"n-{i}", cpu=4) for i in range(50)]
    index, other = NodeIndex(nodes, rule="random", seed=1), NodeIndex(nodes, rule="random", seed=2)
    drawn, others = [], []
    for _ in range(10):
        assert index.place(CORE, 1) == index.place(CORE, 1)
        drawn.append(index.place(CORE, 1))
        others.append(other.place(CORE, 1))
        index.reserve_ranks(CORE, drawn[-1])
        other.reserve_ranks(CORE, others[-1])
    assert len(set(drawn)) > 5
    assert drawn != others
    again = NodeIndex(nodes, rule="random", seed=1)
    assert again.place(CORE, 1) == drawn[0]
    assert index.place(CORE, 1, avoid=[f"n-{i}" for i in range(49)]) == ("n-49",)


# ---- the measure -----------------------------------------------------------------------------------------------


def test_fragmentation_is_the_idle_gpu_that_a_typical_rank_cannot_use() -> None:
    f = Fragmentation([(Demand(cpu=4000, whole=1), 3.0), (Demand(cpu=1000, part=500), 1.0)])
    kept = (None, None)
    assert f.measure(kept, 8000, 0, 0, (1000, 1000)) == 0
    assert f.measure(kept, 8000, 0, 0, (1000, 600, 300)) == pytest.approx(0.75 * 900 + 0.25 * 300)
    assert f.measure(kept, 2000, 0, 0, (1000, 600)) == pytest.approx(0.75 * 1600)
    assert f.measure(kept, 0, 0, 0, (1000, 600)) == 1600
    assert f.measure(kept, 8000, 0, 0, (600, 400)) == pytest.approx(0.75 * 1000 + 0.25 * 400)
    assert f.measure(kept, 8000, 0, 0, ()) == 0


def test_ranks_without_a_gpu_and_of_another_kind_or_tenant_can_use_none() -> None:
    f = Fragmentation(
        [
            (Demand(cpu=1000), 1.0),
            (Demand(whole=1, gpu_kind="a|b"), 1.0),
            (Demand(whole=1, tenant="red"), 2.0),
        ]
    )
    assert f.measure(("a", None), 8000, 0, 0, (1000,)) == 250
    assert f.measure(("c", None), 8000, 0, 0, (1000,)) == 500
    assert f.measure(("a", "red"), 8000, 0, 0, (1000,)) == 500
    assert f.measure(("a", "blue"), 8000, 0, 0, (1000,)) == 1000


def test_gpus_that_cores_and_memory_cannot_feed_are_stranded() -> None:
    f = Fragmentation([(Demand(cpu=4000, ram=1000, whole=1), 1.0), (Demand(cpu=9000), 1.0)], coverage=1.0)
    assert f.stranded(8000, 8000, 2000) == 0
    assert f.stranded(4000, 8000, 2000) == 1000
    assert f.stranded(8000, 500, 2000) == 1500
    assert f.stranded(-1, 500, 2000) == 2000


def test_only_the_most_popular_shapes_are_typical() -> None:
    shapes = [
        (Demand(whole=1), 60.0),
        (Demand(whole=2), 3.0),
        (Demand(whole=4), 36.0),
        (Demand(whole=1), 1.0),
    ]
    assert Fragmentation(shapes).typical == ((Demand(whole=1), 61.0), (Demand(whole=4), 36.0))


# ---- whatever is asked -----------------------------------------------------------------------------------------

NODES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from("xy")), max_size=6)


@settings(max_examples=200, deadline=None)
@given(
    NODES,
    st.integers(1, 12),
    st.sampled_from([CORE, GPU, Demand(cpu=500, part=400), Demand(cpu=1000, whole=1, part=300)]),
    st.sampled_from([None, "spread", "same-node", "same-rack", "preferred:rack"]),
    st.sampled_from(RULES),
    st.sets(st.sampled_from(["n-0", "n-1", "n-2"])),
)
def test_a_gang_is_placed_whole_exactly_where_it_fits(nodes, ranks, demand, topology, rule, avoid) -> None:
    index = NodeIndex(
        [
            Node(f"n-{i}", Resources(cpu * 1000, gpu * 1000), labels={"rack": rack})
            for i, (cpu, gpu, rack) in enumerate(nodes)
        ],
        rule=rule,
    )
    usable = {n: index.slots(n, demand) for n in index.names if n not in avoid}
    domains: dict[str, int] = {}
    for name, k in usable.items():
        rack = index.node(name).labels["rack"]
        domains[rack] = domains.get(rack, 0) + k
    room = sum(usable.values())
    if topology == "same-node":
        room = max(usable.values(), default=0)
    elif topology == "same-rack":
        room = max(domains.values(), default=0)
    seats = index.place(demand, ranks, topology, avoid)
    assert seats == index.place(demand, ranks, topology, avoid)
    assert seats == index.fork().place(demand, ranks, topology, sorted(avoid))
    assert (seats is not None) == (room >= ranks)
    if seats is None:
        return
    assert len(seats) == ranks
    assert not avoid & set(seats)
    assert all(seats.count(name) <= usable[name] for name in seats)
    if topology == "same-node":
        assert len(set(seats)) == 1
    if topology == "same-rack":
        assert len({index.node(name).labels["rack"] for name in seats}) == 1
    index.reserve_ranks(demand, seats)
