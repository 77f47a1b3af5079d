"""How much is booked at once: sums over spans of time that overlap, and the most of them within a span."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Load:
    """A sum that changes at known moments. To add a span, and to ask for the most within one, takes the logarithm of these.

    A tree over the moments, its root at 1 and its leaves from `_size` on. `_most` is the most of a part, `_owed` what was
    added to all of a part and is not handed on to its halves yet.
    """

    def __init__(self, moments: Sequence[float]) -> None:
        """Make it for these moments, which are sorted and different."""
        self._moments = moments
        self._size = 1 << max(len(moments) - 1, 0).bit_length()
        self._levels = range(self._size.bit_length() - 1, 0, -1)
        self._most = [0] * (2 * self._size)
        self._owed = [0] * (2 * self._size)

    def add(self, start: float, end: float, amount: int) -> None:
        """Add an amount from `start` to before `end`; `start` is one of the moments."""
        first, last = self._leaves(start, end)
        low, high = first, last + 1
        most, owed = self._most, self._owed
        while low < high:
            if low & 1:
                most[low] += amount
                owed[low] += amount
                low += 1
            if high & 1:
                high -= 1
                most[high] += amount
                owed[high] += amount
            low >>= 1
            high >>= 1
        for leaf in (first, last):
            node = leaf >> 1
            while node:
                one, other = most[2 * node], most[2 * node + 1]
                most[node] = (max(other, one)) + owed[node]
                node >>= 1

    def most(self, start: float, end: float) -> int:
        """Return the largest sum at a moment from `start` to before `end`."""
        first, last = self._leaves(start, end)
        self._hand_on(first)
        self._hand_on(last)
        low, high = first, last + 1
        most = self._most
        found = most[first]
        while low < high:
            if low & 1:
                found = max(found, most[low])
                low += 1
            if high & 1:
                high -= 1
                found = max(found, most[high])
            low >>= 1
            high >>= 1
        return found

    def _leaves(self, start: float, end: float) -> tuple[int, int]:
        """Return the first and the last leaf of a span."""
        first = bisect_left(self._moments, start)
        return first + self._size, bisect_left(self._moments, end, first) - 1 + self._size

    def _hand_on(self, leaf: int) -> None:
        """Hand on all that is owed on the way down to a leaf."""
        most, owed = self._most, self._owed
        for level in self._levels:
            node = leaf >> level
            amount = owed[node]
            if amount:
                for half in (2 * node, 2 * node + 1):
                    most[half] += amount
                    owed[half] += amount
                owed[node] = 0
