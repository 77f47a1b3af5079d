"""Acts of one person on an object of another: entries of the audit log. Acts of owners are on the object's own timeline."""

from __future__ import annotations

from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg


def is_of_another(context: TenantContext, owner: str) -> bool:
    """Return whether a person other than the owner asks; the platform's own work is nobody's."""
    return context.user not in {"", owner}


def record_act(
    tx: Tx, context: TenantContext, action: str, title: str, *, owner: str, tenant: str, now: float
) -> None:
    """Add the entry of an act, such as `job.cancel`, in its transaction; none for the owner's."""
    if is_of_another(context, owner):
        tx.audit.add(now, context.user, action, title, tenant=tenant, detail={"user": owner})


def signed(message: Message, context: TenantContext, *, owner: str) -> Message:
    """Return the message with the name of the person who asked, if it is not the owner."""
    return (
        msg("{done}, by {who}", done=message, who=context.user) if is_of_another(context, owner) else message
    )
