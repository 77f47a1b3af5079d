"""Unique names of jobs that sort by the time of submission."""

from __future__ import annotations

import secrets
from io import BytesIO

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
"""Given: random bits of an identifier."""
_READ_AHEAD = 256
"""Tuning: identifiers' worth of random bytes that are read from the system at a time: memory of the random bytes, for fewer
calls of the system."""


class UidMaker:
    """Makes uids of 26 characters: milliseconds since the epoch, then 80 random bits.

    Two made in the same millisecond by one maker still sort in the order in which they were made.
    """

    def __init__(self) -> None:
        self._last = 0
        self._random = BytesIO()  # read ahead: asking the system costs as much as all the rest

    def make(self, now: float) -> str:
        """Return a new uid for something submitted at `now`."""
        value = (int(now * 1000) << _RANDOM_BITS) | self._bits()
        if value >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
            value = self._last + 1
        self._last = value
        return "".join(_ALPHABET[(value >> (5 * i)) & 31] for i in range(25, -1, -1))

    def _bits(self) -> int:
        """Return random bits, the highest of them 0: there is room for more in the same millisecond."""
        found = self._random.read(_RANDOM_BITS // 8)
        if not found:
            self._random = BytesIO(secrets.token_bytes(_READ_AHEAD * _RANDOM_BITS // 8))
            found = self._random.read(_RANDOM_BITS // 8)
        return int.from_bytes(found, "big") >> 1
