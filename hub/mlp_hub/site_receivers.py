"""Programs of the site that the hub sends to, as the settings name them: OTLP, MLflow, and the syslog of the audit log."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, cast

from mlp_hub.service.config import AlertmanagerPolicy, ExportPolicy, SyslogReceiver
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
    _check_otlp("MLP_METRICS_OTLP_ENDPOINT", settings.metrics_otlp_endpoint)
    targets = (
        (
            "otlp",
            settings.metrics_otlp_endpoint,
            settings.metrics_otlp_secrets,
            settings.metrics_otlp_tenants,
            settings.metrics_otlp_ca,
            settings.metrics_otlp_compression == "gzip",
        ),
        (
            "mlflow",
            settings.metrics_mlflow_url,
            settings.metrics_mlflow_secrets,
            settings.metrics_mlflow_tenants,
            settings.metrics_mlflow_ca,
            False,
        ),
    )
    return tuple(
        ExportPolicy(
            kind,
            address,
            authorization(f"MLP_METRICS_{kind.upper()}_SECRETS", secrets),
            tenants,
            authorities(f"MLP_METRICS_{kind.upper()}_CA", ca),
            packed,
        )
        for kind, address, secrets, tenants, ca, packed in targets
        if address
    )


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
