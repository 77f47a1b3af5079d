"""Rights of the chart's roles at a real API server: with all of them each operation works, and without any single one an operation breaks."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_cluster import fake_nodes
from mlp_hub.cli.lifecycle import pod_clean
from mlp_hub.executors.kubernetes.metering.pod_meter import POD_METRICS
from mlp_hub.executors.kubernetes.nodes.measured import PATH as NODE_USE
from mlp_hub.executors.kubernetes.tenancy import given
from mlp_hub.executors.kubernetes.tenancy.keeper import KEPT
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.kinds import Kind, Object
from mlp_spawner.kubernetes.pod_servers import PodServers
from mlp_spawner.kubernetes.pod_watch import PodWatch, Warnings
from support.cluster.accounts import Account, Right, account, rights_of
from support.cluster.chart import Chart
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab
from support.cluster.pods import pod
from support.cluster.service_at_work import RED, Operation, ServiceAtWork
from support.cluster.tenancy import tenancy
from support.waiting import PATIENCE_S, until

GROUPS = (kinds.JOBS, kinds.POD_GROUPS)
BROUGHT = (kinds.JOBS, kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS)
RUNS: Mapping[str, tuple[str, int, tuple[Kind, ...]]] = {
    "Job": ("plain", 1, GROUPS),
    "gang": ("plain", 2, GROUPS),
    "MPIJob": ("mpi", 2, (kinds.MPI_JOBS, *GROUPS)),
    "TFJob": ("tf", 2, (kinds.TF_JOBS, *GROUPS)),
    "PyTorchJob": ("torch", 2, (kinds.PYTORCH_JOBS, *GROUPS)),
    "Volcano Job": ("tf", 2, (kinds.VOLCANO_JOBS, *GROUPS)),
}
OF_KIND = {
    "jobs.batch": "Job",
    "mpijobs.kubeflow.org": "MPIJob",
    "tfjobs.kubeflow.org": "TFJob",
    "pytorchjobs.kubeflow.org": "PyTorchJob",
    "jobs.batch.volcano.sh": "Volcano Job",
    "podgroups.scheduling.volcano.sh": "gang",
    "services": "gang",
}
"""Runs that need rights on a kind."""


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


def rules(chart: Chart, file: str, *roles: str) -> list[Object]:
    """Return the rules of some roles of the chart, named KIND/NAMESPACE/NAME."""
    found: dict[str, list[Object]] = {}
    for one in chart.objects(file, **{"storage.keep": "false"}):
        if one["kind"] in {"ClusterRole", "Role"}:
            found[f"{one['kind']}/{one['metadata'].get('namespace', '')}/{one['metadata']['name']}"] = one[
                "rules"
            ]
    return [rule for role in roles for rule in found[role]]


async def unneeded(
    held: Account, operations: Mapping[str, Operation], of: Callable[[Right], str]
) -> list[str]:
    """Return the rights whose loss breaks nothing; `of` names the operation that needs a right."""
    found = []
    for right in rights_of(held.rules):
        await held.lose(right)
        if (why := await held.works_without(right, operations[of(right)])) is not None:
            found.append(f"{right}: {of(right)} {why}")
        sys.stdout.write(f"{right}: {of(right)}\n")  # kept with the results: the table as it was tried
    await held.have(held.rules)
    return found


async def all_work(held: Account, operations: Mapping[str, Operation]) -> None:
    """Run each operation once with all rights: nothing is refused."""
    for name, operation in operations.items():
        async with asyncio.timeout(PATIENCE_S):
            await operation()
        lacked = [said for said in held.client.refused if "cannot" in said]
        assert lacked == [], f"{name}: {lacked}"


# ------------------------------------------------------------------ the service


def acts(work: ServiceAtWork) -> list[tuple[str, Callable[[Kind], Operation]]]:
    """Return what is done with each kind of objects that are kept for a team."""
    return [("put", work.put), ("follow", work.follow), ("remove", work.remove)]


def act_of(verb: str) -> str:
    """Return the act that needs a verb."""
    return {"patch": "put", "create": "put", "list": "follow", "watch": "follow"}.get(verb, "remove")


def operations_everywhere(work: ServiceAtWork) -> Mapping[str, Operation]:
    """Return the operations of a service that makes teams' namespaces, by name."""
    return {
        **{f"{act} {kind.full_name}": do(kind) for act, do in acts(work) for kind in (*KEPT, kinds.QUEUES)},
        "follow nodes": work.follow_nodes,
        "read the API's address": work.read_the_address_of_the_api,
        "try the policies": work.try_the_policies,
        **{f"run a {name}": work.run(runtime, n, *served) for name, (runtime, n, served) in RUNS.items()},
        "start a gang twice": work.start_twice("plain", 2, *GROUPS),
        **{f"refuse {kind.full_name}": work.refuse(kind) for kind in BROUGHT},
        "end parameter servers": work.end_parameter_servers,
        "start again": work.start_again,
        "keep images": work.keep_images,
        "measure pods": work.measure(POD_METRICS.path()),
        "measure nodes": work.measure(NODE_USE),
        "lead": work.lead,
    }


