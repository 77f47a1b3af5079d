"""Options of `mlp team`, and which words make one of its acts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlp.grammar.job_options import BY_NAME, COUNTED, Option, number, ram, whole, word
from mlp.language import say

_UNITS = {"m": 2**20, "g": 2**30, "t": 2**40}


def _storage(text: object) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(m|g|t)(?:i?b)?", str(text).strip().lower())
    if not found:
        raise ValueError(say("is not an amount of storage; write 500G or 2T"))
    return round(float(found[1]) * _UNITS[found[2]])


def _then(name: str) -> Option:
    return replace(
        BY_NAME[name], default=None, help=lambda: say("the total that the team should have (ask)"),
        shown_default=lambda: say("as it is"),
    )  # fmt: skip


AMOUNTS: tuple[Option, ...] = (
    replace(_then("cpu"), parse=number(0.001, 1_000_000, lambda: say("cores"))),
    replace(_then("gpu"), parse=number(0.001, 1_000_000, lambda: say("devices"))),
    replace(_then("ram"), parse=ram, metavar="MIB"),
    replace(_then("ram"), name="rom", written="--storage", parse=_storage, metavar="500G|2T"),
    *(_then(o.name) for o in COUNTED),
)
TEAM: tuple[Option, ...] = (
    *AMOUNTS,
    Option(
        "jobs",
        lambda: say("maximum number of jobs at once (cap)"),
        whole(0, 1_000_000, lambda: say("jobs")),
        None,
        "N",
        shown_default=lambda: say("the team's limit"),
    ),
    Option(
        "user",
        lambda: say("member with this cap (cap)"),
        word(255),
        None,
        "NAME",
        shown_default=lambda: say("everybody's"),
    ),
    Option("reason", lambda: say("purpose (ask)"), word(500), None, "TEXT"),
    Option("note", lambda: say("a message to the team's admins (join)"), word(200), None, "TEXT"),
)
_CAP = {"cpu", "gpu", "jobs", "user"}
_ASK = {o.name for o in AMOUNTS} | {"reason"}


def right_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `team` has the options that are given."""
    act = names[0] if names else "ls"
    options = {"join": {"note"}, "ask": _ASK, "cap": _CAP}
    if act == "ask" and not ("reason" in given and len(given.keys() & _ASK) > 1):
        return False
    return given.keys() <= options.get(act, set()) | {"json"}
