"""Images are fetched to all nodes before somebody waits for them; kwok plays the nodes."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mlp_cluster import fake_nodes
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import DAEMON_SETS, NAMESPACES
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.waiting import until


@pytest.fixture
def marked(kube: Kube) -> Any:
    """Two nodes that nobody else has: what is to be there is told by a taint that only these have."""
    mark = f"p{uuid.uuid4().hex[:6]}"
    nodes = []
    for number in range(2):
        node = fake_nodes.node(number, 0)
        node["metadata"]["name"] = f"{mark}-{number}"
        node["metadata"]["labels"]["kubernetes.io/hostname"] = f"{mark}-{number}"
        nodes.append(node)
    kube(
        "apply",
        "--server-side",
        "-f",
        "-",
        given=json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}),
    )
    yield mark
    kube("delete", "node", *(node["metadata"]["name"] for node in nodes), "--wait=false")
    kube("delete", "namespace", f"{mark}--hub", "--wait=false", "--ignore-not-found")


@contextlib.asynccontextmanager
async def opened(kube: Kube, mark: str) -> AsyncIterator[tuple[KubernetesClient, Any]]:
    client = await KubernetesClient.connect(kube.kubeconfig)
    kwok = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
    at = installation(mark, image="example.org/notebook:1", prewarmed=2, tolerations=(kwok,))
    try:
        space = NAMESPACES.named(at.namespace)
        space["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
        await client.apply(space, NAMESPACES)
        yield client, at
    finally:
        await client.close()


async def test_the_images_used_most_come_to_all_nodes_and_go_when_others_are(kube: Kube, marked: str) -> None:
    async def images(client: KubernetesClient, at: Any) -> dict[str, tuple[int, int]]:
        found = (await client.list(DAEMON_SETS, at.namespace, labels=prewarming.selector(at))).items
        return {image: (ready, of) for image, ready, of in map(prewarming.keeper_status, found)}

    async with opened(kube, marked) as (client, at):
        await prewarming.keep(client, at, ["example.org/train:1", "example.org/rare:1"])
        await prewarming.keep(client, at, ["example.org/train:1", "example.org/rare:1"])
        both = {"example.org/notebook:1", "example.org/train:1"}

        async def ready() -> bool:
            found = await images(client, at)
            # kwok's pods are running at once; another node may have no such image
            return found.keys() == both and all(many >= 2 for many, _ in found.values())

        await until(ready, what="the images on both nodes")
        pods = kube.get("pods", "-n", at.namespace)["items"]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == both
        await prewarming.keep(client, at, ["example.org/other:1"])
        assert (await images(client, at)).keys() == {"example.org/notebook:1", "example.org/other:1"}
        await prewarming.keep(client, installation(marked), [])
        assert await images(client, at) == {}
