"""`mlp-hub monitor`: files for Prometheus, Alertmanager and Grafana."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from mlp_hub.api.edge.call import API_BASES, BASE
from mlp_hub.api.edge.server import METRICS
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.service.monitoring import rule_files
from mlp_hub.service.monitoring.alert_delivery import IMPLICIT_TLS_PORT, MailRoute, alertmanager_config
from mlp_hub.service.monitoring.dashboards.grafana import text_of
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from mlp_hub.service.monitoring.operator_objects import operator_objects
from mlp_hub.settings import Settings
from mlp_language.render import say

_OWN = ("127.0.0.1", "::1", "localhost")
"""Given: names by which each machine means itself."""


def rules_of(settings: Settings) -> dict[str, Any]:
    """Return the rules, whose runbooks are pages of this hub."""
    return rule_files.rules_file(f"{settings.url.rstrip('/')}{BASE}/docs/")


def _inhibitions(settings: Settings) -> dict[str, Any]:
    del settings
    return rule_files.inhibitions()


FILES: Mapping[str, Callable[[Settings], dict[str, Any]]] = {"rules": rules_of, "inhibitions": _inhibitions}
"""Functions that make the files that need no options, by name."""


def path_of_metrics(settings: Settings) -> str:
    """Return the path of the metrics at the public port, where Prometheus reaches both the platform and JupyterHub."""
    return f"{settings.base}{API_BASES[0]}{METRICS}"


def show(settings: Settings, what: str) -> int:
    """Print one of the files."""
    return _print(FILES[what](settings))


def scrape(settings: Settings, token_file: str) -> int:
    """Print the scrape configuration for the public port."""
    return _print(_scrape_of(settings, token_file))


def _scrape_of(settings: Settings, token_file: str) -> dict[str, Any]:
    at, path = urlsplit(settings.url), path_of_metrics(settings)
    return rule_files.scrape_config(at.scheme, at.netloc, path, token_file, settings.base)


def operator(settings: Settings, namespace: str, labels: Sequence[str]) -> int:
    """Print objects of the Prometheus Operator."""
    if settings.origins.host.strip("[]") in _OWN:
        raise UsageFailure(
            say("{url} is not an address that pods reach.", url=settings.url), say("Set MLP_PUBLIC_URL.")
        )
    chosen = {}
    for label in labels:
        key, mark, value = label.partition("=")
        if not key or not mark:
            raise UsageFailure(
                say("--label {label} is not KEY=VALUE.", label=repr(label)),
                say("For example release=prometheus."),
            )
        chosen[key] = value
    made = operator_objects(_scrape_of(settings, ""), rules_of(settings), namespace, chosen)
    sys.stdout.write("---\n".join(map(as_yaml, made)))
    return 0


def alertmanager(
    settings: Settings, mail_to: Sequence[str], webhooks: Sequence[str], password_file: str
) -> int:
    """Print the configuration of Alertmanager."""
    return _print(alertmanager_of(settings, mail_to, webhooks, password_file))


def alertmanager_of(
    settings: Settings, mail_to: Sequence[str], webhooks: Sequence[str], password_file: str
) -> dict[str, Any]:
    """Return the configuration of Alertmanager; raise `UsageFailure` where it could not deliver."""
    for url in webhooks:
        _check_webhook(url)
    return alertmanager_config(_mail(settings, mail_to, password_file), webhooks)


def dashboards(directory: Path) -> int:
    """Write the dashboards into a directory, which is made if it is missing, and print their paths."""
    for path in write_dashboards(directory):
        sys.stdout.write(f"{path}\n")
    return 0


def write_dashboards(directory: Path) -> list[Path]:
    """Write the dashboards and return their paths; raise `CommandFailed` where the directory cannot be written."""
    made = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for dashboard in DASHBOARDS:
            made.append(directory / f"mlp-hub-{dashboard.name}.json")
            made[-1].write_text(text_of(dashboard), encoding="utf-8")
    except OSError as error:
        raise CommandFailed(
            say(
                "The dashboards cannot be written: {strerror}: {filename}.",
                strerror=str(error.strerror),
                filename=str(error.filename),
            ),
            say("Name a directory in which you may write."),
        ) from error
    return made


def _print(made: dict[str, Any]) -> int:
    sys.stdout.write(as_yaml(made))
    return 0


def as_yaml(made: dict[str, Any]) -> str:
    """Return a file's text."""
    text: str = yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=120)
    return text


def _check_webhook(url: str) -> None:
    try:
        at = urlsplit(url)
        good = at.scheme in ("http", "https") and bool(at.hostname) and at.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise UsageFailure(
            say("--webhook {url} is not an address.", url=repr(url)),
            say("Give one that begins with http:// or https://, as https://chat.example.org/hook."),
        )


def _mail(settings: Settings, to: Sequence[str], password_file: str) -> MailRoute | None:
    if not to:
        return None
    for address in to:
        name, found = parseaddr(address)
        if name or found != address or "@" not in found.strip("@") or not address.isprintable():
            raise UsageFailure(
                say("--mail-to {address} is not an address.", address=repr(address)),
                say("Give one address, as ops@example.org; repeat the option for more."),
            )
    if not settings.mail_server:
        raise UsageFailure(
            say("--mail-to needs a mail server, and this hub has none."),
            say("Set MLP_MAIL_SERVER and MLP_MAIL_FROM."),
        )
    host, port = settings.mail_place()
    if (settings.mail_security == "tls") is not (port == IMPLICIT_TLS_PORT):
        raise UsageFailure(
            say(
                "Alertmanager speaks TLS from the first byte at port {tls} and at no other; the mail server is at port {port}, with {security}.",
                tls=IMPLICIT_TLS_PORT,
                port=port,
                security=settings.mail_security,
            ),
            say("Choose the server's port for starttls, or send alerts to a webhook."),
        )
    user, _ = settings.mail_login()
    return MailRoute(
        to, host, port, settings.mail_from, settings.mail_security == "starttls", user, password_file
    )
