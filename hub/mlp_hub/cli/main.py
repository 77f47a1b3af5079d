"""The command line of `mlp-hub`: its commands and their options."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlp_hub.cli import calls
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.domain.text import readable
from mlp_hub.settings import Settings, SettingsError, table
from mlp_language.render import say

Command = Callable[[Settings, argparse.Namespace], int]


def run(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, do it, and return the exit status: 0, 1 failed, 2 usage, 3 the machine, 4 away for now."""
    args = _parser().parse_args(argv)
    try:
        settings = Settings.load(os.environ)
        if settings.allow_no_sandbox:  # may stand in MLP_CONFIG; what looks at the machine reads the variable
            os.environ["MLP_ALLOW_NO_SANDBOX"] = "1"
        command: Command = args.command
        return command(settings, args)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n{say('`mlp-hub --settings` lists all settings.')}\n")
        return 2
    except CommandFailed as failure:
        # what it names may be tenants' names, and root's terminal obeys whoever writes to it
        sys.stderr.write(readable(failure.text()) + "\n")
        return failure.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of our output ended; nothing is left to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        text = say("The disk has no room left. Make room, then do it again.")
        sys.stderr.write(f"{text}\n{error.filename or ''}\n")
        return 1


def _takes(sub: argparse.ArgumentParser) -> None:
    """Add the options by which a state directory belongs to another database or executor from now on."""
    for option, text in (
        (
            "--new-database",
            say("use the databases that the settings name, even if this directory used others"),
        ),
        (
            "--new-executor",
            say("use the executor or cluster that the settings name, even if this directory used another"),
        ),
    ):
        sub.add_argument(option, dest="take", action="append_const", const=option, default=[], help=text)


