"""Changes of accounts that are asked for at the hub itself: the platform's audit log has each before it is made.

Only a change that takes something away is made without the service; its entry is stored with it, and follows.
"""

from __future__ import annotations

from typing import Any

from mlp_hub.hub_integration.accounts import outbox
from mlp_hub.hub_integration.accounts.outbox import DELIVERY, OutboxNews, news
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.configure import SERVICE
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_language.message import msg
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.service_client import ServiceClient

_service: list[ServiceClient] = []


def install(settings: Settings) -> None:
    """Have changes recorded by the service of these settings."""
    _service[:] = [ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))]
    DELIVERY.install(_service[0])


def deliver_kept(db: Any) -> None:
    """Deliver the entries that a hub before this one could not, while this one runs."""
    outbox.open_table(db)
    DELIVERY.begin(db)


async def record(handler: Any, name: str, action: str, **fields: object) -> None:
    """Record a change of an account, unless the platform's service asks for it: that records it by itself.

    Raises `AccountRefused` where it cannot be recorded; then nothing may change.
    """
    if _records_itself(handler):
        return
    asked = handler.current_user
    if not await DELIVERY.catch_up(handler.db):
        # or a right that is given again would be recorded before its removal
        handler.log.warning(
            "%s of %s by %s cannot be recorded yet: earlier changes wait", action, name, asked.name
        )
        raise _not_recorded()
    try:
        await _service[0].changing(name, actor=asked.name, action=action, **fields)
    except (ServiceUnreachable, ServiceRefused) as error:
        handler.log.warning("%s of %s by %s cannot be recorded: %s", action, name, asked.name, error)
        raise _not_recorded() from error


def _not_recorded() -> AccountRefused:
    return AccountRefused(
        msg("nothing was changed: the platform's service cannot record it now; try again"),
        "Unavailable",
        503,
    )


async def record_removal(handler: Any, name: str, action: str, **fields: object) -> OutboxNews | None:
    """Record a change that takes something away; return the entry to keep with it if the service cannot record it now."""
    if _records_itself(handler):
        return None
    told = news("account", name, actor=handler.current_user.name, action=action, **fields)
    return None if await DELIVERY.tell(handler.db, told) else told


def _records_itself(handler: Any) -> bool:
    asked = handler.current_user
    return (asked.kind, asked.name) == ("service", SERVICE) or not _service
