"""Page of the newest figure of each kind in the history of the benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HISTORY = Path(__file__).parents[2] / "tests/benchmarks/history.jsonl"
_HEAD = """# Figures

The newest measurement of each figure, from `tests/benchmarks/history.jsonl`. [Measure it](../how-to/measure.md) describes the method.
*Beside* is another product or a published figure; *earlier* is an older commit of MLP Hub, measured in turn with the newer one.
A ratio is our figure divided by the other one. Compare ratios: absolute figures depend on the machine.

| figure | value | beside | ratio | earlier | ratio | measured |
|---|---|---|---|---|---|---|
"""


def figures_page() -> str:
    """Return the page of the figures that are kept."""
    lines = HISTORY.read_text(encoding="utf-8").splitlines()
    return page_of(json.loads(line) for line in lines)


def page_of(lines: Iterable[dict[str, Any]]) -> str:
    """Return the page of a history, oldest line first. Figures keep the order of their first measurement."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        newest[line["figure"], line["unit"]] = line
    return _HEAD + "".join(_row(line) for line in newest.values())


def _row(line: dict[str, Any]) -> str:
    machine = line["machine"]
    cells = [
        line["figure"],
        f"{line['value']:.4g} {line['unit']}",
        *_beside(line, "anchor"),
        *_beside(line, "against"),
        f"{line['date']}, {line['commit']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _beside(line: dict[str, Any], name: str) -> tuple[str, str]:
    other = line.get(name)
    if other is None:
        return "", ""
    ratio = f"{line['value'] / other['value']:.2f}" if other["value"] else ""
    return f"{other['name']}: {other['value']:.4g}", ratio
