"""Slow uploads and downloads: each occupies a thread, and room that others could use.

A transfer below the lowest rate is ended. The service is asked from time to time, and a transfer whose right was revoked ends too.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

log = logging.getLogger(__name__)
LOWEST = 4096
"""Limit of data: bytes in a second that an upload or a download must have at least."""
SPARE_S = 60.0
"""Safety: additional seconds for each piece."""
ASKED_S = 60.0
"""Tuning: seconds between two questions whether who sends or takes it still may: sooner ended, for a question each."""
LOOK_S = 1.0
"""Tuning: seconds between two looks at incoming pieces."""


ANSWER = "mlp.answer"


class _Coming:
    """One transfer on its connection, an upload or a download; `how` its socket is shut down."""

    def __init__(self, request: Any, may: Callable[[], bool], now: float, how: int = socket.SHUT_RD) -> None:
        self.request, self.may, self._how = request, may, how
        self.due: float | None = None  # when the piece that is read now has to be here
        self.asked = now

    def end(self) -> None:
        """End the transfer: its reader finds the end, and reports the missing part."""
        with contextlib.suppress(OSError):
            self.request.conn.socket.shutdown(self._how)


class SlowBodies:
    """Watches uploads and downloads, and ends those that are too slow or have lost their right."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._all: set[_Coming] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Look, from now on."""
        threading.Thread(target=self._watch, name="slow", daemon=True).start()

    @contextlib.contextmanager
    def watched(self, environ: dict[str, Any], may: Callable[[], bool]) -> Iterator[None]:
        """Watch an upload while the context is open; `may` returns whether its sender still has the right."""
        request = environ.get("mlp.request")
        if request is None:
            yield
            return
        coming = _Coming(request, may, self._clock())
        environ["wsgi.input"] = _Body(environ["wsgi.input"], coming, self._clock)
        with self._among(coming):
            yield

    @contextlib.contextmanager
    def answers(self, environ: dict[str, Any], may: Callable[[], bool]) -> Iterator[None]:
        """Watch a download while the context is open; `may` returns whether its reader still has the right."""
        request = environ.get("mlp.request")
        if request is None:
            yield
            return
        environ[ANSWER] = going = _Coming(request, may, self._clock(), socket.SHUT_RDWR)
        with self._among(going):
            yield

    def taken(self, environ: dict[str, Any], pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of an answer, and note for how long each may be on its way."""
        going = environ.get(ANSWER)
        try:
            for data in pieces:
                if going is not None:
                    going.due = self._clock() + SPARE_S + len(data) / LOWEST
                yield data
                if going is not None:
                    going.due = None
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    @contextlib.contextmanager
    def _among(self, one: _Coming) -> Iterator[None]:
        with self._lock:
            self._all.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._all.discard(one)

    def check_bodies(self) -> None:
        """Look once."""
        with self._lock:
            all_ = list(self._all)
        for one in all_:
            now = self._clock()
            if one.due is not None and now > one.due:
                log.info("a request that hardly goes on is ended")
                one.end()
            elif now - one.asked >= ASKED_S:
                one.asked = now
                if not one.may():
                    log.info("a request of who may not any more is ended")
                    one.end()

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_S)
            try:
                self.check_bodies()
            except Exception:  # the next look may go better
                log.exception("looking at what comes failed")


class _Body:
    """A body that says when it is waited for."""

    def __init__(self, inner: Any, coming: _Coming, clock: Callable[[], float]) -> None:
        self._inner, self._coming, self._clock = inner, coming, clock

    def read(self, size: int | None = None) -> bytes:
        """Read on."""
        self._coming.due = self._clock() + SPARE_S + (size or 0) / LOWEST
        try:
            data: bytes = self._inner.read() if size is None else self._inner.read(size)
        finally:
            self._coming.due = None
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
