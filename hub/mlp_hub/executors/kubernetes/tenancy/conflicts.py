"""Waits before something is put back that others change again and again."""

from __future__ import annotations

import time
from collections.abc import Hashable

FIRST_S, MOST_S = 0.05, 60.0
"""Tuning: seconds until what somebody changed is put back, at first and where it is changed again and again: a fight with
another program costs a request a minute, and a change that is made once is not there for long."""


class Fights:
    """Waits for each thing: twice as long each time, until it was left in peace for as long as the longest of them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, float]] = {}  # the last wait, and when it was asked for

    def next_wait(self, what: Hashable) -> float:
        """Return the seconds to wait this time."""
        now = time.monotonic()
        last, then = self._known.get(what, (0.0, 0.0))
        wait_s = FIRST_S if now - then > last + MOST_S or not last else min(MOST_S, last * 2)
        for old in [each for each, (waited, at) in self._known.items() if now - at > waited + MOST_S]:
            del self._known[old]
        self._known[what] = (wait_s, now)
        return wait_s
