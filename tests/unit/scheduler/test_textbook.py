"""The cases of the books: what the whole outcome of each is, who starts when and where."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value

Line = dict[str, Any]
Job = dict[str, Any]


def run(jobs: list[Job], nodes: Any, tenants: Any = None, events: Any = (), **more: Any) -> list[Line]:
    """Run a scenario; the last line is the summary."""
    names = list(dict.fromkeys(j.get("tenant", "red") for j in jobs))
    scenario = {
        "version": 1,
        "nodes": [nodes] if isinstance(nodes, dict) else nodes,
        "tenants": tenants or [{"name": n} for n in names],
        "jobs": [{"tenant": "red", **j} for j in jobs],
        "events": list(events),
        **more,
    }
    return list(Simulation(read_value(scenario)).lines())


def starts(lines: list[Line]) -> list[tuple[float, str, str]]:
    """Return when each job started, grew or shrank, and on which nodes: "n-0*2 n-1" are two ranks and one."""
    out = []
    for line in lines[:-1]:
        if "placement" in line:
            ranks = Counter(line["placement"].values())
            where = " ".join(f"{n}*{k}" if k > 1 else n for n, k in sorted(ranks.items()))
            what = "" if line["event"] == "started" else f" {line['event']}"
            out.append((line["t"], line["job"] + what, where))
    return out


def when(lines: list[Line], event: str) -> list[tuple[float, str]]:
    return [(line["t"], line["job"]) for line in lines[:-1] if line["event"] == event]


def who_runs(lines: list[Line], at: float) -> dict[str, int]:
    """Count the ranks that run just after a time, by the first letter of the job's name."""
    running: dict[str, int] = {}
    for line in lines[:-1]:
        if line["t"] > at:
            break
        if "placement" in line:
            running[line["job"]] = len(line["placement"])
        elif line["event"] in ("finished", "preempted", "evicted", "cancelled", "failed"):
            running.pop(line["job"], None)
    out: dict[str, int] = {}
    for name, ranks in running.items():
        out[name[0]] = out.get(name[0], 0) + ranks
    return out


def job(name: str, **more: Any) -> Job:
    return {"name": name, "duration": 100, **more}


# --- fairness


@pytest.mark.parametrize("policy", ["fair", "maxmin"])
def test_dominant_resource_fairness_gives_three_and_two_tasks_as_in_the_paper(policy: str) -> None:
    """Ghodsi et al., NSDI 2011: 9 cpu and 18 GB; a task of A takes 1 and 4 of them, one of B 3 and 1."""
    jobs = [job("a", tenant="a", cpu=1, ram=4, count=9), job("b", tenant="b", cpu=3, ram=1, count=9)]
    lines = run(jobs, {"name": "n", "cpu": 9, "ram": 18}, policy={"name": policy}, until=50)
    assert starts(lines) == [(0.0, name, "n") for name in ("a-0", "b-0", "a-1", "b-1", "a-2")]


def test_max_min_gives_small_demands_whole_and_shares_the_rest() -> None:
    """Ten cores for demands of 2, 3 and 9: the small ones have all they asked for, the third what is left."""
    jobs = [job(t, tenant=t, count=n) for t, n in (("a", 2), ("b", 3), ("c", 9))]
    lines = run(jobs, {"name": "n", "cpu": 10}, policy={"name": "maxmin"}, until=50)
    names = ["a-0", "b-0", "c-0", "a-1", "b-1", "c-1", "b-2", "c-2", "c-3", "c-4"]
    assert starts(lines) == [(0.0, name, "n") for name in names]


@pytest.mark.parametrize("policy", ["fair", "maxmin"])
def test_weights_of_two_to_one_share_three_cores_so_at_all_times(policy: str) -> None:
    jobs = [job(t, tenant=t, count=100, duration=10) for t in "ab"]
    tenants = [{"name": "a", "weight": 2}, {"name": "b"}]
    lines = run(jobs, {"name": "n", "cpu": 3}, tenants, policy={"name": policy}, until=499)
    assert [who_runs(lines, at) for at in range(0, 500, 10)] == [{"a": 2, "b": 1}] * 50


