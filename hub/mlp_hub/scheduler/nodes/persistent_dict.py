"""A large dict of which forks share all but what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

MOST_ABOVE = 512
"""Tuning: changed entries that are copied for each fork, before they are made one with the rest: copying, for looking things
up in two places."""

K = TypeVar("K")
V = TypeVar("V")


class Layered(Generic[K, V]):
    """Keys keep the order in which they came. A fork costs what changed since the last few, not how much there is."""

    __slots__ = ("_above", "_below", "_shared")

    def __init__(self) -> None:
        self._below: dict[K, V] = {}
        self._above: dict[K, V] = {}  # instead of, or after, what is below; never None
        self._shared = False  # whether a fork reads what is below

    def __getitem__(self, key: K) -> V:
        found = self._above.get(key)
        return self._below[key] if found is None else found

    def __setitem__(self, key: K, value: V) -> None:
        (self._above if self._shared else self._below)[key] = value

    def __delitem__(self, key: K) -> None:
        self._join()
        del self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._above or key in self._below

    def __iter__(self) -> Iterator[K]:
        return iter(self._whole())

    def get(self, key: K) -> V | None:
        """Return what a key has, None where it has nothing."""
        found = self._above.get(key)
        return self._below.get(key) if found is None else found

    def values(self) -> Iterator[V]:
        """Iterate over all there is, in the order of the keys."""
        return iter(self._whole().values())

    def fork(self) -> Layered[K, V]:
        """Return an independent copy."""
        if len(self._above) > MOST_ABOVE:
            self._join()
        self._shared = True
        other: Layered[K, V] = Layered()
        other._below, other._above, other._shared = self._below, self._above.copy(), True
        return other

    def _whole(self) -> dict[K, V]:
        return {**self._below, **self._above} if self._above else self._below

    def _join(self) -> None:
        if self._shared:
            self._below, self._above, self._shared = {**self._below, **self._above}, {}, False
