"""Configuration of Alertmanager: which alerts go where, and what they inhibit; and of a Prometheus that sends them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlp_hub.service.monitoring.rule_files import inhibitions

RECEIVER, QUIET = "mlp-hub", "mlp-hub-quiet"
"""Receivers: of alerts with notices, and of those that only the pages show."""
IMPLICIT_TLS_PORT = 465
"""Given: the one port at which Alertmanager speaks TLS from the first byte."""
_SUBJECT = "[{{ .Status | toUpper }}] {{ .CommonLabels.alertname }} {{ .CommonAnnotations.summary }}"
_TEXT = (
    "{{ range .Alerts }}{{ .Status }}: {{ .Annotations.summary }}\n{{ .Annotations.description }}\n"
    "{{ .Annotations.runbook_url }}\n\n{{ end }}"
)


@dataclass(frozen=True, slots=True)
class MailRoute:
    """Mail of alerts: server, sender and login. `password_file` has the password alone; empty without a login."""

    to: Sequence[str]
    host: str
    port: int
    sender: str
    starttls: bool
    user: str = ""
    password_file: str = ""


def alertmanager_config(mail: MailRoute | None, webhooks: Sequence[str]) -> dict[str, Any]:
    """Return the whole configuration. Without mail and webhooks, alerts are only shown.

    Critical alerts are repeated after four hours, and warnings after a day. Alerts of the severity `info` are sent to nobody.
    """
    receiver: dict[str, Any] = {"name": RECEIVER}
    config: dict[str, Any] = {}
    if mail is not None:
        config["global"] = _smtp(mail)
        receiver["email_configs"] = [
            {"to": ", ".join(mail.to), "send_resolved": True, "headers": {"Subject": _SUBJECT}, "text": _TEXT}
        ]
    if webhooks:
        receiver["webhook_configs"] = [{"url": url, "send_resolved": True} for url in webhooks]
    config["route"] = {
        "receiver": RECEIVER,
        "group_by": ["alertname", "severity"],
        "group_wait": "30s",
        "group_interval": "5m",
        "repeat_interval": "24h",
        "routes": [
            {"matchers": ['severity="info"'], "receiver": QUIET},
            {"matchers": ['severity="critical"'], "receiver": RECEIVER, "repeat_interval": "4h"},
        ],
    }
    config["receivers"] = [receiver, {"name": QUIET}]
    return config | inhibitions()


def prometheus_config(
    scrape: Mapping[str, Any], rules: str, alertmanager: str, login: tuple[str, str], interval_s: int
) -> dict[str, Any]:
    """Return the configuration of a Prometheus. `login` is the name and the file with the password for Alertmanager.

    It reads the metrics of Alertmanager too: they alone show notifications that failed.
    """
    name, password_file = login
    at = {
        "basic_auth": {"username": name, "password_file": password_file},
        "static_configs": [{"targets": [alertmanager]}],
    }
    return {
        "global": {
            "scrape_interval": f"{interval_s}s",
            "scrape_timeout": f"{min(interval_s, 10)}s",
            "evaluation_interval": f"{interval_s}s",
        },
        "rule_files": [rules],
        "alerting": {
            "alertmanagers": [at],
        },
        "scrape_configs": [*scrape["scrape_configs"], {"job_name": "alertmanager", **at}],
    }


def _smtp(mail: MailRoute) -> dict[str, Any]:
    host = f"[{mail.host}]" if ":" in mail.host else mail.host
    made: dict[str, Any] = {
        "smtp_smarthost": f"{host}:{mail.port}",
        "smtp_from": mail.sender,
        "smtp_require_tls": mail.starttls,
    }
    if mail.user:
        made |= {"smtp_auth_username": mail.user, "smtp_auth_password_file": mail.password_file}
    return made