def test_weights_of_two_to_one_share_one_core_in_turns() -> None:
    """Weighted fair queueing: two turns of A for one of B."""
    jobs = [job(t, tenant=t, count=100, duration=10) for t in "ab"]
    tenants = [{"name": "a", "weight": 2}, {"name": "b"}]
    lines = run(jobs, {"name": "n", "cpu": 1}, tenants, policy={"name": "fair"}, until=899)
    turns = "".join(name[0] for _, name, _ in starts(lines))
    assert turns == "abab" + "aab" * 28 + "aa"


# --- gangs


def test_two_gangs_that_both_half_fit_run_one_after_the_other() -> None:
    lines = run([job("a", workers=6), job("b", workers=6)], {"name": "n", "count": 2, "cpu": 4})
    assert starts(lines) == [(0.0, "a", "n-0*4 n-1*2"), (100.0, "b", "n-0*4 n-1*2")]


def test_waves_of_gangs_keep_a_cluster_full() -> None:
    """Knavigator's gang test: 53 jobs of whole nodes with 8 GPUs, in nine waves that fill 32 nodes each."""
    waves = ["32", "16 16", "10 10 10 2", "8 8 8 8", "6 6 6 6 6 1 1", "5 5 5 5 5 5 2", "4 4 4 4 4 4 4 2 1 1"]
    waves += ["4 4 4 4 4 4 4 4", "3 3 3 3 3 3 3 3 3 5"]
    sizes = [[int(size) for size in wave.split()] for wave in waves]
    jobs = [
        job(f"w{w}.{i}", workers=size, gpu=8, duration=30)
        for w, wave in enumerate(sizes)
        for i, size in enumerate(wave)
    ]
    assert len(jobs) == 53
    lines = run(jobs, {"name": "n", "count": 32, "cpu": 64, "gpu": 8, "gpu_kind": "a100"})
    begun = [(t, name) for t, name, _ in starts(lines)]
    assert begun == [(30.0 * int(j["name"][1]), j["name"]) for j in jobs]
    assert not any("*" in where for _, _, where in starts(lines))
    summary = lines[-1]["summary"]
    assert summary["makespan_s"] == 270.0
    assert summary["utilization"]["gpu"] == 1.0


# --- backfill


def test_backfill_lets_pass_what_ends_before_the_first_job_starts() -> None:
    """EASY: B is promised 100; what is short passes, what is long does not, what fits beside B does."""
    jobs = [
        job("a", workers=6, estimate=100),
        job("b", workers=8, submit=1, estimate=100),
        job("short", workers=4, submit=2, duration=90, estimate=90),
        job("long", workers=4, submit=3, duration=200, estimate=200),
        job("beside", workers=2, submit=95, duration=200, estimate=200),
    ]
    lines = run(jobs, {"name": "n", "cpu": 10}, policy={"name": "fifo"})
    assert starts(lines) == [
        (0.0, "a", "n*6"),
        (2.0, "short", "n*4"),
        (95.0, "beside", "n*2"),
        (100.0, "b", "n*8"),
        (200.0, "long", "n*4"),
    ]


def test_without_backfill_nobody_passes_the_first_job() -> None:
    jobs = [
        job("a", workers=6, estimate=100),
        job("b", workers=8, submit=1, estimate=100),
        job("short", workers=2, submit=2, duration=10, estimate=10),
    ]
    lines = run(jobs, {"name": "n", "cpu": 10}, policy={"name": "fifo", "backfill": False})
    assert starts(lines) == [(0.0, "a", "n*6"), (100.0, "b", "n*8"), (100.0, "short", "n*2")]


@pytest.mark.parametrize("estimate", [None, 10])
@pytest.mark.parametrize("large_tenant", ["a", "b"])
@pytest.mark.parametrize("policy", ["fifo", "priority", "fair", "maxmin"])
def test_a_large_job_among_endless_small_ones_starts_as_soon_as_those_before_it_have_ended(
    policy: str, large_tenant: str, estimate: float | None
) -> None:
    small = job("s", tenant="a", count=400, every=2.5, duration=10, estimate=estimate)
    large = job("large", tenant=large_tenant, workers=4, submit=46, duration=20, estimate=estimate)
    lines = run([small, large], {"name": "n", "cpu": 4}, policy={"name": policy})
    assert [s for s in starts(lines) if s[1] == "large"] == [(55.0, "large", "n*4")]


