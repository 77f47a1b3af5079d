"""The executor of a hub whose jobs are pods of a cluster, with all that it needs of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from mlp_hub.domain.jobs.job import Failure
from mlp_hub.executors.base import LaunchSpec, Observation, TenantPlace
from mlp_hub.executors.kubernetes import pod_problems
from mlp_hub.executors.kubernetes.cache import SYNC_S
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.external.admission_gate import AdmissionGate
from mlp_hub.executors.kubernetes.external.attempts import ExternalAttempts
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.executors.kubernetes.nodes.cluster_nodes import ClusterNodes
from mlp_hub.executors.kubernetes.nodes.given_capacity import GivenCapacity
from mlp_hub.executors.kubernetes.operators import OperatorWays, discover
from mlp_hub.executors.kubernetes.tenancy.keeper import TenantKeeper
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterUnreachable
from mlp_language.message import Message, msg


class ClusterExecutor(KubernetesExecutor):
    """Runs attempts on the cluster's own nodes. It has the client to itself."""

    keeps_tenants = True
    external_jobs: AdmissionGate

    def __init__(
        self, client: KubernetesClient, at: Installation, ways: OperatorWays, app_key: str = ""
    ) -> None:
        self._of_cluster: ClusterNodes | GivenCapacity = (
            GivenCapacity(at) if at.namespaces else ClusterNodes(client, at)
        )
        self._own_client = client
        nodes = self._of_cluster
        super().__init__(client, at, ways, nodes.nodes, nodes.on_nodes, device=nodes.device, app_key=app_key)
        self._keeper = TenantKeeper(client, at, self._fence.act)
        # whose a job is that somebody made with kubectl, only an admission policy can tell: without them there are none
        brought = () if at.namespaces else ways.served
        self._theirs = ExternalAttempts(client, at, brought, self._fence, nodes.nodes, self._keeper.tenant_of)
        self.external_jobs = self._theirs.jobs

    @classmethod
    async def make(cls, client: KubernetesClient, at: Installation, app_key: str = "") -> Self:
        """Ask the cluster which operators it has; raises `ClusterUnreachable`."""
        try:
            return cls(client, at, await discover(client), app_key)
        except BaseException:
            await client.close()
            raise

    async def open(self) -> None:
        """Find the nodes, and the work that an earlier hub started."""
        await self._of_cluster.open()
        await super().open()
        await self._brought_seen()

    async def _brought_seen(self) -> None:
        try:
            async with asyncio.timeout(SYNC_S):
                await self._theirs.seen()
        except TimeoutError:
            raise ClusterUnreachable(self._own_client.host, str(msg("it is slow"))) from None

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on."""
        await super().fence(epoch, wait_s)
        await self._brought_seen()
        self._theirs.lead(epoch)

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Create what runs an attempt, or let run what its user created."""
        if spec.brought is None:
            await super().start(spec, epoch)
        else:
            await self._brought_seen()
            await self._theirs.start(spec, spec.brought, epoch)

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        """End an attempt: delete its pods, and what would make others."""
        if self._theirs.knows(attempt):
            await self._theirs.stop(attempt, grace_s, epoch, failure)
        else:
            await super().stop(attempt, grace_s, epoch, failure)

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Leave nothing of an attempt; an object that its user created stays, and is held."""
        if self._theirs.knows(attempt):
            await self._theirs.forget(attempt, epoch)
        else:
            await super().forget(attempt, epoch)

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts."""
        await self._brought_seen()
        theirs = [attempt for attempt in attempts if self._theirs.knows(attempt)]
        seen = await super().observe([attempt for attempt in attempts if attempt not in theirs])
        return {**seen, **await self._theirs.observe(theirs)}

    async def known(self) -> Sequence[str]:
        """List all attempts that anything is left of."""
        await self._brought_seen()
        return [*await super().known(), *self._theirs.known()]

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt whenever looking again is worth it."""
        super().on_change(callback)
        self._theirs.on_change(callback)

    def trouble(self) -> Message | None:
        """Say that the cluster is not heard of, and why."""
        error = self._of_cluster.trouble
        return super().trouble() if error is None else pod_problems.of_cluster(error)

    async def keep_tenants(self, tenants: Sequence[TenantPlace], epoch: int = 0) -> None:
        """Have in the cluster what these tenants need, and nothing of others that hold nothing."""
        try:
            async with self._fence.act(epoch):
                await self._keeper.keep(tenants, epoch)
        finally:
            self.external_jobs.tell_all()

    async def keep_images(self, used: Sequence[str], epoch: int = 0) -> None:
        """Have the images that are used most on all nodes, as far as there is room."""
        if self._at.namespaces:
            return  # which nodes there are is not known
        async with self._fence.act(epoch):
            await prewarming.keep(self._own_client, self._at, used)

    async def close(self) -> None:
        """Ask the cluster nothing any more."""
        await self._keeper.close()
        await self._theirs.close()
        await super().close()
        await self._of_cluster.close()
        await self._own_client.close()
