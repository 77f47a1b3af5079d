"""The line that names the exception which ended a Python program, where its message is longer than the lines that are kept."""

from __future__ import annotations

import re

TRACEBACK = b"Traceback (most recent call last):"
AFTER_TRACEBACK = re.compile(rb"^(?:\[rank\d+\]: ?)?([A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)
LONGEST = 300
"""Safety: bytes of the line that are kept."""
MOST = 64 << 10
"""Safety: bytes of a traceback in which the line is looked for."""
AT_ONCE_S = 2.0
"""Tuning: seconds from the traceback to the last output; a program that runs longer has caught that exception."""


class Raised:
    """Last lines of the newest traceback of a stream."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._text = b""  # from the traceback on, until its last line is known
        self._line = b""
        self._end = b""  # half a header may be the end of what was read

    def feed(self, data: bytes, now: float) -> None:
        """Take what was read, at `now` in seconds of a monotonic clock."""
        seen = self._end + data
        self._end = seen[1 - len(TRACEBACK) :]
        if self._since is not None and now - self._since > AT_ONCE_S:
            self._since, self._text, self._line = None, b"", b""
        if (at := seen.rfind(TRACEBACK)) >= 0:
            self._since, self._text, self._line = now, seen[at + len(TRACEBACK) :], b""
        elif self._since is None or self._line or len(self._text) > MOST:
            return
        else:
            self._text += data
        whole = self._text[: self._text.rfind(b"\n") + 1] or self._text[:0]
        if found := AFTER_TRACEBACK.search(whole):
            self._line, self._text = found[1][:LONGEST], b""

    def before(self, tail: str) -> str:
        """Return the last lines as a traceback whose middle is left out, if its beginning is not among them."""
        line, head = self._line.decode(errors="replace").strip(), TRACEBACK.decode()
        if not line or head in tail:
            return tail
        return f"{head}\n  ...\n{tail}" if line in tail else f"{head}\n  ...\n{line}\n  ...\n{tail}"
