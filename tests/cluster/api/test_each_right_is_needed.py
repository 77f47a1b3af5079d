"""Rights of the chart's roles at a real API server: with all of them each operation works, and without any single one an operation breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_cluster import fake_nodes
from mlp_hub.cli.lifecycle import pod_clean
from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import LaunchSpec, TenantPlace
from mlp_hub.executors.kubernetes.attempt_claims import object_name
from mlp_hub.executors.kubernetes.creating import created
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.external.attempts import ExternalAttempts
from mlp_hub.executors.kubernetes.external.patches import UNTIMED
from mlp_hub.executors.kubernetes.fence import ClusterFence
from mlp_hub.executors.kubernetes.gang import describe
from mlp_hub.executors.kubernetes.metering.pod_meter import POD_METRICS
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.executors.kubernetes.nodes.measured import PATH as NODE_USE
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.tenancy.keeper import KEPT, TenantKeeper
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.errors import ClusterError
from mlp_hub.kubernetes.kinds import Kind, Object, name_of
from mlp_hub.kubernetes.leader_label import LeaderLabel
from mlp_language.message import msg
from mlp_spawner.kubernetes.pod_servers import PodServers
from mlp_spawner.kubernetes.pod_watch import PodWatch, Warnings
from support.cluster.accounts import Account, Right, account, rights_of
from support.cluster.chart import Chart, named
from support.cluster.gangs import launch
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.cluster.kube_lab import KubeLab
from support.cluster.pods import asked, pod
from support.cluster.tenancy import Tenancy, tenancy
from support.waiting import PATIENCE_S, until

Operation = Callable[[], Awaitable[Any]]
RED = TenantPlace("red", Quota(cpu=4000, ram=8192), ("ann",))
OLD = "an-earlier-version"
SECRET = "platform"


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


def rules(chart: Chart, *roles: str) -> list[Object]:
    """Return the rules of some roles of the chart, by kind and name."""
    objects = chart.objects("gateway", **{"storage.keep": "false"})
    of = {
        f"{kind}/{name}": one
        for kind in ("ClusterRole", "Role")
        for name, one in named(objects, kind).items()
    }
    return [rule for role in roles for rule in of[role]["rules"]]


async def unneeded(
    held: Account, operations: Mapping[str, Operation], of: Callable[[Right], str]
) -> list[str]:
    """Return the rights whose loss breaks nothing; `of` names the operation that needs a right."""
    found = []
    for right in rights_of(held.rules):
        await held.lose(right)
        if not await held.breaks(right, operations[of(right)]):
            found.append(f"{right}: {of(right)} works without it")
    await held.have(held.rules)
    return found


# ------------------------------------------------------------------ the service


class ServiceAtWork:
    """What the service does in a cluster, each as an operation of its own; `lab` has a tenant that exists already."""

    def __init__(self, kube: Kube, held: Account, lab: KubeLab, mark: str) -> None:
        self.kube, self.client, self.admin, self.lab, self.mark = kube, held.client, held.admin, lab, mark

    @contextlib.asynccontextmanager
    async def _tenancy(self) -> AsyncIterator[tuple[Tenancy, TenantKeeper]]:
        async with tenancy(self.kube) as own:
            keeper = TenantKeeper(self.client, own.at)
            try:
                yield own, keeper
            finally:
                await keeper.close()

    async def keep_a_team(self) -> None:
        """Make all that a team has."""
        async with self._tenancy() as (_, keeper):
            await keeper.keep([RED])

    def remove(self, kind: Kind) -> Operation:
        """Return the removal of an object of a kind that no team needs, as an earlier version made it."""

        async def go() -> None:
            async with self._tenancy() as (own, keeper):
                await keeper.keep([RED])
                space = own.at.namespace_of("red") if kind.namespaced else None
                [first, *_] = list((await self.admin.list(kind, space, labels=own.at.selector)).items)
                about = {key: first["metadata"].get(key) or {} for key in ("labels", "annotations")}
                about |= {"name": f"{own.at.name}-{OLD}"} | ({"namespace": space} if space else {})
                rest = {key: value for key, value in first.items() if key not in ("metadata", "status")}
                copy = json.loads(
                    json.dumps({**rest, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": about})
                )
                if kind == kinds.PERSISTENT_VOLUMES:
                    copy["spec"]["claimRef"] = {"namespace": "default", "name": OLD}
                await self.admin.create(copy, kind)

                async def gone() -> bool:
                    left = await self.admin.get(kind, f"{own.at.name}-{OLD}", space)
                    return left is None or "deletionTimestamp" in left["metadata"]

                await until(gone, what=f"{kind.plural} to be removed", every=0.05)

        return go

    def run(self, runtime: str, workers: int, *served: Kind) -> Operation:
        """Return the life of an attempt: start, end, removal of its record."""

        async def go() -> None:
            ways = OperatorWays(frozenset(served))
            executor = KubernetesExecutor(self.client, self.lab.at, ways, lambda: self.lab.nodes)
            spec = launch(runtime, "print(1)", workers, tenant="default")
            try:
                await executor.open()
                await executor.fence(1, 1.0)
                await executor.start(spec, 1)
                await self._pods(spec, there=True)
                await executor.stop(spec.attempt, 1.0, 1)
                await self._pods(spec, there=False)
                await executor.forget(spec.attempt, 1)
            finally:
                await executor.close()
                await self.admin.delete(kinds.CONFIG_MAPS, object_name(spec), self.lab.namespace)

        return go

    async def _pods(self, spec: LaunchSpec, *, there: bool) -> None:
        chosen = f"{names.ATTEMPT}={names.label_value(spec.attempt)}"

        async def look() -> bool:
            found = await self.admin.list(kinds.PODS, self.lab.namespace, labels=chosen)
            return bool(found.items) is there

        await until(look, what="pods of the attempt" if there else "no pod of the attempt", every=0.05)

    async def start_twice(self) -> None:
        """Make the objects of a gang although the answer to the first request was lost."""
        spec = launch("plain", "print(1)", 2, tenant="default")
        gang = describe(spec, self.lab.at, OperatorWays(frozenset({kinds.JOBS})), object_name(spec))
        try:
            for _ in range(2):
                for kind, wanted in gang.beside:
                    await created(self.client, kind, wanted)
        finally:
            for kind, wanted in gang.beside:
                await self.admin.delete(kind, name_of(wanted), self.lab.namespace)

    @contextlib.asynccontextmanager
    async def _brought(self, kind: Kind, **more: Any) -> AsyncIterator[tuple[ExternalAttempts, Object]]:
        wanted = asked(kind, "default", name=f"b{uuid.uuid4().hex[:6]}", **more)
        wanted["metadata"]["namespace"] = self.lab.namespace
        made = await self.admin.create(wanted, kind)
        assert made is not None
        at = self.lab.at
        fence = ClusterFence(self.client, self.lab.namespace, "fence")
        theirs = ExternalAttempts(self.client, at, [kind], fence, lambda: (), lambda _: "default")
        fence.begin()
        theirs.begin()
        try:
            await theirs.seen()
            yield theirs, made
        finally:
            await theirs.close()
            await self.admin.delete(kind, name_of(wanted), self.lab.namespace)

    def refuse(self, kind: Kind) -> Operation:
        """Return the refusal of an object that a member made, which is written down on it."""

        async def go() -> None:
            async with self._brought(kind) as (theirs, made):
                seen = theirs.jobs.find(made["metadata"]["uid"])
                assert seen is not None
                await theirs.jobs.refuse(seen.what, msg("a trial"), 1)

        return go

    async def end_parameter_servers(self) -> None:
        """End the pods of a job whose operator left them."""
        attempt = f"a-{uuid.uuid4().hex[:8]}"
        own = {**self.lab.at.own, names.ATTEMPT: attempt, names.BROUGHT: "true", names.TENANT: "default"}
        left = pod(f"ps-{attempt}", own)
        left["metadata"]["namespace"] = self.lab.namespace
        async with self._brought(kinds.TF_JOBS, labels=own) as (theirs, made):
            await self.admin.create(left, kinds.PODS)
            await self.admin.patch(
                kinds.PODS, name_of(left), {"status": {"phase": "Running"}}, self.lab.namespace, status=True
            )
            ended = {"conditions": [{"type": "Succeeded", "status": "True"}], "replicaStatuses": {}}
            await self.admin.patch(
                kinds.TF_JOBS, name_of(made), {"status": ended}, self.lab.namespace, status=True
            )
            theirs.lead(1)

            async def gone() -> bool:
                found = await self.admin.get(kinds.PODS, name_of(left), self.lab.namespace)
                return found is None or "deletionTimestamp" in found["metadata"]

            try:
                await until(gone, what="the pod to be ended", every=0.05)
            finally:
                await self.admin.delete(kinds.PODS, name_of(left), self.lab.namespace, grace_s=0)

    async def start_again(self) -> None:
        """Let a member's Job run again, which takes other nodes only without its start time."""
        wanted = asked(kinds.JOBS, "default", name=f"b{uuid.uuid4().hex[:6]}")
        wanted["metadata"]["namespace"] = self.lab.namespace
        await self.admin.create(wanted, kinds.JOBS)
        try:
            await self.client.patch(kinds.JOBS, name_of(wanted), UNTIMED, self.lab.namespace, status=True)
        finally:
            await self.admin.delete(kinds.JOBS, name_of(wanted), self.lab.namespace)

    async def keep_images(self) -> None:
        """Have images on all nodes, keep them there, and leave them."""
        kwok = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
        at = installation(self.lab.at.name, image="example.org/notebook:1", prewarmed=1, tolerations=(kwok,))
        await self.admin.create(kinds.NAMESPACES.named(at.namespace), kinds.NAMESPACES)
        for _ in range(2):
            await prewarming.keep(self.client, at, [])
        await prewarming.keep(self.client, installation(at.name), [])

    def measure(self, path: str) -> Operation:
        """Return a look at measured use; this cluster measures nothing."""

        async def go() -> None:
            with contextlib.suppress(ClusterError):
                await self.client.read(path)

        return go

    async def lead(self) -> None:
        """Take the label of the leader."""
        own = pod(f"service-{uuid.uuid4().hex[:6]}", {names.INSTANCE: "hub", names.COMPONENT: self.mark})
        own["metadata"]["namespace"] = self.lab.namespace
        await self.admin.create(own, kinds.PODS)
        try:
            await LeaderLabel(self.client, f"{self.lab.namespace}/{name_of(own)}").take()
        finally:
            await self.admin.delete(kinds.PODS, name_of(own), self.lab.namespace, grace_s=0)

    def operations(self) -> Mapping[str, Operation]:
        """Return all operations by name."""
        groups = (kinds.JOBS, kinds.POD_GROUPS)
        return {
            "keep a team": self.keep_a_team,
            **{f"remove {kind.full_name}": self.remove(kind) for kind in (*KEPT, kinds.QUEUES)},
            "run a job": self.run("plain", 1, kinds.JOBS),
            "run a gang": self.run("plain", 2, *groups),
            "run a Volcano job": self.run("tf", 2, kinds.VOLCANO_JOBS, *groups),
            "start twice": self.start_twice,
            **{
                f"refuse {kind.full_name}": self.refuse(kind)
                for kind in (kinds.JOBS, kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS)
            },
            "end parameter servers": self.end_parameter_servers,
            "start again": self.start_again,
            "keep images": self.keep_images,
            "measure pods": self.measure(POD_METRICS.path()),
            "measure nodes": self.measure(NODE_USE),
            "lead": self.lead,
        }


