"""Changes that several components must know of, each with the list of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlp_hub.service.state.bus import QUEUE_TOPIC

if TYPE_CHECKING:
    from mlp_hub.domain.tenants.tenant import Tenant
    from mlp_hub.service.components import Components
    from mlp_language.message import Message


class PlatformChanges:
    """Passes each change on to the components of a root that it concerns."""

    def __init__(self, root: Components) -> None:
        self._root = root

    def room_changed(self) -> None:
        """Have all look again that wait for room: amounts of a node, a job or a tenant have changed."""
        self.forget_tenants()
        self.storage_changed()

    def storage_changed(self) -> None:
        """Have all look again that wait for room, since what files take has changed: tenants are as they were."""
        root = self._root
        root.feasibility.forget()
        root.idle.something_changed()
        root.admission.wake()
        root.bus.publish(QUEUE_TOPIC, {"type": "changed"})

    def tenants_changed(self) -> None:
        """Report that tenants or their members have changed."""
        self.room_changed()
        self._root.tenant_places.look_soon()
        self._root.file_accounting.places_changed()

    def nodes_changed(self) -> None:
        """Report that nodes have changed."""
        self._root.admission.nodes_changed()
        self._root.bus.publish(QUEUE_TOPIC, {"type": "changed"})

    def default_changed(self) -> None:
        """Report that the default tenant of a user has changed."""
        self._forget_places()
        self._root.file_accounting.places_changed()

    def forget_tenants(self) -> None:
        """Have all components read tenants again that remember any."""
        self._root.feasibility.forget()
        self._forget_places()
        self._root.networks.forget()
        self._root.file_accounting.full.forget()

    def _forget_places(self) -> None:
        self._root.submissions.forget_places()
        self._root.visibility.forget()

    async def cycle_over(self) -> None:
        """Return once every decision in progress is stored."""
        await self._root.admission.cycle()

    async def check_request(self, tenant: str) -> None:
        """Note a request for resources of a tenant, which is not idle then; refuse it while files of the tenant move."""
        await self._root.storage_migration.refuses(tenant)
        await self._root.idle.asks(tenant)

    async def preview_isolation(self, before: Tenant, after: Tenant) -> Message | None:
        """Describe the move of files that a changed tenant causes, if any; refuse a change that is not possible."""
        await self._root.tenants.check_isolation(after)
        return await self._root.storage_migration.preview(before, after)
