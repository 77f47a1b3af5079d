"""Nodes that join a cluster while jobs wait and run."""

from __future__ import annotations

from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Admit, SchedulingPolicy
from support.scheduler.scheduler_builders import job, node, runs, tenant

TENANTS = (tenant("red"), tenant("blue"))


def admitted(core, now):
    return {d.uid: d.placement for d in core.plan(now) if isinstance(d, Admit)}


def test_a_node_kept_for_a_tenant_that_joins_later_starts_what_waits_of_that_tenant_alone() -> None:
    core = Core(SchedulingPolicy(), (node("small", cpu=1),), TENANTS)
    core.submit(job("a", cpu=2, tenant="red"))
    core.submit(job("b", cpu=2, tenant="blue"))
    assert admitted(core, 0.0) == {}

    core.add_node(node("reds", cpu=4, taints=("tenant=red",)))

    assert admitted(core, 1.0) == {"a": ("reds",)}


def test_it_takes_jobs_that_are_submitted_after_it_joined() -> None:
    core = Core(SchedulingPolicy(), (), TENANTS)
    core.add_node(node("reds", cpu=1, taints=("tenant=red",)))
    core.submit(job("a", tenant="red"))

    assert admitted(core.fork(), 0.0) == {"a": ("reds",)}
    assert admitted(core, 0.0) == {"a": ("reds",)}


def test_running_jobs_keep_their_holdings_and_an_elastic_one_grows_onto_a_new_node() -> None:
    core = Core(SchedulingPolicy(), (node("small", cpu=1),), TENANTS)
    elastic = job("a", workers=1, workers_max=3, tenant="red")
    core.start(runs(elastic, "small"))
    before = core.running["a"]

    core.add_node(node("reds", cpu=2, taints=("tenant=red",)))
    assert core.running["a"] == before

    core.plan(1.0)
    assert sorted(core.running["a"].placement) == ["reds", "reds", "small"]
    core.end("a", 2.0)
    core.submit(job("b", workers=2, tenant="red"))
    core.submit(job("c", workers=1, tenant="blue"))
    assert set(admitted(core, 3.0)) == {"b", "c"}
