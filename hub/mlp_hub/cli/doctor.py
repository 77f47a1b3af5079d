"""`mlp-hub doctor`: what works on this machine and what not, each with its remedy. It tries, it does not guess."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from mlp_hub.cli import checks_machine as machine
from mlp_hub.cli import checks_training as training
from mlp_hub.cli.checks import FAIL, OK, Check
from mlp_hub.settings import Settings

# Kept in the order in which a person would look for a fault.
CHECKS: tuple[tuple[str, Callable[[Settings], Check | list[Check]]], ...] = (
    ("python", machine.python),
    ("disk", machine.disk),
    ("sandbox", machine.sandbox),
    ("cgroups", machine.cgroups),
    ("network", machine.network),
    ("node", machine.node),
    ("port", machine.port),
    ("database", machine.database),
    ("scheduler", machine.decides),
    ("hub", machine.hub),
    ("mpi", training.mpi),
    ("tensorflow", training.tensorflow),
    ("torch", training.torch),
    ("gpu", training.gpu),
)


def examine(settings: Settings) -> list[Check]:
    """Run all checks side by side and return what they found, in order."""

    def one(name: str, check: Callable[[Settings], Check | list[Check]]) -> list[Check]:
        try:
            found = check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, and the others still count
            found = Check(name, FAIL, f"{type(error).__name__}: {error}", "This check itself failed.")
        return found if isinstance(found, list) else [found]

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(one, name, check) for name, check in CHECKS]
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
    for check in found:
        sys.stdout.write(f"{check.status:<5} {check.name:<11} {check.found}\n")
        if check.remedy and check.status != OK:
            sys.stdout.write(f"{'':<18}{check.remedy}\n")
    if failed:
        sys.stdout.write(f"\n{len(failed)} of {len(found)} checks failed\n")
    return 1 if failed else 0
