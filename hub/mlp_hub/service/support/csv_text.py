"""Lines of CSV that a spreadsheet takes for texts and numbers, never for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA_STARTS = (
    *"=+-@\t\r\n",
    *"\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}",
)
"""Given: first characters of a formula in a spreadsheet; wide ones count for Chinese or Japanese input."""


def csv_bytes(lines: Iterable[Sequence[object]]) -> bytes:
    """Return lines of cells as UTF-8; a text that begins like a formula gets an apostrophe in front."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in line] for line in lines)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
