"""Waiting for a scheduling cycle that has seen what is stored now."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager


class CycleWatch:
    """Counts the cycles of the admission loop."""

    def __init__(self) -> None:
        self._begun = 0
        self._over = 0
        self._turned = asyncio.Event()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Go through one cycle, whatever becomes of it."""
        self._begun += 1
        mine = self._begun
        try:
            yield
        finally:
            self._over = max(self._over, mine)
            self._turned.set()
            self._turned = asyncio.Event()

    async def next(self, timeout_s: float) -> None:
        """Return when a cycle that begins from now on is over, or when that takes too long."""
        wanted = self._begun + 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._over < wanted:
                    await self._turned.wait()
