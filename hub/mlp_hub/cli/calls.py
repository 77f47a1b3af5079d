"""The functions of the commands of `mlp-hub`; each imports its module when the command is used."""

from __future__ import annotations

import argparse
import os
import sys

from mlp_hub.settings import Settings
from mlp_language.render import say


def up(settings: Settings, args: argparse.Namespace) -> int:
    """Start the hub in the background."""
    from mlp_hub.cli.lifecycle import up  # noqa: PLC0415

    return up.up(settings, os.environ, args.take)


def supervise(settings: Settings, args: argparse.Namespace) -> int:
    """Run the hub in the foreground."""
    from mlp_hub.cli.lifecycle import up  # noqa: PLC0415

    return up.supervise(settings, os.environ, args.take)


def pod(settings: Settings, args: argparse.Namespace) -> int:
    """Run one part in its own pod, or prepare, test or clean up for all of them."""
    from mlp_hub.cli.lifecycle import pod as part  # noqa: PLC0415

    if args.part == "clean":
        from mlp_hub.cli.lifecycle import pod_clean  # noqa: PLC0415

        return pod_clean.clean(settings, args.secret)
    if args.part == "probe":
        from mlp_hub.cli.lifecycle import pod_probe  # noqa: PLC0415

        return pod_probe.probe(settings)
    if args.part in ("secrets", "setup"):
        from mlp_hub.cli.lifecycle import pod_setup  # noqa: PLC0415

        if args.part == "secrets":
            return pod_setup.show_secrets(args.secret)
        return pod_setup.setup(settings, args.take, args.secret, args.secrets)
    return part.run(settings, os.environ, args.part, args.secrets)


def down(settings: Settings, args: argparse.Namespace) -> int:
    """Stop the hub."""
    from mlp_hub.cli.errors import UsageFailure  # noqa: PLC0415
    from mlp_hub.cli.lifecycle import down  # noqa: PLC0415
    from mlp_hub.cli.state import plan  # noqa: PLC0415

    jobs = args.jobs or os.environ.get("JOBS") or "keep"
    if jobs not in ("keep", "stop"):
        raise UsageFailure(say("JOBS is {jobs}; it must be keep or stop", jobs=jobs))
    return down.down(plan.as_started(settings, os.environ), stop_jobs=jobs == "stop")


def status(settings: Settings, args: argparse.Namespace) -> int:
    """Show the components and jobs."""
    from mlp_hub.cli.lifecycle import status  # noqa: PLC0415
    from mlp_hub.cli.state import plan  # noqa: PLC0415

    return status.status(plan.as_started(settings, os.environ), as_json=args.json)


def logs(settings: Settings, args: argparse.Namespace) -> int:
    """Print the logs of components."""
    from mlp_hub.cli.lifecycle import status  # noqa: PLC0415

    # in a pipe the reader waits for our end, unless it asked for what is still to come
    follow = args.follow or (sys.stdout.isatty() and not args.no_follow)
    return status.logs(settings, args.components, lines=args.tail, follow=follow)


def doctor(settings: Settings, args: argparse.Namespace) -> int:
    """Check the machine and the hub."""
    from mlp_hub.cli.doctor import doctor  # noqa: PLC0415

    return doctor.doctor(settings, as_json=args.json)


def token(settings: Settings, args: argparse.Namespace) -> int:
    """Print a new token of a user."""
    from mlp_hub.cli.commands import accounts  # noqa: PLC0415

    made = accounts.token(settings, args.user, args.scope, note=args.note, expires_in=args.expires_in)
    sys.stdout.write(made + "\n")
    return 0


def user_add(settings: Settings, args: argparse.Namespace) -> int:
    """Make an account."""
    from mlp_hub.cli.commands import accounts  # noqa: PLC0415

    accounts.user_add(
        settings, args.name, tenant=args.tenant, admin=args.admin, password_stdin=args.password_stdin
    )
    return 0


def user_password(settings: Settings, args: argparse.Namespace) -> int:
    """Set another password."""
    from mlp_hub.cli.commands import accounts  # noqa: PLC0415

    accounts.user_password(settings, args.name, password_stdin=args.password_stdin)
    return 0


def user_logout(settings: Settings, args: argparse.Namespace) -> int:
    """End sessions and tokens of a user."""
    from mlp_hub.cli.commands import accounts  # noqa: PLC0415

    accounts.user_logout(settings, args.name)
    return 0


def user_import(settings: Settings, args: argparse.Namespace) -> int:
    """Make accounts from a file."""
    from mlp_hub.cli.commands import people  # noqa: PLC0415

    return people.import_people(settings, args.file, dry_run=args.dry_run)


def node_list(settings: Settings, args: argparse.Namespace) -> int:
    """Print the nodes."""
    from mlp_hub.cli.commands import nodes  # noqa: PLC0415

    return nodes.show(settings, as_json=args.json)


def node_drain(settings: Settings, args: argparse.Namespace) -> int:
    """Take a node out of service."""
    from mlp_hub.cli.commands import nodes  # noqa: PLC0415
    from mlp_hub.cli.errors import UsageFailure  # noqa: PLC0415

    if not args.reason and not args.dry_run:
        raise UsageFailure(
            say("Give a reason: --reason TEXT; owners of stopped work read it. Or look first: --dry-run.")
        )
    return nodes.drain(settings, args.name, reason=args.reason, evict=args.evict, dry_run=args.dry_run)