class _ShowSettings(argparse.Action):
    """Prints the table of settings and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for row in table():
            unit = f" {row.unit}" if row.unit and row.default else ""
            default = f" (default {row.default}{unit})" if row.default else ""
            sys.stdout.write(f"{row.variable}{default}\n    {row.doc}\n")
        parser.exit()


def _user_verbs(user: argparse.ArgumentParser) -> None:
    verbs = user.add_subparsers(required=True, metavar="add|import|password|logout")
    sub = verbs.add_parser("add", help=say("make an approved account"))
    sub.add_argument("name", metavar="NAME")
    sub.add_argument("--tenant", metavar="T", help=say("put the user into this team, and so out of default"))
    sub.add_argument("--admin", action="store_true", help=say("make the user a platform administrator"))
    sub.add_argument(
        "--password-stdin", action="store_true", help=say("read the password from standard input")
    )
    sub.set_defaults(command=calls.user_add)
    sub = verbs.add_parser(
        "import",
        help=say(
            "make accounts from a CSV file with name, team, platform_admin (yes: platform administrator)"
        ),
    )
    sub.add_argument("file", type=Path, metavar="FILE", help=say("- for standard input"))
    sub.add_argument("--dry-run", action="store_true", help=say("only print the result of each line"))
    sub.set_defaults(command=calls.user_import)
    sub = verbs.add_parser(
        "password", help=say("set another password; sessions and tokens end, notebook servers are stopped")
    )
    sub.add_argument("name", metavar="NAME")
    sub.add_argument(
        "--password-stdin", action="store_true", help=say("read the password from standard input")
    )
    sub.set_defaults(command=calls.user_password)
    sub = verbs.add_parser(
        "logout", help=say("end all sessions and tokens, and stop notebook servers; jobs continue")
    )
    sub.add_argument("name", metavar="NAME")
    sub.set_defaults(command=calls.user_logout)


def _price_verbs(prices: argparse.ArgumentParser) -> None:
    verbs = prices.add_subparsers(required=True, metavar="show|put|remove", dest="verb")
    sub = verbs.add_parser("show", help=say("print the price list"))
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub = verbs.add_parser("put", help=say("replace the price list"))
    sub.add_argument("file", type=Path, metavar="FILE", help=say("price list as JSON, - for standard input"))
    verbs.add_parser("remove", help=say("remove the price list"))


def _budget_verbs(budget: argparse.ArgumentParser) -> None:
    verbs = budget.add_subparsers(required=True, metavar="list|set|remove", dest="verb")
    sub = verbs.add_parser("list", help=say("print the budgets of all teams and what of them is spent"))
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub = verbs.add_parser("set", help=say("set what a team may spend each month, or in one period"))
    sub.add_argument("tenant", metavar="TENANT")
    sub.add_argument("amount", metavar="AMOUNT", help=say("amount in the currency of the price list"))
    sub.add_argument("--currency", metavar="EUR", help=say("currency, to be sure that it is this one"))
    sub.add_argument("--levels", metavar="80,100", help=say("percentages at which admins are told (80,100)"))
    sub.add_argument("--stop", action="store_true", help=say("stop new work once it is spent"))
    sub.add_argument("--begins", metavar="2031-03-01", help=say("first day of its only period"))
    sub.add_argument("--ends", metavar="2031-06-01", help=say("day before which that period ends"))
    sub = verbs.add_parser("remove", help=say("remove the budget of a team"))
    sub.add_argument("tenant", metavar="TENANT")


def _money_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    _price_verbs(add("prices", calls.prices, say("show, replace or remove the price list of costs")))
    _budget_verbs(add("budget", calls.budget, say("list, set or remove what teams may spend")))
    sub = add("report", calls.report, say("print the report of a month's use and cost as Markdown"))
    sub.add_argument("--month", metavar="2031-03", help=say("the month; the last that has ended"))
    sub.add_argument("--tenant", metavar="T", help=say("of one team only"))


def _runtime_verbs(runtime: argparse.ArgumentParser) -> None:
    verbs = runtime.add_subparsers(required=True, metavar="list|put|approve|disable|remove", dest="verb")
    sub = verbs.add_parser("list", help=say("print the runtimes that teams have"))
    sub.add_argument("tenant", nargs="?", metavar="TENANT")
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub.set_defaults(command=calls.runtime_list)
    sub = verbs.add_parser("put", help=say("register or change one, approved at once"))
    sub.add_argument("tenant", metavar="TENANT")
    sub.add_argument("name", metavar="NAME")
    sub.add_argument(
        "file", type=Path, metavar="FILE", help=say("its description as JSON, - for standard input")
    )
    sub.set_defaults(command=calls.runtime_put)
    for verb, text in (
        ("approve", say("let new jobs use one")),
        ("disable", say("let no new job use one")),
        ("remove", say("remove one; jobs that were submitted keep it")),
    ):
        sub = verbs.add_parser(verb, help=text)
        sub.add_argument("tenant", metavar="TENANT")
        sub.add_argument("name", metavar="NAME")
        sub.set_defaults(command=calls.runtime_act)


def _isolation_verbs(isolation: argparse.ArgumentParser) -> None:
    verbs = isolation.add_subparsers(required=True, metavar="list|rotate", dest="verb")
    sub = verbs.add_parser("list", help=say("print how each team's files are kept, and what is being moved"))
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub.set_defaults(command=calls.isolation_list)
    sub = verbs.add_parser(
        "rotate",
        help=say("give an encrypted team another key; without TENANT wrap all keys with another master key"),
    )
    sub.add_argument("tenant", nargs="?", metavar="TENANT")
    sub.set_defaults(command=calls.isolation_rotate)


def _node_verbs(node: argparse.ArgumentParser) -> None:
    verbs = node.add_subparsers(required=True, metavar="list|drain|return", dest="verb")
    sub = verbs.add_parser("list", help=say("print the nodes, with the problems of each"))
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub.set_defaults(command=calls.node_list)
    sub = verbs.add_parser("drain", help=say("print the work on a node, and take the node out of service"))
    sub.add_argument("name", metavar="NAME")
    sub.add_argument(
        "--reason", default="", metavar="TEXT", help=say("reason; owners of stopped work read it")
    )
    sub.add_argument(
        "--evict", action="store_true", help=say("jobs go back to the queue, notebook servers are stopped")
    )
    sub.add_argument("--dry-run", action="store_true", help=say("only print the work that runs there"))
    sub.set_defaults(command=calls.node_drain)
    sub = verbs.add_parser("return", help=say("put a node into service again"))
    sub.add_argument("name", metavar="NAME")
    sub.set_defaults(command=calls.node_return)


def _add_debug_dump(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    sub = add(
        "debug-dump",
        calls.debug_dump,
        say("write versions, settings, checks, logs and numbers into an archive, without names and secrets"),
    )
    sub.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help=say("a new file; without it, one named by the time, here"),
    )
    sub.add_argument(
        "--lines", type=int, default=2000, metavar="N", help=say("number of lines of each log (2000)")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mlp-hub",
        description=say("Runs MLP Hub on this machine."),
        epilog=say(
            "Settings come from MLP_* variables or c.MLPHub.* in the file that MLP_CONFIG names; `mlp-hub "
            "--settings` lists them."
        ),
    )
    parser.add_argument("--settings", action=_ShowSettings, nargs=0, help=say("list all settings and exit"))
    commands = parser.add_subparsers(title=say("commands"), required=True, metavar="COMMAND")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=text, description=say("{upper}{text}.", upper=text[0].upper(), text=text[1:])
        )
        sub.set_defaults(command=command)
        return sub

    _takes(add("up", calls.up, say("start the hub in the background and wait until it answers")))
    sub = add("down", calls.down, say("stop the hub; jobs and notebook servers continue"))
    sub.add_argument(
        "--jobs", choices=("keep", "stop"), help=say("stop: suspend jobs and end notebook servers too")
    )
    sub = add("status", calls.status, say("show the components, their memory and the jobs"))
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    sub = add(
        "logs", calls.logs, say("print the logs of the components; on a terminal follow them until Ctrl+C")
    )
    sub.add_argument(
        "components",
        nargs="*",
        metavar="COMPONENT",
        help=say("hub, service, data, proxy, supervisor; without a name, all"),
    )
    sub.add_argument(
        "--tail", type=int, default=20, metavar="N", help=say("number of lines of each at first (20)")
    )
    ways = sub.add_mutually_exclusive_group()
    ways.add_argument("--follow", "-f", action="store_true", help=say("follow in a pipe too"))
    ways.add_argument("--no-follow", action="store_true", help=say("end after these lines"))
    sub = add(
        "doctor",
        calls.doctor,
        say("print the parts that work on this machine and those that do not, with remedies"),
    )
    sub.add_argument("--json", action="store_true", help=say("print JSON"))
    _add_debug_dump(add)
    sub = add("token", calls.token, say("print a new token of a user, and nothing else"))
    sub.add_argument("--user", required=True, metavar="NAME")
    sub.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="S",
        help=say("may be repeated; without it, all scopes of the user"),
    )
    sub.add_argument("--note", default="", help=say("purpose of the token"))
    sub.add_argument(
        "--expires-in",
        type=int,
        metavar="SECONDS",
        help=say("time for which it is valid; without it, for ever"),
    )
    _user_verbs(
        add("user", calls.user_add, say("make an account, set its password, or log somebody out everywhere"))
    )
    _runtime_verbs(
        add(
            "runtime",
            calls.runtime_list,
            say("list, register, approve, disable or remove runtimes of teams"),
        )
    )
    _isolation_verbs(
        add(
            "isolation",
            calls.isolation_list,
            say("show how teams' files are kept, or change keys of encrypted ones"),
        )
    )
    _node_verbs(add("node", calls.node_list, say("list nodes, take one out of service, put it back")))
    _money_commands(add)
    sub = add("audit", calls.audit, say("print who changed what, the newest last"))
    sub.add_argument("--actor", metavar="NAME", help=say("user who did it; system for the hub itself"))
    sub.add_argument(
        "--action", metavar="A", help=say("action, such as tenant.update; tenant. for all that begin with it")
    )
    sub.add_argument("--object", metavar="NAME", help=say("object: a team, a user, a window"))
    sub.add_argument("--tenant", metavar="T", help=say("in which team"))
    sub.add_argument(
        "--since",
        metavar="TIME",
        help=say("a time such as 2031-03-01T08:00Z, or an age such as 7d, 12h or 30m"),
    )
    sub.add_argument("--until", metavar="TIME", help=say("same format as --since"))
    sub.add_argument("--lines", type=int, default=100, metavar="N", help=say("the last N (100)"))
    sub.add_argument("--json", action="store_true", help=say("print one JSON object per line"))
    sub.add_argument(
        "--verify", action="store_true", help=say("check that no entry was changed, removed or inserted")
    )
    sub.add_argument(
        "--heads",
        metavar="FILE",
        action="append",
        default=[],
        help=say("with --verify: compare with this copy of the file of heads; may be repeated"),
    )
    sub.add_argument(
        "--export",
        metavar="FILE",
        help=say(
            "write all entries that pass the filters into a file, as lines of JSON; - for standard output"
        ),
    )
    sub.add_argument("--csv", action="store_true", help=say("with --export: write CSV"))
    sub.add_argument("--force", action="store_true", help=say("with --export: replace an existing file"))
    _add_backups(add)
    _add_monitor(add)
    _add_simulate(add)
    _takes(add("supervise", calls.supervise, say("run in the foreground, for systemd and containers")))
    _add_pod(add)
    return parser


def _add_pod(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    sub = add("pod", calls.pod, say("run one part in its own pod, as the Helm chart does"))
    sub.add_argument(
        "part",
        choices=("secrets", "setup", "probe", "clean", "hub", "service", "data", "proxy"),
        metavar="PART",
    )
    sub.add_argument(
        "--secrets",
        type=Path,
        default=Path("/srv/secrets"),
        metavar="DIR",
        help=say("the directory with the part's secrets, a file each"),
    )
    sub.add_argument(
        "--secret",
        default="",
        metavar="NAME",
        help=say(
            "with setup: the Secret that is made at the first start and kept; with clean: the Secret to remove"
        ),
    )
    _takes(sub)


def _add_monitor(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    from mlp_hub.cli.commands import monitor_options  # noqa: PLC0415 - light, and only options

    monitor_options.add(
        add(
            "monitor",
            calls.monitor,
            say("print files for Prometheus, Alertmanager and Grafana, or start them"),
        )
    )


def _add_simulate(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    sub = add("simulate", calls.simulate, say("run a scenario of nodes, teams and jobs in virtual time"))
    sub.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help=say("a file in YAML or JSON, - for standard input")
    )
    sub.add_argument(
        "--export",
        metavar="now|DAYS",
        help=say("print the running hub as a scenario instead: its present, or its jobs of the last DAYS"),
    )
    sub.add_argument(
        "--json", action="store_true", help=say("print one JSON object per line: the events, and the summary")
    )
    sub.add_argument("--policy", metavar="NAME", help=say("run under this policy instead"))
    sub.add_argument("--plot", metavar="FILE.svg", help=say("draw nodes and teams over time"))


def _add_backups(add: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    sub = add(
        "backup", calls.backup, say("write databases, secrets and files into one file, while the hub runs")
    )
    sub.add_argument("file", type=Path, metavar="FILE", help=say("a new file that ends in .tar or .tar.gz"))
    sub.add_argument("--without-files", action="store_true", help=say("leave out homes and jobs' outputs"))
    sub = add("restore", calls.restore, say("fill an empty state directory from a backup"))
    sub.add_argument("file", type=Path, metavar="FILE")
    sub = add(
        "upgrade", calls.upgrade, say("bring the databases to this version, after saving a copy of them")
    )
    sub.add_argument(
        "--check", action="store_true", help=say("only print the planned actions; status 1 if there are any")
    )