REMOVED = {kind.full_name for kind in (*KEPT, kinds.QUEUES)}
EVERYWHERE = {
    **{f"{verb} configmaps": "run a Job" for verb in ("get", "list", "watch", "patch", "create", "delete")},
    "create secrets": "run a Job",
    "list pods": "remove namespaces",
    "create pods": "try the policies",
    "deletecollection pods": "run a Job",
    "delete pods": "end parameter servers",
    "patch pods": "lead",
    "create services": "run a gang",
    "get services": "start a gang twice",
    "create podgroups.scheduling.volcano.sh": "run a gang",
    "create jobs.batch.volcano.sh": "run a Volcano Job",
    "delete jobs.batch.volcano.sh": "run a Volcano Job",
    **{f"{verb} daemonsets.apps": "keep images" for verb in ("list", "patch", "create", "delete")},
    **{f"patch {kind.full_name}": f"refuse {kind.full_name}" for kind in BROUGHT},
    "patch jobs/status.batch": "start again",
    "list pods.metrics.k8s.io": "measure pods",
    "list nodes.metrics.k8s.io": "measure nodes",
}
"""Operations that need a right; a right that is not here is one that members get, or is for objects that are kept for a team."""


def needs_everywhere(right: Right) -> str:
    """Return the operation that needs a right of a service that makes teams' namespaces."""
    verb, _, what = str(right).partition(" ")
    if what in REMOVED:
        return f"{act_of(verb)} {what}"
    of = {"nodes": "follow nodes", "endpointslices.discovery.k8s.io": "read the API's address"}
    return EVERYWHERE.get(str(right)) or of.get(what, "put roles.rbac.authorization.k8s.io")


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    made = KubeLab(kube, tmp_path)
    nodes = [fake_nodes.node(number, 0) for number in range(2)]
    for number, each in enumerate(nodes):
        each["metadata"]["name"] = f"{made.at.name}-{number}"
        each["metadata"]["labels"]["kubernetes.io/hostname"] = f"{made.at.name}-{number}"
    made.apply(*nodes)
    try:
        yield made
    finally:
        kube("delete", "node", *(each["metadata"]["name"] for each in nodes), "--wait=false")
        made.close()


@pytest.mark.whole
async def test_the_service_needs_each_of_its_rights(kube: Kube, chart: Chart, lab: KubeLab) -> None:
    roles = ("ClusterRole//mlp-hub-mlp-hub-service", "Role/mlp/hub-mlp-hub-service")
    async with account(kube, rules(chart, "gateway", *roles)) as held:
        work = ServiceAtWork(kube, held, lab)
        operations = operations_everywhere(work)
        async with work.kept():
            await all_work(held, operations)
            assert await unneeded(held, operations, needs_everywhere) == []


def operations_in_given(work: ServiceAtWork) -> Mapping[str, Operation]:
    """Return the operations of a service that has rights in given namespaces only, by name."""
    return {
        **{f"{act} {kind.full_name}": do(kind) for act, do in acts(work) for kind in given.KEPT},
        "check the namespace": work.check_the_namespace,
        **{f"run a {name}": work.run(runtime, n, *served) for name, (runtime, n, served) in RUNS.items()},
        **{
            f"start a {name} twice": work.start_twice(runtime, n, *served)
            for name, (runtime, n, served) in RUNS.items()
        },
        "ask why no pods": work.ask_why_no_pods,
        "lead": work.lead,
    }


def needs_in_given(right: Right) -> str:
    """Return the operation that needs a right of a service that has rights in given namespaces only."""
    verb, _, what = str(right).partition(" ")
    kept = {kind.full_name for kind in given.KEPT}
    if what in kept:
        return f"{act_of(verb)} {what}"
    if what in {"namespaces", "persistentvolumeclaims"}:
        return "check the namespace"
    if what in OF_KIND:
        return f"start a {OF_KIND[what]} twice" if verb == "get" else f"run a {OF_KIND[what]}"
    of = {"list events": "ask why no pods", "patch pods": "lead", "get pods": "lead"}
    return of.get(str(right), "run a Job")


@pytest.mark.whole
async def test_the_service_needs_each_of_its_rights_in_given_namespaces(
    kube: Kube, chart: Chart, lab: KubeLab
) -> None:
    roles = ("Role/mlp-red/hub-mlp-hub-service", "Role/mlp/hub-mlp-hub-service")
    async with account(kube, rules(chart, "namespaces", *roles)) as held:
        work = ServiceAtWork(kube, held, lab, given=True)
        labels = [f"{key}={value}" for key, value in given.labels(work.at, "default").items()]
        lab.kube("label", "--overwrite", "namespace", lab.namespace, *labels)
        operations = operations_in_given(work)
        async with work.kept():
            await all_work(held, operations)
            assert await unneeded(held, operations, needs_in_given) == []


