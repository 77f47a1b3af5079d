"""Acts that found no cluster: their attempts are looked at again, soon at first, then later and later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

AGAIN_S = 3.0
"""Tuning: seconds until an act is tried again that found no cluster, though no watch was cut: requests, for how late a short outage is over."""
LATEST_AGAIN_S = 60.0
"""Tuning: the same for one that found none again and again, each time after twice as long."""


class ActsPutOff:
    """Attempts of which an act found no cluster.

    `look_again` is called with each of them. `is_cut` returns whether a watch is down: when that is back,
    it calls `answers_again`. An outage that cut no watch is noticed here alone.
    """

    def __init__(self, look_again: Callable[[str], None], is_cut: Callable[[], bool]) -> None:
        self._look_again, self._is_cut = look_again, is_cut
        self._attempts: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wait_s = AGAIN_S
        self._closed = False

    def add(self, attempt: str) -> None:
        """Have an attempt looked at again later: an act of it found no cluster."""
        self._attempts.add(attempt)
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._ripe)
            self._wait_s = min(2 * self._wait_s, LATEST_AGAIN_S)

    def succeeded(self) -> None:
        """Note that an act went through: the next outage is looked at soon."""
        self._wait_s = AGAIN_S

    def answers_again(self) -> None:
        """Have all looked at now; their caller retries at ever longer intervals."""
        attempts, self._attempts = self._attempts, set()
        for attempt in attempts:
            self._look_again(attempt)

    def close(self) -> None:
        """Look at nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ripe(self) -> None:
        self._timer = None
        if not self._is_cut():
            self.answers_again()
