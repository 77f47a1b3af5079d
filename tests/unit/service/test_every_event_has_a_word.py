"""Kinds of events in a job's timeline have a word on its page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
SERVICE = ROOT / "hub/mlp_hub/service"


def kinds() -> Iterator[str]:
    """Return the kinds that steps of a timeline are made with, by themselves or by the name of a constant."""
    for path in SERVICE.rglob("*.py"):
        module = ast.parse(path.read_text())
        names = {
            node.targets[0].id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        }
        for node in ast.walk(module):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Step"
                and node.args
            ):
                kind = node.args[0]
                if isinstance(kind, ast.Constant):
                    yield str(kind.value)
                elif isinstance(kind, ast.Name) and kind.id in names:
                    yield names[kind.id]


def test_every_kind_of_event_has_a_word() -> None:
    table = (
        (ROOT / "widgets/src/core/format/words.ts")
        .read_text()
        .partition("const EVENTS")[2]
        .partition("};")[0]
    )
    words = set(re.findall(r'"?([a-z-]+)"?: \(\) =>', table))
    found = set(kinds())
    assert {"metrics-full", "metrics-names", "program-changed", "admitted"} <= found
    assert found <= words
