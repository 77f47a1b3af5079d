"""Options of the verb `alerts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlp.errors import UsageError
from mlp.grammar.job_options import Option, duration, name, word
from mlp.language import say

ALERTS = (
    Option("reason", lambda: say("why they are silenced (silence)"), word(500), None, "TEXT"),
    Option("lasts", lambda: say("how long they are silenced (silence)"), duration, None, "8h|7d"),
    Option(
        "tenant",
        lambda: say("of this team, which you administer"),
        name,
        None,
        "NAME",
        "-t",
        "tenants",
        shown_default=lambda: say("the whole platform"),
    ),
)


def right_alerts_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `alerts` has the options that are given. Raises `UsageError` for a silence without reason or end."""
    act = names[0] if names else "ls"
    if act != "silence":
        return not given.keys() & {"reason", "lasts"}
    if "reason" not in given:
        raise UsageError(say("a silence needs a reason, which others read: add --reason TEXT"))
    if "lasts" not in given:
        raise UsageError(say("a silence needs an end: add --lasts 8h, at most 30d"))
    return True
