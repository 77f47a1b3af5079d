"""Waits before the next try after a failure: the one rule in the product, and its count for many keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


def wait_after(failures: int, first_s: float, most_s: float) -> float:
    """Return the wait in seconds after `failures` failures in a row.

    It is `first_s`, doubled with each, and at most `most_s`.
    """
    return min(most_s, first_s * 2.0 ** min(failures - 1, 32))


class KeyedBackoff(Generic[K]):
    """Failures in a row by key, and the wait in seconds that follows each."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._failures: Counter[K] = Counter()

    def failed(self, key: K) -> float:
        """Count a failure; return the wait before the next try."""
        self._failures[key] += 1
        return wait_after(self._failures[key], self._first_s, self._most_s)

    def forget(self, key: K) -> None:
        """Drop the failures of a key that went well, or is gone."""
        self._failures.pop(key, None)
