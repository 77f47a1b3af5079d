"""Findings of a check of the doctor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.settings import Settings
from mlp_language.render import say

OK = "ok"
WARN = "warn"  # works, with less than there could be
FAIL = "fail"  # something the hub needs does not work


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: `status` is ok, warn or fail; `remedy` says what to do unless it is ok."""

    name: str
    status: str
    found: str
    remedy: str = ""


def run_check(name: str, check: Callable[[Settings], Check | list[Check]], settings: Settings) -> list[Check]:
    """Return the findings of one check.

    A check that breaks is also a finding, so that the others, and the hub's start, continue.
    """
    try:
        found = check(settings)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        broken = say("{name}: {error}", name=type(error).__name__, error=str(error))
        found = Check(name, FAIL, broken, say("This check itself failed."))
    return found if isinstance(found, list) else [found]
