"""Notebook servers with GPUs: placed by the cluster on nodes that have the kind, or told why not. kwok plays the nodes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from mlp_cluster import fake_nodes
from support.cluster.kube import Kube
from support.cluster.pod_stack import PodStack
from support.hubs.hub_stack import Browser, text_of
from support.waiting import wait_for

PRODUCTS = {"big": ("NVIDIA-B200", 8), "small": ("NVIDIA-T4", 1)}
CONFIG = """
c.PodSpawner.tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
c.PodSpawner.node_patience_s = 3
"""


@pytest.fixture(scope="module")
def nodes(kube: Kube) -> Iterator[dict[str, str]]:
    """Names of two nodes, each with GPUs of a kind of its own."""
    mark = uuid.uuid4().hex[:6]
    made = []
    for name, (product, gpus) in PRODUCTS.items():
        node = fake_nodes.node(0, gpus)
        node["metadata"]["name"] = f"{name}-{mark}"
        node["metadata"]["labels"] |= {
            "kubernetes.io/hostname": f"{name}-{mark}",
            "nvidia.com/gpu.product": f"{product}-{mark}",
        }
        made.append(node)
    kube(
        "apply",
        "--server-side",
        "-f",
        "-",
        given=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}),
    )
    yield {name: f"{name}-{mark}" for name in PRODUCTS}
    kube("delete", "node", *(f"{name}-{mark}" for name in PRODUCTS), "--wait=false")


@pytest.fixture(scope="module")
def stack(kube: Kube) -> Iterator[PodStack]:
    made = PodStack(kube, config=CONFIG)
    try:
        made.keep("red")
        made.up()
        yield made
    finally:
        print(made.log("hub")[-6000:])
        made.down()


def kind(nodes: dict[str, str], name: str) -> str:
    return f"{PRODUCTS[name][0]}-{nodes[name].rpartition('-')[2]}".lower()


def known(stack: PodStack, user: str) -> Browser:
    """Return somebody who is logged in and belongs to the tenant."""
    stack.add(user)
    stack.tell_service(tenants={user: ["red"]})
    person = Browser(stack)
    person.login(user)
    return person


def refusal(stack: PodStack, user: str, **options: str) -> str:
    """Start a server from the page; return why there is none, as the page says it."""
    person = known(stack, user)
    person.spawn(user, cpu="0.2", ram="200", **options)
    wait_for(lambda: f"{user}/" not in stack.ledger()["rows"])
    assert stack.pod(user, "red") is None
    return text_of(person.get(f"/hub/spawn-pending/{user}"))


def test_a_server_with_gpus_goes_to_a_node_that_has_the_kind(stack: PodStack, nodes: dict[str, str]) -> None:
    known(stack, "gia").spawn("gia", cpu="0.2", ram="200", gpu="1", gpu_kind=kind(nodes, "small"))

    def placed() -> str | None:
        pod = stack.pod("gia", "red")
        return None if pod is None else pod["spec"].get("nodeName")

    assert wait_for(placed) == nodes["small"]
    pod = stack.pod("gia", "red")
    assert pod is not None
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert stack.ledger()["rows"]["gia/"]["gpu"] == 1
    assert pod["spec"]["priorityClassName"] == f"{stack.name}-notebook"


def test_more_gpus_than_any_node_has_is_said_in_the_clusters_words(
    stack: PodStack, nodes: dict[str, str]
) -> None:
    said = refusal(stack, "mia", gpu="9", gpu_kind=kind(nodes, "big"))
    assert "No node of the cluster has room for the notebook server" in said
    assert "Insufficient nvidia.com/gpu" in said


def test_a_kind_that_no_node_has_is_refused_with_those_that_there_are(
    stack: PodStack, nodes: dict[str, str]
) -> None:
    said = refusal(stack, "nia", gpu="1", gpu_kind="tpu")
    assert "node of the cluster has GPUs of the kind tpu" in said
    assert kind(nodes, "small") in said
