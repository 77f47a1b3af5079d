"""A class name stands once in the product, but for what is one thing on both sides of a border."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

TOP = Path(__file__).parents[3]
WIRE, NOTEBOOKS = "hub/mlp_api", "extensions/mlp"
ON_THE_WIRE_TOO = {
    *(
        "Alert",
        "AlertRule",
        "AlertSilence",
        "Announcement",
        "Dataset",
        "Fact",
        "Failure",
        "Job",
        "LogLine",
        "Member",
        "Node",
        "Notice",
        "PreviewStop",
    ),
    *("ServiceAccount", "Sweep", "SweepTrial", "Taint", "Tenant", "User", "Verdict", "Why"),
}
IN_NOTEBOOKS_TOO = {"Job", "MLPError", "Refused", "Sweep", "Unauthorized"}
OF_TWO_FRAMEWORKS = {"ReportCallback"}


@cache
def places() -> dict[str, list[str]]:
    found = defaultdict(list)
    for folder in ("hub", "extensions", "spawner"):
        for path in (TOP / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path.relative_to(TOP).as_posix())
    return found


def test_a_class_name_occurs_once_within_the_hub_the_spawner_and_the_language() -> None:
    found = {
        name: [p for p in paths if not p.startswith((WIRE, NOTEBOOKS))] for name, paths in places().items()
    }
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}, "rename the newer one"


def test_only_what_is_one_thing_on_both_sides_has_its_name_there_too() -> None:
    twice = {name: paths for name, paths in places().items() if len(paths) > 1}
    wire = {name for name, paths in twice.items() if any(p.startswith(WIRE) for p in paths)}
    notebooks = {name for name, paths in twice.items() if any(p.startswith(NOTEBOOKS) for p in paths)}
    assert wire == ON_THE_WIRE_TOO
    assert notebooks == IN_NOTEBOOKS_TOO | OF_TWO_FRAMEWORKS
    assert set(twice) == wire | notebooks
