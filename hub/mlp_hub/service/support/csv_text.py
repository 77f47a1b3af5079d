"""Lines of CSV that a spreadsheet takes for texts and numbers, never for formulas. Times have the form of all REST answers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

FORMULA_STARTS = (
    *"=+-@\t\r\n",
    *"\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}",
)
"""Given: first characters of a formula in a spreadsheet; wide ones count for Chinese or Japanese input."""
_SPLITS = re.compile(r"[;\t\r\n][\"\s]*")
"""Given: ends of a cell in some spreadsheets. If the decimal sign is a comma, Excel splits lines at semicolons."""


def csv_bytes(lines: Iterable[Sequence[object]]) -> bytes:
    """Return lines of cells as UTF-8; a formula within a text gets an apostrophe in front, and a time is RFC 3339 UTC."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_cell(value) for value in line] for line in lines)
    return text.getvalue().encode("utf-8", "replace")


def time_text(at: datetime) -> str:
    """Return a time as JSON of the REST interface has it: `2031-03-01T08:15:00Z`, with microseconds if it has any."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if value is None or isinstance(value, int | float):
        return value
    text = _SPLITS.sub(_with_apostrophe, str(value))
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _with_apostrophe(end: re.Match[str]) -> str:
    return f"{end[0]}'" if end.string.startswith(FORMULA_STARTS, end.end()) else end[0]