def test_aging_brings_a_low_priority_before_an_endless_stream_of_higher_ones() -> None:
    """150 points apart, one point a second: what comes 150 s later stands behind it, and does not stop it either."""
    jobs = [
        job("low", priority="low", workers=4, duration=10),
        job("high", priority="high", workers=4, duration=10, count=60, every=8),
    ]
    lines = run(jobs, {"name": "n", "cpu": 4}, policy={"name": "priority", "aging_s": 1})
    order = [f"high-{i}" for i in range(60)]
    order.insert(19, "low")
    assert starts(lines) == [(10.0 * i, name, "n*4") for i, name in enumerate(order)]


# --- quota


def test_a_cohort_lends_what_is_idle_and_takes_back_the_cheapest() -> None:
    """B's jobs cost A those that have done least since their start; the others are inside A's quota."""
    tenants = [{"name": t, "cohort": "c", "quota": {"cpu": 4}} for t in "ab"]
    jobs = [
        job("a", tenant="a", workers=2, count=4, every=10, duration=500),
        job("b", tenant="b", workers=2, count=3, every=10, submit=100),
    ]
    lines = run(jobs, {"name": "n", "cpu": 8}, tenants)
    assert starts(lines) == [
        (0.0, "a-0", "n*2"),
        (10.0, "a-1", "n*2"),
        (20.0, "a-2", "n*2"),
        (30.0, "a-3", "n*2"),
        (100.0, "b-0", "n*2"),
        (110.0, "b-1", "n*2"),
        (200.0, "b-2", "n*2"),
        (210.0, "a-2", "n*2"),
        (300.0, "a-3", "n*2"),
    ]
    assert when(lines, "preempted") == [(100.0, "a-3"), (110.0, "a-2")]


def test_a_checkpoint_makes_a_victim_cheap_and_keeps_its_work() -> None:
    tenants = [{"name": t, "cohort": "c", "quota": {"cpu": 4}} for t in "ab"]
    jobs = [
        *(job(f"a{i}", tenant="a", workers=2, duration=500, submit=i) for i in (0, 2, 3)),
        job("saves", tenant="a", workers=2, duration=500, submit=1, checkpoint_every=30),
        job("b", tenant="b", workers=2, submit=95),
    ]
    lines = run(jobs, {"name": "n", "cpu": 8}, tenants)
    assert when(lines, "preempted") == [(95.0, "saves")]
    assert starts(lines)[-2:] == [(95.0, "b", "n*2"), (195.0, "saves", "n*2")]
    # three checkpoints, 90 s of its work, were kept
    assert when(lines, "finished") == [
        (195.0, "b"),
        (500.0, "a0"),
        (502.0, "a2"),
        (503.0, "a3"),
        (605.0, "saves"),
    ]
    assert lines[-1]["summary"]["lost_work_s"] == 8.0


def test_a_borrowing_limit_and_a_lending_limit_bound_what_is_borrowed() -> None:
    jobs = [job("a", tenant="a", count=8)]
    limited = [
        {"name": "a", "cohort": "c", "quota": {"cpu": 4}, "borrowing_limit": {"cpu": 1}},
        {"name": "b", "cohort": "c", "quota": {"cpu": 4}},
    ]
    assert len(starts(run(jobs, {"name": "n", "cpu": 8}, limited, until=50))) == 5
    kept = [
        {"name": "a", "cohort": "c", "quota": {"cpu": 4}},
        {"name": "b", "cohort": "c", "quota": {"cpu": 4}, "lending_limit": {"cpu": 2}},
    ]
    assert len(starts(run(jobs, {"name": "n", "cpu": 8}, kept, until=50))) == 6


