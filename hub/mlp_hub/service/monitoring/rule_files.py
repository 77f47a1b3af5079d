"""Files of Prometheus and Alertmanager that are written from the table of alert rules, and the scrapes of a hub."""

from __future__ import annotations

from typing import Any

from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import ALL_RULES, INHIBITING, MINUTE_S

GROUP = "mlp-hub"
PAGE = "reference/alerts"
"""Page of the documentation with a section for each alert."""


def rules_file(pages: str) -> dict[str, Any]:
    """Return the rule file of Prometheus. `pages` is the address of the documentation, with a slash at its end."""
    return {"groups": [{"name": GROUP, "rules": [_of_prometheus(rule, pages) for rule in ALL_RULES]}]}


def inhibitions() -> dict[str, Any]:
    """Return the part of Alertmanager's configuration that silences all other alerts while the hub is away."""
    return {
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{source}"'],
                "target_matchers": ['alertname=~"MLP.+"', f'alertname!="{source}"'],
            }
            for source in INHIBITING
        ]
    }


def scrape_config(scheme: str, host: str, path: str, token_file: str, base: str) -> dict[str, Any]:
    """Return the scrape configuration of Prometheus for the platform and for JupyterHub, with one token for both."""
    common: dict[str, Any] = {
        "scheme": scheme,
        "authorization": {"type": "Bearer", "credentials_file": token_file},
        "static_configs": [{"targets": [host]}],
    }
    return {
        "scrape_configs": [
            {"job_name": GROUP, "metrics_path": path, **common},
            {"job_name": "jupyterhub", "metrics_path": f"{base}/hub/metrics", **common},
        ]
    }


def anchor(rule: AlertRule) -> str:
    """Return the anchor of a rule's section on the page of alerts."""
    return rule.name.lower()


class _Labels(dict[str, str]):
    """Templates of Prometheus by the names in our sentences."""

    def __missing__(self, name: str) -> str:
        return "{{ $labels." + name + " }}"


_VALUES = {
    "%": '{{ $value | humanizePercentage | reReplaceAll "%" " %" }}',
    "s": "{{ $value | humanizeDuration }}",
    "1": '{{ printf "%.0f" $value }}',
    "": "{{ $value | humanize }}",
}


def _of_prometheus(rule: AlertRule, pages: str) -> dict[str, Any]:
    labels = _Labels(value=_VALUES[rule.unit])
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": f"{rule.for_s // MINUTE_S}m",
        "labels": {"severity": rule.severity},
        "annotations": {
            "summary": rule.summary.format_map(labels),
            "description": rule.description.format_map(labels),
            "runbook_url": f"{pages}{PAGE}#{anchor(rule)}",
        },
    }
