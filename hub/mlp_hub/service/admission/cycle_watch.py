"""Waiting for the end of a scheduling cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class CycleWatch:
    """Tells those who wait for a decision that a cycle is over."""

    def __init__(self) -> None:
        self._turned = asyncio.Event()

    @property
    def turned(self) -> asyncio.Event:
        """Set at the end of the present cycle, or of the next one."""
        return self._turned

    @contextmanager
    def one(self) -> Iterator[None]:
        """Go through one cycle, whatever becomes of it."""
        try:
            yield
        finally:
            self._turned.set()
            self._turned = asyncio.Event()