def node_return(settings: Settings, args: argparse.Namespace) -> int:
    """Put a node into service again."""
    from mlp_hub.cli.commands import nodes  # noqa: PLC0415

    return nodes.give_back(settings, args.name)


def audit(settings: Settings, args: argparse.Namespace) -> int:
    """Print, export or verify the audit log."""
    from mlp_hub.cli.commands import audit  # noqa: PLC0415

    filters = {name: getattr(args, name) for name in audit.FILTERS}
    if args.verify:
        from mlp_hub.cli.commands import audit_verify  # noqa: PLC0415

        return audit_verify.check(settings, args.heads)
    if args.export:
        from mlp_hub.cli.commands import audit_files  # noqa: PLC0415

        return audit_files.export(settings, filters, args.export, as_csv=args.csv, force=args.force)
    return audit.audit(settings, filters, lines=args.lines, as_json=args.json)


def runtime_list(settings: Settings, args: argparse.Namespace) -> int:
    """Print the runtimes of tenants."""
    from mlp_hub.cli.commands import runtimes  # noqa: PLC0415

    return runtimes.show(settings, tenant=args.tenant, as_json=args.json)


def runtime_put(settings: Settings, args: argparse.Namespace) -> int:
    """Register or change a runtime."""
    from mlp_hub.cli.commands import runtimes  # noqa: PLC0415

    return runtimes.put(settings, args.tenant, args.name, args.file)


def runtime_act(settings: Settings, args: argparse.Namespace) -> int:
    """Approve, disable or remove a runtime."""
    from mlp_hub.cli.commands import runtimes  # noqa: PLC0415

    return runtimes.act(settings, args.tenant, args.name, args.verb)


def isolation_list(settings: Settings, args: argparse.Namespace) -> int:
    """Print how files of tenants are kept."""
    from mlp_hub.cli.commands import isolation  # noqa: PLC0415

    return isolation.show(settings, as_json=args.json)


def isolation_rotate(settings: Settings, args: argparse.Namespace) -> int:
    """Give a tenant another key, or wrap all keys with another master key."""
    from mlp_hub.cli.commands import isolation  # noqa: PLC0415

    return (
        isolation.rotate_master(settings) if args.tenant is None else isolation.rotate(settings, args.tenant)
    )


def backup(settings: Settings, args: argparse.Namespace) -> int:
    """Write a backup."""
    from mlp_hub.cli.backups.backup import backup  # noqa: PLC0415

    return backup(settings, args.file, files=not args.without_files)


def restore(settings: Settings, args: argparse.Namespace) -> int:
    """Fill a state directory from a backup."""
    from mlp_hub.cli.backups.restore import restore  # noqa: PLC0415

    return restore(settings, args.file)


def debug_dump(settings: Settings, args: argparse.Namespace) -> int:
    """Write an archive for a report of a fault."""
    from mlp_hub.cli.debug_dump.command import debug_dump  # noqa: PLC0415
    from mlp_hub.cli.state import plan  # noqa: PLC0415

    return debug_dump(plan.as_started(settings, os.environ), args.file, lines=args.lines)


def upgrade(settings: Settings, args: argparse.Namespace) -> int:
    """Bring the databases to this version."""
    from mlp_hub.cli.lifecycle.upgrade import upgrade  # noqa: PLC0415

    return upgrade(settings, os.environ, check=args.check)


def monitor(settings: Settings, args: argparse.Namespace) -> int:
    """Print or start what monitors the hub."""
    from mlp_hub.cli.commands import monitor_options  # noqa: PLC0415

    return monitor_options.do(settings, args)


def simulate(settings: Settings, args: argparse.Namespace) -> int:
    """Run or export a scenario."""
    from mlp_hub.cli.commands import simulate  # noqa: PLC0415
    from mlp_hub.cli.errors import UsageFailure  # noqa: PLC0415

    if (args.scenario is None) == (args.export is None):
        raise UsageFailure(say("Name a SCENARIO to run, or --export now or --export DAYS; one of the two."))
    if args.export is not None:
        return simulate.export(settings, args.export, as_json=args.json)
    return simulate.simulate(args.scenario, as_json=args.json, policy=args.policy, plot=args.plot)


def prices(settings: Settings, args: argparse.Namespace) -> int:
    """Show, replace or remove the price list."""
    from mlp_hub.cli.commands import prices  # noqa: PLC0415

    if args.verb == "put":
        return prices.put(settings, args.file)
    return prices.remove(settings) if args.verb == "remove" else prices.show(settings, as_json=args.json)


def budget(settings: Settings, args: argparse.Namespace) -> int:
    """List, set or remove budgets."""
    from mlp_hub.cli.commands import budgets  # noqa: PLC0415

    if args.verb == "list":
        return budgets.list_(settings, as_json=args.json)
    if args.verb == "remove":
        return budgets.remove(settings, args.tenant)
    asked = budgets.BudgetAsked(
        args.tenant, args.amount, args.currency, args.levels, args.stop, args.begins, args.ends
    )
    return budgets.put(settings, asked)


def report(settings: Settings, args: argparse.Namespace) -> int:
    """Print the report of a month."""
    from mlp_hub.cli.commands import prices  # noqa: PLC0415

    return prices.report(settings, month=args.month, tenant=args.tenant)
