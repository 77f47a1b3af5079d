"""Connections that are listened to all the time."""

from __future__ import annotations

from tornado.iostream import IOStream

AHEAD = 64 * 1024
"""What may have come before anybody asked for it while the connection is still listened to."""


class SteadyStream(IOStream):
    """A stream that goes on listening while a little of what came was not asked for yet.

    Tornado's own stops listening where a request's body came together with its headers, and begins again once the body
    is taken: two calls of the system for each request. Beyond `AHEAD` bytes this one stops too, so that who sends faster
    than it is served fills no memory: at most one read comes on top.
    """

    _listens_on = False

    def _handle_read(self) -> None:
        self._listens_on = False  # here `reading` says how much is wanted
        super()._handle_read()
        self._listens_on = self._read_buffer_size < AHEAD

    def reading(self) -> bool:
        """Whether it listens: somebody waits for what comes next, or will soon."""
        return self._listens_on or bool(super().reading())
