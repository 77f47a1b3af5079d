"""Attempts as objects of a real API server, with its schedulers, controllers and operators; their pods run nowhere, or are kwok's."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_cluster import fake_nodes
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Executor, LaunchSpec
from mlp_hub.executors.kubernetes.attempt_claims import ABOUT, about_of, claim_object, object_name
from mlp_hub.executors.kubernetes.gang import describe
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, JOBS, Object
from support.cluster.gangs import launch
from support.cluster.kube import Kube, RefusedError
from support.cluster.kube_between import KubeBetween
from support.cluster.kube_lab import KubeLab, configuration
from support.cluster.tenancy import as_somebody
from support.waiting import PATIENCE_S, until

KWOK = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
ROOM = Resources(cpu=16_000, ram=65_536)


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    lab.at = replace(lab.at, tolerations=(KWOK,))
    yield lab
    lab.close()


@pytest.fixture
def node(lab: KubeLab) -> Iterator[str]:
    """A node whose host has another name, as of EKS or by --hostname-override."""
    made = fake_nodes.node(0, 0)
    made["metadata"]["name"] = name = f"{lab.at.name}.example.org"
    made["metadata"]["labels"]["kubernetes.io/hostname"] = "ip-10-99-0-1"
    lab.kube("create", "-f", "-", given=json.dumps(made))
    lab.kube("wait", "node", name, "--for=condition=Ready", "--timeout=60s")
    lab.nodes = (NodeInfo(name, ROOM, ROOM),)
    yield name
    lab.kube("delete", "node", name, "--wait=false")


def of_default(runtime: str, *, workers: int = 1, **more: Any) -> LaunchSpec:
    return launch(runtime, "print('hello')", workers, tenant="default", **more)


@asynccontextmanager
async def open_executor(lab: KubeLab) -> AsyncIterator[Executor]:
    executor = lab.executor()
    try:
        await executor.open()
        yield executor
    finally:
        await executor.close()


@pytest.mark.parametrize(("runtime", "workers"), [("plain", 1), ("mpi", 2)])
async def test_pods_go_to_a_node_whose_host_has_another_name(
    lab: KubeLab, node: str, runtime: str, workers: int
) -> None:
    spec = of_default(runtime, workers=workers, placement=(node,) * workers)

    async with open_executor(lab) as executor:
        await executor.start(spec)

        async def bound() -> bool:
            pods = await asyncio.to_thread(lab.kube.get, "-n", lab.namespace, "pods")
            on = [pod["spec"].get("nodeName") for pod in pods["items"]]
            return on == [node] * workers

        await until(bound, what="its pods to be on that node", every=0.1)
        await executor.forget(spec.attempt)


def everything(lab: KubeLab, who: str) -> str:
    """Return all that somebody reads in the tenant's namespace, and fail where that is nothing."""
    kubectl = as_somebody(lab.kube, who, lab.namespace)
    kinds = lab.kube("api-resources", "--verbs=list", "--namespaced", "-o", "name").split()
    found = {}
    for kind in kinds:
        try:
            found[kind] = kubectl("get", kind, "-o", "yaml")
        except RefusedError as refused:
            assert "cannot list resource" in str(refused)  # noqa: PT017 - others are faults
    assert {"pods", "configmaps"} <= found.keys()
    assert "secrets" not in found
    return "\n".join(found.values())


@pytest.mark.parametrize(
    ("runtime", "workers"),
    [("mpi", 2), *(pytest.param(*other, marks=pytest.mark.whole) for other in (("plain", 1), ("tf", 2)))],
)
async def test_a_viewer_of_a_namespace_reads_no_variable_no_token_and_no_key(
    lab: KubeLab, runtime: str, workers: int
) -> None:
    words = {"WANDB_API_KEY": "open-sesame-of-ann", "MLP_JOB_TOKEN": "token-of-this-job", "MLP_APP": "digits"}
    spec = of_default(runtime, workers=workers, env=words, listens=workers == 1, args=("--key=of-arguments",))
    lab("create", "rolebinding", "looks", "--clusterrole=view", "--user=mlp:carl")

    async with open_executor(lab) as executor:
        await executor.start(spec)

        async def made() -> bool:
            return (
                len((await asyncio.to_thread(lab.kube.get, "-n", lab.namespace, "pods"))["items"]) == workers
            )

        await until(made, what="its pods to be made", every=0.1)
        secret = await asyncio.to_thread(
            lab.kube.get, "-n", lab.namespace, "secret", object_name(spec)
        )  # as its pods read it
        plan = json.loads(b64decode(secret["data"]["plan.json"]))
        hidden = {words["WANDB_API_KEY"], words["MLP_JOB_TOKEN"], "of-arguments"}
        if spec.listens:
            hidden.add(plan["env"]["MLP_APP_KEY"])
        assert hidden - set(plan["env"].values()) <= {"of-arguments"}
        seen = await asyncio.to_thread(everything, lab, "mlp:carl")
        assert object_name(spec) in seen
        assert [each for each in hidden if each in seen] == []
        await executor.forget(spec.attempt)

        async def gone() -> bool:
            left = await asyncio.to_thread(lab, "get", "secrets", "-o", "name")
            return object_name(spec) not in left

        await until(gone, what="the Secret to go with its claim", every=0.2)


