"""The page on clusters lists every right that `doctor` asks for."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.executors.kubernetes.rbac import OF_HUB, OF_OPERATORS, RIGHTS, row

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "kubernetes.md"


def test_each_right_has_its_row() -> None:
    rows = {line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    assert {row(need) for need in (*RIGHTS, *OF_HUB, *OF_OPERATORS)} <= rows