# ---------------------------------------------------------------- JupyterHub


class HubAtWork:
    """What JupyterHub does in a cluster, by the functions of its spawner."""

    def __init__(self, held: Account, namespace: str) -> None:
        self.client, self.admin, self.namespace = held.client, held.admin, namespace

    async def serve(self) -> None:
        """Start a server, read its last lines, and end it."""
        name = f"s{uuid.uuid4().hex[:6]}"
        wanted = pod(name, {"of": name})
        wanted["metadata"]["namespace"] = self.namespace
        watch = PodWatch(self.client, f"of={name}")
        spawner: Any = SimpleNamespace(
            _key=(self.namespace, name), _news="", log=SimpleNamespace(warning=print)
        )
        try:
            await watch.ready()
            made = await PodServers._create(spawner, watch, wanted)
            secret = kinds.SECRETS.named(name, self.namespace)
            await watch.client.create(secret, kinds.SECRETS)
            async with Warnings(watch.client, spawner._key) as warnings:
                await warnings._reflector.synced()
                await PodServers._tail(spawner, watch)
                await asyncio.sleep(0)
                await PodServers._end(spawner, watch, spawner._key, 1)
            assert made
        finally:
            watch._running.cancel()
            await self.admin.delete(kinds.PODS, name, self.namespace, grace_s=0)
            await self.admin.delete(kinds.SECRETS, name, self.namespace)

    async def follow(self) -> None:
        """Hear of a pod and of a warning about it that came after the first lists."""
        name = f"s{uuid.uuid4().hex[:6]}"
        wanted = pod(name, {"of": name})
        wanted["metadata"]["namespace"] = self.namespace
        watch = PodWatch(self.client, f"of={name}")
        try:
            await watch.ready()
            async with Warnings(self.client, (self.namespace, name)) as warnings:
                await warnings._reflector.synced()
                made = await self.admin.create(wanted, kinds.PODS)
                assert made is not None
                uid = made["metadata"]["uid"]
                about = {"kind": "Pod", "name": name, "namespace": self.namespace, "uid": uid}
                said = {"type": "Warning", "reason": "Trial", "message": "heard", "involvedObject": about}
                await self.admin.create(kinds.EVENTS.named(name, self.namespace, **said), kinds.EVENTS)

                async def heard() -> bool:
                    return (self.namespace, name) in watch.pods and bool(warnings.last(uid))

                await until(heard, what="the pod and its warning", every=0.02)
        finally:
            watch._running.cancel()
            await self.admin.delete(kinds.PODS, name, self.namespace, grace_s=0)

    async def place_gpus(self) -> None:
        """Look for nodes with GPUs."""
        await self.client.list(kinds.NODES)


def of_hub(right: Right) -> str:
    """Return the operation of the hub that needs a right."""
    return {"list nodes": "place GPUs"}.get(str(right), "watch" if right.verb == "watch" else "serve")


@pytest.mark.parametrize(
    ("file", "role"),
    [("gateway", "ClusterRole//mlp-hub-mlp-hub-hub"), ("namespaces", "Role/mlp-red/hub-mlp-hub-hub")],
)
async def test_the_hub_needs_each_of_its_rights(
    kube: Kube, chart: Chart, lab: KubeLab, file: str, role: str
) -> None:
    async with account(kube, rules(chart, file, role)) as held:
        work = HubAtWork(held, lab.namespace)

        operations: dict[str, Operation] = {"serve": work.serve, "watch": work.follow}
        if file == "gateway":
            operations["place GPUs"] = work.place_gpus
        await all_work(held, operations)
        assert await unneeded(held, operations, of_hub) == []


# -------------------------------------------------------- after an uninstall


async def test_the_job_of_an_uninstall_needs_each_of_its_rights(kube: Kube, chart: Chart) -> None:
    roles = ("ClusterRole//mlp-hub-mlp-hub-clean", "Role/mlp/hub-mlp-hub-clean")
    async with account(kube, rules(chart, "gateway", *roles)) as held:

        async def clean() -> None:
            await held.admin.create(kinds.SECRETS.named("hub-mlp-hub-secrets", "default"), kinds.SECRETS)
            async with tenancy(kube) as own:
                await own.keep(RED)
                await own.keeper.close()
                try:
                    await pod_clean.remove(held.client, own.at.name, patience=PATIENCE_S)
                    await held.client.delete(kinds.SECRETS, "hub-mlp-hub-secrets", "default")
                finally:
                    await held.admin.delete(kinds.SECRETS, "hub-mlp-hub-secrets", "default")

        await clean()
        assert held.client.refused == []
        assert await unneeded(held, {"clean": clean}, lambda _: "clean") == []
