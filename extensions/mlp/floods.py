"""Throttle for a cell that prints faster than a notebook server can take its output.

That output then piles up in memory: in the kernel, and on its way. Jupyter bounds the waiting
messages by their number, and a message has all output since the last one. The server limits the
output for an open page far below this rate.

Programs and libraries that write to the kernel's file descriptors are read by a thread of the
stream. That thread never waits: a library that writes while it holds Python's lock would wait for
the thread for ever, and the thread for the lock. Output that comes too fast there is left out.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

RATE = 1 << 20
"""Tuning: characters a second that pass: above a server's limit to a page, below a fifth of a core's."""
BURST = 8 << 20
"""Tuning: characters at once without a wait: a loop's output of a moment.

No write waits longer than these take.
"""

LEFT_OUT = "\n[...]\n"
"""Mark for output that was left out."""


class Brake:
    """The allowance of a kernel's outputs together, of which each write takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._level, self._at = float(BURST), clock()
        self._closed = False

    def wait(self, size: int) -> float:
        """Take what was written; return for how many seconds its writer waits."""
        with self._lock:
            self._refill()
            self._level = max(-BURST, self._level - size)
            return max(0.0, -self._level / RATE)

    def admit(self, size: int) -> tuple[bool, bool]:
        """Take what cannot wait, if there is enough left; return whether there is, and whether the answer changed.

        Once there was not, half of all must have come back.
        """
        with self._lock:
            self._refill()
            was, self._closed = self._closed, self._level < (BURST / 2 if self._closed else size)
            if not self._closed:
                self._level -= size
            return not self._closed, was != self._closed

    def _refill(self) -> None:
        now = self._clock()
        self._level = min(BURST, self._level + (now - self._at) * RATE)
        self._at = now


def slow(stream: Any, brake: Brake, sleep: Callable[[float], None] = time.sleep) -> None:
    """Replace the `write` of a kernel's stream by one that keeps to the allowance."""
    write: Callable[[str], int | None] = stream.write
    sender, reader = getattr(stream.pub_thread, "thread", None), getattr(stream, "watch_fd_thread", None)

    def slowed(text: str) -> int | None:
        thread = threading.current_thread()
        if thread is reader:
            admitted, changed = brake.admit(len(text))
            if admitted:
                return write(text)
            return write(LEFT_OUT) if changed else 0
        done = write(text)
        # what sends the output on never waits for it
        if (wait := brake.wait(len(text))) and thread is not sender:
            sleep(wait)
        return done

    stream.write = slowed


def load_ipython_extension(_: Any) -> None:
    """Slow both outputs, where they go to a page."""
    brake = Brake()
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "pub_thread", None) is not None and "write" not in vars(stream):
            slow(stream, brake)
