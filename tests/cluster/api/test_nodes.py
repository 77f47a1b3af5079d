"""Nodes as the hub hears of them from a real API server; kwok plays the nodes and their pods."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

from mlp_cluster import fake_nodes
from mlp_hub.executors.kubernetes.nodes.cluster_nodes import ClusterNodes
from mlp_hub.executors.nodes import ConditionKind, NodeInfo, Taint
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NODES, PODS
from support.cluster.kube import Kube, Namespace
from support.cluster.kube_installation import installation
from support.failover.cut_line import Line
from support.waiting import until

KWOK = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
H100 = "nvidia-h100-80gb-hbm3"


class Seen:
    """What the hub sees of the nodes of one test, and how often it was told."""

    def __init__(self, nodes: ClusterNodes, mine: str) -> None:
        self.nodes, self.mine = nodes, mine
        self.told = 0
        nodes.on_nodes(self._count)

    def _count(self) -> None:
        self.told += 1

    def all(self) -> dict[str, NodeInfo]:
        return {n.name.removeprefix(self.mine): n for n in self.nodes.nodes() if n.name.startswith(self.mine)}

    async def until(self, holds: Callable[[dict[str, NodeInfo]], Any], what: str) -> dict[str, NodeInfo]:
        async def look() -> Any:
            return holds(self.all())

        await until(look, what=what)
        return self.all()


@pytest.fixture
def mine(kube: Kube) -> Iterator[str]:
    prefix = f"n{uuid.uuid4().hex[:6]}-"
    yield prefix
    names = [
        n["metadata"]["name"] for n in kube.get("nodes")["items"] if n["metadata"]["name"].startswith(prefix)
    ]
    if names:
        kube("delete", "node", *names, "--wait=false")


def node(mine: str, name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    found = fake_nodes.node(0, gpus)
    found["metadata"]["name"] = mine + name
    found["metadata"]["labels"]["kubernetes.io/hostname"] = mine + name
    found["spec"] |= spec
    return found


@asynccontextmanager
async def watched(kubeconfig: Path, mine: str) -> AsyncIterator[tuple[KubernetesClient, Seen]]:
    client = await KubernetesClient.connect(kubeconfig)
    nodes = ClusterNodes(client, installation(tolerations=(KWOK,)))
    try:
        await nodes.open()
        yield client, Seen(nodes, mine)
    finally:
        await nodes.close()
        await client.close()


async def add(client: KubernetesClient, *nodes: dict[str, Any]) -> None:
    for each in nodes:
        await client.create(each, NODES)


def ready(*names: str) -> Callable[[dict[str, NodeInfo]], bool]:
    return lambda found: list(found) == list(names) and all(n.schedulable for n in found.values())


def pod(
    namespace: Namespace, name: str, on: str, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "nothing/runs:here",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace.name, "labels": labels or {}},
        "spec": {
            "nodeName": on,
            "containers": [container],
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            **spec,
        },
    }


async def test_a_node_is_seen_as_it_comes_is_cordoned_tainted_deleted_and_comes_back(
    kube: Kube, mine: str
) -> None:
    async with watched(kube.kubeconfig, mine) as (client, seen):
        await add(client, node(mine, "b"), node(mine, "a", gpus=0))
        found = await seen.until(ready("a", "b"), "both nodes to be ready")
        assert (found["b"].gpu_kind, found["b"].allocatable.gpu, found["a"].gpu_kind) == (H100, 8000, None)
        assert found["b"].taints == ()  # all pods of the hub tolerate the one that it has

        kube("cordon", mine + "b")
        found = await seen.until(lambda f: f["b"].conditions, "b to be cordoned")
        assert [c.kind for c in found["b"].conditions] == [ConditionKind.CORDONED]
        assert found["b"].taints == ()
        kube("uncordon", mine + "b")
        await seen.until(ready("a", "b"), "b to be open again")

        kube("taint", "node", mine + "b", "gpu=only:NoSchedule", "tenant=red:NoSchedule")
        found = await seen.until(lambda f: f["b"].taints, "b to be tainted")
        assert found["b"].taints == (Taint("gpu", "only"), Taint("tenant", "red"))
        kube("taint", "node", mine + "b", "gpu-", "tenant-")
        await seen.until(lambda f: not f["b"].taints, "b to be untainted")

        kube("delete", "node", mine + "a")
        await seen.until(ready("b"), "a to go")
        await add(client, node(mine, "a", gpus=4))
        found = await seen.until(ready("a", "b"), "a to be back")
        assert found["a"].capacity.gpu == 4000


@pytest.mark.differs("Capacity of a node", only="cluster")
async def test_pods_of_others_take_their_part_until_they_are_over_and_the_hubs_own_take_none(
    kube: Kube, mine: str, namespace: Namespace
) -> None:
    async with watched(kube.kubeconfig, mine) as (client, seen):
        await add(client, node(mine, "a"))
        empty = (await seen.until(ready("a"), "the node"))["a"]
        own = installation().own
        await client.create(pod(namespace, "ours", mine + "a", own), PODS)
        other_hubs = own | {"app.kubernetes.io/instance": "another"}
        await client.create(pod(namespace, "theirs", mine + "a", other_hubs), PODS)
        await client.create(pod(namespace, "short", mine + "a"), PODS)
        found = (await seen.until(lambda f: f["a"].allocatable.gpu <= 6000, "two pods to count"))["a"]
        assert (empty.allocatable - found.allocatable).kinds == ((H100, 2000),)
        assert (empty.allocatable.cpu - found.allocatable.cpu, found.others.ram) == (4000, 2048)
        assert found.at_most == empty.allocatable

        namespace("patch", "pod", "short", "--subresource=status", "-p", '{"status": {"phase": "Succeeded"}}')
        await seen.until(lambda f: f["a"].allocatable.gpu == 7000, "the one that is over to count no more")
        namespace("delete", "pod", "theirs", "--now")
        found = (await seen.until(lambda f: f["a"].allocatable.gpu == 8000, "all of the node"))["a"]
        assert found == empty
        assert namespace.get("pod", "ours")["spec"]["nodeName"] == mine + "a"


async def test_a_node_that_is_drained_is_empty_and_closed(
    kube: Kube, mine: str, namespace: Namespace
) -> None:
    async with watched(kube.kubeconfig, mine) as (client, seen):
        await add(client, node(mine, "a"))
        await seen.until(ready("a"), "the node")
        await client.create(pod(namespace, "theirs", mine + "a"), PODS)
        await seen.until(lambda f: f["a"].others.gpu == 1000, "the pod to count")
        await asyncio.to_thread(
            kube, "drain", mine + "a", "--force", "--disable-eviction", "--grace-period=1"
        )
        found = (await seen.until(lambda f: f["a"].others.is_zero, "the pod to be gone"))["a"]
        assert [c.kind for c in found.conditions] == [ConditionKind.CORDONED]


async def test_changes_that_matter_to_no_observer_are_not_reported(
    kube: Kube, mine: str, namespace: Namespace
) -> None:
    async with watched(kube.kubeconfig, mine) as (client, seen):
        await add(client, node(mine, "a"), node(mine, "b"))
        await seen.until(ready("a", "b"), "the nodes")
        await client.create(pod(namespace, "theirs", mine + "a"), PODS)
        before = (await seen.until(lambda f: f["a"].others.gpu == 1000, "the pod to count"))["a"]
        namespace.until("pod/theirs", "condition=Ready")
        namespace("annotate", "pod", "theirs", "noise=1")
        kube("annotate", "node", mine + "a", "noise=1")
        beat = {"status": {"conditions": [{"type": "Fine", "status": "True"}]}}
        kube("patch", "node", mine + "a", "--subresource=status", "-p", json.dumps(beat))
        kube("cordon", mine + "b")  # what was told before this was heard of before this
        await seen.until(lambda f: f["b"].conditions, "b to be cordoned")
        assert seen.all()["a"] is before


@pytest.fixture
def of_the_hub(kube: Kube) -> Iterator[Namespace]:
    """The namespace of a hub of its own name."""
    name = installation(name=f"t{uuid.uuid4().hex[:6]}").namespace
    kube("create", "namespace", name)
    yield Namespace(kube, name)
    kube("delete", "namespace", name, "--wait=false")


async def test_a_group_that_could_grow_is_told_by_a_config_map(
    kube: Kube, mine: str, of_the_hub: Namespace
) -> None:
    data = {"nodes": f"pool={mine}g", "most": "2", "cpu": "64", "memory": "512Gi", "gpu": "8"}
    labels = {"mlp-hub/node-group": mine + "g"}

    def told(name: str, **change: str) -> dict[str, Any]:
        metadata = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data | change}

    async with watched(kube.kubeconfig, mine) as (client, _):
        nodes = ClusterNodes(
            client, installation(name=of_the_hub.name.removesuffix("--hub"), tolerations=(KWOK,))
        )
        seen = Seen(nodes, mine)
        await nodes.open()
        try:
            of_the_hub.apply(told("wrong", most="all"))
            of_the_hub.apply(told("g"))
            found = await seen.until(lambda f: "g+2" in f, "two nodes that could be added")
            assert [c.kind for c in found["g+1"].conditions] == [ConditionKind.ABSENT]
            joins = node(mine, "x")
            joins["metadata"]["labels"]["pool"] = mine + "g"
            await add(client, joins)
            await seen.until(lambda f: list(f) == ["x", "g+1"], "one of them to be there")
            of_the_hub("delete", "configmap", "g")
            await seen.until(lambda f: list(f) == ["x"], "the group to be forgotten")
        finally:
            await nodes.close()


async def test_while_the_cluster_is_away_nodes_stay_as_they_were_and_then_all_is_caught_up(
    kube: Kube, mine: str, namespace: Namespace
) -> None:
    async with watched(kube.kubeconfig, mine) as (direct, whole):
        at = urlsplit(direct.host)
        async with Line.to(str(at.hostname), at.port or 443) as line:
            client = await through(line, kube)
            nodes = ClusterNodes(client, installation(tolerations=(KWOK,)))
            seen = Seen(nodes, mine)
            await nodes.open()
            try:
                await add(direct, node(mine, "a"), node(mine, "b"))
                before = await seen.until(ready("a", "b"), "the nodes")
                await line.cut()
                await until(trouble(nodes), what="trouble")
                assert "does not answer" in str(nodes.trouble)
                kube("delete", "node", mine + "a")
                await direct.create(pod(namespace, "theirs", mine + "b"), PODS)
                await add(direct, node(mine, "c"))
                await whole.until(
                    lambda f: list(f) == ["b", "c"] and f["c"].schedulable, "the others to know"
                )
                assert seen.all() == before
                await line.mend()
                found = await seen.until(lambda f: f == whole.all() and f["b"].others.gpu, "all to be known")
                assert list(found) == ["b", "c"]
                await until(trouble(nodes, is_there=False), what="no trouble")
            finally:
                await nodes.close()
                await client.close()


async def through(line: Line, kube: Kube) -> KubernetesClient:
    """Connect to the cluster by a line to it."""
    configuration = Configuration()
    await load_kube_config(str(kube.kubeconfig), client_configuration=configuration)
    configuration.tls_server_name = urlsplit(configuration.host).hostname
    configuration.host = f"https://127.0.0.1:{line.port}"
    return KubernetesClient(configuration)


def trouble(nodes: ClusterNodes, *, is_there: bool = True) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return (nodes.trouble is not None) == is_there

    return look