def as_older_hubs_made_it(lab: KubeLab, spec: LaunchSpec, key: str) -> tuple[Object, Object]:
    """Return claim and Job as hubs made them whose claims held the files, and the key of an app's pod."""
    gang = describe(replace(spec, placement=("nowhere",)), lab.at, lab.ways, object_name(spec))
    kind, main = gang.main
    assert kind == JOBS
    [start] = [each for each in main["spec"]["template"]["spec"]["volumes"] if each["name"] == "start"]
    secret = start.pop("secret")
    start["configMap"] = {"name": secret.pop("secretName"), **secret}
    about = replace(about_of(spec, kind, 1.0), key=key, listens=False)
    claim = claim_object(about, main) | {"data": dict(gang.files)}
    told = json.loads(claim["metadata"]["annotations"][ABOUT])
    del told["listens"]
    claim["metadata"]["annotations"][ABOUT] = msgspec.json.encode(told).decode()
    return claim, main


async def test_an_attempt_started_by_an_older_hub_continues_and_is_cleaned_up(lab: KubeLab) -> None:
    env = {"MLP_APP": "digits", "MLP_APP_KEY": "of-an-older-hub"}
    spec = of_default("plain", env=env, listens=True)
    address = {"status": {"podIP": "10.99.0.7", "podIPs": [{"ip": "10.99.0.7"}]}}
    claim, main = as_older_hubs_made_it(lab, spec, "of-an-older-hub")

    async def older() -> None:
        client = KubernetesClient(lab.configuration)
        try:
            made = await client.create(claim, CONFIG_MAPS)
            assert made is not None
            name, uid = made["metadata"]["name"], made["metadata"]["uid"]
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
            main["metadata"]["ownerReferences"] = [owner]
            assert await client.create(main, JOBS) is not None
        finally:
            await client.close()

    await older()

    async with open_executor(lab) as executor:
        assert spec.attempt in await executor.known()
        await executor.start(spec)  # a hub that starts again does so; nothing is begun a second time

        async def named() -> str:
            return await asyncio.to_thread(lab, "get", "pods", "-l", "mlp-hub/attempt", "-o", "name")

        pod = (await until(named, what="its pod", every=0.1)).strip()
        status = ("--subresource=status", "--type=merge", "-p", json.dumps(address))
        await asyncio.to_thread(lab, "patch", pod, *status)

        async def answers() -> str:
            return executor.address(spec.attempt)

        where = await until(answers, what="its pod to have an address", every=0.1)
        assert where == "of-an-older-hub@10.99.0.7:19998"
        seen = (await executor.observe([spec.attempt]))[spec.attempt]
        assert seen.phase is AttemptPhase.STARTING
        assert "secret" not in await asyncio.to_thread(lab, "get", "secrets", "-o", "name")
        await executor.stop(spec.attempt, 1.0)
        await executor.forget(spec.attempt)

        async def gone() -> bool:
            return not await asyncio.to_thread(
                lab, "get", "pods,jobs,configmaps", "-l", "mlp-hub/attempt", "-o", "name"
            )

        await until(gone, what="all of it to go", every=0.2)


@pytest.mark.parametrize("outage", ["away", "deaf"])
def test_an_attempt_that_could_not_start_during_an_api_outage_is_reported_once_the_api_is_back(
    lab: KubeLab, tmp_path: Path, outage: str
) -> None:
    """Also where no watch was cut, so that none tells of a return."""
    spec = of_default("plain", placement=("nowhere",))

    async def go(between: KubeBetween) -> None:
        lab.configuration = await asyncio.to_thread(configuration, between.kubeconfig)
        lab.nodes = (NodeInfo("nowhere", ROOM, ROOM),)
        executor, told = lab.executor(), asyncio.Event()
        executor.on_change(lambda attempt: told.set() if attempt == spec.attempt else None)
        try:
            await executor.open()
            setattr(between, outage, True)
            with pytest.raises(OutOfReach):
                await executor.start(spec)
            told.clear()
            setattr(between, outage, False)
            async with asyncio.timeout(PATIENCE_S):
                await told.wait()
            await executor.start(spec)
            await executor.forget(spec.attempt)
        finally:
            await executor.close()

    with KubeBetween(lab.kube.kubeconfig, tmp_path) as between:
        asyncio.run(go(between))


async def test_the_claim_owns_the_objects_of_an_attempt(lab: KubeLab) -> None:
    spec = of_default("plain")

    async with open_executor(lab) as executor:
        await executor.start(spec)
        found = {
            each["kind"]: each["metadata"]
            for each in (
                await asyncio.to_thread(
                    lab.kube.get, "-n", lab.namespace, "secrets,jobs,configmaps", "-l", "mlp-hub/attempt"
                )
            )["items"]
        }
        uid = found["ConfigMap"]["uid"]
        assert [found[kind]["ownerReferences"][0]["uid"] for kind in ("Secret", "Job")] == [uid, uid]
        await executor.forget(spec.attempt)
