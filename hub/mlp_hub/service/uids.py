"""Unique names of jobs that sort by the time of submission."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80


class UidMaker:
    """Makes uids of 26 characters: milliseconds since the epoch, then 80 random bits.

    Two made in the same millisecond by one maker still sort in the order in which they were made.
    """

    def __init__(self) -> None:
        self._last = 0

    def make(self, now: float) -> str:
        """Return a new uid for something submitted at `now`."""
        value = (int(now * 1000) << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS - 1)
        if value >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
            value = self._last + 1
        self._last = value
        return "".join(_ALPHABET[(value >> (5 * i)) & 31] for i in range(25, -1, -1))
