"""What a scenario does in virtual time: its lines, to the letter of the contract."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.policy import POLICIES
from mlp_hub.simulate.engine import Simulation, typical_of
from mlp_hub.simulate.scenario_reader import read, read_value
from support.scheduler.simulated import ONE, Line, job, run, story, told


def test_a_job_that_fits_starts_at_once_and_ends_when_its_work_is_done() -> None:
    lines = run(job("a", workers=2, submit=5))
    assert lines[:-1] == [
        {"t": 5.0, "event": "submitted", "job": "a"},
        {"t": 5.0, "event": "admitted", "job": "a"},
        {"t": 5.0, "event": "started", "job": "a", "placement": {"0": "n", "1": "n"}},
        {"t": 105.0, "event": "finished", "job": "a"},
    ]
    assert lines[-1]["summary"]["makespan_s"] == 100.0


def test_a_job_that_can_never_run_is_refused_with_the_numbers() -> None:
    lines = run(
        job("a", workers=5),
        job("b", gpu=1, gpu_kind="a100"),
        job("c"),
        tenants=[{"name": "red", "quota": {"cpu": 4}}],
    )
    assert told(lines, "reason") == [
        (0.0, "submitted", "a", None),
        (0.0, "refused", "a", "ExceedsMaxQuota"),
        (0.0, "submitted", "b", None),
        (0.0, "refused", "b", "NoMatchingFlavor"),
        (0.0, "submitted", "c", None),
        (0.0, "admitted", "c", None),
        (0.0, "started", "c", None),
        (100.0, "finished", "c", None),
    ]
    assert lines[1]["message"].startswith("Needs 5 cpu, red may use 4.")
    assert lines[-1]["summary"]["jobs"] == 3


def test_within_one_instant_ends_come_first_then_events_then_submissions() -> None:
    lines = run(
        job("a", workers=4),
        job("b", workers=4, submit=100),
        job("c", workers=4, submit=50),
        events=[{"at": 100, "cancel": "c"}],
    )
    assert told(lines)[4:] == [
        (50.0, "waiting", "c"),
        (100.0, "finished", "a"),
        (100.0, "cancelled", "c"),
        (100.0, "submitted", "b"),
        (100.0, "admitted", "b"),
        (100.0, "started", "b"),
        (200.0, "finished", "b"),
    ]


def test_jobs_submitted_together_go_in_the_order_of_the_file() -> None:
    lines = run(job("z", count=11, workers=4), job("a", workers=4), policy={"name": "fifo"})
    assert [x["job"] for x in lines[:-1] if x["event"] == "started"] == [f"z-{i}" for i in range(11)] + ["a"]


def test_a_cancelled_job_gives_back_what_it_held_and_one_not_yet_submitted_never_starts() -> None:
    lines = run(
        job("a", workers=4),
        job("b", workers=4, submit=1),
        job("c", submit=200),
        events=[{"at": 10, "cancel": "a"}, {"at": 20, "cancel": "c"}, {"at": 400, "cancel": "b"}],
    )
    assert story(lines, "a")[-1] == (10.0, "cancelled")
    assert story(lines, "b")[-2:] == [(10.0, "started"), (110.0, "finished")]
    assert story(lines, "c") == [(200.0, "submitted"), (200.0, "cancelled")]


def test_a_lost_node_takes_whole_gangs_with_it_and_they_start_again_from_nothing() -> None:
    lines = run(
        job("a", workers=6),
        job("b", workers=1),
        nodes=[{"name": "n", "count": 2, "cpu": 4}],
        events=[{"at": 30, "node_down": "n-0"}, {"at": 40, "node_down": "n-0"}, {"at": 50, "node_up": "n-0"}],
        policy={"placement": "packing"},
    )
    assert story(lines, "a") == [
        (0.0, "submitted"),
        (0.0, "admitted"),
        (0.0, "started"),
        (30.0, "evicted"),
        (30.0, "requeued"),
        (30.0, "waiting"),
        (50.0, "admitted"),
        (50.0, "started"),
        (150.0, "finished"),
    ]
    evicted = next(x for x in lines if x.get("event") == "evicted")
    assert evicted["reason"] == "NodeLost"
    assert evicted["message"] == "node n-0 was lost; all its workers (6) stop, and start again together"
    summary = lines[-1]["summary"]
    assert summary["lost_work_s"] >= 180.0
    assert summary["preemptions"] == 0


def test_a_checkpoint_keeps_work_and_a_restart_costs_what_it_costs() -> None:
    lines = run(
        job("a", workers=2, checkpoint_every=30),
        policy={"restart_cost_s": 7},
        events=[
            {"at": 75, "node_down": "n"},
            {"at": 80, "node_up": "n"},
            {"at": 100, "node_down": "n"},
            {"at": 101, "node_up": "n"},
        ],
    )
    # 60 s kept of 75, then 13 s of work in an attempt of 20 s keep nothing more
    assert story(lines, "a")[-1] == (101 + 7 + 40.0, "finished")
    assert lines[-1]["summary"]["lost_work_s"] == 2 * (15 + 13)


def test_a_checkpoint_at_every_moment_keeps_all_work() -> None:
    events = [{"at": 75, "node_down": "n"}, {"at": 80, "node_up": "n"}]
    lines = run(job("a", checkpoint_every=1e-308), events=events)
    assert story(lines, "a")[-1] == (80 + 25.0, "finished")
    assert lines[-1]["summary"]["lost_work_s"] == 0


def test_a_time_limit_ends_a_job_that_needs_more_as_failed() -> None:
    lines = run(job("a", time_limit=60), job("b", time_limit=100))
    assert lines[-3] == {
        "t": 60.0,
        "event": "failed",
        "job": "a",
        "reason": "TimeLimit",
        "message": "ran into its time limit of 60 s; it needs 100 s",
    }
    assert lines[-2] == {"t": 100.0, "event": "finished", "job": "b"}
    assert lines[-1]["summary"]["finished"] == 1


def test_a_time_limit_counts_for_each_attempt() -> None:
    lines = run(
        job("a", time_limit=110),
        events=[{"at": 90, "node_down": "n"}, {"at": 90, "node_up": "n"}],
    )
    assert story(lines, "a")[-1] == (190.0, "finished")


def test_an_elastic_job_does_its_work_at_the_rate_of_its_workers() -> None:
    lines = run(job("a", workers="1:4"), job("b", workers=2, submit=0), policy={"name": "fifo"})
    a = [(x["t"], x["event"], len(x.get("placement", ()))) for x in lines[:-1] if x["job"] == "a"]
    work, at, workers = 0.0, 0.0, 0
    for t, event, placed in a:
        work += (t - at) * workers
        at = t
        if event in ("started", "grown", "shrunk"):
            workers = placed
    assert a[-1][1] == "finished"
    assert work == pytest.approx(400.0)
    assert story(lines, "b")[-1][1] == "finished"


def test_an_elastic_job_grows_when_others_end() -> None:
    lines = run(job("b", workers=2), job("a", workers="1:4"))
    assert [
        (x["t"], x["event"], x["placement"]) for x in lines[:-1] if x["job"] == "a" and "placement" in x
    ] == [
        (0.0, "started", {"0": "n", "1": "n"}),
        (100.0, "grown", dict.fromkeys("0123", "n")),
    ]
    assert story(lines, "a")[-1] == (150.0, "finished")


def test_lent_quota_is_taken_back_and_the_victim_keeps_its_age() -> None:
    lines = run(
        job("a", workers=4, tenant="red"),
        job("b", workers=4, tenant="red"),
        job("c", workers=4, tenant="blue", submit=10),
        nodes=[{"name": "n", "count": 2, "cpu": 4}],
        tenants=[{"name": t, "cohort": "main", "quota": {"cpu": 4}} for t in ("red", "blue")],
    )
    at_ten = [x for x in told(lines) if x[0] == 10.0]
    assert [x[1] for x in at_ten] == ["submitted", "preempted", "requeued", "admitted", "started", "waiting"]
    victim = at_ten[1][2]
    assert victim in ("a", "b")
    assert at_ten[2][2] == at_ten[-1][2] == victim
    preempted = next(x for x in lines if x.get("event") == "preempted")
    assert preempted["reason"]
    assert "c" in preempted["message"]
    summary = lines[-1]["summary"]
    assert (summary["preemptions"], summary["lost_work_s"]) == (1, 40.0)
    assert summary["per_tenant"]["red"]["preemptions"] == 1
    assert story(lines, victim)[-1] == (200.0, "finished")


def test_without_preemption_nobody_is_stopped() -> None:
    lines = run(
        job("a", workers=4, priority="low"),
        job("b", workers=4, priority="high", submit=10),
        policy={"preemption": False},
    )
    assert story(lines, "b")[-2:] == [(100.0, "started"), (200.0, "finished")]


def test_a_quota_that_grows_starts_who_waits_for_it() -> None:
    lines = run(
        job("a", workers=2),
        job("b", workers=2, submit=1),
        tenants=[{"name": "red", "quota": {"cpu": 2}}],
        events=[{"at": 50, "tenant": "red", "quota": {"cpu": 4}}],
    )
    assert story(lines, "b") == [
        (1.0, "submitted"),
        (1.0, "waiting"),
        (50.0, "admitted"),
        (50.0, "started"),
        (150.0, "finished"),
    ]


def test_a_quota_that_shrinks_refuses_what_is_submitted_later() -> None:
    lines = run(
        job("a", workers=2),
        job("b", workers=2, submit=20),
        tenants=[{"name": "red", "quota": {"cpu": 2, "ram": 1000}}],
        events=[{"at": 10, "tenant": "red", "quota": {"cpu": 1}}],
    )
    assert story(lines, "a")[-1] == (100.0, "finished")
    assert story(lines, "b") == [(20.0, "submitted"), (20.0, "refused")]


def test_a_run_stops_at_until_and_unfinished_work_counts_up_to_then() -> None:
    lines = run(job("a", workers=4), job("b", workers=4), job("c", submit=60), until=50)
    assert told(lines)[-1][0] <= 50.0
    summary = lines[-1]["summary"]
    assert (summary["makespan_s"], summary["jobs"], summary["finished"]) == (50.0, 2, 0)
    assert summary["utilization"]["cpu"] == 1.0
    assert summary["per_tenant"]["red"]["cpu_s"] == 200.0


def test_a_run_ends_where_nothing_can_happen_any_more() -> None:
    lines = run(job("a"), job("b", submit=200), events=[{"at": 150, "node_down": "n"}])
    assert told(lines)[-1][:3] == (200.0, "waiting", "b")
    assert lines[-1]["summary"]["finished"] == 1


def test_a_job_without_any_work_ends_in_the_instant_in_which_it_starts() -> None:
    lines = run(job("a", duration=0, workers=4), job("b", duration=0, workers=4))
    assert {x["t"] for x in lines[:-1]} == {0.0}
    assert lines[-1]["summary"]["finished"] == 2


def test_an_empty_scenario_has_a_summary() -> None:
    lines = run(nodes=[], tenants=[])
    assert [*lines[0]] == ["summary"]
    assert lines[0]["summary"]["jobs"] == 0
    assert run(job("a"), nodes=[])[1]["event"] == "refused"


def test_the_same_file_gives_the_same_lines() -> None:
    text = json.dumps(
        {
            "version": 1,
            "policy": {"placement": "random", "seed": 3},
            "nodes": [{"name": "n", "count": 4, "cpu": 4, "gpu": 2}],
            "tenants": [{"name": t, "cohort": "c", "quota": {"cpu": 8}} for t in ("red", "blue")],
            "jobs": [job(f"j{i}", tenant=("red", "blue")[i % 2], workers=i % 5 + 1, gpu=0.5 * (i % 2), submit=i * 7 % 40) for i in range(30)],
        }
    )  # fmt: skip
    first, second = (list(Simulation(read(text)).lines()) for _ in range(2))
    assert first == second


def test_lines_are_made_as_they_are_asked_for() -> None:
    lines = Simulation(read_value({"version": 1, "nodes": [ONE], "tenants": [{"name": "red"}], "jobs": [job("a", count=250_000, every=1000)]})).lines()  # fmt: skip
    assert [next(lines)["job"] for _ in range(8)] == ["a-0"] * 4 + ["a-1"] * 4


def test_cycles_are_timed_by_the_clock_that_is_given() -> None:
    ticks = iter(range(1000))
    scenario = read_value({"version": 1, "nodes": [ONE], "tenants": [{"name": "red"}], "jobs": [job("a")]})
    *_, last = Simulation(scenario, clock=lambda: next(ticks) / 1000).lines()
    assert (last["summary"]["cycles"], last["summary"]["cycle_p50_ms"]) == (2, 1.0)
    assert run(job("a"))[-1]["summary"]["cycle_p50_ms"] is None


def test_the_typical_shapes_are_those_of_most_ranks() -> None:
    jobs = [job("a", count=96, gpu=1), job("b", count=4, cpu=2)]
    scenario = read_value({"version": 1, "nodes": [ONE], "tenants": [{"name": "red"}], "jobs": jobs})
    assert typical_of(scenario) == ((Demand(cpu=1000, ram=100, whole=1), 1.0),)


JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit": st.integers(0, 50),
            "duration": st.integers(0, 60),
            "workers": st.sampled_from([1, 2, 3, 5, 8, "1:4", "2:6"]),
            "cpu": st.sampled_from([0.5, 1, 2]),
            "gpu": st.sampled_from([0, 0.5, 1, 2]),
            "tenant": st.sampled_from(["red", "blue"]),
            "priority": st.sampled_from(["low", "normal", "high"]),
            "time_limit": st.sampled_from([None, 30, 100]),
            "checkpoint_every": st.sampled_from([None, 10]),
            "topology": st.sampled_from([None, "same-node", "spread"]),
        }
    ),
    max_size=12,
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 120), st.sampled_from(["down", "up", "quota", "cancel"]), st.integers(0, 3)), max_size=6
)  # fmt: skip
NEXT = {
    None: {"submitted"},
    "submitted": {"refused", "waiting", "admitted", "cancelled"},
    "waiting": {"waiting", "admitted", "cancelled"},
    "admitted": {"started"},
    "running": {"grown", "shrunk", "preempted", "evicted", "finished", "failed", "cancelled"},
    "stopped": {"requeued"},
    "requeued": {"waiting", "admitted", "cancelled", "requeued"},
}
STATE = {
    "started": "running",
    "grown": "running",
    "shrunk": "running",
    "preempted": "stopped",
    "evicted": "stopped",
}


@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, events=EVENTS, policy=st.sampled_from(list(POLICIES)))
def test_whatever_happens_every_job_has_a_story_that_makes_sense(
    jobs: list[Line], events: list[tuple[int, str, int]], policy: str
) -> None:
    happen = {
        "down": lambda at, n: {"at": at, "node_down": f"n-{n}"},
        "up": lambda at, n: {"at": at, "node_up": f"n-{n}"},
        "quota": lambda at, n: {"at": at, "tenant": "red", "quota": {"cpu": n}},
        "cancel": lambda at, n: {"at": at, "cancel": f"j{n % len(jobs)}"},
    }
    lines = run(
        *({"name": f"j{i}", **j} for i, j in enumerate(jobs)),
        nodes=[{"name": "n", "count": 4, "cpu": 4, "gpu": 2}],
        tenants=[{"name": t, "cohort": "c", "quota": {"cpu": 8}} for t in ("red", "blue")],
        events=[happen[what](at, n) for at, what, n in events if jobs or what != "cancel"],
        policy={"name": policy, "restart_cost_s": 1},
    )
    state: dict[str, str | None] = {}
    held: dict[str, Line] = {}
    ranks = {f"j{i}": j for i, j in enumerate(jobs)}
    at = 0.0
    for line in lines[:-1]:
        name, event = line["job"], line["event"]
        assert line["t"] >= at
        if line["t"] > at:
            _nothing_is_held_twice(held, ranks)
        at = line["t"]
        assert event in NEXT[state.get(name)], (name, state.get(name), event)
        state[name] = STATE.get(event, event)
        if "placement" in line:
            held[name] = line["placement"]
        elif event in ("preempted", "evicted", "finished", "failed", "cancelled"):
            held.pop(name, None)
        if event in ("refused", "waiting", "preempted", "evicted"):
            assert line["reason"]
            assert line["message"]
    assert not held
    json.dumps(lines, allow_nan=False)
    summary = lines[-1]["summary"]
    assert summary["jobs"] == len(jobs)
    assert 0.0 <= summary["utilization"]["cpu"] <= summary["allocation"]["cpu"] + 1e-6


def _nothing_is_held_twice(held: dict[str, Line], jobs: dict[str, Line]) -> None:
    for dimension, capacity in (("cpu", 4), ("gpu", 2)):
        used: dict[str, float] = {}
        for name, placement in held.items():
            for node in placement.values():
                used[node] = used.get(node, 0.0) + jobs[name][dimension]
        assert all(amount <= capacity for amount in used.values())


def test_a_reason_that_goes_and_comes_back_is_told_once_in_each_wait() -> None:
    nodes = [{"name": "n", "cpu": 4, "ram": 1000}]
    jobs = [
        job("half", cpu=2, duration=50, time_limit=50),
        job("long", cpu=2, duration=100, time_limit=100),
        job("wide", cpu=4, duration=10, time_limit=10, submit=1),
        job("small", cpu=1, duration=300, time_limit=500, submit=2),
        # takes what is kept for `wide` for a while, and gives it back in time: then nothing is free, and then it is kept again
        job("short", cpu=2, duration=20, time_limit=20, submit=51),
    ]
    scenario = read_value({"version": 1, "nodes": nodes, "tenants": [{"name": "red"}], "jobs": jobs})
    lines = list(Simulation(scenario).lines())
    told = [(line["t"], line["reason"]) for line in lines if line.get("job") == "small" and "reason" in line]
    assert told == [(2.0, "WaitingForResources"), (50.0, "Reserved")]
    assert [line["t"] for line in lines if (line.get("event"), line.get("job")) == ("started", "short")] == [
        51.0
    ]
