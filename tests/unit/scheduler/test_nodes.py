"""What is free on nodes, counted, held and given back, down to single GPUs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import Node
from mlp_hub.scheduler.nodes.gpus import pick_whole
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.states import RULES
from support.scheduler.scheduler_builders import node

CORE = Demand(cpu=1000)
GPU = Demand(cpu=1000, whole=1)
HALF = Demand(cpu=1000, part=500)


def test_a_node_offers_what_its_other_holders_leave() -> None:
    index = NodeIndex([Node("n", Resources(8000, 4000, 1024, 10), used=Resources(1500, 1300, 24, 1))])
    assert index.free("n") == Resources(6500, 2700, 1000, 9)
    assert index.devices("n") == (1000, 1000, 700, 0)
    assert index.total == Resources(8000, 4000, 1024, 10)


def test_slots_are_bounded_by_the_scarcest_resource() -> None:
    index = NodeIndex([node(cpu=8, ram=1000, gpu=4)])
    assert index.slots("n", Demand(cpu=3000)) == 2
    assert index.slots("n", Demand(cpu=1000, ram=400)) == 2
    assert index.slots("n", Demand(cpu=1000, whole=2)) == 2
    assert index.slots("n", Demand(part=300)) == 12
    assert index.slots("n", Demand(whole=1, part=500)) == 2
    assert index.slots("n", Demand(whole=5)) == 0
    assert index.slots("n", Demand(rom=1)) == 0


def test_parts_of_two_gpus_never_make_up_one() -> None:
    index = NodeIndex([node(cpu=8, gpu=2)])
    index.reserve_ranks(Demand(part=600), ("n", "n"))
    assert index.devices("n") == (400, 400)
    assert index.slots("n", Demand(part=800)) == 0
    assert index.total_slots(Demand(part=400)) == 2


def test_a_whole_gpu_is_never_one_that_is_shared() -> None:
    index = NodeIndex([node(cpu=8, gpu=2)])
    assert index.reserve_ranks(HALF, ("n",)) == ((0,),)
    assert index.reserve_ranks(GPU, ("n",)) == ((1,),)
    assert index.slots("n", GPU) == 0
    assert index.slots("n", HALF) == 1


def test_only_nodes_of_the_kind_asked_for_count() -> None:
    index = NodeIndex(
        [node("a", gpu=2, gpu_kind="a100"), node("b", gpu=1, gpu_kind="t4"), node("c", gpu=4)], rule="fgd"
    )
    assert index.total_slots(replace(GPU, gpu_kind="a100")) == 2
    assert index.total_slots(replace(GPU, gpu_kind="a100|t4")) == 3
    assert index.total_slots(GPU) == 7
    assert index.total.kinds == (("a100", 2000), ("t4", 1000))


def test_a_node_kept_for_a_tenant_hosts_nobody_else_and_other_taints_close_it() -> None:
    index = NodeIndex(
        [
            node("a", cpu=1),
            node("b", cpu=2, taints=("tenant=red",)),
            node("c", cpu=4, taints=("maintenance",)),
        ]
    )
    assert index.total_slots(CORE) == 1
    assert index.total_slots(replace(CORE, tenant="red")) == 3
    assert index.total_slots(replace(CORE, tenant="blue")) == 1


def test_a_node_that_is_down_hosts_nothing_new_and_keeps_what_it_holds() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=2)])
    held = index.reserve_ranks(CORE, ("a",))
    index.set_up("a", up=False)
    assert (index.total_slots(CORE), index.slots("a", CORE), index.total) == (2, 0, Resources(2000, 0, 8192))
    index.release_ranks(CORE, ("a",), held)
    assert index.free("a") == Resources(4000, 0, 8192)
    index.set_up("a", up=True)
    assert index.total_slots(CORE) == 6


def test_giving_back_on_a_node_that_is_gone_does_nothing() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=2)])
    held = index.reserve_ranks(CORE, ("a", "b"))
    index.remove("a")
    index.release_ranks(CORE, ("a", "b"), held)
    assert index.names == ("b",)
    assert index.free("b") == Resources(2000, 0, 8192)
    assert index.total_slots(CORE) == 2


def test_the_version_grows_when_something_comes_free_or_a_node_goes_and_not_when_it_is_taken() -> None:
    index = NodeIndex([node("a", cpu=4)])
    versions = [index.version]
    held = index.reserve_ranks(CORE, ("a",))
    versions.append(index.version)
    index.set_up("a", up=False)
    versions.append(index.version)
    index.set_up("a", up=True)
    versions.append(index.version)
    index.release_ranks(CORE, ("a",), held)
    versions.append(index.version)
    assert [b - a for a, b in pairwise(versions)] == [0, 1, 1, 1]


def test_taking_more_than_is_free_raises_and_changes_nothing() -> None:
    index = NodeIndex([node("a", cpu=4, gpu=1), node("b", cpu=1)])
    before = (index.free("a"), index.free("b"))
    for demand, placement in (
        (CORE, ("a", "b", "b")),
        (GPU, ("a", "a")),
        (Demand(part=600), ("a", "a")),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            index.reserve_ranks(demand, placement)
    with pytest.raises(ValueError, match="do not fit"):
        index.reserve_ranks(GPU, ("a", "a"), ((0,), (0,)))
    assert (index.free("a"), index.free("b")) == before


def test_giving_back_more_than_was_held_raises() -> None:
    index = NodeIndex([node("a", cpu=4)])
    with pytest.raises(ValueError, match="more given back on a"):
        index.release_ranks(CORE, ("a",), ((),))


def test_the_gpus_named_are_the_gpus_held() -> None:
    index = NodeIndex([node("a", cpu=4, gpu=4)])
    assert index.reserve_ranks(Demand(whole=1, part=250), ("a",), ((2, 3),)) == ((2, 3),)
    assert index.devices("a") == (1000, 1000, 0, 750)


def test_jobs_on_a_node_with_lowered_capacity_stay_and_nothing_new_fits() -> None:
    index = NodeIndex([node("a", cpu=4, gpu=2)])
    held = index.reserve_ranks(
        GPU,
        (
            "a",
            "a",
        ),
    )
    index.add(node("a", cpu=1, gpu=1))
    assert index.free("a") == Resources(-1000, -1000, 8192)
    assert index.devices("a") == (0, -1000)
    assert index.total_slots(CORE) == 0
    index.release_ranks(GPU, ("a", "a"), held)
    assert index.free("a") == Resources(1000, 1000, 8192)
    assert index.devices("a") == (1000, 0)
    assert (index.total_slots(CORE), index.total_slots(GPU)) == (1, 1)


def test_free_resources_beside_an_overfull_gpu_can_be_taken() -> None:
    index = NodeIndex([node("a", cpu=4, gpu=3)])
    index.reserve_ranks(GPU, ("a", "a"), ((0,), (2,)))
    index.add(node("a", cpu=4, gpu=2))
    assert index.devices("a") == (0, 1000, -1000)
    for demand, devices in ((CORE, ()), (GPU, (1,))):
        placement = index.place(demand, 1)
        assert placement == ("a",)
        assert index.reserve_ranks(demand, placement) == (devices,)
    with pytest.raises(ValueError, match="do not fit"):
        index.reserve_ranks(Demand(whole=1), ("a",), ((2,),))


def test_force_holds_what_an_overfull_snapshot_says() -> None:
    index = NodeIndex([node("a", cpu=1, gpu=1)])
    held = index.reserve_ranks(GPU, ("a", "a"), force=True)
    assert index.free("a") == Resources(-1000, -1000, 8192)
    index.release_ranks(GPU, ("a", "a"), held)
    assert (index.free("a"), index.devices("a")) == (Resources(1000, 1000, 8192), (1000,))


def test_an_answer_that_a_fork_gave_does_not_outlive_a_change_on_either_side() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=2)])
    demand = Demand(cpu=2000)
    fork = index.fork()  # before either has answered anything
    index.reserve_ranks(demand, ("a",))
    assert index.total_slots(demand) == 2
    assert fork.total_slots(demand) == 3
    assert fork.place(demand, 3) is not None
    assert index.place(demand, 3) is None
    later = index.fork()  # shares what was answered
    later.reserve_ranks(demand, ("a",))
    assert (later.total_slots(demand), index.total_slots(demand)) == (1, 2)
    assert later.place(demand, 2) is None
    assert index.place(demand, 2) is not None


def test_a_fork_and_its_origin_do_not_see_each_others_changes() -> None:
    index = NodeIndex([node("a", cpu=4), node("b", cpu=4)])
    assert index.total_slots(CORE) == 8
    fork = index.fork()
    fork.reserve_ranks(CORE, ("a", "a"))
    fork.remove("b")
    index.reserve_ranks(CORE, ("b",))
    assert (fork.total_slots(CORE), index.total_slots(CORE)) == (2, 7)
    assert (fork.place(CORE, 2), index.place(CORE, 4)) == (("a", "a"), ("a",) * 4)
    assert (fork.names, index.names) == (("a",), ("a", "b"))


def test_another_set_of_typical_shapes_changes_only_choices() -> None:
    nodes = [node("a", cpu=32, gpu=8), node("b", cpu=64, gpu=8)]
    large, small = (NodeIndex(nodes, [(Demand(cpu=cpu, whole=1), 1.0)]) for cpu in (8000, 4000))
    for index in (large, small):
        index.reserve_ranks(GPU, ("a", "b"))
    assert (large.free("a"), large.total_slots(GPU), large.total) == (
        small.free("a"),
        small.total_slots(GPU),
        small.total,
    )
    assert large.place(Demand(cpu=3000), 1) == ("b",)
    assert small.place(Demand(cpu=3000), 1) == ("a",)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no placement rule 'best'"):
        NodeIndex([], rule="best")


@pytest.mark.parametrize(
    ("free", "count", "chosen"),
    [
        ("11111111", 1, (0,)),
        ("11111111", 2, (0, 1)),
        ("11111111", 3, (0, 1, 2)),
        ("01111111", 1, (1,)),  # the neighbour of one in use
        ("01111111", 2, (2, 3)),  # a pair, in the half that is broken already
        ("01111111", 4, (4, 5, 6, 7)),
        ("01111111", 3, (1, 2, 3)),
        ("10101111", 2, (4, 5)),  # neighbours before the tightest
        ("10101010", 2, (0, 2)),
        ("11110111", 6, (0, 1, 2, 3, 6, 7)),
        ("11100111", 5, (0, 1, 2, 6, 7)),
        ("111", 2, (0, 1)),
    ],
)
def test_whole_gpus_are_neighbours_in_aligned_blocks(free: str, count: int, chosen: tuple[int, ...]) -> None:
    assert pick_whole([1000 * int(f) for f in free], count) == chosen


# ---- whatever happens ------------------------------------------------------------------------------------------

DEMANDS = st.builds(
    Demand,
    cpu=st.sampled_from([0, 500, 1000, 3000]),
    ram=st.sampled_from([0, 100, 900]),
    rom=st.just(0),
    whole=st.sampled_from([0, 0, 1, 2]),
    part=st.sampled_from([0, 0, 250, 400]),
    gpu_kind=st.sampled_from([None, None, "a", "a|b"]),
).filter(lambda d: d.cpu or d.ram or d.gpu)
NODES = st.lists(
    st.tuples(
        st.sampled_from([1, 4, 4, 8]),
        st.sampled_from([500, 4000]),
        st.sampled_from([0, 1, 4, 4]),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from(["r0", "r1"]),
    ),
    min_size=1,
    max_size=6,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "give", "down", "up", "remove", "add", "ask", "fork"]),
        st.integers(0, 5),
        st.integers(1, 6),
        st.integers(0, 3),
    ),
    max_size=25,
)


def made(number: int, spec: tuple[int, int, int, str | None, str]) -> Node:
    cpu, ram, gpu, kind, rack = spec
    return Node(f"n-{number}", Resources(cpu * 1000, gpu * 1000, ram), gpu_kind=kind, labels={"rack": rack})


def brute_slots(index: NodeIndex, name: str, d: Demand) -> int:
    """Count by putting one rank after another."""
    n = index.node(name)
    if not n.up or (d.gpu and d.gpu_kind and n.gpu_kind not in d.gpu_kind.split("|")):
        return 0
    free, gpus, count = index.free(name), sorted(index.devices(name)), 0
    cpu, ram = free.cpu, free.ram
    while cpu >= d.cpu and ram >= d.ram:
        whole = [g for g in gpus if g == 1000]
        if len(whole) < d.whole:
            break
        for _ in range(d.whole):
            gpus.remove(1000)
        if d.part:
            fitting = [g for g in gpus if g >= d.part]
            if not fitting:
                break
            gpus.remove(fitting[0])
            gpus = sorted([*gpus, fitting[0] - d.part])
        cpu, ram, count = cpu - d.cpu, ram - d.ram, count + 1
    return count


def rebuilt(index: NodeIndex, held: list) -> NodeIndex:
    """Make an index of the same nodes from nothing, holding the same."""
    fresh = NodeIndex([index.node(name) for name in index.names], rule=index.rule, seed=index.seed)
    for demand, placement, devices in held:
        there = [i for i, name in enumerate(placement) if name in fresh]
        fresh.reserve_ranks(demand, [placement[i] for i in there], tuple(devices[i] for i in there))
    fresh.changes = index.changes
    return fresh


@settings(max_examples=150, deadline=None)
@given(NODES, st.lists(DEMANDS, min_size=1, max_size=4), STEPS, st.sampled_from(RULES))
def test_after_any_events_the_index_is_the_one_rebuilt_from_nothing(nodes, demands, steps, rule) -> None:
    index = NodeIndex([made(i, spec) for i, spec in enumerate(nodes)], rule=rule)
    held: list = []
    added = len(nodes)
    for what, which, ranks, pick in steps:
        demand = demands[pick % len(demands)]
        name = index.names[which % len(index.names)] if index.names else None
        if what == "take":
            seats = index.place(demand, ranks)
            assert (seats is not None) == (index.total_slots(demand) >= ranks)
            if seats is not None:
                held.append((demand, seats, index.reserve_ranks(demand, seats)))
        elif what == "give" and held:
            index.release_ranks(*held.pop(which % len(held)))
        elif what in {"down", "up"} and name:
            index.set_up(name, up=what == "up")
        elif what == "remove" and name:
            index.remove(name)
        elif what == "add":
            index.add(made(added, nodes[which % len(nodes)]))
            added += 1
        elif what == "fork":
            other = index.fork()
            seats = other.place(demand, 1)
            if seats:
                other.reserve_ranks(demand, seats)
        for name in index.names:
            assert all(0 <= d <= 1000 for d in index.devices(name))
            assert min(index.free(name).cpu, index.free(name).ram) >= 0
    fresh = rebuilt(index, held)
    assert fresh.names == index.names
    assert fresh.total == index.total
    for name in index.names:
        assert (index.free(name), index.devices(name)) == (fresh.free(name), fresh.devices(name))
    for demand in demands:
        slots = {name: brute_slots(index, name, demand) for name in index.names}
        assert {name: index.slots(name, demand) for name in index.names} == slots
        assert index.total_slots(demand) == sum(slots.values())
        assert index.total_slots(demand, "same-node") == max(slots.values(), default=0)
        racks: dict[str, int] = {}
        for name, n in slots.items():
            rack = index.node(name).labels["rack"]
            racks[rack] = racks.get(rack, 0) + n
        assert index.total_slots(demand, "same-rack") == max(racks.values(), default=0)
        for ranks in (1, 2, 5):
            for topology in (None, "same-node", "same-rack", "preferred:rack", "spread"):
                if rule != "random":
                    # numbers of nodes differ after removals, their order does not
                    assert index.place(demand, ranks, topology) == fresh.place(demand, ranks, topology)


@settings(max_examples=150, deadline=None)
@given(NODES, st.lists(st.tuples(DEMANDS, st.integers(1, 5)), max_size=8))
def test_taking_and_giving_back_leaves_no_trace(nodes, gangs) -> None:
    index = NodeIndex([made(i, spec) for i, spec in enumerate(nodes)])
    before = [(index.free(n), index.devices(n)) for n in index.names]
    held = []
    for demand, ranks in gangs:
        seats = index.place(demand, ranks)
        if seats is not None:
            devices = index.reserve_ranks(demand, seats)
            assert [len(d) for d in devices] == [demand.whole + (demand.part > 0)] * ranks
            held.append((demand, seats, devices))
    shares: dict[tuple[str, int], int] = {}
    for demand, seats, devices in held:
        for name, numbers in zip(seats, devices, strict=True):
            for i, number in enumerate(numbers):
                shares[name, number] = shares.get((name, number), 0) + (
                    1000 if i < demand.whole else demand.part
                )
    assert all(taken <= 1000 for taken in shares.values())
    for entry in reversed(held):
        index.release_ranks(*entry)
    assert [(index.free(n), index.devices(n)) for n in index.names] == before


def test_a_view_that_fell_far_behind_the_log_is_right_again() -> None:
    index = NodeIndex([node(f"n-{i}", cpu=4) for i in range(3)])
    assert index.place(CORE, 1) == ("n-0",)
    for _ in range(6000):
        held = index.reserve_ranks(Demand(cpu=500), ("n-1",))
        index.release_ranks(Demand(cpu=500), ("n-1",), held)
    index.reserve_ranks(CORE, ("n-0",) * 4)
    assert index.place(CORE, 1) == ("n-1",)
    assert index.total_slots(CORE) == 8


def test_an_index_without_nodes_has_room_for_nothing() -> None:
    index = NodeIndex([])
    assert (index.names, index.total, index.total_slots(CORE), index.place(CORE, 1)) == ((), ZERO, 0, None)
