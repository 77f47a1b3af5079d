"""A hub in namespaces that an administrator made: what it gives out, makes and asks for, without rights in the whole cluster."""

from __future__ import annotations

from typing import Any, cast

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.gang import describe
from mlp_hub.executors.kubernetes.nodes.given_capacity import GivenCapacity, node
from mlp_hub.executors.kubernetes.nodes.gpus import gpus_of
from mlp_hub.executors.kubernetes.nodes.placed import PlacedNodes
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.tenancy import given
from mlp_hub.executors.kubernetes.tenancy.tenant import for_all, for_tenant
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NODES, POD_GROUPS, PODS, namespace_of
from mlp_hub.kubernetes.reflector import Reflector, ReflectorOfMany, Selection, reflector
from support.cluster.gangs import launch, pods_in
from support.cluster.kube_installation import installation

AT = installation(
    namespaces=("mlp-default", "mlp-red"),
    home="platform",
    capacity={"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"},
)
BOTH = OperatorWays(frozenset({kinds.JOBS, POD_GROUPS}))


def test_the_capacity_is_one_node_with_the_named_amounts() -> None:
    capacity = GivenCapacity(AT)
    [one] = capacity.nodes()
    assert one.name == "capacity"
    assert one.ready
    assert one.capacity.but(kinds=()) == Resources(cpu=64_000, ram=256 * 1024, gpu=8_000)
    assert capacity.device("capacity") == "nvidia.com/gpu"


def test_gpus_of_notebooks_are_asked_for_by_the_named_resource_on_any_node() -> None:
    found = gpus_of([node(AT)], 2, "", AT)
    assert (found.device, found.count, found.terms) == ("nvidia.com/gpu", 2, ())


def test_a_node_that_the_hub_cannot_read_is_not_taken_for_lost() -> None:
    capacity = GivenCapacity(AT)
    assert PlacedNodes(capacity.nodes, capacity.device, chosen=False).silent({"capacity", "node-7"}) == set()
    assert PlacedNodes(capacity.nodes, capacity.device).silent({"capacity", "node-7"}) == {"node-7"}


def test_pods_name_no_node_no_priority_class_and_no_queue_that_nobody_made() -> None:
    spec = launch("plain", "print(1)", 2, placement=("capacity",) * 2)
    gang = describe(spec, AT, BOTH, "train")
    [pod] = pods_in(gang.main[1])
    assert "nodeAffinity" not in pod["spec"].get("affinity", {})
    assert pod["spec"]["priorityClassName"] == ""
    [group] = [each for kind, each in gang.beside if kind == POD_GROUPS]
    assert group["spec"]["queue"] == "default"
    [own] = pods_in(describe(spec, installation(), BOTH, "train").main[1])
    assert own["spec"]["affinity"]["nodeAffinity"]
    assert own["spec"]["priorityClassName"] == "mlp-job"


def test_only_objects_within_the_namespace_are_made() -> None:
    place = TenantPlace("red", Quota(cpu=4000), ("ann",))
    made = for_tenant(AT, place, volcano=True)
    assert {kind for kind, _ in made} == set(given.KEPT)
    assert {namespace_of(each) for _, each in made} == {"mlp-red"}
    assert for_all(AT, "service") == []


def test_a_namespace_that_is_not_listed_is_named_with_its_command() -> None:
    assert given.not_listed(AT, "red") is None
    assert given.not_listed(installation(), "green") is None
    assert str(given.not_listed(AT, "green")) == (
        "team green has no namespace in the cluster, and this hub may not make one: ask an administrator to run "
        "`kubectl create namespace mlp-green && kubectl label namespace mlp-green app.kubernetes.io/managed-by=mlp-hub "
        "app.kubernetes.io/instance=mlp mlp-hub/tenant=green pod-security.kubernetes.io/enforce=restricted`, and to add "
        "mlp-green to rbac.namespaces of the chart"
    )


def test_the_hubs_own_namespace_is_that_of_its_pod() -> None:
    assert AT.namespace == "platform"
    assert installation().namespace == "mlp--hub"


def test_a_copy_of_all_namespaces_is_one_of_those_that_are_given() -> None:
    client = KubernetesClient(cast(Any, _Nowhere()))
    assert isinstance(reflector(client, Selection(PODS), dict), Reflector)
    client.namespaces = AT.namespaces
    assert isinstance(reflector(client, Selection(PODS), dict), ReflectorOfMany)
    assert isinstance(reflector(client, Selection(PODS, "mlp-red"), dict), Reflector)
    assert isinstance(reflector(client, Selection(NODES), dict), Reflector)


class _Nowhere:
    host = "nowhere"