REMOVED = {kind.full_name for kind in (*KEPT, kinds.QUEUES)}
OF_SERVICE = {
    **dict.fromkeys(
        ("get configmaps", "list configmaps", "watch configmaps", "patch configmaps"), "run a job"
    ),
    **dict.fromkeys(("create configmaps", "delete configmaps", "create secrets"), "run a job"),
    "deletecollection pods": "run a job",
    "delete pods": "end parameter servers",
    "patch pods": "lead",
    "create services": "run a gang",
    "get services": "start twice",
    "create podgroups.scheduling.volcano.sh": "run a gang",
    "create jobs.batch.volcano.sh": "run a Volcano job",
    "delete jobs.batch.volcano.sh": "run a Volcano job",
    **{f"{verb} daemonsets.apps": "keep images" for verb in ("list", "patch", "create", "delete")},
    **{
        f"patch {kind.full_name}": f"refuse {kind.full_name}"
        for kind in (kinds.JOBS, kinds.MPI_JOBS, kinds.TF_JOBS, kinds.PYTORCH_JOBS)
    },
    "patch jobs/status.batch": "start again",
    "list pods.metrics.k8s.io": "measure pods",
    "list nodes.metrics.k8s.io": "measure nodes",
}
"""Operations that need a right; all other rights are needed to keep a team, or to remove what it no longer needs."""


