"""The command line of `mlp-hub`; each command is imported when it is used."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlp_hub.cli.errors import Failure
from mlp_hub.settings import Settings, SettingsError, table

Command = Callable[[Settings, argparse.Namespace], int]


def run(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, do it, and return the exit status: 0, 1 failed, 2 usage, 3 the machine."""
    args = _parser().parse_args(argv)
    try:
        settings = Settings.load(os.environ)
        if settings.allow_no_sandbox:  # may stand in MLP_CONFIG; what looks at the machine reads the variable
            os.environ["MLP_ALLOW_NO_SANDBOX"] = "1"
        command: Command = args.command
        return command(settings, args)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n`mlp-hub --settings` lists all settings.\n")
        return 2
    except Failure as failure:
        sys.stderr.write(failure.text() + "\n")
        return failure.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of our output ended; nothing is left to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _up(settings: Settings, _args: argparse.Namespace) -> int:
    from mlp_hub.cli import up  # noqa: PLC0415

    return up.up(settings, os.environ)


def _supervise(settings: Settings, _args: argparse.Namespace) -> int:
    from mlp_hub.cli import up  # noqa: PLC0415

    return up.supervise(settings, os.environ)


def _down(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import down  # noqa: PLC0415
    from mlp_hub.cli.errors import UsageFailure  # noqa: PLC0415

    jobs = args.jobs or os.environ.get("JOBS") or "keep"
    if jobs not in ("keep", "stop"):
        raise UsageFailure(f"JOBS is {jobs}; it must be keep or stop")
    return down.down(settings, stop_jobs=jobs == "stop")


def _status(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import status  # noqa: PLC0415

    return status.status(settings, as_json=args.json)


def _logs(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import status  # noqa: PLC0415

    # in a pipe the reader waits for our end, unless it asked for what is still to come
    follow = args.follow or (sys.stdout.isatty() and not args.no_follow)
    return status.logs(settings, args.components, lines=args.tail, follow=follow)


def _doctor(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import doctor  # noqa: PLC0415

    return doctor.doctor(settings, as_json=args.json)


def _token(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import accounts  # noqa: PLC0415

    made = accounts.token(settings, args.user, args.scope, note=args.note, expires_in=args.expires_in)
    sys.stdout.write(made + "\n")
    return 0


def _user_add(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import accounts  # noqa: PLC0415

    accounts.user_add(
        settings, args.name, tenant=args.tenant, admin=args.admin, password_stdin=args.password_stdin
    )
    return 0


def _audit(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import audit  # noqa: PLC0415

    filters = {name: getattr(args, name) for name in audit.FILTERS}
    return audit.audit(settings, filters, lines=args.lines, as_json=args.json)


def _simulate(settings: Settings, args: argparse.Namespace) -> int:
    from mlp_hub.cli import simulate  # noqa: PLC0415
    from mlp_hub.cli.errors import UsageFailure  # noqa: PLC0415

    if (args.scenario is None) == (args.export is None):
        raise UsageFailure("Name a SCENARIO to run, or --export now or --export DAYS; one of the two.")
    if args.export is not None:
        return simulate.export(settings, args.export, as_json=args.json)
    return simulate.simulate(args.scenario, as_json=args.json, policy=args.policy, plot=args.plot)


class _ShowSettings(argparse.Action):
    """Prints the table of settings and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for row in table():
            unit = f" {row.unit}" if row.unit and row.default else ""
            default = f" (default {row.default}{unit})" if row.default else ""
            sys.stdout.write(f"{row.variable}{default}\n    {row.doc}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlp-hub",
        description="Runs MLP Hub on this machine.",
        epilog="Settings come from MLP_* variables or c.MLPHub.* in the file that MLP_CONFIG names; "
        "`mlp-hub --settings` lists them.",
    )
    parser.add_argument("--settings", action=_ShowSettings, nargs=0, help="list all settings and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        sub.set_defaults(command=command)
        return sub

    add("up", _up, "start the hub in the background and wait until it answers")
    sub = add("down", _down, "stop the hub; jobs and notebook servers go on")
    sub.add_argument(
        "--jobs", choices=("keep", "stop"), help="stop: suspend jobs and end notebook servers too"
    )
    sub = add("status", _status, "show the components, their memory and the jobs")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = add("logs", _logs, "print the logs of the components; on a terminal follow them until Ctrl+C")
    sub.add_argument(
        "components", nargs="*", metavar="COMPONENT", help="hub, service, proxy, supervisor; all if none"
    )
    sub.add_argument("--tail", type=int, default=20, metavar="N", help="lines of each to begin with (20)")
    ways = sub.add_mutually_exclusive_group()
    ways.add_argument("--follow", "-f", action="store_true", help="follow in a pipe too")
    ways.add_argument("--no-follow", action="store_true", help="end after these")
    sub = add("doctor", _doctor, "tell what works on this machine and what not, with the remedy")
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = add("token", _token, "print a new token of a user, and nothing else")
    sub.add_argument("--user", required=True, metavar="NAME")
    sub.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="S",
        help="may be given several times; all of the user's if none",
    )
    sub.add_argument("--note", default="", help="what the token is for")
    sub.add_argument(
        "--expires-in", type=int, metavar="SECONDS", help="how long it holds; for ever if not given"
    )
    sub = add("user", _user_add, "make an approved account without the browser")
    verbs = sub.add_subparsers(required=True, metavar="add")
    sub = verbs.add_parser("add", help="make an approved account")
    sub.add_argument("name", metavar="NAME")
    sub.add_argument("--tenant", metavar="T", help="put the user into this tenant")
    sub.add_argument("--admin", action="store_true", help="make the user an administrator")
    sub.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    sub.set_defaults(command=_user_add)
    sub = add("audit", _audit, "print who changed what, the newest last")
    sub.add_argument("--actor", metavar="NAME", help="who did it; system for the hub itself")
    sub.add_argument("--action", metavar="A", help="what, as tenant.update; tenant. for all that begin so")
    sub.add_argument("--object", metavar="NAME", help="to what: a tenant, a user, a window")
    sub.add_argument("--tenant", metavar="T", help="in which tenant")
    sub.add_argument("--since", metavar="TIME", help="2031-03-01T08:00Z, or 7d, 12h, 30m ago")
    sub.add_argument("--until", metavar="TIME", help="as --since")
    sub.add_argument("--lines", type=int, default=100, metavar="N", help="the last N (100)")
    sub.add_argument("--json", action="store_true", help="print one JSON object a line")
    sub = add("simulate", _simulate, "run a scenario of nodes, tenants and jobs in virtual time")
    sub.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a file in YAML or JSON, - for standard input"
    )
    sub.add_argument(
        "--export",
        metavar="now|DAYS",
        help="print the running hub as a scenario instead: its present, or its jobs of the last DAYS",
    )
    sub.add_argument(
        "--json", action="store_true", help="print one JSON object a line: what happens, and the summary"
    )
    sub.add_argument("--policy", metavar="NAME", help="run under this policy instead")
    sub.add_argument("--plot", metavar="FILE.svg", help="draw nodes and tenants over time")
    add("supervise", _supervise, "run in the foreground, for systemd and containers")
    return parser
