"""Options of `mlp-hub monitor`, and the call that they make. The files and programs are loaded with the call."""

from __future__ import annotations

import argparse
from pathlib import Path

from mlp_hub.cli.errors import UsageFailure
from mlp_hub.settings import Settings
from mlp_language.render import say

_TOKEN_FILE = "/etc/prometheus/mlp-hub.token"  # noqa: S105 - a path
_PASSWORD_FILE = "/etc/prometheus/mlp-hub.mail-password"  # noqa: S105 - a path


def add(monitor: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = monitor.add_subparsers(
        required=True, metavar="rules|scrape|inhibitions|alertmanager|operator|dashboards|start", dest="verb"
    )
    verbs.add_parser("rules", help=say("print the alert rules for Prometheus"))
    sub = verbs.add_parser("scrape", help=say("print the scrape configuration for Prometheus"))
    sub.add_argument(
        "--token-file",
        default=_TOKEN_FILE,
        metavar="PATH",
        help=say("file that has the token ({path})", path=_TOKEN_FILE),
    )
    verbs.add_parser(
        "inhibitions", help=say("print the part of Alertmanager's configuration for a hub that is down")
    )
    sub = verbs.add_parser(
        "alertmanager",
        help=say("print a whole configuration of Alertmanager: routes, receivers, inhibitions"),
    )
    _add_receivers(sub)
    sub.add_argument(
        "--mail-password-file",
        default=_PASSWORD_FILE,
        metavar="PATH",
        help=say(
            "file that has the password for the mail server, if it asks for one ({path})", path=_PASSWORD_FILE
        ),
    )
    sub = verbs.add_parser(
        "operator", help=say("print objects of the Prometheus Operator: ScrapeConfig, PrometheusRule")
    )
    sub.add_argument(
        "--namespace", default="monitoring", metavar="NAME", help=say("namespace of the objects (monitoring)")
    )
    sub.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=say("label that the operator selects by, as release=prometheus; may be repeated"),
    )
    sub = verbs.add_parser("dashboards", help=say("write the dashboards for Grafana into a directory"))
    sub.add_argument("directory", type=Path, metavar="DIR")
    sub = verbs.add_parser(
        "start", help=say("run Prometheus and Alertmanager beside this hub, on loopback, until Ctrl+C")
    )
    _add_receivers(sub)
    for option, default, text in (
        ("--prometheus-port", 9090, say("port of Prometheus (9090)")),
        ("--alertmanager-port", 9093, say("port of Alertmanager (9093)")),
        ("--interval", 15, say("seconds between two scrapes (15)")),
        ("--keep-days", 15, say("days for which Prometheus keeps samples (15)")),
    ):
        sub.add_argument(option, type=int, default=default, metavar="N", help=text)


def _add_receivers(sub: argparse.ArgumentParser) -> None:
    for option, word, text in (
        ("--mail-to", "ADDRESS", say("send alerts to this address by MLP_MAIL_SERVER; may be repeated")),
        ("--webhook", "URL", say("send alerts to this address by POST; may be repeated")),
        ("--webhook-file", "PATH", say("file with such addresses, one a line; secret ones are not options")),
    ):
        sub.add_argument(option, action="append", default=[], metavar=word, help=text)


def do(settings: Settings, args: argparse.Namespace) -> int:
    """Do what the words ask for."""
    from mlp_hub.cli.commands import monitor  # noqa: PLC0415

    if args.verb == "scrape":
        return monitor.scrape(settings, args.token_file)
    if args.verb == "dashboards":
        return monitor.dashboards(args.directory)
    if args.verb == "operator":
        return monitor.operator(settings, args.namespace, args.label)
    if args.verb == "alertmanager":
        return monitor.alertmanager(settings, args.mail_to, _webhooks(args), args.mail_password_file)
    if args.verb == "start":
        from mlp_hub.cli.commands import monitor_start  # noqa: PLC0415

        options = monitor_start.WatchOptions(
            args.prometheus_port,
            args.alertmanager_port,
            args.mail_to,
            _webhooks(args),
            args.interval,
            args.keep_days,
        )
        return monitor_start.start(settings, options)
    return monitor.show(settings, args.verb)


def _webhooks(args: argparse.Namespace) -> list[str]:
    found: list[str] = list(args.webhook)
    for name in args.webhook_file:
        try:
            lines = Path(name).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageFailure(
                say("--webhook-file {name} cannot be read: {error}.", name=name, error=str(error))
            ) from error
        found += [line.strip() for line in lines if line.strip()]
    return found
