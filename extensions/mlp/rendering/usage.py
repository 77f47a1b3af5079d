"""Use and cost as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from mlp.language import say
from mlp.rendering import costs
from mlp.rendering.tables import Table

HOUR_S = 3600
_SPLITS = {
    "day": lambda: say("day"),
    "month": lambda: say("month"),
    "tenant": lambda: say("team"),
    "user": lambda: say("user"),
    "work": lambda: say("work"),
    "name": lambda: say("name"),
    "gpu_kind": lambda: say("gpu kind"),
}


def usage(found: dict[str, Any], by: str, budgets: Sequence[dict[str, Any]] = ()) -> Table:
    """Lay out lines, with their total in the last one, and what of budgets is spent below."""
    splits = by.split(",")
    priced = found["currency"] is not None
    amounts = [
        say("core-hours"),
        say("used"),
        say("idle"),
        say("GiB-hours"),
        say("GPU-hours"),
        say("GiB-days"),
    ]
    if priced:
        amounts.append(say("cost in {currency}", currency=found["currency"]))
    lines = [*found["lines"], *([found["total"]] if found["lines"] else [])]
    columns = [_column([_HOURS[name](line) for line in lines]) for name in _HOURS]
    if priced:
        columns.append(_column([None if line["cost"] is None else Decimal(line["cost"]) for line in lines]))
    names = [[str(line[split] or "") for split in splits] for line in found["lines"]]
    names.append([say("total"), *[""] * (len(splits) - 1)])
    rows = [[*names[at], *(column[at] for column in columns)] for at in range(len(lines))]
    title = say("Use from {since} to before {until} (UTC)", since=found["since"], until=found["until"])
    notes = [text for text in map(costs.budget, budgets) if text]
    if found["total"]["core_unmeasured_s"]:
        notes.append(say("Use is measured when a job ends; what is neither used nor idle was not measured."))
    notes += _sources(found["total"])
    return Table(
        [*(_SPLITS[split]() for split in splits), *amounts],
        rows,
        found,
        title=title,
        empty=say(
            "Nothing was held from {since} to before {until}.", since=found["since"], until=found["until"]
        ),
        notes=notes,
    )


def _sources(total: dict[str, Any]) -> list[str]:
    """Return notes about use that is only reported, or of an unknown source; a service of an older version does not name the source."""
    notes = []
    if reported := total.get("core_reported_s", 0.0):
        notes.append(
            say(
                "The use of {n} core-hours is by the jobs' own reports; the cluster did not measure it.",
                n=costs.money(Decimal(str(reported)) / HOUR_S),
            )
        )
    if unknown := total.get("core_unknown_s", 0.0):
        notes.append(
            say(
                "The use of {n} core-hours is from before an upgrade; whether it was measured is unknown.",
                n=costs.money(Decimal(str(unknown)) / HOUR_S),
            )
        )
    return notes


def _column(values: Sequence[Decimal | None]) -> list[str]:
    """Write the values of a column whose last one is the total of the others."""
    if not values:
        return []
    parts, total = costs.column([value or Decimal() for value in values[:-1]], values[-1] or Decimal())
    return ["" if value is None else text for value, text in zip(values, [*parts, total], strict=True)]


def _hours(name: str) -> Callable[[dict[str, Any]], Decimal]:
    return lambda line: Decimal(str(line[name])) / HOUR_S


_HOURS: dict[str, Callable[[dict[str, Any]], Decimal]] = {
    **{name: _hours(name) for name in ("core_s", "core_used_s", "core_idle_s", "memory_gib_s", "gpu_s")},
    "storage_gib_days": lambda line: Decimal(str(line["storage_gib_days"])),
}
