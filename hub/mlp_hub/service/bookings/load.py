"""Load by bookings: sums over spans of time that overlap, and the most of them within a span."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Load:
    """Sums at known moments, one after another in time: of a thousand windows, the most there may be, a pass over all is short."""

    def __init__(self, moments: Sequence[float]) -> None:
        """Make it for these moments, which are sorted and different."""
        self._moments = moments
        self._sums = [0] * len(moments)

    def add(self, start: float, end: float, amount: int) -> None:
        """Add an amount from `start` to before `end`; `start` is one of the moments."""
        span = self._span(start, end)
        self._sums[span] = [n + amount for n in self._sums[span]]

    def most(self, start: float, end: float) -> int:
        """Return the largest sum at a moment from `start`, which is one of them, to before `end`."""
        return max(self._sums[self._span(start, end)])

    def _span(self, start: float, end: float) -> slice:
        first = bisect_left(self._moments, start)
        return slice(first, bisect_left(self._moments, end, first))
