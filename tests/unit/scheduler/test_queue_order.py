"""What the queue of one tenant goes by: priority and age, or age alone."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model.types import (
    Admit,
    Decision,
    PendingWorkload,
    Preempt,
    SchedulingPolicy,
    Snapshot,
)
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.errors import ScenarioError
from mlp_hub.simulate.scenario_reader import read_value
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

ONE = (node(cpu=1),)


def admitted(plan: list[Decision]) -> list[str]:
    return [d.uid for d in plan if isinstance(d, Admit)]


def stopped(plan: list[Decision]) -> list[str]:
    return [d.uid for d in plan if isinstance(d, Preempt)]


def of(order: str, **more: Any) -> Snapshot:
    waiting = (job("older", at=0.0, priority=100), job("urgent", at=1.0, priority=200))
    return snapshot(*waiting, nodes=ONE, tenants=(tenant(queue_order=order),), **more)


def test_a_queue_by_priority_starts_the_urgent_job_first() -> None:
    assert admitted(plan_cycle(of("priority"), 2)) == ["urgent"]


def test_a_queue_by_age_starts_the_older_job_first() -> None:
    assert admitted(plan_cycle(of("fifo"), 2)) == ["older"]


@pytest.mark.parametrize("order", ["priority", "fifo", "fair", "maxmin"])
def test_a_job_put_first_starts_first_in_every_order_of_the_queue(order: str) -> None:
    s = snapshot(
        job("older", at=0.0, priority=200),
        job("second", at=1.0, place=-1),
        job("first", at=2.0, place=-2),
        nodes=ONE,
        tenants=(tenant(queue_order=order),),
    )
    assert admitted(plan_cycle(s, 3)) == ["first"]


@pytest.mark.parametrize("policy", ["fair", "maxmin", "fifo", "priority", "finish"])
def test_a_job_put_first_passes_no_job_of_another_team(policy: str) -> None:
    tenants = (tenant("blue"), tenant("red"))
    waiting = (job("blues", at=0.0, tenant="blue"), job("reds", at=1.0))
    placed = (waiting[0], job("reds", at=1.0, place=-5))
    with_policy: dict[str, Any] = {"nodes": ONE, "tenants": tenants, "name": policy}
    assert admitted(plan_cycle(snapshot(*waiting, **with_policy), 2)) == ["blues"]
    assert admitted(plan_cycle(snapshot(*placed, **with_policy), 2)) == ["blues"]


def test_a_job_put_first_is_still_stopped_for_a_higher_priority_of_another_team() -> None:
    def victims(place: int | None) -> list[str]:
        s = snapshot(
            job("urgent", at=1.0, priority=200, tenant="blue"),
            nodes=(node(cpu=2),),
            tenants=(tenant("blue", cpu=1), tenant("red", cpu=1)),
            running=(runs(job("big", cpu=2, priority=50, at=0.5, place=place), "n"),),
        )
        return stopped(plan_cycle(s, 2))

    assert victims(-1) == victims(None)


@pytest.mark.parametrize(("order", "victims"), [("priority", ["low"]), ("fifo", [])])
def test_priority_stops_nobody_in_a_queue_by_age(order: str, victims: list[str]) -> None:
    s = snapshot(
        job("urgent", at=1.0, priority=200),
        nodes=ONE,
        tenants=(tenant(queue_order=order),),
        running=(runs(job("low", priority=50, at=0.5), "n"),),
    )
    assert stopped(plan_cycle(s, 2)) == victims


def test_a_queue_by_age_takes_back_what_its_tenant_lent_all_the_same() -> None:
    s = snapshot(
        job("own", cpu=2, at=1.0, priority=50),
        nodes=(node(cpu=2),),
        tenants=(
            tenant(cpu=2, cohort="main", queue_order="fifo"),
            tenant("blue", cpu=0, cohort="main"),
        ),
        running=(runs(job("guest", cpu=2, tenant="blue", priority=200), "n"),),
    )
    plan = plan_cycle(s, 2)
    assert (stopped(plan), admitted(plan)) == (["guest"], ["own"])


def test_each_tenant_has_its_own_order() -> None:
    tenants = (tenant(queue_order="fifo"), tenant("blue"))
    waiting = [
        job(f"{name}-{kind}", tenant=name, at=at, priority=priority)
        for name in ("red", "blue")
        for kind, at, priority in (("older", 0.0, 100), ("urgent", 1.0, 200))
    ]
    plan = plan_cycle(snapshot(*waiting, nodes=(node(cpu=2),), tenants=tenants), 2)
    assert sorted(admitted(plan)) == ["blue-urgent", "red-older"]


def test_the_order_of_a_single_line_applies_to_every_queue() -> None:
    assert admitted(plan_cycle(of("fifo", name="priority"), 2)) == ["urgent"]
    assert admitted(plan_cycle(of("priority", name="fifo"), 2)) == ["older"]


def test_a_queue_whose_order_changes_is_put_in_the_new_one() -> None:
    core = Core(SchedulingPolicy(), ONE, (tenant(),))
    for waiting in of("priority").waiting:
        core.submit(waiting)
    core.set_tenant(tenant(queue_order="fifo"))
    assert [d.uid for d in core.plan(2) if isinstance(d, Admit)] == ["older"]


def scenario(order: str) -> dict[str, Any]:
    line = {"tenant": "red", "duration": 10, "cpu": 1}
    return {
        "version": 1,
        "policy": {"preemption": False},
        "nodes": [{"name": "n", "cpu": 1}],
        "tenants": [{"name": "red", "queue_order": order}],
        "jobs": [
            {"name": "first", "submit": 0, **line},
            {"name": "older", "submit": 1, **line},
            {"name": "urgent", "submit": 2, "priority": "high", **line},
        ],
    }


@pytest.mark.parametrize(
    ("order", "starts"),
    [("priority", ["first", "urgent", "older"]), ("fifo", ["first", "older", "urgent"])],
)
def test_a_scenario_says_what_a_queue_goes_by(order: str, starts: list[str]) -> None:
    lines = list(Simulation(read_value(scenario(order))).lines())
    assert [line["job"] for line in lines if line.get("event") == "started"] == starts


def test_a_scenario_with_an_unknown_order_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"queue_order.*one of priority, fifo"):
        read_value(scenario("random"))


# -------------------------------------------- what goes first in the line of its tenant


def asks(uid: str, at: float, name: str = "red") -> PendingWorkload:
    return job(uid, at=at, tenant=name, kind="server", goes_first=True, gives_way=False, preemptible=False)


def line(policy: str, *waiting: PendingWorkload) -> list[str]:
    return admitted(
        plan_cycle(snapshot(*waiting, nodes=ONE, tenants=(tenant(), tenant("blue")), name=policy), 10)
    )


@pytest.mark.parametrize("policy", ["fair", "maxmin"])
def test_a_server_is_ahead_of_older_and_more_urgent_jobs_of_its_tenant(policy: str) -> None:
    assert line(policy, job("older", at=1.0, priority=200), asks("server", at=5.0)) == ["server"]


@pytest.mark.parametrize("policy", ["fair", "maxmin"])
def test_of_two_servers_of_a_tenant_the_older_one_is_first(policy: str) -> None:
    assert line(policy, asks("a", at=6.0), asks("b", at=5.0)) == ["b"]


@pytest.mark.parametrize("policy", ["fifo", "priority", "finish"])
@pytest.mark.parametrize(("at", "first"), [(5.0, "theirs"), (1.0, "server")])
def test_where_all_tenants_wait_in_one_line_a_server_passes_no_older_job_of_another(
    policy: str, at: float, first: str
) -> None:
    assert line(policy, job("theirs", at=2.0, tenant="blue"), asks("server", at=at)) == [first]


@pytest.mark.parametrize("policy", ["fifo", "priority", "finish"])
@pytest.mark.parametrize(("at", "first"), [(1.0, "server"), (3.0, "theirs")])
@pytest.mark.parametrize("alike", [True, False])
def test_a_server_in_the_common_line_has_the_place_of_its_tenants_oldest_job(
    policy: str, at: float, first: str, alike: bool
) -> None:
    ours = job("ours", at=at, ram=100 if alike else 90)
    theirs = job("theirs", at=2.0, tenant="blue")
    assert line(policy, ours, theirs, asks("server", at=5.0)) == [first]


def test_in_the_line_of_all_tenants_a_server_stops_nothing_of_others_that_came_long_before() -> None:
    policy = {"name": "priority", "aging_s": 1.0}

    def victims(at: float) -> list[str]:
        s = snapshot(
            asks("server", at=at),
            nodes=ONE,
            tenants=(tenant(), tenant("blue")),
            running=(runs(job("theirs", at=0.0, tenant="blue", priority=50), "n"),),
            **policy,
        )
        return stopped(plan_cycle(s, at + 1))

    assert (victims(10.0), victims(1000.0)) == (["theirs"], [])
