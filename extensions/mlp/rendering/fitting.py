"""Rows of a table in one line each on a terminal: long texts are cut, and the least important columns are left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

GAP = 2
"""Characters between columns."""
SHORT, SHORTEST = 20, 8
"""Characters to which a long column is cut before a column is left out, and after all others were."""
CUT = "…"


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes: a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def start_of(text: str, most: int) -> str:
    """Return the begin of a text that fits `most` columns, at least one character."""
    end = len(text)
    while end > 1 and width(text[:end]) > most:
        end -= 1
    return text[:end]


def cut(text: str, most: int) -> str:
    """Return a text that fits `most` columns; one that is cut ends in dots."""
    return text if width(text) <= most else start_of(text, most - 1) + CUT


def one_line_each(
    table: Sequence[Sequence[str]], most: int, least_first: Sequence[int]
) -> tuple[list[str], list[int]]:
    """Return the lines of a table, its header first, that fit `most` columns, and the numbers of the columns left out.

    `least_first` has the columns that may be left out, the least important first. An empty one is left out before all others.
    """
    columns = range(len(table[0]))
    natural = [max(width(row[i]) for row in table) for i in columns]
    empty = [i for i in least_first if not any(row[i] for row in table[1:])]
    left_out: list[int] = []
    order = [*empty, *(i for i in least_first if i not in empty)]
    widths = _cut_to({i: natural[i] for i in columns}, most, SHORT)
    while order and not _fits(widths, most):
        left_out.append(order.pop(0))
        widths = _cut_to({i: natural[i] for i in columns if i not in left_out}, most, SHORT)
    if not _fits(widths, most):
        widths = _cut_to(widths, most, SHORTEST)
    lines = [
        (" " * GAP).join(_padded(cut(row[i], wide), wide) for i, wide in widths.items()).rstrip()
        for row in table
    ]
    return lines, left_out


def _padded(text: str, wide: int) -> str:
    return text + " " * (wide - width(text))


def _fits(widths: dict[int, int], most: int) -> bool:
    return sum(widths.values()) + GAP * (len(widths) - 1) <= most


def _cut_to(widths: dict[int, int], most: int, least: int) -> dict[int, int]:
    """Narrow the widest columns, each to `least` at least, until the table fits."""
    found = dict(widths)
    while not _fits(found, most) and max(found.values()) > least:
        widest = max(found, key=lambda i: found[i])
        found[widest] -= 1
    return found


def narrowed(widths: list[int], most: int) -> list[int]:
    """Narrow the widest columns until the table fits a terminal of `most` characters, as far as it may (0: any fits)."""
    while most and sum(widths) + GAP * (len(widths) - 1) > most and max(widths) > SHORTEST:
        at = widths.index(max(widths))
        widths = [*widths[:at], widths[at] - 1, *widths[at + 1 :]]
    return widths
