"""What the queue of one tenant goes by: priority and age, or age alone."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model import Admit, Decision, Preempt, SchedulingPolicy, Snapshot
from mlp_hub.scheduler.simulate.engine import Simulation
from mlp_hub.scheduler.simulate.errors import ScenarioError
from mlp_hub.scheduler.simulate.reading import read_value
from scheduler_builders import job, node, runs, snapshot, tenant

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


def test_where_all_jobs_stand_in_one_line_its_order_holds_for_every_queue() -> None:
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
    with pytest.raises(ScenarioError, match=r"queue_order.*choose one of priority, fifo"):
        read_value(scenario("random"))
