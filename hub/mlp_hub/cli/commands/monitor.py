"""`mlp-hub monitor`: files for Prometheus and Alertmanager, printed as YAML."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

from mlp_hub.api.edge.call import API_BASES, BASE
from mlp_hub.api.edge.server import METRICS
from mlp_hub.service.monitoring import alert_rules
from mlp_hub.settings import Settings


def _rules(settings: Settings, token_file: str) -> dict[str, Any]:
    del token_file
    return alert_rules.rules_file(f"{settings.url.rstrip('/')}{BASE}/docs/")


def _inhibitions(settings: Settings, token_file: str) -> dict[str, Any]:
    del settings, token_file
    return alert_rules.inhibitions()


def _scrape(settings: Settings, token_file: str) -> dict[str, Any]:
    """Return the configuration for the public port: it is where Prometheus reaches both the platform and JupyterHub."""
    at = urlsplit(settings.url)
    path = f"{settings.base}{API_BASES[0]}{METRICS}"
    return alert_rules.scrape_config(at.scheme, at.netloc, path, token_file, settings.base)


FILES: Mapping[str, Callable[[Settings, str], dict[str, Any]]] = {
    "rules": _rules,
    "scrape": _scrape,
    "inhibitions": _inhibitions,
}
"""Functions that make the files, by name."""


def show(settings: Settings, what: str, token_file: str) -> int:
    """Print one of the files."""
    made = FILES[what](settings, token_file)
    sys.stdout.write(yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=120))
    return 0