def test_a_lowered_quota_kills_nothing_and_a_raised_one_starts_more() -> None:
    lines = run(
        [job("a", workers=2, count=3)],
        {"name": "n", "cpu": 8},
        [{"name": "red", "quota": {"cpu": 4}}],
        [{"at": 10, "tenant": "red", "quota": {"cpu": 2}}, {"at": 20, "tenant": "red", "quota": {"cpu": 6}}],
    )
    assert starts(lines) == [(0.0, "a-0", "n*2"), (0.0, "a-1", "n*2"), (20.0, "a-2", "n*2")]
    assert when(lines, "finished") == [(100.0, "a-0"), (100.0, "a-1"), (120.0, "a-2")]
    lowered = run(
        [job("a", workers=2, count=3)],
        {"name": "n", "cpu": 8},
        [{"name": "red", "quota": {"cpu": 4}}],
        [{"at": 10, "tenant": "red", "quota": {"cpu": 2}}],
    )
    assert starts(lowered) == [(0.0, "a-0", "n*2"), (0.0, "a-1", "n*2"), (100.0, "a-2", "n*2")]


HIVED = [{"name": "n", "count": 4, "cpu": 16, "gpu": 4, "gpu_kind": "v100"}]
TWO_OWNERS = [{"name": t, "cohort": "c", "quota": {"gpu": 8}} for t in "ab"]
WHOLE_NODES = [job(f"b{i}", tenant="b", workers=2, gpu=4, submit=100 + 30 * i, duration=50) for i in range(3)]


@pytest.mark.parametrize("placement", ["fgd", "spread"])
@pytest.mark.parametrize(
    ("theirs", "stopped"),
    [
        ([job("a", tenant="a", gpu=1, count=8, duration=1000)], {"fgd": 0, "spread": 4}),
        ([job("a", tenant="a", gpu=1, count=16, duration=1000)], {"fgd": 8, "spread": 8}),
        ([job("a", tenant="a", gpu=2, count=8, every=3, duration=1000)], {"fgd": 4, "spread": 4}),
        ([job("a", tenant="a", gpu=4, workers=4, duration=1000)], {"fgd": 1, "spread": 1}),
        (
            [job(f"a{i}", tenant="a", gpu=1, duration=50 if i % 4 else 1000) for i in range(16)],
            {"fgd": 2, "spread": 0},
        ),
    ],
)
def test_sharing_is_as_good_for_a_tenant_as_separate_nodes(
    theirs: list[Job], stopped: dict[str, int], placement: str
) -> None:
    """HiveD's sharing anomaly (OSDI 2020) is absent: jobs of whole nodes start as on two nodes of one's own.

    Where the other tenant borrowed, it gives back; where its work lies scattered inside its own quota, it moves.
    """
    alone = run(WHOLE_NODES, [{**HIVED[0], "count": 2}])
    lines = run(theirs + WHOLE_NODES, HIVED, TWO_OWNERS, policy={"placement": placement})
    mine = [(t, name) for t, name, _ in starts(lines) if name.startswith("b")]
    assert mine == [(t, name) for t, name, _ in starts(alone)]
    assert mine == [(100.0, "b0"), (150.0, "b1"), (200.0, "b2")]
    assert len(when(lines, "preempted")) == stopped[placement]


def test_scattered_work_moves_aside_and_starts_again_at_once() -> None:
    tasks = [job(f"a{i}", tenant="a", gpu=1, duration=50 if i % 4 else 1000) for i in range(16)]
    lines = run([*tasks, WHOLE_NODES[0]], HIVED, TWO_OWNERS)
    assert when(lines, "preempted") == [(100.0, "a12"), (100.0, "a8")]
    assert starts(lines)[16:] == [(100.0, "b0", "n-2 n-3"), (100.0, "a8", "n-0"), (100.0, "a12", "n-0")]


def test_nobody_moves_without_a_place_to_go_or_for_one_beyond_its_quota() -> None:
    tasks = [job(f"a{i}", tenant="a", gpu=1, duration=50 if i % 4 else 1000) for i in range(16)]
    pinned = [{**t, "preemptible": i % 4 > 0} for i, t in enumerate(tasks)]
    beyond = [{"name": "a", "quota": {"gpu": 16}}, {"name": "b"}]
    for work, tenants in ((pinned, TWO_OWNERS), (tasks, beyond)):
        lines = run([*work, {**WHOLE_NODES[0], "workers": 3}], HIVED, tenants, policy={"placement": "fgd"})
        assert when(lines, "preempted") == []


