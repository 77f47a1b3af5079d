"""Numbered steps with their times, for people; silent steps take no line."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from mlp_language.render import padded, say


class Progress:
    """Writes one line for each step when it is done, and on a terminal one while it runs."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.began = time.monotonic()
        self.live = sys.stdout.isatty()

    @property
    def seconds(self) -> float:
        """Time since the first step."""
        return time.monotonic() - self.began

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Run a step; texts that are appended to the list are shown next to it."""
        self.number += 1
        began = time.monotonic()
        head = f"[{self.number}/{self.total}] {padded(title, 12)}"
        if self.live:
            sys.stdout.write(f"{head} ...")
            sys.stdout.flush()
        notes: list[str] = []
        try:
            yield notes
        except BaseException:
            self._end(f"{head} {say('failed')}")
            raise
        self._end(f"{head} {padded('; '.join(notes) or 'ok', 56)} {time.monotonic() - began:5.1f} s")

    def _end(self, line: str) -> None:
        sys.stdout.write(f"\r\x1b[K{line}\n" if self.live else f"{line}\n")
        sys.stdout.flush()
