"""Use and cost as a table."""

from __future__ import annotations

from typing import Any

from mlp.language import say
from mlp.rendering.format import rounded
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


def usage(found: dict[str, Any], by: str) -> Table:
    """Lay out lines, with their total in the last one."""
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
    rows = [
        [*(str(line[split] or "") for split in splits), *_amounts(line, priced=priced)]
        for line in found["lines"]
    ]
    if rows:
        total = _amounts(found["total"], priced=priced)
        rows.append([say("total"), *[""] * (len(splits) - 1), *total])
    title = say("Use from {since} to before {until} (UTC)", since=found["since"], until=found["until"])
    notes = []
    if found["total"]["core_unmeasured_s"]:
        notes.append(say("Use is measured when a job ends; what is neither used nor idle was not measured."))
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


def _amounts(line: dict[str, Any], *, priced: bool) -> list[str]:
    hours = [
        line[name] / HOUR_S for name in ("core_s", "core_used_s", "core_idle_s", "memory_gib_s", "gpu_s")
    ]
    found = [rounded(value, 3) for value in [*hours, line["storage_gib_days"]]]
    return [*found, "" if line["cost"] is None else rounded(float(line["cost"]), 2)] if priced else found
