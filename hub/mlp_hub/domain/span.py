"""Span of records that were written row by row: one page, the newest first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowSpan:
    """A page of rows of which each has a time and an id that grows.

    `since` is in, `until` is not, both seconds since the epoch; `before` is the id that the page before ended with. A page
    holds `limit` rows at most, and fewer where they are long: about `most_bytes` of them, and one row at least. None is
    without a bound.
    """

    since: float | None = None
    until: float | None = None
    limit: int = 100
    before: int | None = None
    most_bytes: int | None = None


NEWEST = RowSpan()
"""The first page of all there is."""
