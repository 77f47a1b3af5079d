"""Reference page of limits: what a person who was refused, or who plans, looks for. Each has its number and, if it has one, its setting."""

from __future__ import annotations

import importlib

from mlp.rendering.words import capital
from mlp_hub.settings import SettingDoc, table
from reference.numbers import Number, limits
from reference.rest import markdown_table

SUBJECTS = {
    "jobs": "Jobs, sweeps and logs",
    "runs": "Metrics and runs",
    "notebooks": "Notebook servers",
    "apps": "Apps",
    "data": "Datasets, models and environments",
    "teams": "Teams and people",
    "requests": "Requests, tokens and logins",
    "what-if": "What-if",
    "scenarios": "Scenarios of `mlp-hub simulate`",
    "kubernetes": "In a cluster",
}
"""Headings of the page, by the subject of a limit's mark or of a setting's `limit`."""
_HEAD = """# Limits

A refusal names the limit that it applies. A limit with a [setting](settings.md) can be changed by the operator; its number here is
the default. The other numbers are the same in every installation. Limits of single fields are with the [objects](rest.md#objects) of the
API, and [quotas](../how-to/team.md) belong to a team.
"""


def limits_page() -> str:
    """Return the page of limits, by subject."""
    page, settings, numbers = _HEAD, table(), limits()
    for subject, title in SUBJECTS.items():
        rows = [_of_setting(row) for row in settings if row.limit == subject]
        rows += [(shown(n), _text(n.text), "") for n in numbers if n.subject == subject]
        page += f"\n## {title}\n\n" + markdown_table(("limit", "of", "setting"), rows)
    return page


def _of_setting(row: SettingDoc) -> tuple[str, str, str]:
    value = float(row.default) if row.default else None
    unit = f" {row.unit}" if row.unit else ""
    limit = "unset" if value is None else f"{value:,g}{unit}" if value < 1e6 else f"{value:,.0f}{unit}"
    return limit, row.doc, f"`{row.variable}`"


def shown(number: Number) -> str:
    """Return the value of a limit as people read it: bytes and seconds in a larger unit where that is exact."""
    value = getattr(importlib.import_module(number.module), number.name)
    unit = unit_of(number.text)
    if unit == "seconds":
        for size, word in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
            if value > size and value % size == 0:
                return f"{value / size:,g} {word}"
        return f"{value:,g} s"
    if unit in {"bytes", "mib"}:
        size = 20 if unit == "mib" else 0
        for more, word in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
            if (value << size) % (1 << more) == 0:
                return f"{(value << size) >> more:,} {word}"
        return f"{value:,} bytes"
    return f"{value:,}"


def unit_of(text: str) -> str:
    """Return the unit that a limit is in: the first word of its text."""
    return text.partition(" ")[0].lower()


def _text(text: str) -> str:
    unit, of, rest = text.partition(" of ")
    if unit_of(text) == "seconds":
        return "Time" + text[len("seconds") :]
    return capital(rest if of and unit.lower() in {"bytes", "mib"} else text)