def of_service(right: Right) -> str:
    """Return the operation of the service that needs a right."""
    verb, _, what = str(right).partition(" ")
    if verb in ("get", "delete") and what in REMOVED:
        return f"remove {what}"
    return OF_SERVICE.get(str(right), "keep a team")


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Any:
    made = KubeLab(kube, tmp_path)
    kwok = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
    nodes = [fake_nodes.node(number, 0) for number in range(2)]
    for number, each in enumerate(nodes):
        each["metadata"]["name"] = f"{made.at.name}-{number}"
        each["metadata"]["labels"]["kubernetes.io/hostname"] = f"{made.at.name}-{number}"
    made.apply(*nodes)
    assert kwok
    try:
        yield made
    finally:
        kube("delete", "node", *(each["metadata"]["name"] for each in nodes), "--wait=false")
        made.close()


@pytest.mark.whole
async def test_the_service_needs_each_of_its_rights(kube: Kube, chart: Chart, lab: KubeLab) -> None:
    roles = ("ClusterRole/mlp-hub-mlp-hub-service", "Role/hub-mlp-hub-service")
    async with account(kube, rules(chart, *roles)) as held:
        operations = ServiceAtWork(kube, held, lab, "service").operations()
        for operation in operations.values():
            held.client.refused.clear()
            async with asyncio.timeout(PATIENCE_S):
                await operation()
            assert [said for said in held.client.refused if "cannot" in said] == []
        assert await unneeded(held, operations, of_service) == []


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

    async def watch_pods(self) -> None:
        """Follow pods and warnings until a watch is open."""
        watch = PodWatch(self.client, "of=nobody")
        try:
            async with Warnings(self.client, (self.namespace, "nobody")):
                await until(self._watches, what="both watches", every=0.02)
        finally:
            watch._running.cancel()

    async def _watches(self) -> bool:
        return all(self.client.calls[f"watch {plural}"] for plural in ("pods", "events"))

    async def place_gpus(self) -> None:
        """Look for nodes with GPUs."""
        await self.client.list(kinds.NODES)