# --- preemption


def test_a_higher_priority_stops_the_lower_one_that_lost_least() -> None:
    jobs = [
        job("low", priority="low", workers=2, count=2, every=10),
        job("high", priority="high", workers=2, submit=50),
    ]
    lines = run(jobs, {"name": "n", "cpu": 4})
    assert starts(lines) == [
        (0.0, "low-0", "n*2"),
        (10.0, "low-1", "n*2"),
        (50.0, "high", "n*2"),
        (100.0, "low-1", "n*2"),
    ]
    assert when(lines, "preempted") == [(50.0, "low-1")]
    assert when(lines, "finished") == [(100.0, "low-0"), (150.0, "high"), (200.0, "low-1")]


def test_nobody_is_stopped_for_one_that_would_not_start_all_the_same() -> None:
    jobs = [
        job("low", priority="low", workers=2),
        job("fixed", priority="low", workers=2, preemptible=False),
        job("high", priority="high", workers=4, submit=50),
    ]
    lines = run(jobs, {"name": "n", "cpu": 4})
    assert starts(lines) == [(0.0, "low", "n*2"), (0.0, "fixed", "n*2"), (100.0, "high", "n*4")]
    assert when(lines, "preempted") == []


def test_a_started_job_keeps_its_place_for_the_minimum_runtime() -> None:
    jobs = [job("low", priority="low", workers=4), job("high", priority="high", workers=4, submit=10)]
    lines = run(jobs, {"name": "n", "cpu": 4}, policy={"min_run_s": 30})
    assert starts(lines) == [(0.0, "low", "n*4"), (30.0, "high", "n*4"), (130.0, "low", "n*4")]


# --- elastic jobs


def test_an_elastic_job_starts_with_fitting_workers_then_grows_and_gives_way() -> None:
    """With three of four workers it gets on at three quarters of its speed, with two at half of it."""
    jobs = [
        job("fixed", workers=1, duration=50),
        job("e", workers="2:4"),
        job("new", workers=2, submit=80, duration=20),
    ]
    lines = run(jobs, {"name": "n", "cpu": 4})
    assert starts(lines) == [
        (0.0, "fixed", "n"),
        (0.0, "e", "n*3"),
        (50.0, "e grown", "n*4"),
        (80.0, "e shrunk", "n*2"),
        (80.0, "new", "n*2"),
        (100.0, "e grown", "n*4"),
    ]
    assert when(lines, "finished") == [(50.0, "fixed"), (100.0, "new"), (122.5, "e")]
    assert when(lines, "preempted") == []


def test_an_elastic_job_does_not_grow_into_the_room_of_one_that_waits() -> None:
    """What A leaves at 100 is not enough for C, which is promised the end of B: E would still be there."""
    jobs = [
        job("a", workers=2, estimate=100),
        job("b", workers=1, duration=200, estimate=200),
        job("e", workers="1:4", duration=1000, estimate=1000),
        job("c", workers=3, submit=10, estimate=100),
    ]
    lines = run(jobs, {"name": "n", "cpu": 6}, policy={"preemption": False}, until=400)
    assert starts(lines) == [
        (0.0, "a", "n*2"),
        (0.0, "b", "n"),
        (0.0, "e", "n*3"),
        (200.0, "c", "n*3"),
        (300.0, "e grown", "n*4"),
    ]


# --- places


def test_two_halves_share_one_gpu_and_a_third_waits() -> None:
    jobs = [job(name, gpu=0.5) for name in "abc"]
    lines = run(jobs, {"name": "n", "gpu": 1, "gpu_kind": "t4"})
    assert starts(lines) == [(0.0, "a", "n"), (0.0, "b", "n"), (100.0, "c", "n")]


