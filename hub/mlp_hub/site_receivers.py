"""Programs of the site that the hub sends to, as the settings name them: OTLP, MLflow, and the syslog of the audit log."""

from __future__ import annotations

import ipaddress
import socket
import threading
from importlib.util import find_spec
from typing import Any, cast
from urllib.parse import urlsplit

from mlp_hub.domain.public_addresses import is_admitted
from mlp_hub.point_targets import KINDS
from mlp_hub.service.config import AlertmanagerPolicy, ExportPolicy, SyslogReceiver
from mlp_hub.service.notices.sender import PRIVATE
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.exporting import authorities, authorization
from mlp_hub.settings.values import variable_of
from mlp_language.render import here, render

LOOK_S = 5.0
"""Safety: seconds for which the name of a receiver is looked up: an operator waits for it, and sending checks again."""


def syslog_of(settings: Settings) -> SyslogReceiver | None:
    """Return the syslog that entries of the audit log are shipped to; None if there is none. Raises `SettingsError`."""
    found = settings.audit_receiver
    if found is None:
        return None
    transport, host, port = found
    return SyslogReceiver(
        cast("Any", transport),
        host,
        port,
        ca=settings.audit_ship_ca,
        certificate=settings.audit_ship_certificate,
        key=settings.audit_ship_key,
    )


def check_heads_webhook(settings: Settings, *, look_up: bool = True) -> None:
    """Raise `SettingsError` if heads of the audit log could never be posted, because the address is private and not allowed.

    The check and the words are those of people's webhooks. A host without an address now may have one later. Without `look_up`
    only a number is checked: a service that restarts does not depend on names.
    """
    parts = urlsplit(settings.audit_webhook)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    if not host or not (look_up or _is_number(host)):
        return
    found: list[bool] = []

    def look() -> None:
        try:
            known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.append(is_admitted(host, port, (one[4][0] for one in known), settings.notice_private))
        except (OSError, UnicodeError):
            found.append(True)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(LOOK_S)
    if found == [False]:
        raise SettingsError(f"MLP_AUDIT_WEBHOOK: {host}: {render(PRIVATE, here())}")


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def traces_of(settings: Settings) -> str:
    """Return the collector of traces; raise `SettingsError` if the library that traces need is missing."""
    _check_otlp("MLP_TRACES_ENDPOINT", settings.traces_endpoint)
    return settings.traces_endpoint


def exports_of(settings: Settings) -> tuple[ExportPolicy, ...]:
    """Return the targets of metric points; raise `SettingsError` if a library or a secret for one is missing."""
    found = []
    for kind in KINDS.values():
        address = getattr(settings, kind.address)
        if not address:
            continue
        if kind.extra == "otlp":
            _check_otlp(variable_of(kind.address), address)
        found.append(
            ExportPolicy(
                kind.name,
                address,
                authorization(variable_of(kind.secrets), getattr(settings, kind.secrets)),
                getattr(settings, kind.tenants),
                authorities(variable_of(kind.authorities), getattr(settings, kind.authorities)),
                packed=bool(kind.compression) and getattr(settings, kind.compression) == "gzip",
            )
        )
    return tuple(found)


def alertmanager_of(settings: Settings) -> AlertmanagerPolicy | None:
    """Return the Alertmanager that is asked whether it delivers; None if there is none. Raises `SettingsError`."""
    if not settings.alertmanager_url:
        return None
    return AlertmanagerPolicy(
        settings.alertmanager_url,
        authorization("MLP_ALERTMANAGER_SECRETS", settings.alertmanager_secrets),
        authorities("MLP_ALERTMANAGER_CA", settings.alertmanager_ca),
    )


def _check_otlp(label: str, address: str) -> None:
    if address and (find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None):
        raise SettingsError(f"{label} needs a library: install mlp-hub[otlp], or unset it")
