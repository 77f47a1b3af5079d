"""Waiting for the end of a scheduling cycle, and how long cycles take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class CycleOutcome:
    """Result of a cycle; `admitted` is None for one that failed."""

    admitted: int | None = None
    is_held: bool = False

    @property
    def title(self) -> str:
        """Outcome in a word: failed, held, admitted, nothing."""
        if self.admitted is None:
            return "failed"
        if self.is_held:
            return "held"
        return "admitted" if self.admitted else "nothing"


class CycleWatch:
    """Tells those who wait for a decision that a cycle is over.

    `over` are called after each cycle with its outcome and its duration in seconds.
    """

    def __init__(self) -> None:
        self._turned = asyncio.Event()
        self.over: list[Callable[[str, float], None]] = []

    @property
    def turned(self) -> asyncio.Event:
        """Set at the end of the present cycle, or of the next one."""
        return self._turned

    @contextmanager
    def one(self) -> Iterator[CycleOutcome]:
        """Go through one cycle, whatever becomes of it."""
        outcome, began = CycleOutcome(), time.perf_counter()
        try:
            yield outcome
        finally:
            self._turned.set()
            self._turned = asyncio.Event()
            for listener in self.over:
                listener(outcome.title, time.perf_counter() - began)
