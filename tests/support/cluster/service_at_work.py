"""The service's work in a cluster as single operations, for tests of the rights that each needs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import LaunchSpec, TenantPlace
from mlp_hub.executors.kubernetes.attempt_claims import object_name
from mlp_hub.executors.kubernetes.creating import created
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.external.attempts import ExternalAttempts
from mlp_hub.executors.kubernetes.external.patches import UNTIMED
from mlp_hub.executors.kubernetes.fence import ClusterFence
from mlp_hub.executors.kubernetes.gang import describe
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.no_pods import EventsOfNamespaces
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.tenancy import dependencies
from mlp_hub.executors.kubernetes.tenancy import given as given_namespaces
from mlp_hub.executors.kubernetes.tenancy.apply import Putting
from mlp_hub.executors.kubernetes.tenancy.keeper import TenantKeeper
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import selector
from mlp_hub.executors.kubernetes.tenancy.policies import admission_check
from mlp_hub.executors.kubernetes.tenancy.removal import Left, Removal
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.errors import ClusterError
from mlp_hub.kubernetes.kinds import Kind, Object, name_of
from mlp_hub.kubernetes.leader_label import LeaderLabel
from mlp_hub.kubernetes.reflector import Selection, reflector
from mlp_language.message import msg
from support.cluster.accounts import Account
from support.cluster.gangs import launch
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.cluster.kube_lab import KubeLab
from support.cluster.pods import asked, pod
from support.cluster.tenancy import tenancy
from support.waiting import until

Operation = Callable[[], Awaitable[Any]]
RED = TenantPlace("red", Quota(cpu=4000, ram=8192), ("ann",))
DEFAULT = TenantPlace("default", Quota(cpu=4000, ram=8192), ("ann",))
OLD = "an-earlier-version"


class ServiceAtWork:
    """What the service does in a cluster, each as an operation of its own; `lab` has a tenant that exists already.

    With `given`, the tenant's namespace counts as one that an administrator made.
    """

    def __init__(self, kube: Kube, held: Account, lab: KubeLab, *, given: bool = False) -> None:
        self.kube, self.client, self.admin, self.lab = kube, held.client, held.admin, lab
        self.given = given
        self.team = "default" if given else "red"
        self.base: Installation | None = None
        self.at = lab.at
        if given:
            self.client.namespaces = (lab.namespace,)
            self.at = replace(
                lab.at,
                namespaces=(lab.namespace,),
                home=lab.namespace,
                capacity={"cpu": "64", "memory": "256Gi"},
            )

    @contextlib.asynccontextmanager
    async def _tenancy(self) -> AsyncIterator[tuple[Installation, TenantKeeper]]:
        if self.given:
            keeper = TenantKeeper(self.admin, self.at)
            try:
                yield self.at, keeper
            finally:
                await keeper.close()
                for kind in given_namespaces.KEPT:
                    for each in (
                        await self.admin.list(kind, self.lab.namespace, labels=selector(self.at))
                    ).items:
                        await self.admin.delete(kind, name_of(each), self.lab.namespace)
            return
        async with tenancy(self.kube) as own:
            keeper = TenantKeeper(self.admin, own.at)
            try:
                yield own.at, keeper
            finally:
                await keeper.close()

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Have a team that is kept already, of which objects are copied that nobody needs."""
        async with contextlib.AsyncExitStack() as stack:
            self.base, keeper = await stack.enter_async_context(self._tenancy())
            await keeper.keep([DEFAULT if self.given else RED])
            await keeper.close()
            yield

    async def _copy(self, kind: Kind) -> tuple[Object, str | None]:
        """Return an object of the team under a name that is not there, and its namespace."""
        assert self.base is not None
        space = self.base.namespace_of(self.team) if kind.namespaced else None
        first = (await self.admin.list(kind, space, labels=selector(self.base))).items[0]
        about = {key: first["metadata"].get(key) or {} for key in ("labels", "annotations")}
        about |= {"name": f"{self.base.name}-{OLD}"} | ({"namespace": space} if space else {})
        rest = {key: value for key, value in first.items() if key not in ("metadata", "status")}
        copy = {**rest, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": about}
        copy = json.loads(json.dumps(copy))
        # an operation that was ended may have had a request on its way
        await self.admin.delete(kind, name_of(copy), space)
        await self._gone(kind, name_of(copy), space)
        if kind == kinds.PERSISTENT_VOLUMES:
            copy["spec"]["claimRef"] = {"namespace": "default", "name": OLD}
        if kind == kinds.PERSISTENT_VOLUME_CLAIMS:
            copy["spec"]["volumeName"] = OLD
        return copy, space

    def put(self, kind: Kind) -> Operation:
        """Return the creation of an object of a team, as its keeper makes and corrects all of them."""

        async def go() -> None:
            assert self.base is not None
            copy, space = await self._copy(kind)
            try:
                await Putting(self.client, self.base).ensure_object(kind, copy, None)
            finally:
                await self.admin.delete(kind, name_of(copy), space)
                await self._gone(kind, name_of(copy), space)

        return go

    def follow(self, kind: Kind) -> Operation:
        """Return the news of a new object of a kind, as its keeper hears of it."""

        async def go() -> None:
            copy, space = await self._copy(kind)
            news = reflector(self.client, Selection(kind, labels=f"{names.MANAGED_BY}={OLD}"), name_of)
            running = asyncio.ensure_future(news.run())
            copy["metadata"]["labels"] = {names.MANAGED_BY: OLD}
            try:
                await news.synced()
                await self.admin.create(copy, kind)

                async def heard() -> bool:
                    return name_of(copy) in news.objects.values()

                await until(heard, what=f"{kind.plural} to be heard of")
            finally:
                running.cancel()
                await self.admin.delete(kind, name_of(copy), space)
                await self._gone(kind, name_of(copy), space)

        return go

    def remove(self, kind: Kind) -> Operation:
        """Return the removal of an object of a kind that no team needs, as an earlier version made it."""

        async def go() -> None:
            assert self.base is not None
            copy, space = await self._copy(kind)
            await self.admin.create(copy, kind)
            try:
                await Removal(self.client, self.base).remove(
                    [Left(kind, (space or "", name_of(copy)), self.team)]
                )
                left = await self.admin.get(kind, name_of(copy), space)
                assert left is None or "deletionTimestamp" in left["metadata"]
            finally:
                await self.admin.delete(kind, name_of(copy), space)
                await self._gone(kind, name_of(copy), space)

        return go

    async def _gone(self, kind: Kind, name: str, space: str | None) -> None:
        async def look() -> bool:
            return await self.admin.get(kind, name, space) is None

        await until(look, what=f"{kind.plural} to be gone", every=0.05)

    async def follow_nodes(self) -> None:
        """Hear of a change of a node."""
        news = reflector(
            self.client, Selection(kinds.NODES), lambda found: found["metadata"]["resourceVersion"]
        )
        running = asyncio.ensure_future(news.run())
        try:
            await news.synced()
            before = dict(news.objects)
            _, name = next(iter(before))
            mark = {"metadata": {"annotations": {"mlp-hub/trial": uuid.uuid4().hex}}}
            await self.admin.patch(kinds.NODES, name, mark)

            async def heard() -> bool:
                return news.objects.get(("", name)) != before["", name]

            await until(heard, what="the node to be heard of")
        finally:
            running.cancel()

    async def read_the_address_of_the_api(self) -> None:
        """Read what no pod may reach."""
        await dependencies.api_addresses(self.client)

    async def try_the_policies(self) -> None:
        """Have the API judge a pod that it must refuse."""
        assert self.base is not None
        await admission_check.holds(self.client, self.base.namespace_of(self.team))

    async def check_the_namespace(self) -> None:
        """Look at what an administrator made."""
        await given_namespaces.check(self.client, self.at, "default")

    def run(self, runtime: str, workers: int, *served: Kind) -> Operation:
        """Return the life of an attempt: start, end, removal of its record."""

        async def go() -> None:
            ways = OperatorWays(frozenset(served))
            executor = KubernetesExecutor(self.client, self.at, ways, lambda: self.lab.nodes)
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

    def start_twice(self, runtime: str, workers: int, *served: Kind) -> Operation:
        """Return the creation of a gang's objects although the answer to the first request was lost."""

        async def go() -> None:
            spec = launch(runtime, "print(1)", workers, tenant="default")
            gang = describe(spec, self.at, OperatorWays(frozenset(served)), object_name(spec))
            objects = (*gang.beside, gang.main)
            try:
                for _ in range(2):
                    for kind, wanted in objects:
                        await created(self.client, kind, wanted)
            finally:
                for kind, wanted in objects:
                    await self.admin.delete(kind, name_of(wanted), self.lab.namespace)

        return go

    async def ask_why_no_pods(self) -> None:
        """Read the cluster's warnings about an attempt without pods."""
        await EventsOfNamespaces(self.client).since(self.lab.namespace, 1.0, 100.0)

    @contextlib.asynccontextmanager
    async def _brought(self, kind: Kind, **more: Any) -> AsyncIterator[tuple[ExternalAttempts, Object]]:
        wanted = asked(kind, "default", name=f"b{uuid.uuid4().hex[:6]}", **more)
        wanted["metadata"]["namespace"] = self.lab.namespace
        made = await self.admin.create(wanted, kind)
        assert made is not None
        at = self.at
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
        own = pod(f"service-{uuid.uuid4().hex[:6]}", {names.INSTANCE: "hub", names.COMPONENT: "service"})
        own["metadata"]["namespace"] = self.lab.namespace
        await self.admin.create(own, kinds.PODS)
        try:
            await LeaderLabel(self.client, f"{self.lab.namespace}/{name_of(own)}").take()
        finally:
            await self.admin.delete(kinds.PODS, name_of(own), self.lab.namespace, grace_s=0)
