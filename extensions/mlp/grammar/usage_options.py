"""Options of `usage`: which days, of whom, and by what the lines are split."""

from __future__ import annotations

import re

from mlp.grammar.job_options import Option, name
from mlp.language import say

SPLITS = ("day", "month", "tenant", "user", "work", "name", "gpu_kind")
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)


def _month(text: object) -> str:
    if not _MONTH.fullmatch(str(text)):
        raise ValueError(say("is not a month; write it as {example}", example="2031-03"))
    return str(text)


def _splits(text: object) -> str:
    parts = [part for part in str(text).split(",") if part]
    if not parts or [part for part in parts if part not in SPLITS]:
        raise ValueError(say("is not a split; choose some of {choices}", choices=", ".join(SPLITS)))
    return ",".join(parts)


USAGE = (
    Option(
        "month", lambda: say("the month"), _month, None, "2031-03", shown_default=lambda: say("last 30 days")
    ),
    Option("by", lambda: say("split the lines by these"), _splits, "tenant,work", "NAMES"),
    Option(
        "tenant",
        lambda: say("all members' use, of a team that you administer"),
        name,
        None,
        "NAME",
        "-t",
        "tenants",
    ),
    Option("csv", lambda: say("write them as CSV with the columns of FOCUS"), None, False),
    Option("report", lambda: say("write the report of the month as Markdown"), None, False),
)