def test_parts_of_gpus_add_up_on_each_one_never_across_two() -> None:
    """Of 0.5, 0.7 and 0.6 no two fit on one GPU together, though the two GPUs have more in all."""
    jobs = [job("a", gpu=0.5), job("b", gpu=0.7), job("c", gpu=0.6), job("d", gpu=0.3)]
    lines = run(jobs, {"name": "n", "gpu": 2, "gpu_kind": "t4"})
    assert starts(lines) == [(0.0, "a", "n"), (0.0, "b", "n"), (0.0, "d", "n"), (100.0, "c", "n")]


def test_a_gang_of_one_node_waits_for_a_whole_one() -> None:
    jobs = [job("a", workers=3), *(job(name, workers=4, topology="same-node") for name in "gh")]
    lines = run(jobs, {"name": "n", "count": 2, "cpu": 4})
    assert starts(lines) == [(0.0, "a", "n-0*3"), (0.0, "g", "n-1*4"), (100.0, "h", "n-0*4")]


def test_a_gang_of_one_rack_stays_in_it_and_another_may_spread() -> None:
    nodes = [
        {"name": name, "count": 2, "cpu": 4, "labels": {"rack": rack}}
        for name, rack in (("p", "1"), ("q", "2"))
    ]
    jobs = [job("a", workers=2), job("g", workers=8, topology="same-rack"), job("h", workers=6)]
    lines = run(jobs, nodes)
    assert starts(lines) == [
        (0.0, "a", "p-0*2"),
        (0.0, "g", "q-0*4 q-1*4"),
        (0.0, "h", "p-0*2 p-1*4"),
    ]


# --- events


def test_a_lost_node_ends_the_whole_gang_which_continues_from_its_checkpoint() -> None:
    jobs = [job("g", workers=6, checkpoint_every=20), job("s", duration=200)]
    events = [{"at": 30, "node_down": "n-0"}, {"at": 80, "node_up": "n-0"}]
    lines = run(jobs, {"name": "n", "count": 2, "cpu": 4}, events=events)
    assert starts(lines) == [
        (0.0, "g", "n-0*4 n-1*2"),
        (0.0, "s", "n-1"),
        (80.0, "g", "n-0*4 n-1*2"),
    ]
    assert when(lines, "evicted") == [(30.0, "g")]
    assert when(lines, "finished") == [(160.0, "g"), (200.0, "s")]


def test_a_cancelled_job_makes_way_for_those_behind_it() -> None:
    jobs = [job("a", workers=3), job("b", workers=4, submit=1), job("c", workers=1, submit=2)]
    lines = run(jobs, {"name": "n", "cpu": 4}, events=[{"at": 10, "cancel": "b"}, {"at": 50, "cancel": "a"}])
    assert starts(lines) == [(0.0, "a", "n*3"), (10.0, "c", "n")]
    assert when(lines, "cancelled") == [(10.0, "b"), (50.0, "a")]


@pytest.mark.parametrize("policy", ["maxmin", "fair"])
def test_room_that_was_kept_for_a_gang_goes_to_no_older_job_of_equal_share(policy: str) -> None:
    """All that runs ends at once, so that nobody holds anything: the gang for which room was kept is next all the same."""
    lines = run(
        [
            job("busy", tenant="a", workers=6, duration=10),
            *(job(f"s-{i}", tenant="a", submit=1, duration=10, workers=3) for i in range(3)),
            job("gang", tenant="b", submit=2, workers=8, duration=5),
        ],
        {"name": "n", "cpu": 8},
        policy={"name": policy, "preemption": False},
    )
    assert when(lines, "started")[:3] == [(0.0, "busy"), (10.0, "gang"), (15.0, "s-0")]


def test_a_job_shrunk_and_then_stopped_in_one_plan_is_only_stopped() -> None:
    """`first` needs one worker's room of the elastic job, `second` all of it: nobody resizes a job that ends anyway."""
    lines = run(
        [
            job("elastic", priority="low", workers="1:4", duration=100),
            job("first", submit=1, priority="high", workers=1, duration=10),
            job("second", submit=1, workers=3, duration=10),
        ],
        {"name": "n", "cpu": 4},
    )
    assert when(lines, "shrunk") == []
    assert when(lines, "preempted") == [(1.0, "elastic")]
    assert when(lines, "started")[1:3] == [(1.0, "first"), (1.0, "second")]
