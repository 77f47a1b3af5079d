"""Whatever happens to nodes and pods, in whatever order it is told: what is seen is what a look at all of it would see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.kubernetes.nodes.description import describe
from mlp_hub.executors.kubernetes.nodes.requests import Use, use_of
from mlp_hub.executors.kubernetes.nodes.table import NodeTable
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import SchedulingPolicy, Snapshot
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.admission.cache import KeptCore
from mlp_hub.service.admission.snapshot import Holders, SeenNodes
from support.cluster.kube_objects import LOST, READY, container, node_object, pod_object
from support.scheduler.scheduler_builders import tenant

NAMES = st.sampled_from(["a", "b", "c", "d"])
nodes = st.builds(
    node_object,
    NAMES,
    cpu=st.sampled_from(["2", "8", "7910m"]),
    gpus=st.integers(0, 2),
    labels=st.sampled_from([{}, {"zone": "z"}, {"nvidia.com/gpu.product": "A100"}]),
    taints=st.sampled_from([(), ({"key": "k", "effect": "NoSchedule"},)]),
    conditions=st.sampled_from([READY, LOST]),
    unschedulable=st.booleans(),
)
pods = st.builds(
    lambda name, node, cpu, gpus, owner: pod_object(
        name, node, container(cpu=cpu, memory="1Mi", gpu=str(gpus)), owner=owner
    ),
    st.sampled_from(["p", "q", "r", "s", "t"]),
    st.one_of(st.none(), NAMES),
    st.sampled_from(["0", "300m", "9"]),
    st.integers(0, 1),
    st.sampled_from([None, "DaemonSet"]),
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("node"), nodes),
        st.tuples(st.just("no node"), NAMES),
        st.tuples(st.just("pod"), pods),
        st.tuples(st.just("no pod"), st.sampled_from(["p", "q", "r", "s", "t"])),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=40,
)


@dataclass
class Cluster:
    """The truth, and a table that is told of each change of it."""

    table: NodeTable = field(default_factory=NodeTable)
    nodes: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, Use] = field(default_factory=dict)

    def happens(self, what: str, of: Any) -> None:
        match what:
            case "node":
                self.nodes[of["metadata"]["name"]] = describe(of)
                self.table.node_is(of["metadata"]["name"], describe(of))
            case "no node":
                self.nodes.pop(of, None)
                self.table.node_is(of, None)
            case "pod" | "no pod":
                name = of if what == "no pod" else of["metadata"]["name"]
                before, now = self.pods.pop(name, None), None if what == "no pod" else use_of(of)
                if now is not None:
                    self.pods[name] = now
                self.table.pod_is(before, now)

    def anew(self) -> Sequence[NodeInfo]:
        """Look at all of it."""
        table = NodeTable()
        for use in reversed(self.pods.values()):
            table.pod_is(None, use)
        for name, node in reversed(self.nodes.items()):
            table.node_is(name, node)
        table.renew()
        return table.view


@settings(max_examples=300)
@given(events)
def test_a_table_built_step_by_step_equals_the_full_view(told: list[tuple[str, Any]]) -> None:
    cluster = Cluster()
    for what, of in told:
        cluster.happens(what, of)
        if what == "look":
            before = cluster.table.view
            assert cluster.table.renew() == (tuple(before) != tuple(cluster.anew()))
            assert tuple(cluster.table.view) == tuple(cluster.anew())
            assert cluster.table.renew() is False
    cluster.table.renew()
    assert tuple(cluster.table.view) == tuple(cluster.anew())
    for use in list(cluster.pods.values()):
        cluster.table.pod_is(use, None)
    assert cluster.table._taken == {}


@settings(max_examples=150)
@given(events)
def test_the_kept_core_sees_the_same_as_a_rebuilt_one(told: list[tuple[str, Any]]) -> None:
    cluster, red = Cluster(), tenant("red")
    holders = Holders((), {}, {}, {"a": Resources(500, 1000)}, None)
    seen = SeenNodes()

    def core(infos: Sequence[NodeInfo]) -> KeptCore:
        found = Snapshot(tuple(SeenNodes().seen_nodes(infos, holders)), (red,), (), (), SchedulingPolicy())
        return KeptCore(found, 0.0, {}, JobBackoff(1.0, 2.0))

    kept = core(())
    for what, of in told:
        cluster.happens(what, of)
        if what == "look" and cluster.table.renew():
            kept.nodes_are(seen.seen_nodes(cluster.table.view, holders))
    cluster.table.renew()
    kept.nodes_are(seen.seen_nodes(cluster.table.view, holders))
    mine, anew = kept.core.state, core(cluster.anew()).core.state
    assert {n: mine.index.node(n) for n in mine.index.names} == {
        n: anew.index.node(n) for n in anew.index.names
    }
    assert {n: mine.index.free(n) for n in mine.index.names} == {
        n: anew.index.free(n) for n in anew.index.names
    }
    assert (mine.index.total, mine.index.kinds()) == (anew.index.total, anew.index.kinds())
    assert mine.index._shut == anew.index._shut
    assert mine.index.total == sum((n.allocatable for n in cluster.table.view if n.schedulable), ZERO)


def test_events_without_a_change_are_not_reported() -> None:
    cluster = Cluster()
    cluster.happens("node", node_object("a"))
    cluster.happens("pod", pod_object("p", "a", container(cpu="1")))
    assert cluster.table.renew()
    seen = cluster.table.view
    heartbeat = node_object("a")
    heartbeat["status"]["conditions"] = [{**READY[0], "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]
    cluster.happens("node", heartbeat)
    cluster.happens(
        "pod", pod_object("p", "a", container(cpu="1"), status={"phase": "Running", "podIP": "1"})
    )
    assert not cluster.table.renew()
    assert cluster.table.view is seen


def test_only_what_changed_is_made_again() -> None:
    cluster = Cluster()
    for name in "bca":
        cluster.happens("node", node_object(name))
    cluster.table.renew()
    before = cluster.table.view
    cluster.happens("pod", pod_object("p", "b", container(cpu="1")))
    cluster.table.renew()
    after = cluster.table.view
    assert [node.name for node in after] == ["a", "b", "c"]
    assert [now is then for now, then in zip(after, before, strict=True)] == [True, False, True]
