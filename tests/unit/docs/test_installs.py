"""The page on what differs between installs has a row for each test that holds on one of them only, and no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "installs.md"


def rows() -> list[list[str]]:
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1:]]


def marks() -> Iterator[tuple[str, str, str]]:
    """All tests' marks: the file, the row, and the install that the test is for."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "mark.differs" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.differs":
                (row,), more = (ast.literal_eval(one) for one in node.args), node.keywords
                yield path.name, row, {one.arg: ast.literal_eval(one.value) for one in more}["only"]


def test_each_row_has_both_installs_and_a_reason() -> None:
    assert rows()
    assert all(len(row) == 4 and all(row) for row in rows())


def test_rows_are_what_tests_say_that_differs() -> None:
    assert {row for _, row, _ in marks()} == {row[0] for row in rows()}


def test_each_mark_names_an_install_that_there_is() -> None:
    assert {only for _, _, only in marks()} <= {"local", "cluster"}
