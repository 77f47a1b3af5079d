"""Loops that repeat their work, and wait after a failure."""

from __future__ import annotations

import asyncio

from mlp_hub.service.support.backoff import wait_after


class RetryWaits:
    """Waits of a loop that repeats its work: after each failure in a row a longer one, as `wait_after`."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._failures = 0

    async def after(self, *, passed: bool) -> None:
        """Note whether the work was done; after a failure return when it may be tried again."""
        self._failures = 0 if passed else self._failures + 1
        if self._failures:
            await asyncio.sleep(wait_after(self._failures, self._first_s, self._most_s))
