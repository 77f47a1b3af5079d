"""Services that people use, by Apprise, each in its own words."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Sequence
from typing import Any

import apprise
from apprise.manager_plugins import NotificationManager

from mlp_hub.domain.notices.notice_queries import unknown_key

SILENT_S = 10.0
"""Safety: seconds for which a service may say nothing."""


def only(services: Sequence[str]) -> None:
    """Know no other services than these, by the schemes of their addresses, in this process."""
    NotificationManager().enable_only(*services)  # type: ignore[no-untyped-call]


def prepare() -> None:
    """Load what a service needs: libraries are looked for when the first one is made, and some when the first one sends."""
    made("https://example.invalid/")
    for name in ("requests", "urllib3", "idna", "charset_normalizer", "certifi"):
        importlib.import_module(name)


def made(address: str) -> apprise.NotifyBase | None:
    """Return the service that an address is of; None where it is of none that is known."""
    if unknown_key(address) is not None:
        return None  # stored before these were known, perhaps
    asset = apprise.AppriseAsset(http_redirects=False, async_mode=False, secure_logging=True)
    found = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if found is None:
        return None
    # an address may ask to be waited for longer
    found.socket_connect_timeout = found.socket_read_timeout = SILENT_S
    return found


def check(asked: dict[str, Any]) -> dict[str, Any]:
    """Say which service an address is of."""
    found = made(asked["address"])
    return {"why": "unknown"} if found is None else {"service": str(found.service_name)}


def own_host(address: str, allowed: Sequence[str]) -> tuple[str, int] | None:
    """Return host and port of a service that runs where its user says; None for the others, and if sending alone can tell.

    Services of one company have a token where others have a host, and it may look like a number that is an address.
    """
    found = made(address)
    if found is None or not found.host or found.host.isdigit():
        return None
    templates: Sequence[str] = found.templates or ()
    if not any("{host}" in one for one in templates):
        return None
    host = str(found.host)
    if found.port is None and any(one.lower().startswith(f"{host.lower()}:") for one in allowed):
        return None  # each service has its own port
    return host, int(found.port or (443 if found.secure else 80))


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Tell a service."""
    found = made(asked["address"])
    if found is None:
        return {"why": "unknown"}
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    logger = logging.getLogger("apprise")
    logger.addHandler(Ear(logging.WARNING))
    logger.propagate = False
    # asked directly, a service that reads HTML takes tags in a text for its own
    to = apprise.Apprise(asset=found.asset)
    to.add(found)
    if to.notify(title=asked["title"], body=asked["body"], body_format=apprise.NotifyFormat.TEXT):
        return {}
    status = re.search(r"error=(\d{3})\b", " ".join(heard))
    return {"why": "failed"} if status is None else {"why": "status", "status": int(status[1])}