def of_hub(right: Right) -> str:
    """Return the operation of the hub that needs a right."""
    return {"list nodes": "place GPUs"}.get(str(right), "watch" if right.verb == "watch" else "serve")


async def test_the_hub_needs_each_of_its_rights(kube: Kube, chart: Chart, lab: KubeLab) -> None:
    async with account(kube, rules(chart, "ClusterRole/mlp-hub-mlp-hub-hub")) as held:
        work = HubAtWork(held, lab.namespace)

        async def watches() -> None:
            held.client.calls.clear()
            await work.watch_pods()

        operations = {"serve": work.serve, "watch": watches, "place GPUs": work.place_gpus}
        for operation in operations.values():
            await operation()
        assert [said for said in held.client.refused if "cannot" in said] == []
        assert await unneeded(held, operations, of_hub) == []


# -------------------------------------------------------- after an uninstall


async def test_the_job_of_an_uninstall_needs_each_of_its_rights(kube: Kube, chart: Chart) -> None:
    roles = ("ClusterRole/mlp-hub-mlp-hub-clean", "Role/hub-mlp-hub-clean")
    async with tenancy(kube) as own, account(kube, rules(chart, *roles)) as held:

        async def clean() -> None:
            await own.keep(RED)
            await own.keeper.close()
            await held.admin.create(kinds.SECRETS.named("hub-mlp-hub-secrets", "default"), kinds.SECRETS)
            try:
                await pod_clean.remove(held.client, own.at.name, patience=PATIENCE_S)
                await held.client.delete(kinds.SECRETS, "hub-mlp-hub-secrets", "default")
            finally:
                await held.admin.delete(kinds.SECRETS, "hub-mlp-hub-secrets", "default")

        await clean()
        assert held.client.refused == []
        assert await unneeded(held, {"clean": clean}, lambda _: "clean") == []
