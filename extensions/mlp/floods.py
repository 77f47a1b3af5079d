"""Slows a cell that prints faster than a notebook server can take its output, which then piles up in memory: in the kernel, and on its way.

Jupyter bounds by numbers of messages what waits to be sent, and a message has all that was printed since the last one. What an open page
is shown, the server bounds far below this rate.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

RATE = 1 << 20
"""Tuning: characters a second that go on; more than a server lets through to a page, less than one with a fifth of a core can take."""
BURST = 8 << 20
"""Tuning: characters at once, which none waits for: what a loop prints in a moment. No write waits longer than these take."""


class Brake:
    """Says how long who has written should wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._level, self._at = float(BURST), clock()

    def wait(self, size: int) -> float:
        """Count what was written; return seconds."""
        with self._lock:
            now = self._clock()
            self._level = min(BURST, self._level + (now - self._at) * RATE)
            self._at = now
            self._level = max(-BURST, self._level - size)
            return max(0.0, -self._level / RATE)


def slow(stream: Any, brake: Brake, sleep: Callable[[float], None] = time.sleep) -> None:
    """Have a stream of a kernel keep to it."""
    write = stream.write

    def slowed(text: str) -> int | None:
        done: int | None = write(text)
        # what sends the output on never waits for it
        if (wait := brake.wait(len(text))) and threading.current_thread() is not sender:
            sleep(wait)
        return done

    sender = getattr(stream.pub_thread, "thread", None)
    stream.write = slowed


def load_ipython_extension(_: Any) -> None:
    """Slow both outputs, where they go to a page."""
    brake = Brake()
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "pub_thread", None) is not None and "write" not in vars(stream):
            slow(stream, brake)
