"""Programs of the site that the hub sends to, as the settings name them: OTLP, MLflow, and the syslog of the audit log."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, cast

from mlp_hub.service.config import AlertmanagerPolicy, ExportPolicy, SyslogReceiver
from mlp_hub.service.support.point_targets import KINDS
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.exporting import authorities, authorization


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
            _check_otlp(kind.address_label, address)
        found.append(
            ExportPolicy(
                kind.name,
                address,
                authorization(kind.secrets_label, getattr(settings, kind.secrets)),
                getattr(settings, kind.tenants),
                authorities(kind.authorities_label, getattr(settings, kind.authorities)),
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
