"""Changes of accounts that are asked for at the hub itself: the platform's audit log has each before it is made."""

from __future__ import annotations

from typing import Any

from mlp_hub.hub_integration.accounts import unrecorded
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


def deliver_kept(db: Any) -> None:
    """Deliver the entries that a hub before this one could not, while this one runs."""
    if _service:
        unrecorded.ensure_table(db)
        unrecorded.begin(db, lambda user, fields: _service[0].token_ended(user, **fields))


async def record(handler: Any, name: str, action: str, **fields: object) -> None:
    """Record a change of an account, unless the platform's service asks for it: that records it by itself.

    Raises `AccountRefused` where it cannot be recorded; then nothing may change.
    """
    asked = handler.current_user
    if (asked.kind, asked.name) == ("service", SERVICE) or not _service:
        return
    try:
        await _service[0].changing(name, actor=asked.name, action=action, **fields)
    except (ServiceUnreachable, ServiceRefused) as error:
        handler.log.warning("%s of %s by %s cannot be recorded: %s", action, name, asked.name, error)
        raise AccountRefused(
            msg("nothing was changed: the platform's service cannot record it now; try again"),
            "Unavailable",
            503,
        ) from error
