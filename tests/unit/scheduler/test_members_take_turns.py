"""Members of a tenant take turns where its queue is `fair` or `maxmin`: nobody's stream of jobs holds up a colleague."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.fairness.lines import MemberLines
from mlp_hub.scheduler.fairness.members import MemberKey
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import (
    Admit,
    Decision,
    PendingWorkload,
    Preempt,
    Resize,
    SchedulingPolicy,
    Wait,
)
from mlp_hub.scheduler.policy import JobKey
from mlp_hub.scheduler.workloads.pending import Awaits, Head, JobClass
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

TURNS = ("fair", "maxmin")


def admitted(plan: list[Decision]) -> list[str]:
    return [d.uid for d in plan if isinstance(d, Admit)]


def flood(user: str = "ann", count: int = 6, **more: Any) -> list[PendingWorkload]:
    return [job(f"{user}-{i}", user=user, at=float(i), **more) for i in range(count)]


@pytest.mark.parametrize("order", TURNS)
def test_a_colleague_is_next_whoever_submitted_before(order: str) -> None:
    waiting = (*flood(), job("bob-0", user="bob", at=99.0))
    s = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(tenant(queue_order=order),))
    assert admitted(plan_cycle(s, 100)) == ["ann-0", "bob-0"]


def test_by_age_the_flood_goes_first() -> None:
    waiting = (*flood(), job("bob-0", user="bob", at=99.0))
    s = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(tenant(),))
    assert admitted(plan_cycle(s, 100)) == ["ann-0", "ann-1"]


@pytest.mark.parametrize("order", TURNS)
def test_a_member_with_more_usage_waits_for_one_with_less(order: str) -> None:
    waiting = (job("ann-1", user="ann", at=0.0), job("bob-1", user="bob", at=9.0))
    running = (runs(job("ann-0", cpu=2, user="ann"), "n"), runs(job("bob-0", user="bob"), "n"))
    s = snapshot(*waiting, nodes=(node(cpu=4),), tenants=(tenant(queue_order=order),), running=running)
    assert admitted(plan_cycle(s, 10)) == ["bob-1"]


@pytest.mark.parametrize(("order", "first"), [("fair", "bob-1"), ("maxmin", "ann-1")])
def test_only_fair_sets_what_members_held_against_what_they_hold(order: str, first: str) -> None:
    red = tenant(queue_order=order, member_usage=(("ann", 100_000.0),))
    waiting = (job("ann-1", user="ann", at=0.0), job("bob-1", user="bob", at=9.0))
    running = (runs(job("bob-0", user="bob"), "n"),)
    s = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(red,), running=running)
    assert admitted(plan_cycle(s, 10)) == [first]


@pytest.mark.parametrize("order", TURNS)
def test_where_one_job_fills_the_quota_members_take_turns_too(order: str) -> None:
    core = Core(SchedulingPolicy(), (node(cpu=1),), (tenant(queue_order=order),))
    for waiting in (*flood(count=4), job("bob-0", user="bob", at=8.0), job("bob-1", user="bob", at=9.0)):
        core.submit(waiting)
    started: list[str] = []
    promised: list[str] = []
    for at in range(10, 70, 10):
        core.plan(at)
        started += core.running
        places = {wait.uid: wait.position for wait in core.verdicts(core.state.waiting).values()}
        promised.append(min(places, key=places.__getitem__, default=""))
        core.end(started[-1], at + 10)
    assert started == ["ann-0", "bob-0", "ann-1", "bob-1", "ann-2", "ann-3"]
    assert promised == [*started[1:], ""]  # who is told to be next is next


@pytest.mark.parametrize(("order", "shrunk"), [("priority", []), ("fair", ["el"]), ("maxmin", ["el"])])
def test_workers_above_a_colleagues_minimum_go_to_the_member_with_less_usage(
    order: str, shrunk: list[str]
) -> None:
    s = snapshot(
        job("anns", cpu=2, user="ann", at=1.0),
        nodes=(node(cpu=3),),
        tenants=(tenant(queue_order=order),),
        running=(runs(job("el", user="mal", workers_max=2, priority=200), "n", "n"),),
    )
    plan = plan_cycle(s, 2)
    assert [d.uid for d in plan if isinstance(d, Resize)] == shrunk
    assert admitted(plan) == (["anns"] if shrunk else [])


def test_the_usage_of_members_is_measured_and_passed_on() -> None:
    core = Core(SchedulingPolicy(half_life_s=100.0), (node(cpu=2),), (tenant(queue_order="fair"),))
    core.submit(job("ann-0", user="ann"))
    core.plan(0)
    core.end("ann-0", 50.0)
    ((red),) = core.snapshot(50.0).tenants
    ((user, value),) = red.member_usage
    # half of the machine for half a half-life: 0.5 * (1 - 2 ** -0.5) * 100 / ln 2
    assert (user, round(value, 3)) == ("ann", 21.128)
    rebuilt = Core.from_snapshot(core.snapshot(50.0), 50.0)
    for c in (core, rebuilt):
        c.submit(job("ann-1", user="ann", cpu=2, at=50.0))
        c.submit(job("bob-1", user="bob", cpu=2, at=51.0))
    assert admitted(core.plan(51)) == admitted(rebuilt.plan(51)) == ["bob-1"]


def test_a_member_s_own_jobs_go_by_priority() -> None:
    waiting = (job("older", at=0.0), job("urgent", at=1.0, priority=200))
    s = snapshot(*waiting, nodes=(node(cpu=1),), tenants=(tenant(queue_order="maxmin"),))
    assert admitted(plan_cycle(s, 2)) == ["urgent"]


@pytest.mark.parametrize(
    ("order", "user", "victims"),
    [
        ("priority", "bob", ["low"]),
        ("maxmin", "bob", ["low"]),  # bob holds nothing, ann two cores: his priority counts
        ("maxmin", "ann", ["low"]),  # of her own she may stop what she likes less
        ("priority", "cat", ["low"]),
        ("maxmin", "cat", []),  # cat would hold more than ann
    ],
)
def test_priority_counts_against_colleagues_who_hold_more(order: str, user: str, victims: list[str]) -> None:
    running = (
        runs(job("low", cpu=2, user="ann", priority=50, at=0.5), "n"),
        runs(job("big", cpu=4, user="cat", priority=200, preemptible=False), "m"),
    )
    s = snapshot(
        job("urgent", cpu=2, user=user, at=1.0, priority=200),
        nodes=(node(cpu=2), node("m", cpu=4)),
        tenants=(tenant(queue_order=order),),
        running=running,
    )
    assert [d.uid for d in plan_cycle(s, 2) if isinstance(d, Preempt)] == victims


@pytest.mark.parametrize(("order", "grown"), [("priority", "ann-0"), ("maxmin", "bob-0")])
def test_unclaimed_capacity_goes_to_the_member_with_the_smallest_share(order: str, grown: str) -> None:
    running = (
        runs(job("ann-0", user="ann", workers_max=3), "n", since=0.0),
        runs(job("bob-0", user="bob", workers_max=3), "n", since=1.0),
        runs(job("ann-9", user="ann", preemptible=False), "n", since=2.0),
    )
    s = snapshot(nodes=(node(cpu=4),), tenants=(tenant(queue_order=order),), running=running)
    assert [d.uid for d in plan_cycle(s, 10) if isinstance(d, Resize)] == [grown]


def test_places_in_the_queue_are_told_turn_by_turn() -> None:
    waiting = (
        *flood(count=4, cpu=4),
        job("bob-0", user="bob", at=9.0, cpu=4),
        job("bob-1", user="bob", at=9.5, cpu=4),
    )
    running = (runs(job("run", user="cat", cpu=4), "n"),)
    s = snapshot(*waiting, tenants=(tenant(queue_order="maxmin"),), running=running, preemption=False)
    places = {d.uid: d.position for d in plan_cycle(s, 10) if isinstance(d, Wait)}
    assert places == {"ann-0": 1, "bob-0": 2, "ann-1": 3, "bob-1": 4, "ann-2": 5, "ann-3": 6}


@pytest.mark.parametrize("order", TURNS)
def test_a_queue_in_use_may_change_to_turns_and_back(order: str) -> None:
    core = Core(SchedulingPolicy(), (node(cpu=1),), (tenant(),))
    core.submit(job("now", user="ann"))
    assert admitted(core.plan(0)) == ["now"]
    for waiting in (*flood(), job("bob-0", user="bob", at=99.0)):
        core.submit(waiting)
    core.plan(100)
    core.set_tenant(tenant(queue_order=order))
    core.plan(101)
    core.end("now", 102.0)
    assert admitted(core.plan(102)) == ["bob-0"]
    core.set_tenant(tenant())
    core.end("bob-0", 103.0)
    assert admitted(core.plan(103)) == ["ann-0"]
    assert core.snapshot(103.0).tenants[0].member_usage == ()


@pytest.mark.parametrize("policy", ["fifo", "priority", "finish"])
def test_members_take_no_turns_if_all_jobs_are_in_one_line(policy: str) -> None:
    waiting = (*flood(), job("bob-0", user="bob", at=99.0))
    s = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(tenant(queue_order="maxmin"),), name=policy)
    assert admitted(plan_cycle(s, 100)) == ["ann-0", "ann-1"]


def test_a_large_job_gets_its_turn_although_colleagues_keep_submitting() -> None:
    small = [{"name": f"s{i}", "user": "bob", "submit": i, "duration": 4, "cpu": 1} for i in range(80)]
    large = [{"name": "large", "user": "ann", "submit": 10, "duration": 4, "cpu": 4}]
    scenario = {
        "version": 1,
        "policy": {"preemption": False},
        "nodes": [{"name": "n", "cpu": 4}],
        "tenants": [{"name": "red", "queue_order": "maxmin"}],
        "jobs": small + large,
    }
    starts = {
        line["job"]: line["t"]
        for line in Simulation(read_value(scenario)).lines()
        if line.get("event") == "started"
    }
    assert starts["large"] <= 20
    assert len(starts) == 81


# --- the lines of the members against sorting them anew at each step


class PlainLines:
    """The same by looking at all."""

    def __init__(self, lanes: dict[str, list[Head]], share: dict[str, float]) -> None:
        self.left = sorted(head for lane in lanes.values() for head in lane)
        self.share = share

    def next(self) -> Head | None:
        firsts: dict[str, Head] = {}
        for head in self.left:
            firsts.setdefault(head[2].user, head)
        ordered = sorted(firsts.items(), key=lambda item: (self.share[item[0]], item[1][0][0][1], item[0]))
        return ordered[0][1] if ordered else None


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1),
    st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=12, max_size=12),
)
def test_lines_of_members_serve_as_sorting_them_each_time_does(
    spec: dict[str, list[int]], gains: list[float]
) -> None:
    share = dict.fromkeys("abc", 0.0)
    lanes: dict[str, list[Head]] = {}
    serial = 0
    for user, ats in spec.items():
        for at in ats:
            cls = JobClass("red", Demand(cpu=serial), 1, 1, 0, None, 0, user, serial)
            cls.add((0.0, float(at), f"j{serial}"), f"j{serial}")
            lanes.setdefault(user, []).append((cls.jobs[0], serial, cls))
            serial += 1
        lanes[user].sort()

    def turn(user: str, head: JobKey) -> MemberKey:
        return (share[user], 0.0, head[1], user)

    plain, lines = PlainLines(lanes, share), MemberLines({u: lane[:] for u, lane in lanes.items()}, turn)
    for gain in gains:
        due = plain.next()
        assert lines.next() == (None if due is None else due[0][0])
        cls = lines.pop()
        assert cls is (None if due is None else due[2])
        if due is not None:
            plain.left.remove(due)
            share[due[2].user] += gain
    assert all(cls.awaits is Awaits.NOTHING for lane in lanes.values() for _, _, cls in lane)


def test_a_queue_that_is_copied_keeps_its_turns() -> None:
    core = Core(SchedulingPolicy(), (node(cpu=1),), (tenant(queue_order="fair"),))
    core.submit(job("now", user="ann"))
    core.plan(0)
    for waiting in (*flood(), job("bob-0", user="bob", at=9.0)):
        core.submit(waiting)
    fork = core.fork()
    fork.end("now", 10.0)
    assert admitted(fork.plan(10)) == ["bob-0"]
    assert core.running.keys() == {"now"}
    core.end("now", 10.0)
    assert admitted(core.plan(10)) == ["bob-0"]
    assert replace(core.snapshot(10.0), promised=None) == replace(fork.snapshot(10.0), promised=None)


def test_many_members_are_told_their_places_in_rounds() -> None:
    core = Core(SchedulingPolicy(preemption=False), (node(cpu=1),), (tenant(queue_order="maxmin"),))
    core.submit(job("now", user="zed"))
    core.plan(0)
    for user in range(30):
        for n in range(user % 3 + 1):
            core.submit(job(f"{user:02}-{n}", user=f"u{user:02}", at=float(n * 100 + user)))
    places = {d.uid: d.position for d in core.plan(500) if isinstance(d, Wait)}
    ordered = sorted(places, key=places.__getitem__)
    assert [places[uid] for uid in ordered] == list(range(1, 61))
    assert ordered == sorted(places, key=lambda uid: (int(uid[3:]), uid))


@pytest.mark.parametrize("others", [0, 23, 30, 60])
def test_nobody_who_may_stop_others_is_passed_over_for_ever(others: int) -> None:
    names = ["u0", "cat", "dan", *(f"b{n}" for n in range(others))]
    core = Core(
        SchedulingPolicy(name="maxmin"),
        (node(cpu=10), node("m", gpu=4, cpu=0)),
        tuple(tenant(name) for name in names),
    )
    core.start(runs(job("low", tenant="u0", priority=50), "n"))
    core.start(runs(job("cats", tenant="cat", cpu=4, preemptible=False), "n"))
    core.start(runs(job("fill", tenant="dan", cpu=5, preemptible=False), "n"))
    for n in range(others):  # none of them fits
        core.submit(job(f"b{n}", tenant=f"b{n}", cpu=2, ram=n + 2, priority=200, at=float(n)))
    core.submit(job("cat1", tenant="cat", at=50.0))
    core.plan(100)
    core.submit(job("g", tenant="u0", cpu=0, gpu=4, at=60.0))  # with that its tenant holds the larger share
    found = admitted(core.plan(101))
    core.submit(
        job("new", tenant="dan", cpu=0, at=102.0)
    )  # one thing happens, then nothing but what the core asks for
    now = 102.0
    found += admitted(core.plan(now))
    while (wake := core.next_wake()) is not None and now < 1000:
        now = max(wake, now)
        found += admitted(core.plan(now))
    assert set(found) == {"g", "new", "cat1"}
