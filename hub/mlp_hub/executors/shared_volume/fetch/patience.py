"""Time limits for an endpoint: the socket's timeout ends silent connections, and this module ends slow ones."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

LOOK_S = 1.0
"""Tuning: seconds between two looks at waiting connections."""


class ConnectionPatience:
    """Ends connections on which something did not come in time, whatever came of it. Its thread lives as long as somebody waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, look_s: float = LOOK_S) -> None:
        self._clock, self._look_s = clock, look_s
        self._due: dict[int, tuple[float, socket.socket, int]] = {}
        self._lock = threading.Lock()
        self._looking = False

    @contextlib.contextmanager
    def within(
        self, line: socket.socket | None, seconds: float, how: int = socket.SHUT_RDWR
    ) -> Iterator[None]:
        """Limit the waits within this context to `seconds` seconds.

        After that they find the connection ended, or the part of it that `how` names. None: nothing waits.
        """
        if line is None:
            yield
            return
        with self._lock:
            self._due[id(line)] = self._clock() + seconds, line, how
            begins, self._looking = not self._looking, True
        if begins:
            threading.Thread(target=self._look, name="patience", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._due.pop(id(line), None)

    def _look(self) -> None:
        while True:
            time.sleep(self._look_s)
            with self._lock:
                now = self._clock()
                late = [(line, how) for due, line, how in self._due.values() if due < now]
                self._looking = bool(self._due)
                if not self._looking:
                    return
            for line, how in late:
                with contextlib.suppress(OSError):
                    line.shutdown(how)


patience = ConnectionPatience()
"""Of all connections of this process."""
