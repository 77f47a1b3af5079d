"""`mlp-hub doctor`: working and failing parts of this machine, each failure with its remedy.

It tests, and does not guess.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from mlp_hub.cli.doctor import cluster as pods
from mlp_hub.cli.doctor import login as logins
from mlp_hub.cli.doctor import machine, state, training
from mlp_hub.cli.doctor.broker import broker
from mlp_hub.cli.doctor.certificates import certificate
from mlp_hub.cli.doctor.checks import FAIL, OK, Check, run_check
from mlp_hub.cli.doctor.data import data
from mlp_hub.cli.doctor.gateway import gateway
from mlp_hub.cli.doctor.isolation import isolation
from mlp_hub.cli.doctor.mail import mail
from mlp_hub.cli.doctor.site_receivers import audit_receivers, exporters
from mlp_hub.settings import Settings
from mlp_hub.settings.executor_kinds import SOME_CHECKS
from mlp_language.render import say

# Kept in the order in which a person would look for a fault.
CHECKS: tuple[tuple[str, Callable[[Settings], Check | list[Check]]], ...] = (
    ("python", machine.python),
    ("disk", machine.disk),
    ("sandbox", machine.sandbox),
    ("uids", machine.uids),
    ("cgroups", machine.cgroups),
    ("network", machine.network),
    ("cluster", pods.cluster),
    ("node", machine.node),
    ("port", machine.port),
    ("names", machine.names),
    ("login", logins.login),
    ("certificate", certificate),
    ("database", state.databases),
    ("files", state.files),
    ("metrics", broker),
    ("mail", mail),
    ("audit", audit_receivers),
    ("exports", exporters),
    ("scheduler", machine.decides),
    ("hub", machine.hub),
    ("data", data),
    ("isolation", isolation),
    ("gateway", gateway),
    # pods have these from their image, which this machine knows nothing of: see the checks of each kind of executor
    ("mpi", training.mpi),
    ("tensorflow", training.tensorflow),
    ("torch", training.torch),
    ("gpu", training.gpu),
)


def checks_of(settings: Settings) -> Sequence[tuple[str, Callable[[Settings], Check | list[Check]]]]:
    """Return the checks that mean something for a hub of these settings."""
    left_out = SOME_CHECKS - settings.runs.checks
    return [(name, check) for name, check in CHECKS if name not in left_out]


def examine(settings: Settings) -> list[Check]:
    """Run all checks side by side and return what they found, in order."""
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(run_check, name, check, settings) for name, check in checks_of(settings)]
        return [check for job in jobs for check in job.result()]


def doctor(settings: Settings, *, as_json: bool) -> int:
    """Print the findings; the exit status is 1 where something needed does not work."""
    found = examine(settings)
    failed = [check for check in found if check.status == FAIL]
    if as_json:
        sys.stdout.write(
            json.dumps({"ok": not failed, "checks": [asdict(c) for c in found]}, indent=2) + "\n"
        )
        return 1 if failed else 0
    show(found)
    if failed:
        sys.stdout.write(f"\n{say('{n} of {all} checks failed', n=len(failed), all=len(found))}\n")
    return 1 if failed else 0


def show(found: Sequence[Check]) -> None:
    """Print findings, each with its remedy."""
    for check in found:
        sys.stdout.write(f"{check.status:<5} {check.name:<11} {check.found}\n")
        if check.remedy and check.status != OK:
            sys.stdout.write(f"{'':<18}{check.remedy}\n")
