"""Acts of one person on an object of another: entries of the audit log. Acts of owners are on the object's own timeline."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg


@dataclass(frozen=True, slots=True)
class Act:
    """Change of an object that somebody asks for: its action, such as `job.cancel`, and words for the timeline."""

    context: TenantContext
    action: str
    message: Message = NOTHING

    def record(self, tx: Tx, title: str, *, owner: str, tenant: str, now: float) -> None:
        """Add an entry to the audit log in the transaction of the change; none if the owner or the platform asks."""
        if self._is_of_another(owner):
            tx.audit.add(now, self.context.user, self.action, title, tenant=tenant, detail={"user": owner})

    def signed(self, owner: str) -> Message:
        """Return the words, with the name of the person who asks if it is not the owner."""
        if not self._is_of_another(owner):
            return self.message
        return msg("{done}, by {who}", done=self.message, who=self.context.user)

    def _is_of_another(self, owner: str) -> bool:
        return self.context.user not in {"", owner}
