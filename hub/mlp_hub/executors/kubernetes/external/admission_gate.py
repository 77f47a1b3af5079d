"""Jobs that people brought, as the service has them: it lets them in or not, and writes that down on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlp_hub.domain.jobs.job import ExternalJob
from mlp_hub.executors.external import ObservedExternalJob
from mlp_hub.executors.kubernetes.external import patches
from mlp_hub.executors.kubernetes.external.objects import ExternalObjects
from mlp_hub.executors.kubernetes.fence import ClusterFence
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_language.message import Message


class AdmissionGate:
    """Keeps `ExternalJobs`. `tenant_of` returns the tenant of a namespace, None where it is none of this hub's."""

    def __init__(
        self,
        client: KubernetesClient,
        objects: ExternalObjects,
        fence: ClusterFence,
        tenant_of: Callable[[str], str | None],
    ) -> None:
        self._client, self._objects, self._fence, self._tenant_of = client, objects, fence, tenant_of
        self._listeners: list[Callable[[str], None]] = []

    def all(self) -> Sequence[ObservedExternalJob]:
        """List those in namespaces of this hub's tenants."""
        found = ((view, self._tenant_of(view.namespace)) for view in self._objects.all())
        return [view.job_of(tenant) for view, tenant in found if tenant is not None]

    def find(self, uid: str) -> ObservedExternalJob | None:
        """Return the one of this uid."""
        view = self._objects.find(uid)
        tenant = None if view is None else self._tenant_of(view.namespace)
        return None if view is None or tenant is None else view.job_of(tenant)

    def is_there(self, uid: str) -> bool:
        """Whether there is one of this uid."""
        return self._objects.find(uid) is not None

    async def seen(self) -> None:
        """Return once all were listed."""
        await self._objects.seen()

    def on_news(self, callback: Callable[[str], None]) -> None:
        """Call back with the uid of an object whenever it has changed, come or gone."""
        self._listeners.append(callback)

    def tell_all(self) -> None:
        """Tell of all: the tenants are known now, or others than before."""
        for view in self._objects.all():
            self.notify(view.what.uid)

    def notify(self, uid: str) -> None:
        """Tell of news of one."""
        for callback in self._listeners:
            callback(uid)

    async def accept(self, what: ExternalJob, job: str, name: str, epoch: int = 0) -> None:
        """Write down that it is this job of the hub's."""
        async with self._fence.act(epoch):
            await self._objects.patch(what, patches.accepts(job, name))

    async def refuse(self, what: ExternalJob, why: Message, epoch: int = 0) -> None:
        """Write down that it will not run."""
        async with self._fence.act(epoch):
            await self._objects.patch(what, patches.refuses(str(why)))

    async def explain(self, what: ExternalJob, why: str, epoch: int = 0) -> None:
        """Write down why it waits; an empty text removes that."""
        async with self._fence.act(epoch):
            await self._objects.patch(what, patches.explains(why))

    async def remove(self, what: ExternalJob, epoch: int = 0) -> None:
        """Delete it; its pods go with it."""
        view = self._objects.find(what.uid)
        if view is not None:
            async with self._fence.act(epoch):
                await self._client.delete(view.form.kind, what.name, what.namespace, uid=what.uid)
