"""Points of metrics as processes report them: a number, a time and values by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_VALUES = 100
"""Limit of runs: values of one metric point; further ones are left out."""


@dataclass(frozen=True, slots=True)
class SpooledPoint:
    """A point that a process reported; the fields are those of the wire."""

    n: int
    t: float
    v: dict[str, float | int]


def values_of(plain: dict[str, Any]) -> dict[str, float | int]:
    """Return the numeric values; null replaces one that is not finite, and other values are left out."""
    values: dict[str, float | int] = {}
    for key, value in plain.items():
        # half a surrogate pair is text to JSON and cannot be stored
        name = key[:100] if key.isascii() else key[:100].encode(errors="replace").decode()
        if value is None:
            values[name] = float("nan")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            values[name] = value if isinstance(value, float) else bounded(value)
        if len(values) >= MOST_VALUES:
            break
    return values


def bounded(value: float) -> float | int:
    """Return a number that can be stored and calculated with: for an integer beyond 64 bits the float next to it."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value
