"""What one cycle decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model.types import Admit, SchedulingPolicy, Snapshot, Wait
from mlp_language.message import msg
from support.said import about, who
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant


def admitted(s: Snapshot, now: float = 0.0) -> list[str]:
    return [d.uid for d in plan_cycle(s, now) if isinstance(d, Admit)]


def waits(s: Snapshot, now: float = 0.0) -> dict[str, Wait]:
    return {d.uid: d for d in plan_cycle(s, now) if isinstance(d, Wait)}


def test_a_gang_that_fits_is_placed_whole() -> None:
    plan = plan_cycle(snapshot(job("a", workers=3, cpu=2), nodes=(node("n-0"), node("n-1"))), 0)
    assert plan == [Admit("a", ("n-0", "n-0", "n-1"), 3, Resources(6000, 0, 300), ((), (), ()))]


def test_a_gang_that_does_not_fit_whole_gets_nothing() -> None:
    s = snapshot(job("a", workers=5, cpu=2), nodes=(node("n-0"), node("n-1")))
    wait = waits(s)["a"]
    assert admitted(s) == []
    assert wait.verdict.reason is Reason.WAITING_FOR_RESOURCES
    assert (wait.verdict.numbers["ranks"], wait.verdict.numbers["fitting"]) == (5, 4)
    free = next(f for f in wait.verdict.facts if f.key == "free_on")
    assert str(msg("{free}", free=free.value)) == "2 nodes: 4 cpu and 8192 MiB ram each"


def test_a_job_may_be_withdrawn_after_its_tenant_moved_to_another_cohort() -> None:
    core = Core(SchedulingPolicy(), (node(),), (tenant(cpu=1, cohort="x"),))
    core.submit(job("a"))
    core.submit(job("b", at=1.0))
    core.plan(1.0)  # b is inadmissible until quota comes free in x
    core.set_tenant(tenant(cpu=1, cohort="y"))
    core.withdraw("b")
    assert core.plan(2.0) == []


def test_two_half_fitting_gangs_never_hold_each_other_up() -> None:
    s = snapshot(job("a", workers=3, cpu=1), job("b", workers=3, cpu=1, at=1.0), nodes=(node(cpu=4),))
    assert admitted(s) == ["a"]


def test_over_the_quota_a_job_waits_with_the_numbers_and_their_users() -> None:
    first = job("first", workers=2, user="bob")
    s = snapshot(
        job("second", workers=2, user="bob"),
        tenants=(tenant(cpu=2.2, used=Resources(cpu=200), others=("bob's notebook",)),),
        running=(runs(first, "n", "n"),),
    )
    wait = waits(s)["second"]
    assert wait.position == 1
    assert wait.verdict.reason is Reason.WAITING_FOR_QUOTA
    assert who(wait.verdict, "cpu_inuse") == "bob's notebook (0.2) and job first of bob (2)"
    assert wait.verdict.numbers == {"cpu_limit": 2.2, "cpu_inuse": 2.2, "cpu_free": 0, "cpu_asked": 2}
    assert wait.verdict.blocked_by == ("first",)


def test_a_quota_lowered_below_its_use_blocks_only_what_asks_for_it() -> None:
    s = snapshot(
        job("light", cpu=0.1, ram=100),
        tenants=(tenant(cpu=4, ram=500, used=Resources(cpu=100, ram=600)),),
    )
    assert waits(s)["light"].verdict.numbers["ram_free"] == 0
    gpu_only = snapshot(
        job("g", cpu=0, ram=0, gpu=1), nodes=(node(gpu=1),), tenants=(tenant(cpu=0, ram=500),)
    )
    assert admitted(gpu_only) == ["g"]


def test_within_a_tenant_priority_goes_first_then_age() -> None:
    s = snapshot(
        job("old", at=0.0),
        job("older-low", at=0.0, priority=50),
        job("high", at=9.0, priority=200),
        job("young", at=5.0),
        nodes=(node(cpu=4),),
    )
    assert admitted(s, 10.0) == ["high", "old", "young", "older-low"]


def test_a_job_that_waits_long_enough_overtakes_a_higher_priority() -> None:
    low = job("low", priority=50, at=0.0)
    high = job("high", priority=200, at=100_000.0)
    assert admitted(snapshot(low, high, aging_s=600.0), 100_001.0) == ["low", "high"]
    assert admitted(snapshot(low, high, aging_s=0.0), 100_001.0) == ["high", "low"]


def test_between_tenants_the_smallest_weighted_share_goes_first() -> None:
    red, blue = tenant("red", weight=2.0), tenant("blue")
    jobs = [job(f"{t}-{i}", tenant=t, at=float(i)) for t in ("red", "blue") for i in range(6)]
    s = snapshot(*jobs, nodes=(node(cpu=6),), tenants=(red, blue))
    assert sum(uid.startswith("red") for uid in admitted(s)) == 4


def test_fair_share_remembers_use_and_maxmin_does_not() -> None:
    red, blue = tenant("red", decayed_usage=3600.0), tenant("blue")
    s = [job("r", tenant="red", at=0.0), job("b", tenant="blue", at=1.0)]
    one = (node(cpu=1),)
    assert admitted(snapshot(*s, nodes=one, tenants=(red, blue))) == ["b"]
    assert admitted(snapshot(*s, nodes=one, tenants=(red, tenant("zed"), blue), name="maxmin")) == ["r"]
    assert admitted(snapshot(*s, nodes=one, tenants=(red, blue), name="fifo")) == ["r"]


def test_the_dominant_resource_fairness_paper_example_comes_out() -> None:
    a = [job(f"a{i}", tenant="a", cpu=1, ram=4, at=float(i)) for i in range(9)]
    b = [job(f"b{i}", tenant="b", cpu=3, ram=1, at=float(i)) for i in range(9)]
    s = snapshot(*a, *b, nodes=(node(cpu=9, ram=18),), tenants=(tenant("a"), tenant("b")))
    got = admitted(s)
    assert (sum(u[0] == "a" for u in got), sum(u[0] == "b" for u in got)) == (3, 2)


def test_a_small_job_may_pass_a_blocked_gang_only_if_it_ends_in_time() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n", until=100.0)
    gang = job("gang", workers=4)
    short = job("short", at=1.0, time_limit=90)
    long = job("long", at=1.0, time_limit=200)
    endless = job("endless", at=1.0)
    assert admitted(snapshot(gang, short, running=(busy,))) == ["short"]
    for late in (long, endless):
        s = snapshot(gang, late, running=(busy,))
        assert admitted(s) == []
        assert waits(s)[late.uid].verdict.reason is Reason.RESERVED
        assert about(waits(s)[late.uid].verdict) == ["gang"]


def test_a_small_endless_job_passes_where_nothing_is_reserved() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n")
    gang = job("gang", workers=2)
    s = snapshot(gang, job("small", at=1.0), running=(busy,))
    assert admitted(s) == ["small"]
    assert admitted(snapshot(gang, job("small", at=1.0), running=(busy,), backfill=False)) == []


def test_a_tenant_at_its_quota_does_not_hold_up_another() -> None:
    s = snapshot(
        job("r", workers=2),
        job("b", tenant="blue", at=1.0),
        tenants=(tenant("red", cpu=2, used=Resources(cpu=1000)), tenant("blue")),
    )
    assert admitted(s) == ["b"]


def test_an_elastic_job_starts_with_as_many_workers_as_fit() -> None:
    s = snapshot(job("e", workers=2, workers_max=8), nodes=(node(cpu=3),))
    assert plan_cycle(s, 0) == [Admit("e", ("n",) * 3, 3, Resources(3000, 0, 300), ((),) * 3)]
    s = snapshot(job("e", workers=2, workers_max=8), nodes=(node(cpu=16),), tenants=(tenant(cpu=5),))
    assert plan_cycle(s, 0)[0] == Admit("e", ("n",) * 5, 5, Resources(5000, 0, 500), ((),) * 5)


def test_a_parameter_server_sits_beside_its_worker() -> None:
    s = snapshot(job("p", workers=2, ps=2, cpu=2), nodes=(node("n-0"), node("n-1")))
    placement = plan_cycle(s, 0)[0].placement  # type: ignore[union-attr]
    assert placement[0] == placement[2]
    assert placement[1] == placement[3]
    assert placement[0] != placement[1]


def test_a_gpu_kind_is_matched_and_its_quota_counted() -> None:
    nodes = (node("a", gpu=2, gpu_kind="a100"), node("v", gpu=2, gpu_kind="v100"))
    from mlp_hub.domain.resources import Quota
    from mlp_hub.scheduler.model.types import TenantQueue

    capped = TenantQueue("red", Quota(kinds={"a100": 1000}))
    any_kind = snapshot(job("x", workers=2, gpu=1), nodes=nodes, tenants=(capped,))
    assert plan_cycle(any_kind, 0)[0].placement == ("v", "v")  # type: ignore[union-attr]
    named = snapshot(job("x", workers=2, gpu=1, gpu_kind="a100"), nodes=nodes, tenants=(capped,))
    assert waits(named)["x"].verdict.reason is Reason.EXCEEDS_MAX_QUOTA
    running = runs(job("a", gpu=1, gpu_kind="a100"), "a")
    one = snapshot(job("x", gpu=1, gpu_kind="a100"), nodes=nodes, tenants=(capped,), running=(running,))
    assert waits(one)["x"].verdict.reason is Reason.WAITING_FOR_QUOTA
    assert "a100 gpu" in str(waits(named)["x"].verdict.headline)


def test_same_node_and_same_rack_hold_the_gang_together() -> None:
    nodes = tuple(node(f"n-{i}", cpu=2, labels={"rack": f"r{i // 2}"}) for i in range(4))
    together = snapshot(job("a", workers=4, topology="same-rack"), nodes=nodes)
    racks = {p[-1] in "01" for p in plan_cycle(together, 0)[0].placement}  # type: ignore[union-attr]
    assert len(racks) == 1
    apart = snapshot(job("a", workers=3, topology="same-node"), nodes=nodes)
    assert waits(apart)["a"].verdict.reason is Reason.TOPOLOGY_PLACEMENT_FAILED
    preferred = snapshot(job("a", workers=6, topology="preferred:rack"), nodes=nodes)
    assert admitted(preferred) == ["a"]


def test_spread_deals_one_rank_to_each_node() -> None:
    nodes = tuple(node(f"n-{i}") for i in range(3))
    s = snapshot(job("a", workers=3, topology="spread"), nodes=nodes)
    assert sorted(plan_cycle(s, 0)[0].placement) == ["n-0", "n-1", "n-2"]  # type: ignore[union-attr]


def test_a_lost_node_gives_no_room_but_the_quota_still_counts() -> None:
    ghost = runs(job("ghost", workers=2), "gone", "gone")
    s = snapshot(job("a", workers=3), tenants=(tenant(cpu=4),), running=(ghost,))
    assert waits(s)["a"].verdict.reason is Reason.WAITING_FOR_QUOTA


sizes = st.builds(
    job,
    uid=st.uuids().map(str),
    workers=st.integers(1, 5),
    cpu=st.sampled_from([0.1, 0.5, 1, 2]),
    ram=st.sampled_from([100, 1000, 4000]),
    at=st.floats(0, 100),
    tenant=st.sampled_from(["red", "blue", "gone"]),
    priority=st.sampled_from([50, 100, 200]),
    time_limit=st.none() | st.integers(1, 100),
    topology=st.none() | st.sampled_from(["same-node", "spread"]),
)


@given(
    st.lists(sizes, max_size=12, unique_by=lambda j: j.uid),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_no_plan_overcommits_a_node_or_a_quota_and_every_job_gets_one_answer(
    waiting: list, cores: list[int]
) -> None:
    nodes = tuple(node(f"n-{i}", cpu=c) for i, c in enumerate(cores))
    s = snapshot(*waiting, nodes=nodes, tenants=(tenant("red", cpu=5), tenant("blue", ram=5000)))
    plan = plan_cycle(s, 100.0)
    assert sorted(d.uid for d in plan) == sorted(j.uid for j in waiting)
    by_uid = {j.uid: j for j in waiting}
    on_node = {n.name: ZERO for n in nodes}
    of_tenant = {"red": ZERO, "blue": ZERO}
    for d in plan:
        if isinstance(d, Admit):
            j = by_uid[d.uid]
            assert len(d.placement) == d.workers + j.ps
            for n in d.placement:
                on_node[n] = on_node[n] + j.per_worker
            of_tenant[j.tenant] = of_tenant[j.tenant] + d.amount
    assert all(on_node[n.name].fits(n.capacity) for n in nodes)
    assert of_tenant["red"].cpu <= 5000
    assert of_tenant["blue"].ram <= 5000
    assert plan == plan_cycle(s, 100.0)
